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

}  // namespace
}  // namespace optcache::storage
