#include "net/http.h"

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

TEST(Http, FindsHeadersWithoutCase) {
  const HttpHeaders headers = {{"Content-Type", "a"}, {"X-One", "1"}, {"x-one", "2"}};
  EXPECT_EQ(FindHeader(headers, "content-type"), "a");
  EXPECT_EQ(FindHeader(headers, "X-ONE"), "1");
  EXPECT_EQ(FindHeader(headers, "X-On"), std::nullopt);
}

TEST(Http, PathIsWithoutHostAndQuery) {
  EXPECT_EQ((HttpRequest{.url = "/a/b?c=d"}).path(), "/a/b");
  EXPECT_EQ((HttpRequest{.url = "http://host:80/a?x"}).path(), "/a");
  EXPECT_EQ((HttpRequest{.url = "http://host:80"}).path(), "/");
}

TEST(Http, QueryIsDecoded) {
  const HttpRequest request{.url = "/p?a=1&empty=&flag&b=x%20y+z%2f&bad=%zz&trunc=%4"};
  EXPECT_EQ(request.query("a"), "1");
  EXPECT_EQ(request.query("empty"), "");
  EXPECT_EQ(request.query("flag"), "");
  EXPECT_EQ(request.query("b"), "x y z/");
  EXPECT_EQ(request.query("bad"), "%zz");
  EXPECT_EQ(request.query("trunc"), "%4");
  EXPECT_EQ(request.query("none"), std::nullopt);
  EXPECT_EQ((HttpRequest{.url = "/p"}).query("a"), std::nullopt);
}

}  // namespace
}  // namespace optcache::net
