#include "cache-node/manifests/listing.h"

#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"

namespace optcache::node {
namespace {

dataset::Manifest ManifestOf(ByteCount size) {
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  EXPECT_TRUE(builder.Add({.path = "a", .size = 10}).ok());
  EXPECT_TRUE(builder.Add({.path = "b", .size = size}).ok());
  return std::move(builder).Finish().value();
}

TEST(Listing, HasTheSizes) {
  const dataset::Manifest manifest = ManifestOf(30);
  const auto listing = ReadListing(manifest.shared_bytes(), dataset::ToHex(manifest.digest()));
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->sizes.count(), 2U);
  EXPECT_EQ(listing->sizes[1], 30U);
  EXPECT_TRUE(listing->digests.empty());
}

TEST(Listing, IsOnlyOfTheManifestThatWasAskedFor) {
  const auto listing = ReadListing(ManifestOf(30).shared_bytes(), std::string(64, 'a'));
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code(), Code::kDataLoss);
}

TEST(Listing, OfAManifestWithATooLargeSampleIsAnError) {
  const dataset::Manifest manifest = ManifestOf(4_GiB);
  const auto listing = ReadListing(manifest.shared_bytes(), dataset::ToHex(manifest.digest()));
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code(), Code::kInvalidArgument);
  EXPECT_NE(listing.error().message().find("b has 4"), std::string::npos)
      << listing.error().message();
}

}  // namespace
}  // namespace optcache::node
