#include "cache-node/planning/trial_run.h"

#include <condition_variable>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "cache-node/planning/plan_deriver.h"
#include "cache/home_map.h"

namespace optcache::node {
namespace {

using coordination::DatasetState;
using coordination::Forecast;
using coordination::Retention;
using coordination::TrialReport;

constexpr std::uint32_t kTrialSamples = 1200;
constexpr ByteCount kOfNode = 150;  // samples are of one byte
constexpr wire::MemberId kMembers = 3;
constexpr auto kTrialPatience = std::chrono::minutes(1);

coordination::StreamState Stream(StreamId id, std::uint32_t rate) {
  coordination::StreamState stream{.id = id,
                                   .name = "a/job/b/train",
                                   .recipe = {.sampler_kind = 1,
                                              .size = kTrialSamples,
                                              .seed = 1000 * static_cast<std::int64_t>(id),
                                              .world = kMembers},
                                   .rate_permille = rate,
                                   .complete = true,
                                   .cut = {.pass = 2, .position = 0}};
  for (wire::MemberId member = 1; member <= kMembers; ++member)
    stream.node_of_rank.push_back(member);
  return stream;
}

DatasetState State(std::vector<coordination::StreamState> streams) {
  DatasetState state{.name = "a/b",
                     .key = 77,
                     .retention = Retention::kPin,
                     .planned = {.counter = 5},
                     .streams = std::move(streams)};
  for (wire::MemberId member = 1; member <= kMembers; ++member)
    state.capacities.push_back({.member = member, .bytes = kOfNode});
  return state;
}

TrialTask Task(const DatasetState& state, Retention retention, wire::MemberId self,
               PlanTask::Base base = {}) {
  const coordination::TrialState trial{.id = "one", .revision = {.retention = retention}};
  return {.id = "one",
          .following = FollowOnTrial(state, trial),
          .dataset = state.key,
          .inputs = std::make_shared<const PlanTask>(
              PlanTask{.version = state.planned,
                       .self = self,
                       .base = std::move(base),
                       .sizes = plan::Sizes::Equal(kTrialSamples, 1)})};
}

TrialReport Finish(TrialTask task) {
  TrialRun run(std::move(task));
  for (int step = 0; step < 10; ++step) {
    if (const auto report = run.Step()) return *report;
  }
  ADD_FAILURE() << "it does not end";
  return {};
}

// All nodes say the same of the whole, and their own together make it up.
Forecast Agreed(const DatasetState& state, Retention retention, const PlanTask::Base& base = {}) {
  std::vector<TrialReport> reports;
  Forecast sum;
  for (wire::MemberId member = 1; member <= kMembers; ++member) {
    const TrialReport report = Finish(Task(state, retention, member, base));
    EXPECT_EQ(report.id, "one");
    EXPECT_EQ(report.error, "");
    EXPECT_EQ(report.planned, state.planned);
    sum.reads += report.own.reads;
    sum.store_reads += report.own.store_reads;
    sum.read_bytes += report.own.read_bytes;
    sum.store_bytes += report.own.store_bytes;
    sum.moved_bytes += report.own.moved_bytes;
    reports.push_back(report);
    EXPECT_EQ(report.digest, reports[0].digest);
    EXPECT_EQ(report.all, reports[0].all);
  }
  // Numbers of each stream are rounded down by each node.
  const auto rounded = [](std::uint64_t parts, std::uint64_t whole) {
    EXPECT_LE(parts, whole);
    EXPECT_GE(parts + 2 * kMembers, whole);
  };
  const Forecast& all = reports[0].all;
  rounded(sum.reads, all.reads);
  rounded(sum.store_reads, all.store_reads);
  rounded(sum.read_bytes, all.read_bytes);
  rounded(sum.store_bytes, all.store_bytes);
  rounded(sum.moved_bytes, all.moved_bytes);
  return reports[0].all;
}

TEST(TrialRun, OptimalIsWhatThePlannerPredictsOfAWholePass) {
  const Forecast all = Agreed(State({Stream(9, 1000)}), Retention::kOptimal);
  EXPECT_EQ(all.reads, kTrialSamples);
  EXPECT_EQ(all.read_bytes, kTrialSamples);
  EXPECT_EQ(all.store_reads, kTrialSamples - kMembers * kOfNode);
  EXPECT_EQ(all.store_bytes, all.store_reads);
  EXPECT_GT(all.moved_bytes, 0U);
}

TEST(TrialRun, PinHitsWhatItHasRoomFor) {
  const Forecast all = Agreed(State({Stream(9, 1000)}), Retention::kPin);
  EXPECT_EQ(all.reads, kTrialSamples);
  EXPECT_EQ(all.store_reads, kTrialSamples - kMembers * kOfNode);
  EXPECT_EQ(all.moved_bytes, 0U) << "what is held stays";
  // What lies elsewhere than at its home is found there.
  std::vector<SampleId> away;
  const cache::HomeMap homes(77, {1, 2, 3});
  for (SampleId id = 0; away.size() < kOfNode; ++id) {
    if (homes.Home(id) != 1) away.push_back(id);
  }
  EXPECT_EQ(Agreed(State({Stream(9, 1000)}), Retention::kPin, {{1, away}}), all);
}

TEST(TrialRun, LruAndNoneAreWorse) {
  const DatasetState state = State({Stream(9, 1000)});
  const Forecast pin = Agreed(state, Retention::kPin);
  const Forecast lru = Agreed(state, Retention::kLru);
  EXPECT_GT(lru.store_reads, pin.store_reads + kTrialSamples / 10);
  const Forecast none = Agreed(state, Retention::kNone);
  EXPECT_EQ(none.store_reads, kTrialSamples);
  EXPECT_EQ(none.moved_bytes, 0U);
}

// The second window is a pass from there on: half of one, half of the next.
TEST(TrialRun, ACutMayLieInAPass) {
  coordination::StreamState stream = Stream(9, 1000);
  stream.cut.position = kTrialSamples / 2;
  const double expected = kTrialSamples - kMembers * kOfNode;
  for (const Retention retention : {Retention::kOptimal, Retention::kPin}) {
    const Forecast all = Agreed(State({stream}), retention);
    EXPECT_EQ(all.reads, kTrialSamples);
    EXPECT_NEAR(static_cast<double>(all.store_reads), expected, 0.05 * expected);
  }
}

TEST(TrialRun, AnEpochIsOnePassOfEveryStreamWhateverTheirRates) {
  const DatasetState state = State({Stream(8, 500), Stream(9, 1000)});
  const Forecast pin = Agreed(state, Retention::kPin);
  // Of two streams each number is rounded for itself.
  EXPECT_NEAR(static_cast<double>(pin.reads), 2.0 * kTrialSamples, 1);
  EXPECT_NEAR(static_cast<double>(pin.store_reads), 2.0 * (kTrialSamples - kMembers * kOfNode),
              0.02 * kTrialSamples);
}

TEST(TrialRun, AStreamOfUnknownOrderIsLeftOut) {
  coordination::StreamState unknown = Stream(8, 1000);
  unknown.recipe.known = false;
  EXPECT_EQ(Agreed(State({unknown, Stream(9, 1000)}), Retention::kPin).reads, kTrialSamples);
  const TrialReport nothing = Finish(Task(State({unknown}), Retention::kOptimal, 1));
  EXPECT_EQ(nothing.error, "");
  EXPECT_EQ(nothing.all, Forecast());
}

TEST(TrialRun, WhatCannotBeDerivedSaysWhy) {
  DatasetState state = State({Stream(9, 1000)});
  state.streams[0].recipe.sampler_kind = 200;
  for (const Retention retention : {Retention::kOptimal, Retention::kPin})
    EXPECT_NE(Finish(Task(state, retention, 1)).error, "");
  state = State({Stream(9, 1000)});
  const TrialReport report =
      Finish(Task(state, Retention::kOptimal, 1, {{1, {kTrialSamples + 1}}}));
  EXPECT_NE(report.error, "");
  EXPECT_EQ(report.id, "one");
  EXPECT_EQ(report.all, Forecast());
}

// --- On the deriver's thread --------------------------------------------------------------------

class Told {
 public:
  void Take(DerivedWindow window) {
    const std::lock_guard lock(mutex_);
    windows_.push_back(std::move(window));
    changed_.notify_all();
  }
  // All windows up to the report of a trial.
  std::vector<DerivedWindow> UntilTrial() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kTrialPatience, [this] {
      return !windows_.empty() && windows_.back().trial.has_value();
    }));
    return std::exchange(windows_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<DerivedWindow> windows_;
};

TEST(TrialRun, TheOwnPlanGoesFirst) {
  Told told;
  PlanDeriver deriver([&told](DerivedWindow window) { told.Take(std::move(window)); });
  const DatasetState state = State({Stream(9, 1000)});
  PlanTask own{.number = 3,
               .self = 2,
               .streams = state.streams,
               .capacities = state.capacities,
               .sizes = plan::Sizes::Equal(kTrialSamples, 1)};
  deriver.Begin(own);
  deriver.Try(Task(state, Retention::kPin, 2));
  const auto windows = told.UntilTrial();
  ASSERT_EQ(windows.size(), 3U) << "the pass that is read, the next one, and the trial";
  EXPECT_TRUE(windows[0].first);
  EXPECT_EQ(windows[1].planned.at(9), 4U);
  EXPECT_EQ(windows[2].trial->all.reads, kTrialSamples);
}

TEST(TrialRun, ATrialThatNobodyAsksForAnyMoreIsNotDerived) {
  Told told;
  PlanDeriver deriver([&told](DerivedWindow window) { told.Take(std::move(window)); });
  const DatasetState state = State({Stream(9, 1000)});
  TrialTask other = Task(state, Retention::kPin, 1);
  deriver.TryOnly({});
  other.id = "other";
  deriver.Try(std::move(other));
  deriver.Try(Task(state, Retention::kPin, 1));
  deriver.TryOnly({"one"});
  std::vector<DerivedWindow> windows = told.UntilTrial();
  if (windows.back().trial->id == "other") windows = told.UntilTrial();  // it was done already
  EXPECT_EQ(windows.back().trial->id, "one");
}

}  // namespace
}  // namespace optcache::node
