#include <stop_token>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/plan.h"
#include "unit/plan/plan_testing.h"

namespace optcache::plan {
namespace {

Inputs TwoNodes(std::uint32_t samples, ByteCount capacity) {
  Inputs inputs;
  inputs.sizes = Sizes::Equal(samples, 1);
  inputs.capacities = {capacity, capacity};
  inputs.streams.push_back({.id = 0, .node_of_rank = {0, 1}});
  return inputs;
}

Passes ShuffledPasses(std::uint32_t samples, std::size_t passes, std::uint64_t seed) {
  Random random(seed);
  Passes orders;
  for (std::size_t i = 0; i < passes; ++i)
    orders.push_back(Shuffled(samples, random));
  return orders;
}

TEST(Planner, EqualInputsGiveEqualDigests) {
  const Passes passes = ShuffledPasses(1000, 4, 1);
  EXPECT_EQ(RunChecked(TwoNodes(1000, 200), {passes}).digests,
            RunChecked(TwoNodes(1000, 200), {passes}).digests);
}

TEST(Planner, OtherCapacitiesGiveOtherDigests) {
  const Passes passes = ShuffledPasses(1000, 4, 1);
  EXPECT_NE(RunChecked(TwoNodes(1000, 200), {passes}).digests,
            RunChecked(TwoNodes(1000, 201), {passes}).digests);
}

TEST(Planner, GoesOnFromABaseAsIfItHadNeverStopped) {
  const Passes passes = ShuffledPasses(1000, 5, 2);
  const std::vector<std::uint64_t> whole = RunChecked(TwoNodes(1000, 200), {passes}).digests;
  Result<Planner> first = Planner::Make(TwoNodes(1000, 200), ProvidePasses({passes}));
  ASSERT_TRUE(first->Next().has_value());
  ASSERT_TRUE(first->Next().has_value());
  Inputs resumed = TwoNodes(1000, 200);
  resumed.base = first->holders();
  resumed.streams[0].pass = 2;
  EXPECT_EQ(RunChecked(resumed, {passes}).digests,
            std::vector<std::uint64_t>(whole.begin() + 2, whole.end()));
}

TEST(Planner, ABaseDerivedAtACutInsideAPassLosesNothing) {
  const Passes passes = ShuffledPasses(1000, 4, 3);
  const CheckedRun whole = RunChecked(TwoNodes(1000, 200), {passes});
  Result<Planner> planner = Planner::Make(TwoNodes(1000, 200), ProvidePasses({passes}));
  ASSERT_TRUE(planner->Next().has_value());
  Inputs resumed = TwoNodes(1000, 200);
  resumed.base = planner->holders();
  const Result<PlanWindow> window = planner->Next();
  Advance(*window->plans[0], passes[1], 600, resumed.base);
  resumed.streams[0].pass = 1;
  resumed.streams[0].position = 600;
  const CheckedRun rest = RunChecked(resumed, {passes});
  std::uint64_t reads = 1000;  // the first pass
  for (Position p = 0; p < 600; ++p) {
    if (window->plans[0]->At(p).holder == kNoNode) ++reads;
  }
  EXPECT_NEAR(static_cast<double>(reads + rest.replayed.store_reads),
              static_cast<double>(whole.replayed.store_reads), 5);
}

TEST(Planner, ACutAtTheEndOfAPassIsTheNextPassesStart) {
  const Passes passes = ShuffledPasses(100, 3, 4);
  Inputs inputs = TwoNodes(100, 20);
  inputs.streams[0].position = 100;
  Result<Planner> planner = Planner::Make(inputs, ProvidePasses({passes}));
  const Result<PlanWindow> window = planner->Next();
  ASSERT_EQ(window->plans.size(), 1U);
  EXPECT_EQ(window->plans[0]->key().pass, 1U);
  EXPECT_EQ(window->plans[0]->begin(), 0U);
}

TEST(Planner, WhatIsHeldAtTheEndOfAllStreamsStays) {
  Inputs inputs = TwoNodes(10, 5);
  inputs.base.assign(10, 0);
  inputs.base[3] = 1;
  inputs.streams[0].pass = 2;
  Result<Planner> planner = Planner::Make(inputs, ProvidePasses({ShuffledPasses(10, 2, 5)}));
  const Result<PlanWindow> window = planner->Next();
  EXPECT_TRUE(window->plans.empty());
  EXPECT_TRUE(window->evictions.empty());
}

TEST(Planner, ABaseThatNoLongerFitsMovesToWhoHasRoomAndLosesWhatIsReadLast) {
  const Passes passes = ShuffledPasses(100, 2, 6);
  Inputs inputs = TwoNodes(100, 10);
  inputs.base.assign(100, kNoNode);
  for (Position p = 0; p < 40; ++p)
    inputs.base[passes[0][p]] = 0;
  Result<Planner> planner = Planner::Make(inputs, ProvidePasses({passes}));
  const Result<PlanWindow> window = planner->Next();
  EXPECT_EQ(window->evictions.size(), 20U);
  EXPECT_EQ(window->relocations.size(), 10U);
  for (Position p = 0; p < 40; ++p) {
    EXPECT_EQ(window->plans[0]->At(p).holder, p < 10 ? 0 : p < 20 ? 1 : kNoNode) << p;
  }
  const CheckedRun run = RunChecked(inputs, {passes});
  EXPECT_EQ(run.evictions, 20U);
  EXPECT_EQ(run.relocations, 10U);
}

struct Before {
  Holders base;
  std::uint64_t store_reads = 0;
};

// What is held at a place in the second pass, and how often the store was read until then.
Before UntilCut(const Inputs& inputs, const Passes& passes, Position cut) {
  Result<Planner> planner = Planner::Make(inputs, ProvidePasses({passes}));
  Before before{.base = {}, .store_reads = planner->Next()->plans.front()->stats().store_reads};
  before.base = planner->holders();
  const Result<PlanWindow> window = planner->Next();
  Advance(*window->plans[0], passes[1], cut, before.base);
  for (Position p = 0; p < cut; ++p) {
    if (window->plans[0]->At(p).holder == kNoNode) ++before.store_reads;
  }
  return before;
}

// In the middle of a pass a node leaves and the others get its share, or one joins and gets a part
// of theirs: not one read of the store more.
TEST(Planner, ANodeThatComesOrGoesCostsNoReadWhereThereIsRoom) {
  const Passes passes = ShuffledPasses(600, 4, 21);
  Inputs two{.sizes = Sizes::Equal(600, 1),
             .capacities = {120, 120, 0},
             .streams = {{.id = 0, .node_of_rank = {0, 1}}}};
  Inputs three = two;
  three.capacities = {80, 80, 80};
  for (const auto& [was, is] : {std::pair(two, three), std::pair(three, two)}) {
    const Before before = UntilCut(was, passes, 250);
    Inputs after = is;
    after.streams[0].pass = 1;
    after.streams[0].position = 250;
    after.base = before.base;
    const CheckedRun rest = RunChecked(after, {passes});
    EXPECT_EQ(rest.evictions, 0U);
    EXPECT_GT(rest.relocations, 70U);
    EXPECT_LE(before.store_reads + rest.replayed.store_reads,
              RunChecked(was, {passes}).replayed.store_reads + 5);
  }
}

TEST(Planner, UnlimitedCapacityHoldsTheDataset) {
  const Passes passes = ShuffledPasses(100, 3, 11);
  EXPECT_EQ(RunChecked(TwoNodes(100, kUnlimitedBytes), {passes}).replayed.store_reads, 100U);
}

TEST(Planner, PausedStreamsAreNotPlanned) {
  Inputs inputs = TwoNodes(100, 10);
  inputs.streams.push_back({.id = 1, .node_of_rank = {0}, .rate = 0});
  Result<Planner> planner =
      Planner::Make(inputs, ProvidePasses({ShuffledPasses(100, 1, 7), ShuffledPasses(100, 1, 8)}));
  const Result<PlanWindow> window = planner->Next();
  ASSERT_EQ(window->plans.size(), 1U);
  EXPECT_EQ(window->plans[0]->key().stream, 0U);
  EXPECT_TRUE(planner->Next()->plans.empty());
}

TEST(Planner, StreamsAreTakenByIdHoweverTheyAreListed) {
  const std::vector<Passes> passes = {ShuffledPasses(100, 2, 9), ShuffledPasses(100, 2, 10)};
  Inputs inputs = TwoNodes(100, 20);
  inputs.streams.push_back({.id = 1, .node_of_rank = {1, 0}});
  Inputs reversed = inputs;
  std::swap(reversed.streams[0], reversed.streams[1]);
  EXPECT_EQ(Planner::Make(inputs, ProvidePasses(passes))->Next()->digest,
            Planner::Make(reversed, ProvidePasses(passes))->Next()->digest);
}

TEST(Planner, RefusesInputsThatDoNotFitTogether) {
  const auto refuses = [](const auto& change) {
    Inputs inputs = TwoNodes(10, 5);
    change(inputs);
    const Result<Planner> planner = Planner::Make(inputs, ProvidePasses({}));
    return !planner && planner.error().code() == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refuses([](Inputs& i) { i.capacities.clear(); }));
  EXPECT_TRUE(refuses([](Inputs& i) { i.base.assign(9, kNoNode); }));
  EXPECT_TRUE(refuses([](Inputs& i) { i.base.assign(10, 2); }));
  EXPECT_TRUE(refuses([](Inputs& i) { i.streams[0].node_of_rank.clear(); }));
  EXPECT_TRUE(refuses([](Inputs& i) { i.streams[0].node_of_rank = {2}; }));
  EXPECT_TRUE(refuses([](Inputs& i) { i.streams[0].rate = kMaxRate + 1; }));
  EXPECT_TRUE(refuses([](Inputs& i) { i.streams[0].stops_at = 0; }));
  EXPECT_TRUE(refuses([](Inputs& i) { i.streams.push_back(i.streams[0]); }));
  EXPECT_TRUE(refuses([](Inputs& i) {
    for (StreamId id = 1; id <= 256; ++id)
      i.streams.push_back({.id = id, .node_of_rank = {0}});
  }));
  EXPECT_FALSE(refuses([](Inputs&) {}));
}

TEST(Planner, RefusesOrdersThatAreEmptyOrNameUnknownSamples) {
  for (const std::vector<SampleId>& order : {std::vector<SampleId>{}, std::vector<SampleId>{10}}) {
    Result<Planner> planner = Planner::Make(TwoNodes(10, 5), ProvidePasses({{order}}));
    const Result<PlanWindow> window = planner->Next();
    ASSERT_FALSE(window.has_value());
    EXPECT_EQ(window.error().code(), Code::kInvalidArgument);
  }
}

struct Stopped {
  const char* name = "";
  std::size_t streams = 1;
  bool sizes_vary = false;
  Method method = Method::kBest;
  bool holds_too_much = false;  // at first
};

Inputs InputsOf(const Stopped& how, std::uint32_t samples) {
  Inputs inputs = TwoNodes(samples, samples / 5);
  inputs.method = how.method;
  if (how.sizes_vary) {
    std::vector<std::uint32_t> bytes(samples);
    for (std::uint32_t sample = 0; sample < samples; ++sample)
      bytes[sample] = 1 + sample % 3;
    inputs.sizes = Sizes(std::move(bytes));
    inputs.objective = Objective::kRequests;
  }
  for (StreamId id = 1; id < how.streams; ++id)
    inputs.streams.push_back({.id = id, .node_of_rank = {0, 1}});
  return inputs;
}

constexpr Stopped kStopped[] = {{.name = "slots"},
                                {.name = "slots for requests", .sizes_vary = true},
                                {.name = "MIN", .method = Method::kMin},
                                {.name = "MIN of three", .streams = 3, .sizes_vary = true},
                                {.name = "a base to fit", .holds_too_much = true}};

TEST(Planner, EndsOnceItIsToStop) {
  for (const Stopped& how : kStopped) {
    const Passes passes = ShuffledPasses(1000, 4, 1);
    std::stop_source source;
    Inputs inputs = InputsOf(how, 1000);
    inputs.stop = StopCheck(source.get_token());
    Result<Planner> planner =
        Planner::Make(inputs, ProvidePasses(std::vector<Passes>(how.streams, passes)));
    EXPECT_TRUE(planner->Next().has_value()) << how.name;
    source.request_stop();
    const Result<PlanWindow> window = planner->Next();
    ASSERT_FALSE(window.has_value()) << how.name;
    EXPECT_EQ(window.error().code(), Code::kCancelled);
  }
}

// At whichever look it is stopped, nothing that is not whole is used.
TEST(Planner, MayBeStoppedAnywhere) {
  constexpr std::uint32_t kSamples = 40'000;  // more than it looks at between two looks
  for (const Stopped& how : kStopped) {
    const std::vector<Passes> passes(how.streams, ShuffledPasses(kSamples, 2, 3));
    for (std::size_t last_look = 1;; ++last_look) {
      std::size_t looks = 0;
      Inputs inputs = InputsOf(how, kSamples);
      inputs.base.assign(kSamples, kNoNode);
      for (SampleId sample = 0; sample < (how.holds_too_much ? kSamples : kSamples / 20); ++sample)
        inputs.base[sample] = sample % 2;
      inputs.stop = StopCheck([&] { return ++looks >= last_look; });
      Result<Planner> planner = Planner::Make(inputs, ProvidePasses(passes));
      ASSERT_TRUE(planner.has_value());
      const Result<PlanWindow> window = planner->Next();
      if (window.has_value()) {
        EXPECT_LT(looks, last_look) << how.name;
        EXPECT_GT(looks, 10 * kSamples / StopCheck::kSteps) << how.name << ": looks too rarely";
        break;
      }
      ASSERT_EQ(window.error().code(), Code::kCancelled) << how.name;
    }
  }
}

// A stop that makes an order end early is not the end of the stream.
TEST(Planner, AnOrderThatWasStoppedIsNoEnd) {
  std::stop_source source;
  Inputs inputs = TwoNodes(1000, 200);
  inputs.stop = StopCheck(source.get_token());
  Result<Planner> planner = Planner::Make(inputs, [&source](StreamId, PassNumber) {
    source.request_stop();
    return Order();
  });
  const Result<PlanWindow> window = planner->Next();
  ASSERT_FALSE(window.has_value());
  EXPECT_EQ(window.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace optcache::plan
