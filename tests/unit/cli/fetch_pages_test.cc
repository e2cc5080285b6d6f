#include "cli/local/fetch_pages.h"

#include <gtest/gtest.h>

#include "support/page_server.h"

namespace optcache::cli {
namespace {

constexpr Duration kPatience = std::chrono::minutes(1);

TEST(FetchPages, TellsOfEachPageInOrder) {
  const PageServer server("the page");
  const std::string& url = server.url();
  const std::vector<Result<std::string>> pages =
      FetchPages({url + "/other", "http://127.0.0.1:1/", "", url + "/metrics"}, kPatience);
  ASSERT_EQ(pages.size(), 4U);
  ASSERT_FALSE(pages[0]);
  EXPECT_EQ(pages[0].error().message(), "status 404");
  EXPECT_FALSE(pages[1]);
  EXPECT_FALSE(pages[2]);
  ASSERT_TRUE(pages[3]) << pages[3].error().ToString();
  EXPECT_EQ(*pages[3], "the page");
}

TEST(FetchPages, OfNoneAreNone) {
  EXPECT_TRUE(FetchPages({}, kPatience).empty());
}

}  // namespace
}  // namespace optcache::cli
