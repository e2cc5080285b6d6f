#include "cache-node/manifests/manifest_file.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "dataset/manifest_builder.h"
#include "support/temp_dir.h"

namespace optcache::node {
namespace {

dataset::Manifest ManifestOfSamples(int samples) {
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  for (int i = 0; i < samples; ++i)
    EXPECT_TRUE(builder.Add({.path = std::to_string(1000 + i), .size = 10}).ok());
  return std::move(builder).Finish().value();
}

class ManifestFileTest : public testing::Test {
 protected:
  // In pieces of so many bytes.
  Status Write(ManifestWriter& writer, std::string_view bytes, std::size_t piece = 100) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
      RETURN_IF_ERROR(writer.Write(bytes.substr(0, piece)));
    return OkStatus();
  }
  Status Store(std::string_view bytes, const std::string& digest,
               std::uint32_t manifest_samples_max = 0) {
    auto writer = ManifestWriter::Open(file_, bytes.size());
    if (!writer) return writer.error();
    RETURN_IF_ERROR(Write(**writer, bytes));
    return (*writer)->Keep(digest, manifest_samples_max);
  }
  // Until its end, or an error.
  Result<std::string> ReadAll(std::size_t piece = 100) {
    ASSIGN_OR_RETURN(const auto reader,
                     ManifestReader::Open(file_, digest_, [this](const Status&) { ++damages_; }));
    std::string all;
    while (all.size() < reader->size()) {
      ASSIGN_OR_RETURN(const std::string more, reader->Read(piece));
      all += more;
    }
    return all;
  }
  // What lies in the folder.
  std::size_t Files() const {
    const std::filesystem::directory_iterator files(dir_.path());
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

  TempDir dir_;
  const dataset::Manifest manifest_ = ManifestOfSamples(100);
  const std::string digest_ = dataset::ToHex(manifest_.digest());
  const std::string file_ = dir_.Join(digest_);
  int damages_ = 0;
};

TEST_F(ManifestFileTest, WhatCameGoesAgain) {
  ASSERT_TRUE(Store(manifest_.bytes(), digest_).ok());
  EXPECT_EQ(ReadAll().value(), manifest_.bytes());
  EXPECT_EQ(MapManifest(file_, digest_).value().view(), manifest_.bytes());
  EXPECT_EQ(Files(), 1U);
  EXPECT_EQ(damages_, 0);
}

TEST_F(ManifestFileTest, HasItsNameOnceItIsWhole) {
  const auto writer = ManifestWriter::Open(file_, manifest_.bytes().size()).value();
  ASSERT_TRUE(Write(*writer, manifest_.bytes()).ok());
  EXPECT_FALSE(std::filesystem::exists(file_));
  ASSERT_TRUE(writer->Keep(digest_, 0).ok());
  EXPECT_TRUE(std::filesystem::exists(file_));
}

TEST_F(ManifestFileTest, WhatIsNotKeptLeavesNothing) {
  (void)ManifestWriter::Open(file_, 10).value();
  EXPECT_EQ(Files(), 0U);
}

TEST_F(ManifestFileTest, TakesNothingUnderAnotherDigest) {
  const Status status = Store(manifest_.bytes(), std::string(64, 'b'));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Files(), 0U);
}

TEST_F(ManifestFileTest, TakesNothingThatIsNoManifest) {
  const std::string bytes = "rubbish";
  const Status status = Store(bytes, dataset::ToHex(dataset::Sha256Of(AsBytes(bytes))));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(Files(), 0U);
}

TEST_F(ManifestFileTest, TakesNeitherMoreNorLessThanWasSaid) {
  const ByteCount size = manifest_.bytes().size();
  const auto shorter = ManifestWriter::Open(file_, size - 1).value();
  EXPECT_EQ(Write(*shorter, manifest_.bytes()).code(), Code::kInvalidArgument);
  const auto longer = ManifestWriter::Open(file_, size + 1).value();
  ASSERT_TRUE(Write(*longer, manifest_.bytes()).ok());
  EXPECT_EQ(longer->Keep(digest_, 0).code(), Code::kInvalidArgument);
}

TEST_F(ManifestFileTest, TakesNoMoreSamplesThanThereIsMemoryFor) {
  const Status status = Store(manifest_.bytes(), digest_, 99);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "the manifest lists 100 samples, nodes have memory for 99: give them more "
            "(node.samples of the chart)");
  EXPECT_TRUE(Store(manifest_.bytes(), digest_, 100).ok());
}

TEST_F(ManifestFileTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(ManifestWriter::Open(dir_.Join("none/file"), 1).error().code(), Code::kNotFound);
  EXPECT_EQ(ReadAll().error().code(), Code::kNotFound);
}

// The last piece of what is damaged never goes, so nobody takes it for the whole.
TEST_F(ManifestFileTest, DamageEndsTheReading) {
  std::string damaged(manifest_.bytes());
  damaged[10] = static_cast<char>(damaged[10] + 1);
  for (const std::string& bytes : {damaged, damaged.substr(0, 50), std::string()}) {
    damages_ = 0;
    ASSERT_TRUE(WriteFileAtomically(file_, bytes).ok());
    EXPECT_EQ(ReadAll().error().code(), Code::kDataLoss);
    EXPECT_EQ(MapManifest(file_, digest_).error().code(), Code::kDataLoss);
    EXPECT_EQ(damages_, bytes.empty() ? 0 : 1);
  }
}

TEST_F(ManifestFileTest, AFileThatShrinksWhileItIsReadIsDamaged) {
  ASSERT_TRUE(Store(manifest_.bytes(), digest_).ok());
  const auto reader =
      ManifestReader::Open(file_, digest_, [this](const Status&) { ++damages_; }).value();
  ASSERT_TRUE(reader->Read(10).has_value());
  std::filesystem::resize_file(file_, 10);
  EXPECT_EQ(reader->Read(10).error().code(), Code::kDataLoss);
  EXPECT_EQ(damages_, 1);
}

}  // namespace
}  // namespace optcache::node
