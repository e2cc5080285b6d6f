#include "cache-node/manifest_store.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "dataset/manifest_builder.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace optcache::node {
namespace {

using std::chrono::minutes;

struct Made {
  std::string digest;
  std::string bytes;
};

Made Make(const std::string& path) {
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  EXPECT_TRUE(builder.Add({.path = path, .size = 10}).ok());
  const dataset::Manifest manifest = std::move(builder).Finish().value();
  return {.digest = dataset::ToHex(manifest.digest()), .bytes = manifest.bytes()};
}

class ManifestStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() { store_ = ManifestStore::Open(dir_.Join("manifests"), clock_, limits_).value(); }
  Status Put(const Made& made, const std::string& owner = "vision") {
    RETURN_IF_ERROR(store_->Reserve(made.digest, made.bytes.size(), owner));
    Status written = WriteManifest(store_->FileOf(made.digest), made.digest, made.bytes);
    store_->Settle(made.digest, written.ok());
    return written;
  }
  Result<std::string> Read(const std::string& digest) const {
    return ReadManifest(store_->FileOf(digest), digest, 1_GiB);
  }

  TempDir dir_;
  ManualClock clock_;
  ManifestStoreLimits limits_{.manifests = 3, .unnamed_per_owner = 2};
  std::optional<ManifestStore> store_;
  const Made a_ = Make("a");
  const Made b_ = Make("b");
  const Made c_ = Make("c");
  const Made d_ = Make("d");
};

TEST_F(ManifestStoreTest, GivesBackWhatItKeeps) {
  EXPECT_FALSE(store_->Has(a_.digest));
  ASSERT_TRUE(Put(a_).ok());
  EXPECT_TRUE(store_->Has(a_.digest));
  EXPECT_EQ(Read(a_.digest).value(), a_.bytes);
  EXPECT_EQ(store_->Digests(), std::vector<std::string>{a_.digest});
}

TEST_F(ManifestStoreTest, OutlivesTheProcess) {
  ASSERT_TRUE(Put(a_).ok());
  dir_.Write("manifests/" + b_.digest + ".tmp", "half of it");
  Open();
  EXPECT_TRUE(store_->Has(a_.digest));
  EXPECT_FALSE(std::filesystem::exists(dir_.Join("manifests/" + b_.digest + ".tmp")));
}

TEST_F(ManifestStoreTest, TakesNothingUnderAnotherDigest) {
  const Status status = Put({.digest = b_.digest, .bytes = a_.bytes});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_FALSE(store_->Has(b_.digest));
  EXPECT_FALSE(std::filesystem::exists(store_->FileOf(b_.digest)));
}

TEST_F(ManifestStoreTest, TakesNothingThatIsNoManifest) {
  const std::string bytes = "rubbish";
  const Status status =
      Put({.digest = dataset::ToHex(dataset::Sha256Of(AsBytes(bytes))), .bytes = bytes});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
}

TEST_F(ManifestStoreTest, NoticesDamage) {
  ASSERT_TRUE(Put(a_).ok());
  dir_.Write("manifests/" + a_.digest, "other bytes");
  EXPECT_EQ(Read(a_.digest).error().code(), Code::kDataLoss);
  store_->Drop(a_.digest);
  EXPECT_FALSE(store_->Has(a_.digest));
  EXPECT_TRUE(Put(a_).ok());
}

TEST_F(ManifestStoreTest, WhatNoStateNamesGoesAfterAnHour) {
  ASSERT_TRUE(Put(a_).ok());
  ASSERT_TRUE(Put(b_).ok());
  store_->KeepNamed({b_.digest});
  clock_.Advance(minutes(59));
  store_->KeepNamed({b_.digest});
  EXPECT_TRUE(store_->Has(a_.digest));
  clock_.Advance(minutes(1));
  store_->KeepNamed({b_.digest});
  EXPECT_FALSE(store_->Has(a_.digest));
  EXPECT_TRUE(store_->Has(b_.digest));
}

TEST_F(ManifestStoreTest, TheHourBeginsWhenTheLastStateNamedIt) {
  ASSERT_TRUE(Put(a_).ok());
  store_->KeepNamed({a_.digest});
  clock_.Advance(minutes(90));
  store_->KeepNamed({});
  EXPECT_TRUE(store_->Has(a_.digest));
  clock_.Advance(minutes(60));
  store_->KeepNamed({});
  EXPECT_FALSE(store_->Has(a_.digest));
}

TEST_F(ManifestStoreTest, MakesRoomOfWhatNoStateNames) {
  ASSERT_TRUE(Put(a_, "vision").ok());
  ASSERT_TRUE(Put(b_, "speech").ok());
  ASSERT_TRUE(Put(c_, "text").ok());
  store_->KeepNamed({a_.digest, c_.digest});
  ASSERT_TRUE(Put(d_, "audio").ok());
  EXPECT_EQ(store_->Has(a_.digest), true);
  EXPECT_EQ(store_->Has(b_.digest), false);
}

TEST_F(ManifestStoreTest, RefusesWhenEverythingIsNamed) {
  for (const Made* made : {&a_, &b_, &c_})
    ASSERT_TRUE(Put(*made, made->digest).ok());
  store_->KeepNamed({a_.digest, b_.digest, c_.digest});
  EXPECT_EQ(Put(d_, "audio").code(), Code::kResourceExhausted);
}

TEST_F(ManifestStoreTest, ANamespaceThatBringsMoreAndMoreDrivesOutItsOwn) {
  ASSERT_TRUE(Put(a_, "speech").ok());
  ASSERT_TRUE(Put(b_, "vision").ok());
  clock_.Advance(minutes(1));
  ASSERT_TRUE(Put(c_, "vision").ok());
  ASSERT_TRUE(Put(d_, "vision").ok());
  EXPECT_TRUE(store_->Has(a_.digest));
  EXPECT_FALSE(store_->Has(b_.digest));
  EXPECT_TRUE(store_->Has(c_.digest));
}

TEST_F(ManifestStoreTest, ALimitForOneManifest) {
  EXPECT_EQ(store_->Reserve(a_.digest, 2_GiB, "vision").code(), Code::kResourceExhausted);
}

TEST_F(ManifestStoreTest, OneWriterAtATime) {
  ASSERT_TRUE(store_->Reserve(a_.digest, 10, "vision").ok());
  EXPECT_EQ(store_->Reserve(a_.digest, 10, "vision").code(), Code::kConflict);
  EXPECT_FALSE(store_->Has(a_.digest));
  store_->Settle(a_.digest, false);
  EXPECT_TRUE(store_->Reserve(a_.digest, 10, "vision").ok());
}

TEST(IsDigest, NeverNamesAFileElsewhere) {
  EXPECT_TRUE(IsDigest(std::string(64, 'a')));
  for (const std::string& text :
       {std::string("../../etc/passwd"), std::string(63, 'a'), std::string(65, 'a'),
        std::string(64, 'A'), std::string(63, 'a') + "/", std::string()}) {
    EXPECT_FALSE(IsDigest(text)) << text;
  }
}

}  // namespace
}  // namespace optcache::node
