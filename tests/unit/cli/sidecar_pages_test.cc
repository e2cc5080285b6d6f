#include "cli/local/sidecar_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/page_server.h"

namespace optcache::cli {
namespace {

TEST(AskSidecars, CountsThoseThatDoNotAnswer) {
  const PageServer server("a 1\n");
  const std::string& url = server.url();
  const SidecarPages pages = AskSidecars(
      {url + "/metrics", url + "/other", "http://127.0.0.1:1/metrics", "", url + "/metrics"});
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
