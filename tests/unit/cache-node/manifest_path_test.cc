#include "cache-node/manifests/manifest_path.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

using PathKind = ManifestPath::Kind;

const std::string kSomeDigest(64, 'a');

TEST(ManifestPath, IsOneOfFour) {
  const auto by_digest = ParseManifestPath("GET", "/v1/manifests/" + kSomeDigest);
  ASSERT_TRUE(by_digest);
  EXPECT_EQ(by_digest->kind, PathKind::kByDigest);
  EXPECT_EQ(by_digest->digest, kSomeDigest);
  const auto by_dataset = ParseManifestPath("GET", "/v1/datasets/vision/birds.v2/manifest");
  ASSERT_TRUE(by_dataset);
  EXPECT_EQ(by_dataset->kind, PathKind::kByDataset);
  EXPECT_EQ(by_dataset->name_space, "vision");
  EXPECT_EQ(by_dataset->dataset, "vision/birds.v2");
  const auto put = ParseManifestPath("PUT", "/v1/datasets/vision/birds/manifests/" + kSomeDigest);
  ASSERT_TRUE(put);
  EXPECT_EQ(put->kind, PathKind::kPut);
  EXPECT_EQ(put->digest, kSomeDigest);
  const auto offer = ParseManifestPath("GET", "/v1/datasets/vision/birds/manifests/" + kSomeDigest);
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->kind, PathKind::kOffer);
  EXPECT_EQ(offer->digest, kSomeDigest);
}

TEST(ManifestPath, NothingElseIsAPage) {
  const std::string put = "/v1/datasets/vision/birds/manifests/";
  for (const auto& [method, path] : std::vector<std::pair<std::string, std::string>>{
           {"GET", ""},
           {"GET", "/"},
           {"GET", "/v1/manifests/" + std::string(63, 'a')},
           {"GET", "/v1/manifests/" + std::string(64, 'A')},
           {"GET", "/v1/manifests/../" + kSomeDigest},
           {"GET", "/v1/manifests/" + kSomeDigest + "/"},
           {"PUT", "/v1/manifests/" + kSomeDigest},
           {"GET", "/v1/datasets/vision/../manifest"},
           {"GET", "/v1/datasets//birds/manifest"},
           {"GET", "/v1/datasets/vision/Birds/manifest"},
           {"GET", "/v1/datasets/" + std::string(254, 'a') + "/birds/manifest"},
           {"POST", put + kSomeDigest},
           {"PUT", put + "x"},
           {"PUT", put + kSomeDigest + "/x/y/z"}}) {
    EXPECT_FALSE(ParseManifestPath(method, path)) << method << " " << path;
  }
}

}  // namespace
}  // namespace optcache::node
