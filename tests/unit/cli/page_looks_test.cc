#include "cli/explain/page_looks.h"

#include <gtest/gtest.h>

#include "support/growing_deadline.h"
#include "support/page_server.h"

namespace optcache::cli {
namespace {

TEST(LookTwice, LooksOnceWhereNoRankIsAttached) {
  const PageServer server("optcache_loaders_attached 0\noptcache_client_samples_total 7\n");
  const std::string& url = server.url();
  const auto looks = LookTwice({url + "/metrics", url + "/other", "http://127.0.0.1:1/metrics"},
                               std::chrono::minutes(5));
  ASSERT_EQ(looks.size(), 3U);
  ASSERT_TRUE(looks[0].has_value());
  EXPECT_EQ(looks[0]->seconds, 0);
  EXPECT_EQ(looks[0]->before, looks[0]->after);
  EXPECT_EQ(SumOf(looks[0]->after, "optcache_client_samples_total"), 7);
  EXPECT_FALSE(looks[1].has_value());
  EXPECT_FALSE(looks[2].has_value());
}

TEST(LookTwice, WaitsBetweenTheLooksWhereARankReads) {
  const PageServer server("optcache_loaders_attached 1\n");
  const auto looks = LookTwice({server.url() + "/metrics"}, std::chrono::minutes(5));
  ASSERT_TRUE(looks.at(0).has_value());
  EXPECT_GE(looks[0]->seconds, ToSeconds(kBetweenLooks));
}

// One that was late at the first look has less time between the looks than the others.
TEST(LookTwice, TheTimeBetweenTheLooksIsThatOfEachPage) {
  EXPECT_TRUE(HoldsForSomeDeadline(std::chrono::milliseconds(200), [](Duration late) {
    const PageServer server("optcache_loaders_attached 1\n", late);
    const auto looks =
        LookTwice({server.url() + "/metrics", server.url() + "/late"}, std::chrono::minutes(5));
    if (!looks.at(0) || !looks.at(1)) return false;
    const double more = looks[0]->seconds - looks[1]->seconds;
    return more > std::chrono::duration<double>(late).count() / 2;
  }));
}

TEST(LookTwice, LooksAtNothingIfThereIsNothing) {
  EXPECT_TRUE(LookTwice({}, std::chrono::minutes(5)).empty());
}

}  // namespace
}  // namespace optcache::cli
