#include "coordinator/stream_ranks.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::coordination {
namespace {

constexpr MonotonicTime kHeardAt{std::chrono::hours(1)};

// Counted anew, one rank after the other.
RankTotals CountAll(const StreamRanks& ranks) {
  RankTotals totals;
  for (const auto& [number, rank] : ranks.entries()) {
    const RankReport& report = rank.report;
    if (rank.member == 0) ++totals.lost;
    if (report.ended) ++totals.ended;
    if (rank.member == 0 || report.ended) ++totals.idle;
    if (report.recipe.known && report.order_known) ++totals.predicted;
    if (report.started && !report.order_known) ++totals.astray;
    if (!report.traces.empty()) ++totals.with_traces;
    ++totals.pass_reads[report.pass_reads];
    if (!report.started || rank.member == 0) continue;
    ++totals.reading;
    totals.passes += report.pass;
    totals.positions += report.position;
  }
  return totals;
}

RankEntry RandomEntry(Random& random, Duration age) {
  RankReport report{.recipe = {.known = random.Below(3) != 0},
                    .started = random.Below(3) != 0,
                    .pass = static_cast<PassNumber>(random.Below(4)),
                    .position = random.Below(100),
                    .order_known = random.Below(3) != 0,
                    .ended = random.Below(4) == 0,
                    .pass_reads = random.Below(3)};
  if (random.Below(3) == 0) report.traces.push_back({.pass = 1, .length = 1, .digest = "d"});
  return {.report = report,
          .member = static_cast<MemberId>(random.Below(4)),
          .last_member = static_cast<MemberId>(random.Below(4)),
          .heard = kHeardAt - age};
}

TEST(StreamRanks, TotalsAreThoseOfAllRanksAfterEachChange) {
  const std::uint64_t seed = TestSeed(41);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  StreamRanks ranks;
  for (int step = 0; step < 3000; ++step) {
    const Duration age = std::chrono::seconds(random.Below(10));
    switch (random.Below(8)) {
      case 0:
        ranks.LoseSilent(kHeardAt - age);
        break;
      case 1:
        ranks.ForgetMember(static_cast<MemberId>(1 + random.Below(3)));
        break;
      case 2:
        ranks.Forgive(std::chrono::milliseconds(random.Below(500)));
        break;
      default:
        ranks.Set(static_cast<Rank>(random.Below(6)), RandomEntry(random, age));
    }
    ASSERT_EQ(ranks.totals(), CountAll(ranks)) << "step " << step;
  }
}

TEST(StreamRanks, LosesWhoIsSilentAndHasNotEnded) {
  StreamRanks ranks;
  const auto add = [&](Rank rank, bool ended, MonotonicTime heard) {
    ranks.Set(rank, {.report = {.ended = ended}, .member = 1, .last_member = 1, .heard = heard});
  };
  add(0, false, kHeardAt);
  add(1, false, kHeardAt - Duration(1));
  add(2, true, kHeardAt - Duration(1));
  ranks.LoseSilent(kHeardAt);
  EXPECT_EQ(ranks.Find(0)->member, 1U);
  EXPECT_EQ(ranks.Find(1)->member, 0U);
  EXPECT_EQ(ranks.Find(1)->last_member, 1U) << "it may come back there";
  EXPECT_EQ(ranks.Find(2)->member, 1U);
  EXPECT_EQ(ranks.Find(3), nullptr);
}

TEST(StreamRanks, AMemberThatIsForgottenIsNoRanksLastOneEither) {
  StreamRanks ranks;
  ranks.Set(0, {.report = {}, .member = 1, .last_member = 1, .heard = kHeardAt});
  ranks.Set(1, {.report = {}, .member = 2, .last_member = 2, .heard = kHeardAt});
  ranks.ForgetMember(1);
  EXPECT_EQ(ranks.Find(0)->member, 0U);
  EXPECT_EQ(ranks.Find(0)->last_member, 0U);
  EXPECT_EQ(ranks.Find(1)->member, 2U);
}

}  // namespace
}  // namespace optcache::coordination
