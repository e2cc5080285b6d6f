#include "cli/local/fetch_pages.h"

#include <gtest/gtest.h>

#include "support/growing_deadline.h"
#include "support/page_server.h"

namespace optcache::cli {
namespace {

constexpr Duration kPatience = std::chrono::minutes(1);

TEST(FetchPages, TellsOfEachPageInOrder) {
  const PageServer server("the page");
  const std::string& url = server.url();
  const std::vector<Result<FetchedPage>> pages =
      FetchPages({url + "/other", "http://127.0.0.1:1/", "", url + "/metrics"}, kPatience);
  ASSERT_EQ(pages.size(), 4U);
  ASSERT_FALSE(pages[0]);
  EXPECT_EQ(pages[0].error().message(), "status 404");
  EXPECT_FALSE(pages[1]);
  EXPECT_FALSE(pages[2]);
  ASSERT_TRUE(pages[3]) << pages[3].error().ToString();
  EXPECT_EQ(pages[3]->text, "the page");
}

TEST(FetchPages, SaysOfEachWhenItCame) {
  EXPECT_TRUE(HoldsForSomeDeadline(std::chrono::milliseconds(100), [](Duration late) {
    const PageServer server("the page", late);
    const std::vector<Result<FetchedPage>> pages =
        FetchPages({server.url() + "/metrics", server.url() + "/late"}, kPatience);
    return pages.at(0) && pages.at(1) && pages[1]->at - pages[0]->at > late / 2;
  }));
}

TEST(FetchPages, OfNoneAreNone) {
  EXPECT_TRUE(FetchPages({}, kPatience).empty());
}

}  // namespace
}  // namespace optcache::cli
