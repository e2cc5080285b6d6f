#include "coordinator/tracked_stream.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

constexpr MonotonicTime kStart{std::chrono::hours(1)};

TrackedStream NewStream() {
  return TrackedStream({.id = 1, .name = "s", .incarnation = 1}, {}, kStart);
}
RankReport At(Rank rank, PassNumber pass, std::uint64_t epoch, Position position) {
  return {.rank = rank,
          .recipe = {.size = 1000, .world = 2},
          .started = true,
          .pass = pass,
          .epoch = epoch,
          .position = position};
}

TEST(TrackedStream, IsNotCompleteBeforeSomeRankHasBegunAPass) {
  TrackedStream stream = NewStream();
  RankReport attached{.rank = 0, .recipe = {.size = 10, .world = 1}};
  stream.Observe(attached, 1, kStart);
  EXPECT_FALSE(stream.AllRanksKnown());
  attached.started = true;
  attached.epoch = 7;
  stream.Observe(attached, 1, kStart);
  EXPECT_TRUE(stream.AllRanksKnown());
  EXPECT_EQ(stream.State().first_epoch, 7U);
}

TEST(TrackedStream, NamesWhatRanksDisagreeOnWithBothValues) {
  const auto conflict = [](Recipe second) {
    TrackedStream stream = NewStream();
    stream.Observe({.rank = 0, .recipe = {.size = 10, .seed = 1, .world = 2}}, 1, kStart);
    stream.Observe({.rank = 1, .recipe = second}, 1, kStart);
    EXPECT_EQ(stream.State().recipe.known, stream.conflict().empty());
    EXPECT_EQ(stream.State().conflict, stream.conflict());
    return stream.conflict();
  };
  EXPECT_EQ(conflict({.size = 10, .seed = 1, .world = 2}), "");
  EXPECT_EQ(conflict({.size = 10, .seed = -3, .world = 2}), "seed: 1 (rank 0), -3 (rank 1)");
  EXPECT_EQ(conflict({.size = 11, .seed = 1, .world = 2}), "size: 10 (rank 0), 11 (rank 1)");
  EXPECT_EQ(conflict({.size = 10, .seed = 1, .world = 3}), "world size: 2 (rank 0), 3 (rank 1)");
  EXPECT_EQ(conflict({.size = 10, .seed = 1, .world = 2, .shuffle = false}),
            "shuffle: 1 (rank 0), 0 (rank 1)");
  EXPECT_EQ(conflict({.size = 10, .seed = 1, .world = 2, .drop_last = true}),
            "drop_last: 0 (rank 0), 1 (rank 1)");
}

TEST(TrackedStream, FollowsAJumpOfTheEpoch) {
  TrackedStream stream = NewStream();
  stream.Observe(At(0, 0, 0, 0), 1, kStart);
  stream.Observe(At(0, 1, 1, 0), 1, kStart);
  EXPECT_EQ(stream.State().first_pass, 0U);
  stream.Observe(At(0, 2, 10, 0), 1, kStart);
  EXPECT_EQ(stream.State().first_pass, 2U);
  EXPECT_EQ(stream.State().first_epoch, 10U);
  EXPECT_EQ(stream.State().epoch_step, 1U);
}

TEST(TrackedStream, RanksThatDisagreeOnAnEpochHaveNoKnownOrder) {
  TrackedStream stream = NewStream();
  stream.Observe(At(0, 3, 3, 0), 1, kStart);
  stream.Observe(At(1, 3, 4, 0), 1, kStart);
  EXPECT_FALSE(stream.State().recipe.known);
  EXPECT_EQ(stream.conflict(), "epoch of pass 3: 3, 4 (rank 1)");
}

TEST(TrackedStream, StartsAnewWhereAPassWasCutShort) {
  TrackedStream stream = NewStream();
  stream.Observe(At(0, 0, 0, 0), 1, kStart);
  RankReport next = At(0, 1, 1, 0);
  next.last_pass_end = 990;  // the last batch was dropped
  stream.Observe(next, 1, kStart);
  EXPECT_EQ(stream.State().first_pass, 0U);
  next = At(0, 2, 2, 0);
  next.last_pass_end = 500;
  stream.Observe(next, 1, kStart);
  EXPECT_EQ(stream.State().first_pass, 2U);
  EXPECT_EQ(stream.State().first_epoch, 2U);
}

