#include "cli/fetch_pages.h"

#include <thread>

#include <gtest/gtest.h>

#include "net/http_server.h"

namespace optcache::cli {
namespace {

constexpr Duration kPatience = std::chrono::minutes(1);

TEST(FetchPages, TellsOfEachPageInOrder) {
  net::EventLoop loop;
  const auto server = net::ListenHttp(
      loop, "127.0.0.1:0", {},
      [](const net::HttpRequest& request, const net::HttpResponder& respond) {
        respond({.status = request.path() == "/metrics" ? 200 : 404, .body = "the page"});
      });
  ASSERT_TRUE(server) << server.error().ToString();
  const std::string url = "http://127.0.0.1:" + std::to_string((*server)->port());
  std::vector<Result<std::string>> pages;
  {
    const std::jthread serves([&] { loop.Run(); });
    pages = FetchPages({url + "/other", "http://127.0.0.1:1/", "", url + "/metrics"}, kPatience);
    loop.Stop();
  }
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
