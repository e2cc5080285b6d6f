#include "storage/http_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(HttpKeys, ATokenIsABearers) {
  const TempDir dir;
  dir.Write("token", "abc.def\n");
  const Result<HttpKeys> keys = ReadHttpKeys(dir.path());
  ASSERT_TRUE(keys) << keys.error().message();
  EXPECT_EQ(keys->authorization, "Bearer abc.def");
  EXPECT_EQ(keys->ca_file, "");
}

TEST(HttpKeys, UsernameAndPasswordAreBasic) {
  const TempDir dir;
  dir.Write("username", "Aladdin\r\n");
  dir.Write("password", "open sesame");
  EXPECT_EQ(ReadHttpKeys(dir.path())->authorization, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

TEST(HttpKeys, ACaAloneIsEnough) {
  const TempDir dir;
  dir.Write("ca.crt", "PEM");
  EXPECT_EQ(ReadHttpKeys(dir.path())->authorization, "");
  EXPECT_EQ(ReadHttpKeys(dir.path())->ca_file, dir.Join("ca.crt"));
}

TEST(HttpKeys, WhatIsWrongIsASentenceWithoutTheKeys) {
  const std::string secret = "s3cret";
  using Files = std::vector<std::pair<std::string, std::string>>;
  const std::vector<std::pair<Files, std::string>> cases = {
      {{}, "there is no token, no username and password, and no ca.crt"},
      {{{"tokn", secret}}, "there is no token"},
      {{{"username", secret}}, "one is missing"},
      {{{"password", secret}}, "one is missing"},
      {{{"token", secret}, {"username", secret}, {"password", secret}}, "leave one out"},
      {{{"username", secret + ":"}, {"password", secret}}, "no colon"},
      {{{"token", "\n"}}, "token is empty"},
      {{{"token", secret + "\r\nHost: x"}}, "not one line of text"},
      {{{"token", secret + std::string(9000, 'x')}}, "too long"},
  };
  for (const auto& [files, says] : cases) {
    const TempDir dir;
    for (const auto& [name, content] : files)
      dir.Write(name, content);
    const Result<HttpKeys> keys = ReadHttpKeys(dir.path());
    ASSERT_FALSE(keys) << says;
    EXPECT_EQ(keys.error().code(), Code::kPermissionDenied);
    EXPECT_THAT(std::string(keys.error().message()),
                AllOf(HasSubstr(says), HasSubstr(dir.path()), Not(HasSubstr(secret))));
  }
}

TEST(HttpKeyFolder, LooksAgainAfterASecond) {
  const TempDir dir;
  ManualClock clock;
  HttpKeyFolder folder(dir.path(), clock);
  EXPECT_FALSE(folder.keys());
  dir.Write("token", "old");
  EXPECT_FALSE(folder.keys());
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(folder.keys()->authorization, "Bearer old");
  dir.Write("token", "new");
  EXPECT_EQ(folder.keys()->authorization, "Bearer old");
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(folder.keys()->authorization, "Bearer new");
}

TEST(HttpKeyFolder, WithoutAFolderThereAreNone) {
  ManualClock clock;
  EXPECT_EQ(HttpKeyFolder("", clock).keys()->authorization, "");
}

}  // namespace
}  // namespace optcache::storage
