#include "cli/sidecar_pages.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http_server.h"

namespace optcache::cli {
namespace {

TEST(AskSidecars, CountsThoseThatDoNotAnswer) {
  net::EventLoop loop;
  const auto server = net::ListenHttp(
      loop, "127.0.0.1:0", {},
      [](const net::HttpRequest& request, const net::HttpResponder& respond) {
        respond({.status = request.path() == "/metrics" ? 200 : 404, .body = "a 1\n"});
      });
  ASSERT_TRUE(server) << server.error().ToString();
  const std::string url = "http://127.0.0.1:" + std::to_string((*server)->port());
  SidecarPages pages;
  {
    const std::jthread serves([&] { loop.Run(); });
    pages = AskSidecars(
        {url + "/metrics", url + "/other", "http://127.0.0.1:1/metrics", "", url + "/metrics"});
    loop.Stop();
  }
  const MetricSample sample = {.name = "a", .labels = {}, .value = 1};
  EXPECT_THAT(pages.samples, testing::ElementsAre(sample, sample));
  EXPECT_EQ(pages.asked, 5U);
  EXPECT_EQ(pages.silent, 3U);
}

TEST(AskSidecars, OfWhichThereIsNoneGivesNothing) {
  const SidecarPages pages = AskSidecars({});
  EXPECT_TRUE(pages.samples.empty());
  EXPECT_EQ(pages.silent, 0U);
}

}  // namespace
}  // namespace optcache::cli
