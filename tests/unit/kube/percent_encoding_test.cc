#include "kube/internal/percent_encoding.h"

#include <gtest/gtest.h>

namespace optcache::kube {
namespace {

TEST(PercentEncoding, LeavesUnreservedCharactersAlone) {
  EXPECT_EQ(PercentEncode("azAZ09-._~"), "azAZ09-._~");
}

TEST(PercentEncoding, EncodesAllElseByteByByte) {
  EXPECT_EQ(PercentEncode("a b+c/%=&é"), "a%20b%2Bc%2F%25%3D%26%C3%A9");
}

TEST(PercentEncoding, AQueryStartsWithAQuestionMark) {
  EXPECT_EQ(QueryString({}), "");
  EXPECT_EQ(QueryString({{"labelSelector", "a=b,!c"}, {"limit", "5"}}),
            "?labelSelector=a%3Db%2C%21c&limit=5");
}

}  // namespace
}  // namespace optcache::kube
