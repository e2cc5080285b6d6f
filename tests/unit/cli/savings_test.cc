#include "cli/savings.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http_server.h"

namespace optcache::cli {
namespace {

using testing::ElementsAre;

constexpr const char* kPage = R"(# HELP optcache_saved_bytes Bytes
# TYPE optcache_saved_bytes gauge
optcache_saved_bytes{dataset="vision/images"} 3221225472
optcache_saved_bytes{dataset="vision/text"} -2048
# TYPE optcache_saved_requests gauge
optcache_saved_requests{dataset="vision/images"} 1.5e+06
optcache_saved_requests{dataset="vision/text"} -2
# TYPE optcache_saved_cost gauge
optcache_saved_cost{dataset="vision/images"} 12.5
optcache_store_requests_total{dataset="vision/images"} 7
)";

TEST(Savings, AreSummedOverSidecars) {
  const std::vector<Savings> savings = SavingsIn({kPage, "", kPage});
  EXPECT_THAT(
      savings,
      ElementsAre(
          Savings{.dataset = "vision/images", .requests = 3e6, .bytes = 6442450944, .cost = 25},
          Savings{.dataset = "vision/text", .requests = -4, .bytes = -4096, .cost = std::nullopt}));
}

TEST(Savings, LinesThatAreNoneAreIgnored) {
  EXPECT_THAT(
      SavingsIn({"optcache_saved_bytes 3\noptcache_saved_bytes{dataset=\"x\noptcache_saved_"}),
      ElementsAre());
}

TEST(Savings, AreATableThatSaysAgainstWhat) {
  EXPECT_EQ(FormatSavings(SavingsIn({kPage})),
            "Saved by the sidecars that run, compared with the same reads without a cache:\n"
            "DATASET        SAVED REQUESTS  SAVED BYTES  SAVED MONEY\n"
            "vision/images  1500000         3.00 GiB     12.50\n"
            "vision/text    -2              -2.00 KiB    -\n");
  EXPECT_EQ(FormatSavings({}), "");
}

TEST(FetchPages, LeavesOutThoseThatDoNotAnswer) {
  net::EventLoop loop;
  const auto server = net::ListenHttp(
      loop, "127.0.0.1:0", {},
      [](const net::HttpRequest& request, const net::HttpResponder& respond) {
        respond({.status = request.path() == "/metrics" ? 200 : 404, .body = "the page"});
      });
  ASSERT_TRUE(server) << server.error().ToString();
  const std::string url = "http://127.0.0.1:" + std::to_string((*server)->port());
  std::vector<std::string> pages;
  {
    const std::jthread serves([&] { loop.Run(); });
    pages = FetchPages({url + "/metrics", url + "/other", "http://127.0.0.1:1/metrics"});
    loop.Stop();
  }
  EXPECT_THAT(pages, ElementsAre("the page"));
  EXPECT_THAT(FetchPages({}), ElementsAre());
}

}  // namespace
}  // namespace optcache::cli