TEST(TrackedStream, PassesStopWhereAllRanksSayThatTheyDo) {
  TrackedStream stream = NewStream();
  RankReport first = At(0, 0, 0, 0);
  RankReport second = At(1, 0, 0, 1);
  const auto planned_for = [&](std::uint64_t of_first, std::uint64_t of_second) {
    first.pass_reads = of_first;
    second.pass_reads = of_second;
    stream.Observe(first, 1, kStart);
    stream.Observe(second, 1, kStart);
    const Position stops_at = stream.State().stops_at;
    EXPECT_EQ(stream.pass_length(), stops_at == 0 ? 1000 : stops_at);
    return stops_at;
  };
  EXPECT_EQ(planned_for(0, 0), 0U);
  EXPECT_EQ(planned_for(125, 125), 250U);
  EXPECT_EQ(planned_for(125, 132), 264U) << "ranks may differ by a 64th of a list";
  EXPECT_EQ(planned_for(125, 133), 0U);
  EXPECT_EQ(planned_for(125, 0), 0U) << "one goes on";
  EXPECT_EQ(planned_for(492, 492), 984U);
  EXPECT_EQ(planned_for(493, 493), 0U) << "whole but for the last batch";
  EXPECT_EQ(planned_for(1ULL << 63U, 1ULL << 63U), 0U);
  EXPECT_EQ(planned_for(15, 15), 30U);
  EXPECT_EQ(planned_for(14, 14), 0U) << "less than a 32nd: too many orders to look into";
}

TEST(TrackedStream, APassThatStopsWhereItWasSaidIsNotCutShort) {
  TrackedStream stream = NewStream();
  const auto observe = [&](PassNumber pass, Position position, Position last_pass_end) {
    for (const Rank rank : {0U, 1U}) {
      RankReport report = At(rank, pass, pass, position + rank);
      report.pass_reads = 125;
      report.last_pass_end = last_pass_end;
      stream.Observe(report, 1, kStart);
    }
  };
  observe(0, 0, 0);
  observe(0, 250, 0);
  EXPECT_EQ(stream.Frontier(), (Cut{1, 0}));
  observe(1, 0, 250);
  EXPECT_EQ(stream.State().first_pass, 0U);
  EXPECT_EQ(stream.progress(), 250.5);
  observe(2, 0, 200);
  EXPECT_EQ(stream.State().first_pass, 2U) << "cut short of what was said";
}

TEST(TrackedStream, ARankHeardLateMayHaveBegunEarlier) {
  TrackedStream stream = NewStream();
  stream.Observe(At(0, 1, 6, 0), 1, kStart);
  stream.Observe(At(1, 0, 5, 700), 1, kStart);
  EXPECT_EQ(stream.State().first_pass, 0U);
  EXPECT_EQ(stream.State().first_epoch, 5U);
  EXPECT_EQ(stream.FirstCut(), (Cut{0, 0}));
}

TEST(TrackedStream, AStreamThatGathersForPassesIsCutWhereItIs) {
  TrackedStream stream = NewStream();
  stream.Observe(At(0, 0, 0, 0), 1, kStart);
  stream.Observe(At(0, 1, 1, 600), 1, kStart);
  EXPECT_EQ(stream.FirstCut(), (Cut{0, 0}));
  stream.Observe(At(0, 2, 2, 600), 1, kStart);
  EXPECT_EQ(stream.FirstCut(), (Cut{2, 600}));
}

TEST(TrackedStream, TheEndOfAPassIsTheStartOfTheNext) {
  TrackedStream stream = NewStream();
  stream.Observe(At(0, 4, 4, 1000), 1, kStart);
  EXPECT_EQ(stream.Frontier(), (Cut{5, 0}));
}

TEST(TrackedStream, DriftMakesTheOrderUnknownUntilItMatchesAgain) {
  TrackedStream stream = NewStream();
  RankReport rank = At(0, 0, 0, 0);
  rank.order_known = false;
  stream.Observe(rank, 1, kStart);
  EXPECT_FALSE(stream.State().recipe.known);
  rank.order_known = true;
  stream.Observe(rank, 1, kStart);
  EXPECT_TRUE(stream.State().recipe.known);
}

TEST(TrackedStream, ARankDoesNotFlickerBetweenTwoNodesThatListIt) {
  TrackedStream stream = NewStream();
  stream.Observe(At(0, 0, 0, 0), 1, kStart);
  stream.Observe(At(0, 0, 0, 0), 2, kStart + std::chrono::seconds(1));
  EXPECT_EQ(stream.State().node_of_rank[0], 1U);
  stream.Observe(At(0, 0, 0, 0), 2, kStart + std::chrono::seconds(4));
  EXPECT_EQ(stream.State().node_of_rank[0], 2U);
}

