#include "storage/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"
#include "support/fake_object_store.h"

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    dataset::ManifestBuilder builder(dataset::Order::kPath, {});
    for (int i = 0; i < 10; ++i) {
      const std::string path = fmt::format("o{}", i);
      store_.Put(path, "0123", {.modified_ns = 5, .etag = {}});
      ASSERT_TRUE(builder.Add({.path = path, .size = 4, .validator = {.modified_ns = 5}}).ok());
    }
    ASSERT_TRUE(builder.Add({.path = "was-missing"}).ok());
    manifest_.emplace(std::move(builder).Finish().value());
  }
  VerifyReport Verify(VerifyOptions options = {.deadline = Deadline(MonotonicTime::max())}) {
    return VerifyManifest(store_, *manifest_, options).value();
  }

  FakeObjectStore store_;
  std::optional<dataset::Manifest> manifest_;
};

TEST_F(VerifyTest, FindsNothingWhereNothingChanged) {
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.checked, 11U);
}

TEST_F(VerifyTest, NamesWhatIsMissingOrChanged) {
  store_.Remove("o3");
  store_.Put("o1", "01234", {.modified_ns = 5, .etag = {}});
  store_.Put("o7", "0123", {.modified_ns = 6, .etag = {}});
  store_.Put("was-missing", "x");
  const VerifyReport report = Verify();
  EXPECT_FALSE(report.clean());
  EXPECT_THAT(report.missing, ElementsAre("o3"));
  EXPECT_THAT(report.changed, ElementsAre(HasSubstr("o1 changed"), HasSubstr("o7 changed"),
                                          HasSubstr("was-missing changed")));
}

TEST_F(VerifyTest, NamesTheFirstOfMany) {
  for (int i = 0; i < 10; ++i)
    store_.Remove(fmt::format("o{}", i));
  const VerifyReport report = Verify({.named_max = 2, .deadline = Deadline(MonotonicTime::max())});
  EXPECT_EQ(report.missing_count, 10U);
  EXPECT_THAT(report.missing, ElementsAre("o0", "o1"));
}

TEST_F(VerifyTest, LooksAtAsManyAsAskedFor) {
  EXPECT_EQ(Verify({.samples_max = 3, .deadline = Deadline(MonotonicTime::max())}).checked, 3U);
  EXPECT_EQ(Verify({.samples_max = 99, .deadline = Deadline(MonotonicTime::max())}).checked, 11U);
}

TEST_F(VerifyTest, ReadsNoBytesUnlessTheyAreWanted) {
  EXPECT_EQ(Verify().compared, std::nullopt);
  EXPECT_EQ(store_.reads(), 0U);
}

TEST_F(VerifyTest, BytesNeedAManifestWithDigests) {
  const auto report = VerifyManifest(store_, *manifest_,
                                     {.bytes = true, .deadline = Deadline(MonotonicTime::max())});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(report.error().message(), HasSubstr("manifest build --verify Digest"));
}

// Two archives of five samples each, of which the last has no bytes, indexed with digests.
class VerifyBytesTest : public testing::Test {
 protected:
  void SetUp() override {
    dataset::ManifestBuilder builder(dataset::Order::kPath, {}, dataset::Layout::kMembers);
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      const std::string path = fmt::format("{}.tar", shard);
      store_.Put(path, content_, {.modified_ns = 5, .etag = {}});
      ASSERT_TRUE(
          builder.AddShard({.path = path, .size = content_.size(), .validator = {.modified_ns = 5}})
              .ok());
      for (ByteCount i = 0; i < 5; ++i) {
        const ByteCount size = i == 4 ? 0 : 2;
        const dataset::Member member = {.name = {}, .offset = 3 * i, .size = size};
        ASSERT_TRUE(builder
                        .Add({.path = fmt::format("{}{}", shard, i),
                              .validator = {},
                              .digest = dataset::Sha256Of(AsBytes(content_).subspan(3 * i, size)),
                              .shard = shard,
                              .members = {&member, 1}})
                        .ok());
      }
    }
    manifest_.emplace(std::move(builder).Finish().value());
    store_.set_completes_at_once(true);
  }
  VerifyReport Verify(std::uint32_t objects = 0) {
    return VerifyManifest(
               store_, *manifest_,
               {.samples_max = objects, .bytes = true, .deadline = Deadline(MonotonicTime::max())})
        .value();
  }

  const std::string content_ = "aa.bb.cc.dd.";
  FakeObjectStore store_;
  std::optional<dataset::Manifest> manifest_;
};

TEST_F(VerifyBytesTest, FindsNothingWhereNothingChanged) {
  const VerifyReport report = Verify();
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.compared, 10U);
  EXPECT_EQ(store_.reads(), 8U);
}

TEST_F(VerifyBytesTest, NamesTheSampleThatHasOtherBytesUnderTheSameValidator) {
  store_.Put("1.tar", "aa.bb.cC.dd.", {.modified_ns = 5, .etag = {}});
  const VerifyReport report = Verify();
  EXPECT_FALSE(report.clean());
  EXPECT_THAT(report.changed, testing::IsEmpty());
  EXPECT_EQ(report.damaged_count, 1U);
  EXPECT_THAT(report.damaged, ElementsAre("12 in 1.tar"));
}

TEST_F(VerifyBytesTest, ComparesTheObjectsThatAreLookedAtAndUnchanged) {
  EXPECT_EQ(Verify(1).compared, 5U);
  store_.Put("0.tar", content_, {.modified_ns = 6, .etag = {}});
  const VerifyReport report = Verify();
  EXPECT_EQ(report.compared, 5U);
  EXPECT_THAT(report.changed, ElementsAre(HasSubstr("0.tar changed")));
}

}  // namespace
}  // namespace optcache::storage
