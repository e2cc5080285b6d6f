#include "storage/s3_customer_key.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Pair;

// The bytes from 0xe0 to 0xff.
constexpr const char* kKey = "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8=";

TEST(S3CustomerKey, IsSentWithItsMd5) {
  const S3CustomerKey key = ParseS3CustomerKey(kKey).value();
  EXPECT_THAT(
      CustomerKeyHeaders(key),
      testing::ElementsAre(
          Pair("x-amz-server-side-encryption-customer-algorithm", "AES256"),
          Pair("x-amz-server-side-encryption-customer-key", kKey),
          Pair("x-amz-server-side-encryption-customer-key-md5", "b6HZMWQBEvN0pcqEiES6uw==")));
}

TEST(S3CustomerKey, IsTheBase64Of32Bytes) {
  for (const std::string text :
       {"a2V5", "0123456789abcdef0123456789abcdef", "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8",
        "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/g==",
        "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v9h",
        "4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v9=",
        " 4OHi4+Tl5ufo6err7O3u7/Dx8vP09fb3+Pn6+/z9/v8=",
        "4OHi4-Tl5ufo6err7O3u7_Dx8vP09fb3-Pn6-_z9_v8="}) {
    const auto key = ParseS3CustomerKey(text);
    ASSERT_FALSE(key) << text;
    EXPECT_EQ(key.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(key.error().message(), HasSubstr("not the base64 of 32 bytes"));
    EXPECT_THAT(key.error().message(), Not(HasSubstr(text)));
  }
  EXPECT_FALSE(ParseS3CustomerKey(""));
  EXPECT_FALSE(ParseS3CustomerKey(std::string(1U << 20U, 'A')));
}

}  // namespace
}  // namespace optcache::storage