TEST(TrackedStream, RanksThatEndedBeforeItBeganAreNoneOfItsOwn) {
  TrackedStream stream = NewStream();
  RankReport before = At(0, 7, 7, 1000);
  before.ended = true;
  stream.Observe(before, 1, kStart);  // the job before had rank 0 on this node
  stream.Observe(At(0, 0, 8, 0), 2, kStart);
  stream.Observe(At(1, 0, 8, 1), 1, kStart);
  stream.Observe(before, 1, kStart + std::chrono::seconds(10));
  EXPECT_TRUE(stream.AllRanksKnown());
  EXPECT_EQ(stream.State().node_of_rank, (std::vector<MemberId>{2, 1}));
  EXPECT_EQ(stream.FirstCut(), (Cut{.pass = 0, .position = 0}));
}

TEST(TrackedStream, ARankThatHasEndedMayGoOnElsewhereAtOnce) {
  TrackedStream stream = NewStream();
  RankReport rank = At(0, 0, 0, 10);
  stream.Observe(rank, 1, kStart);
  rank.ended = true;
  stream.Observe(rank, 1, kStart);
  stream.Observe(At(0, 1, 1, 0), 2, kStart);
  EXPECT_EQ(stream.State().node_of_rank[0], 2U);
}

TEST(TrackedStream, MeasuresItsRateWithoutThePauses) {
  TrackedStream stream = NewStream();
  MonotonicTime now = kStart;
  Position position = 0;
  for (int second = 0; second < 10; ++second) {
    stream.Observe(At(0, 0, 0, position += 20), 1, now += std::chrono::seconds(1));
  }
  ASSERT_TRUE(stream.rate());
  EXPECT_NEAR(*stream.rate(), 20, 0.01);
  stream.Observe(At(0, 0, 0, position += 20), 1, now += std::chrono::seconds(100));
  for (int second = 0; second < 3; ++second) {
    stream.Observe(At(0, 0, 0, position += 20), 1, now += std::chrono::seconds(1));
  }
  EXPECT_NEAR(*stream.rate(), 20, 0.01);
}

constexpr const char* kText = "torch-distributed size=10 world=2 block=3";
RankReport WithText(Rank rank, const std::string& order) {
  return {.rank = rank,
          .recipe = {.size = 10, .world = 2, .known = !order.empty(), .order = order}};
}

// A rank's attach comes before its text.
TEST(TrackedStream, TakesTheTextThatComesLater) {
  TrackedStream stream = NewStream();
  for (const std::string& order : {std::string(), std::string(kText)}) {
    for (const Rank rank : {0U, 1U}) {
      RankReport report = WithText(rank, order);
      report.started = true;
      stream.Observe(report, 1, kStart);
    }
  }
  EXPECT_EQ(stream.conflict(), "");
  EXPECT_TRUE(stream.State().recipe.known);
  EXPECT_EQ(stream.State().recipe.order, kText);
  EXPECT_EQ(stream.FirstCut().position, 0U);
}

TEST(TrackedStream, NamesWhatTextsDisagreeOn) {
  TrackedStream stream = NewStream();
  stream.Observe(WithText(0, kText), 1, kStart);
  stream.Observe(WithText(1, "torch-distributed size=10 world=2 block=4"), 1, kStart);
  EXPECT_EQ(stream.conflict(), "order of ranks 0 and 1: block: 3 and 4");
  EXPECT_FALSE(stream.State().recipe.known);
}

// Nodes count for the generation before what is read until they are told.
TEST(TrackedStream, OfALifeThatTakesAnothersPlacePassesCountThatBeginThen) {
  TrackedStream stream = NewStream();
  for (const Rank rank : {0U, 1U})
    stream.Observe(At(rank, 0, 0, 0), 1, kStart);
  stream.Observe(At(0, 1, 1, 0), 1, kStart);
  stream.TakeOver();
  for (PassNumber pass = 1; pass <= 3; ++pass) {
    for (const Rank rank : {0U, 1U})
      stream.Observe(At(rank, pass, pass, 0), 1, kStart);
  }
  EXPECT_FALSE(stream.HasRead(0));
  EXPECT_FALSE(stream.HasRead(1));
  EXPECT_TRUE(stream.HasRead(2));
}

}  // namespace
}  // namespace optcache::coordination
