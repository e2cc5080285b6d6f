#include "kube/internal/bearer_token.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace optcache::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class BearerTokenTest : public testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(path) << text; }
  Result<std::string> Get() { return token.Get(clock.Now()); }

  TempDir dir;
  std::string path = dir.path() + "/token";
  ManualClock clock;
  BearerToken token{path, minutes(1)};
};

TEST_F(BearerTokenTest, IsReadAgainAfterAMinute) {
  Write("one");
  EXPECT_EQ(Get().value_or(""), "one");
  Write("two");
  clock.Advance(seconds(59));
  EXPECT_EQ(Get().value_or(""), "one");
  clock.Advance(seconds(1));
  EXPECT_EQ(Get().value_or(""), "two");
}

TEST_F(BearerTokenTest, IsReadAgainAtOnceWhenItWasRefused) {
  Write("one");
  EXPECT_EQ(Get().value_or(""), "one");
  Write("two");
  token.Invalidate();
  EXPECT_EQ(Get().value_or(""), "two");
}

TEST_F(BearerTokenTest, AnOldOneIsBetterThanNone) {
  Write("one");
  EXPECT_EQ(Get().value_or(""), "one");
  std::filesystem::remove(path);
  clock.Advance(minutes(5));
  EXPECT_EQ(Get().value_or(""), "one");
}

TEST_F(BearerTokenTest, WithoutAFileThereIsAnError) {
  const auto missing = Get();
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().message().starts_with("token of the ServiceAccount: "));
}

TEST_F(BearerTokenTest, NoPathIsNoToken) {
  BearerToken none("", minutes(1));
  EXPECT_FALSE(none.present());
  EXPECT_EQ(none.Get(clock.Now()).value_or("error"), "");
}

}  // namespace
}  // namespace optcache::kube
