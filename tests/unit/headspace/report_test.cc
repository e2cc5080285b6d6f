#include "headspace/report.h"

#include <gtest/gtest.h>

namespace optcache::headspace {
namespace {

using std::chrono::milliseconds;

constexpr Options kOptions{.warmup_steps = 0, .steps = 20, .free_steps = 20};

// A rank whose steps take so long: as they are, and with samples there at once. Every other block
// takes `jitter` longer or shorter.
StepClock RankWith(milliseconds now, milliseconds free, milliseconds jitter = milliseconds(0),
                   std::uint64_t hits = 0) {
  StepClock clock(kOptions);
  MonotonicTime at{};
  std::uint64_t asks = 0;
  while (clock.phase() != Phase::kDone) {
    const milliseconds step = clock.phase() == Phase::kFree ? free : now;
    at += step + (asks++ / 2 % 2 == 0 ? jitter : -jitter);
    clock.OnAsk({.at = at});
    clock.OnAnswer({.samples = 10, .hits = hits, .bytes = 1000, .waited = milliseconds(7)});
  }
  return clock;
}

Report DoneWith(const std::vector<const StepClock*>& ranks, std::uint64_t announced = 0,
                const Options& options = kOptions) {
  return MakeReport({.state = State::kDone,
                     .why = "",
                     .loader = "a/b/c/train",
                     .ranks = ranks,
                     .announced_steps = announced},
                    options);
}

TEST(HeadspaceReport, SaysHowMuchFasterItCouldGet) {
  const StepClock rank = RankWith(milliseconds(300), milliseconds(100));
  const Report report = DoneWith({&rank});
  EXPECT_NEAR(report.now->seconds, .3, 1e-9);
  EXPECT_NEAR(report.free->seconds, .1, 1e-9);
  EXPECT_NEAR(report.gain->speedup, 3, 1e-6);
  EXPECT_TRUE(report.gain->resolved);
  EXPECT_EQ(report.now->samples, 10);
  EXPECT_EQ(report.now->bytes, 1000);
  EXPECT_NEAR(report.now->waited, .007, 1e-9);
  EXPECT_NE(report.message.find("3.00 times"), std::string::npos) << report.message;
}

TEST(HeadspaceReport, TheIntervalHoldsTheTruth) {
  const StepClock rank = RankWith(milliseconds(300), milliseconds(100), milliseconds(20));
  const Gain gain = *DoneWith({&rank}).gain;
  EXPECT_TRUE(gain.resolved);
  EXPECT_GT(gain.plus_minus, 0);
  EXPECT_LT(gain.speedup_low, 3);
  ASSERT_TRUE(gain.speedup_high.has_value());
  EXPECT_GT(*gain.speedup_high, 3);
}

TEST(HeadspaceReport, ADifferenceWithinItsIntervalIsNone) {
  const StepClock rank = RankWith(milliseconds(101), milliseconds(100), milliseconds(30));
  const Report report = DoneWith({&rank});
  EXPECT_FALSE(report.gain->resolved);
  EXPECT_NE(report.message.find("No gain can be told"), std::string::npos) << report.message;
}

TEST(HeadspaceReport, SlowerFreeStepsAreSaidToBeDisturbed) {
  const StepClock rank = RankWith(milliseconds(100), milliseconds(200));
  const Report report = DoneWith({&rank});
  EXPECT_FALSE(report.gain->resolved);
  EXPECT_NE(report.message.find("something else has changed"), std::string::npos) << report.message;
}

TEST(HeadspaceReport, RanksAreAveraged) {
  const StepClock one = RankWith(milliseconds(300), milliseconds(100));
  const StepClock other = RankWith(milliseconds(500), milliseconds(100));
  const Report report = DoneWith({&one, &other});
  EXPECT_EQ(report.ranks, 2U);
  EXPECT_NEAR(report.now->seconds, .4, 1e-9);
}

TEST(HeadspaceReport, TheRunIsWhatWasAnnouncedOrSaid) {
  const StepClock rank = RankWith(milliseconds(300), milliseconds(100));
  const RunHours announced = *DoneWith({&rank}, 36'000).run;
  EXPECT_TRUE(announced.announced);
  EXPECT_NEAR(announced.hours_now, 3, 1e-6);
  EXPECT_NEAR(announced.hours_saved, 2, 1e-6);
  Options options = kOptions;
  options.run_steps = 72'000;
  const RunHours said = *DoneWith({&rank}, 36'000, options).run;
  EXPECT_FALSE(said.announced);
  EXPECT_NEAR(said.hours_saved, 4, 1e-6);
  EXPECT_EQ(DoneWith({&rank}).run->steps, 0U);
}

TEST(HeadspaceReport, TheCurveGoesThroughBothMeasurements) {
  const StepClock rank =
      RankWith(milliseconds(300), milliseconds(100), milliseconds(0), /*hits=*/2);
  const std::vector<WhatIf> curve = DoneWith({&rank}).what_if;
  ASSERT_EQ(curve.size(), 11U);
  EXPECT_NEAR(curve.at(2).seconds.value(), .3, 1e-6) << "20 % of the samples were hits";
  EXPECT_NEAR(curve.at(2).seconds_in_turn.value(), .3, 1e-6);
  EXPECT_NEAR(curve.at(10).seconds.value(), .1, 1e-6);
  EXPECT_NEAR(curve.at(10).seconds_in_turn.value(), .1, 1e-6);
  EXPECT_NEAR(curve.at(0).seconds.value(), .375, 1e-6) << "all misses: a quarter more of them";
  EXPECT_NEAR(curve.at(6).seconds.value(), .15, 1e-6) << "half of the misses";
  EXPECT_NEAR(curve.at(6).seconds_in_turn.value(), .2, 1e-6);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    EXPECT_LE(curve[i].seconds.value(), curve[i - 1].seconds.value());
    EXPECT_LE(curve[i].seconds_in_turn.value(), curve[i - 1].seconds_in_turn.value());
  }
}

TEST(HeadspaceReport, WithoutMissesNothingIsSaidOfTheirCost) {
  const StepClock rank =
      RankWith(milliseconds(300), milliseconds(100), milliseconds(0), /*hits=*/10);
  const std::vector<WhatIf> curve = DoneWith({&rank}).what_if;
  EXPECT_FALSE(curve.at(0).seconds.has_value());
  EXPECT_FALSE(curve.at(9).seconds.has_value());
  EXPECT_NEAR(curve.at(10).seconds.value(), .1, 1e-6);
}

TEST(HeadspaceReport, WithoutAGainMoreHitsDoNotHelp) {
  const StepClock rank =
      RankWith(milliseconds(101), milliseconds(100), milliseconds(30), /*hits=*/5);
  const Report report = DoneWith({&rank});
  EXPECT_FALSE(report.what_if.at(4).seconds.has_value()) << "fewer hits than were measured";
  EXPECT_EQ(report.what_if.at(5).seconds, report.now->seconds);
  EXPECT_EQ(report.what_if.at(9).seconds, report.now->seconds);
}

TEST(HeadspaceReport, SaysHowFarItIs) {
  StepClock rank(kOptions);
  MonotonicTime at{};
  for (int i = 0; i < 10; ++i)
    rank.OnAsk({.at = at += milliseconds(100)});
  const auto message = [&rank](State state, const std::string& why = "") {
    return MakeReport({.state = state, .why = why, .loader = "", .ranks = {&rank}}, kOptions)
        .message;
  };
  EXPECT_EQ(message(State::kMeasuring), "Measured 6 of 20 steps.");
  EXPECT_NE(message(State::kWaiting).find("optcache.torch.attach"), std::string::npos);
  EXPECT_NE(message(State::kFree).find("0 of 20"), std::string::npos);
  EXPECT_EQ(message(State::kEndedEarly, "The job has ended."),
            "The job has ended. Measured 6 of 20 steps.");
  EXPECT_FALSE(
      MakeReport({.state = State::kMeasuring, .why = "", .loader = "", .ranks = {&rank}}, kOptions)
          .gain.has_value());
}

TEST(HeadspaceReport, SaysWhatIsLeftOut) {
  const Options options{.warmup_steps = 50, .steps = 20, .free_steps = 20};
  EXPECT_EQ(
      MakeReport(
          {.state = State::kWaiting, .why = "", .loader = "", .ranks = {}, .warmup_steps = 12},
          options)
          .message,
      "A loader is attached, and has made 12 of 50 warm-up steps.");
  StepClock rank(options);
  for (int i = 0; i < 62; ++i)
    rank.OnAsk({.at = MonotonicTime{}, .staged_max = 1000});
  EXPECT_EQ(
      MakeReport({.state = State::kMeasuring, .why = "", .loader = "", .ranks = {&rank}}, options)
          .message,
      "Leaving out step 62 of about 1050: their samples may have been staged before.");
}

TEST(HeadspaceReport, StatesHaveNamesOfTheirOwn) {
  for (const State state :
       {State::kWaiting, State::kMeasuring, State::kFree, State::kDone, State::kEndedEarly})
    EXPECT_EQ(StateOf(StateName(state)), state);
  EXPECT_EQ(StateOf("else"), std::nullopt);
}

}  // namespace
}  // namespace optcache::headspace
