#include "cache-node/manifests/manifest_store.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace optcache::node {
namespace {

using std::chrono::minutes;

// A table does not look into files.
struct Made {
  std::string digest;
  std::string bytes;
};

Made Make(char digit) {
  return {.digest = std::string(64, digit), .bytes = "some bytes"};
}

class ManifestStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() { store_ = ManifestStore::Open(dir_.Join("manifests"), clock_, limits_).value(); }
  Status Put(const Made& made, const std::string& owner = "vision") {
    RETURN_IF_ERROR(store_->Reserve(made.digest, made.bytes.size(), owner));
    dir_.Write("manifests/" + made.digest, made.bytes);
    store_->Settle(made.digest, true);
    return OkStatus();
  }

  TempDir dir_;
  ManualClock clock_;
  ManifestStoreLimits limits_{.manifests = 3, .unnamed_per_owner = 2};
  std::optional<ManifestStore> store_;
  const Made a_ = Make('a');
  const Made b_ = Make('b');
  const Made c_ = Make('c');
  const Made d_ = Make('d');
};

TEST_F(ManifestStoreTest, KnowsWhatItKeeps) {
  EXPECT_FALSE(store_->Has(a_.digest));
  ASSERT_TRUE(Put(a_).ok());
  EXPECT_TRUE(store_->Has(a_.digest));
  EXPECT_EQ(store_->Digests(), std::vector<std::string>{a_.digest});
}

TEST_F(ManifestStoreTest, OutlivesTheProcess) {
  ASSERT_TRUE(Put(a_).ok());
  dir_.Write("manifests/" + b_.digest + ".tmp", "half of it");
  Open();
  EXPECT_TRUE(store_->Has(a_.digest));
  EXPECT_FALSE(std::filesystem::exists(dir_.Join("manifests/" + b_.digest + ".tmp")));
}

TEST_F(ManifestStoreTest, WhatIsDroppedGoesWithItsFile) {
  ASSERT_TRUE(Put(a_).ok());
  store_->Drop(a_.digest);
  EXPECT_FALSE(store_->Has(a_.digest));
  EXPECT_FALSE(std::filesystem::exists(store_->FileOf(a_.digest)));
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
  const Status status = store_->Reserve(a_.digest, 5_GiB, "vision");
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find("node.stateSize"), std::string::npos);
}

// --- Bytes: a store of 600, of which a namespace's unnamed ones take 300 ------------------------

class ManifestBytesTest : public ManifestStoreTest {
 protected:
  ManifestBytesTest() { limits_ = {.bytes = 600, .manifest_bytes = 300}; }
  // Of so many bytes, that nobody writes.
  bool Bring(char digest, ByteCount bytes, const std::string& owner) {
    clock_.Advance(minutes(1));
    const std::string name(64, digest);
    if (!store_->Reserve(name, bytes, owner).ok()) return false;
    store_->Settle(name, true);
    return true;
  }
  bool Has(char digest) const { return store_->Has(std::string(64, digest)); }
};

TEST_F(ManifestBytesTest, ANamespaceHasAShareAndDrivesOutItsOwn) {
  EXPECT_TRUE(Bring('a', 100, "speech"));
  EXPECT_TRUE(Bring('b', 200, "vision"));
  EXPECT_TRUE(Bring('c', 100, "vision"));
  EXPECT_TRUE(Bring('d', 150, "vision"));
  EXPECT_TRUE(Has('a') && Has('c') && Has('d'));
  EXPECT_FALSE(Has('b'));
}

TEST_F(ManifestBytesTest, WhoHasLessDrivesOutWhoHasMore) {
  EXPECT_TRUE(Bring('a', 250, "speech"));
  EXPECT_TRUE(Bring('b', 300, "vision"));
  EXPECT_TRUE(Bring('c', 100, "text"));
  EXPECT_TRUE(Has('a') && Has('c'));
  EXPECT_FALSE(Has('b'));
}

TEST_F(ManifestBytesTest, WhoHasMostWaitsForRoom) {
  EXPECT_TRUE(Bring('a', 200, "speech"));
  EXPECT_TRUE(Bring('b', 200, "text"));
  EXPECT_FALSE(Bring('c', 300, "vision"));
  EXPECT_TRUE(Has('a') && Has('b'));
}

TEST_F(ManifestBytesTest, WhatAStateNamesIsNobodysShareAndStays) {
  EXPECT_TRUE(Bring('a', 300, "vision"));
  store_->KeepNamed({std::string(64, 'a')});
  EXPECT_TRUE(Bring('b', 300, "vision"));
  store_->KeepNamed({std::string(64, 'a'), std::string(64, 'b')});
  EXPECT_FALSE(Bring('c', 1, "speech"));
  EXPECT_TRUE(Has('a') && Has('b'));
}

TEST_F(ManifestBytesTest, WhatIsBeingReceivedCountsToo) {
  EXPECT_TRUE(store_->Reserve(std::string(64, 'a'), 200, "vision").ok());
  const Status second = store_->Reserve(std::string(64, 'b'), 200, "vision");
  EXPECT_EQ(second.code(), Code::kResourceExhausted);
  EXPECT_EQ(second.message(), "this node is receiving other manifests of namespace vision");
}

TEST(LimitsOf, LeaveRoomOnTheVolume) {
  for (const ByteCount volume : {1_GiB, 8_GiB, 100_GiB}) {
    const ManifestStoreLimits limits = LimitsOf(volume);
    EXPECT_LE(limits.bytes, volume - volume / 4);
    EXPECT_LE(limits.manifest_bytes, limits.bytes / 2) << "a new one beside the old one";
    EXPECT_LE(limits.manifest_bytes, 4_GiB) << "sidecars take no more";
  }
  // 30 million samples with digests: docs/memory.md.
  EXPECT_GE(LimitsOf(8_GiB).manifest_bytes, ByteCount{30'000'000} * 64);
}

TEST_F(ManifestStoreTest, OneWriterAtATime) {
  ASSERT_TRUE(store_->Reserve(a_.digest, 10, "vision").ok());
  EXPECT_EQ(store_->Reserve(a_.digest, 10, "vision").code(), Code::kConflict);
  EXPECT_FALSE(store_->Has(a_.digest));
  store_->Settle(a_.digest, false);
  EXPECT_TRUE(store_->Reserve(a_.digest, 10, "vision").ok());
}

}  // namespace
}  // namespace optcache::node
