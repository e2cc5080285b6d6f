// Plans of orders that are handed over as lists, one version after the other as a coordinator makes
// them: each knows the lists of some passes, and begins where the one before has led.

#include "cache-node/planning/plan_deriver.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <queue>
#include <set>
#include <span>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "coordination/plan_base.h"
#include "plan/replay.h"
#include "sampler/id_list.h"
#include "sampler/order_source.h"

namespace optcache::node {
namespace {

constexpr StreamId kStream = 9;
constexpr auto kPatience = std::chrono::minutes(1);

// What a deriver gives for a task, until the pass is planned to its end or cannot be.
class Derived {
 public:
  std::vector<DerivedWindow> Of(const PlanTask& task) {
    return Of(task, task.streams.at(0).traces.back().pass);
  }
  std::vector<DerivedWindow> Of(const PlanTask& task, PassNumber last) {
    deriver_.Begin(task);
    deriver_.PlanThrough({{kStream, last + 5}});
    std::unique_lock lock(mutex_);
    std::vector<DerivedWindow> windows;
    while (windows.empty() ||
           (windows.back().status.ok() && windows.back().planned[kStream] <= last)) {
      if (!changed_.wait_for(lock, kPatience, [this] { return !waiting_.empty(); })) {
        ADD_FAILURE() << "no window came";
        break;
      }
      ++counts_[waiting_.front().version.counter];
      if (waiting_.front().version == task.version) windows.push_back(waiting_.front());
      waiting_.pop();
    }
    return windows;
  }

  void Begin(const PlanTask& task) { deriver_.Begin(task); }
  // Windows of versions with this counter that have come so far.
  std::size_t count_of(std::uint64_t counter) { return counts_[counter]; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<DerivedWindow> waiting_;
  std::map<std::uint64_t, std::size_t> counts_;
  PlanDeriver deriver_{[this](DerivedWindow window) {
    const std::lock_guard lock(mutex_);
    waiting_.push(std::move(window));
    changed_.notify_all();
  }};
};

struct Job {
  std::uint32_t samples = 600;
  std::uint32_t world = 1;   // each rank on a node of its own
  ByteCount capacity = 180;  // of all nodes together; samples are of one byte
  PassNumber known = 3;      // passes whose lists are known when a pass begins
  Position stops_at = 0;     // of each pass, so much is read; 0: all
  std::vector<std::vector<SampleId>> passes;
};

// What is read of a pass.
std::span<const SampleId> ReadsOf(const Job& job, PassNumber pass) {
  const std::span<const SampleId> whole = job.passes[pass];
  return job.stops_at == 0 ? whole : whole.first(job.stops_at);
}

void AddPermutations(Job& job, std::size_t count, Random& random) {
  for (std::size_t pass = 0; pass < count; ++pass) {
    auto& order = job.passes.emplace_back(job.samples);
    std::iota(order.begin(), order.end(), SampleId{0});
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.Below(i)]);
  }
}

std::string ListOf(const Job& job, PassNumber pass) {
  std::vector<std::string> lists;
  for (Rank rank = 0; rank < job.world; ++rank) {
    std::vector<SampleId> ids;
    for (std::size_t i = rank; i < job.passes[pass].size(); i += job.world)
      ids.push_back(job.passes[pass][i]);
    lists.push_back(sampler::EncodeList(ids, sampler::BitsFor(job.samples)));
  }
  const std::vector<std::string_view> views(lists.begin(), lists.end());
  return sampler::JoinLists(views, job.samples).value();
}

// The version that is made when `pass` begins.
PlanTask TaskAt(const Job& job, PassNumber pass, const plan::Holders& holders) {
  PlanTask task{.version = {.counter = pass + 1},
                .streams = {{.id = kStream,
                             .recipe = {.world = job.world, .known = false},
                             .cut = {.pass = pass, .position = 0},
                             .stops_at = job.stops_at}},
                .sizes = plan::Sizes::Equal(job.samples, 1)};
  coordination::StreamState& stream = task.streams[0];
  for (Rank rank = 0; rank < job.world; ++rank) {
    const wire::MemberId member = rank + 1;
    stream.node_of_rank.push_back(member);
    task.capacities.push_back({.member = member, .bytes = job.capacity / job.world});
    auto& held = task.base.emplace_back(member, std::vector<SampleId>()).second;
    for (SampleId id = 0; id < holders.size(); ++id) {
      if (holders[id] == rank) held.push_back(id);
    }
  }
  const auto end = static_cast<PassNumber>(job.passes.size());
  for (PassNumber p = pass; p < std::min(end, pass + job.known); ++p) {
    std::string list = ListOf(job, p);
    const std::string digest = coordination::DigestHex(list);
    stream.traces.push_back({.pass = p, .length = job.passes[p].size(), .digest = digest});
    task.lists[digest] = std::make_shared<const std::string>(std::move(list));
  }
  if (pass + job.known >= end) stream.recipe.passes = end;
  return task;
}

// How often the store is read, and what is wrong with the plans.
std::uint64_t StoreReads(const Job& job) {
  Derived derived;
  plan::Replay replay(plan::Sizes::Equal(job.samples, 1),
                      std::vector<ByteCount>(job.world, job.capacity / job.world));
  for (PassNumber pass = 0; pass < job.passes.size(); ++pass) {
    const PlanTask task = TaskAt(job, pass, replay.holders());
    const auto windows = derived.Of(task);
    EXPECT_TRUE(windows.front().status.ok()) << windows.front().status.ToString();
    replay.Evict(windows.front().evictions);
    for (const DerivedWindow& window : windows) {
      for (const DerivedPass& derived_pass : window.passes) {
        const plan::PassPlan& plan = *derived_pass.plan;
        EXPECT_LE(plan.key().pass, task.streams[0].traces.back().pass)
            << "nobody knows what is read";
        if (plan.key().pass != pass) continue;
        for (Position p = plan.begin(); p < plan.end(); ++p)
          replay.Read(job.passes[pass][p], plan.ReaderAt(p), plan.At(p), 0);
      }
    }
  }
  EXPECT_EQ(replay.stats().accesses, job.passes.size() * ReadsOf(job, 0).size());
  EXPECT_EQ(replay.capacity_exceeded(), 0U);
  EXPECT_EQ(replay.misplaced(), 0U);
  return replay.stats().store_reads;
}

// MIN with bypass that knows all passes: a sample may wait at the node of its next read, which
// gives up what is used last.
std::uint64_t StoreReadsOfMin(const Job& job) {
  std::vector<SampleId> reads;
  for (PassNumber pass = 0; pass < job.passes.size(); ++pass) {
    const auto read = ReadsOf(job, pass);
    reads.insert(reads.end(), read.begin(), read.end());
  }
  constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<std::size_t> next(reads.size());
  std::vector<std::size_t> upcoming(job.samples, kNever);
  for (std::size_t t = reads.size(); t-- > 0;)
    next[t] = std::exchange(upcoming[reads[t]], t);
  std::vector<std::set<std::size_t>> waiting(job.world);  // by node: the uses that are waited for
  std::uint64_t store_reads = 0;
  for (std::size_t t = 0; t < reads.size(); ++t) {
    if (waiting[t % job.world].erase(t) == 0) ++store_reads;
    if (next[t] == kNever) continue;
    std::set<std::size_t>& node = waiting[next[t] % job.world];
    node.insert(next[t]);
    if (node.size() > job.capacity / job.world) node.erase(std::prev(node.end()));
  }
  return store_reads;
}

// As a weighted sampler draws: a tenth of the samples weigh a hundred times as much as others.
Job Weighted(std::uint32_t world, std::uint64_t seed) {
  Random random(seed);
  Job job{.world = world};
  for (int pass = 0; pass < 8; ++pass) {
    auto& order = job.passes.emplace_back();
    for (std::uint32_t i = 0; i < job.samples; ++i) {
      auto id = static_cast<SampleId>(random.Below(job.samples));
      if (id % 10 != 0 && random.Below(10) < 4) id -= id % 10;
      order.push_back(id);
    }
  }
  return job;
}

TEST(PlanDeriver, WeightedListsAreReadFromTheStoreAsOftenAsMinWouldReadThem) {
  for (const std::uint32_t world : {1U, 2U, 4U}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Job job = Weighted(world, seed);
      EXPECT_EQ(StoreReads(job), StoreReadsOfMin(job)) << world << " nodes, seed " << seed;
    }
  }
}

// Two passes ahead is a little better than one, and that than none.
TEST(PlanDeriver, WhatIsKnownLaterIsPlannedWorse) {
  Job job = Weighted(1, 5);
  std::vector<std::uint64_t> reads;
  for (const PassNumber known : {3U, 2U, 1U}) {
    job.known = known;
    reads.push_back(StoreReads(job));
  }
  EXPECT_LE(reads[0], reads[1]);
  EXPECT_LT(reads[1], reads[2]);
  const std::uint64_t all = job.passes.size() * job.passes[0].size();
  EXPECT_LT(reads[2], all * 7 / 10) << "still better than to keep what came first";
}

// Permutations of which only the present one is known: whatever is kept for the next one is as
// good.
TEST(PlanDeriver, RoomIsNotLeftEmptyForAPassThatNobodyKnows) {
  Random random(7);
  Job job{.known = 1};
  AddPermutations(job, 5, random);
  EXPECT_EQ(StoreReads(job), job.samples + 4 * (job.samples - job.capacity));
}

TEST(PlanDeriver, AVersionThatBeginsInAPassPlansItsLastOneToItsEnd) {
  const Job job = Weighted(1, 8);
  PlanTask task = TaskAt(job, 0, {});
  task.streams[0].cut.position = 250;
  Derived derived;
  Position planned = 0;
  for (const DerivedWindow& window : derived.Of(task)) {
    for (const DerivedPass& pass : window.passes)
      planned += pass.plan->end() - pass.plan->begin();
  }
  EXPECT_EQ(planned, 3 * job.samples - 250);
}

// A quarter of each permutation, as a loop that is left early reads it.
TEST(PlanDeriver, PassesThatStopEarlyAreReadFromTheStoreAsOftenAsMinWouldReadThem) {
  for (const std::uint32_t world : {1U, 2U}) {
    constexpr Position kStopsAt = 150;
    Job job{.world = world, .known = 40};
    const sampler::Recipe recipe{.size = job.samples, .world = world};
    sampler::OrderSource source = sampler::OrderSource::Make(recipe).value();
    for (PassNumber pass = 0; pass < job.known; ++pass) {
      job.passes.push_back(source.PassOrder(pass).value());
      job.passes.back().resize(kStopsAt);
    }
    PlanTask task = TaskAt(job, 0, {});
    task.streams[0].traces.clear();
    task.streams[0].recipe = {
        .sampler_kind = 1, .size = job.samples, .world = world, .passes = job.known};
    task.streams[0].stops_at = kStopsAt;

    Derived derived;
    PlanIndex book;
    plan::Replay replay(plan::Sizes::Equal(job.samples, 1),
                        std::vector<ByteCount>(world, job.capacity / world));
    std::pair<PassNumber, Position> planned;
    for (const DerivedWindow& window : derived.Of(task, job.known - 1)) {
      EXPECT_GT(window.passes_ahead, 1U) << "kept for a read that is not in the next pass";
      for (const DerivedPass& pass : window.passes) {
        if (pass.plan->begin() == 0) planned = {pass.plan->key().pass, 0};
        EXPECT_EQ(planned, std::pair(pass.plan->key().pass, pass.plan->begin()));
        for (Position p = pass.plan->begin(); p < pass.plan->end(); ++p)
          replay.Read(job.passes[planned.first][p], pass.plan->ReaderAt(p), pass.plan->At(p), 0);
        planned.second = pass.plan->end();
        book.Add(pass);
      }
    }
    EXPECT_EQ(planned, std::pair(job.known - 1, kStopsAt));
    EXPECT_EQ(replay.capacity_exceeded(), 0U);
    EXPECT_EQ(replay.misplaced(), 0U);
    EXPECT_EQ(replay.stats().accesses, job.known * kStopsAt);
    const double min = static_cast<double>(StoreReadsOfMin(job));
    EXPECT_LE(static_cast<double>(replay.stats().store_reads), 1.02 * min) << world << " nodes";

    EXPECT_TRUE(book.Find({.stream = kStream, .pass = 3, .position = kStopsAt})->beyond);
    EXPECT_FALSE(book.Find({.stream = kStream, .pass = 3, .position = kStopsAt - 1})->beyond);
    EXPECT_FALSE(book.Find({.stream = kStream, .pass = job.known, .position = kStopsAt}));
  }
}

// The same of permutations that come as lists, which are whole; a plan never goes beyond where they
// are left, and the fewer of them are known, the worse it is.
TEST(PlanDeriver, ListsAreFollowedAsFarAsTheyAreRead) {
  for (const std::uint32_t world : {1U, 2U}) {
    Random random(world);
    Job job{.world = world, .known = 24, .stops_at = 150};
    AddPermutations(job, 24, random);
    const std::uint64_t min = StoreReadsOfMin(job);
    std::vector<std::uint64_t> reads;
    for (const PassNumber known : {24U, 3U, 1U}) {
      job.known = known;
      reads.push_back(StoreReads(job));
    }
    EXPECT_GE(reads[0], min);
    EXPECT_LE(static_cast<double>(reads[0]), 1.02 * static_cast<double>(min));
    EXPECT_LT(reads[0], reads[1]);
    EXPECT_LT(reads[1], reads[2]);
  }
}

TEST(PlanDeriver, ListsThatAreNotWhatTheirDigestsSayAreNotPlannedBy) {
  const Job job = Weighted(1, 9);
  Derived derived;
  PlanTask task = TaskAt(job, 0, {});
  const auto first = task.streams[0].traces[0];
  task.lists[first.digest] = std::make_shared<const std::string>(ListOf(job, 1));
  EXPECT_EQ(derived.Of(task).back().status.code(), Code::kDataLoss);
  task.version.counter = 2;
  task.lists.erase(first.digest);
  EXPECT_EQ(derived.Of(task).back().status.code(), Code::kDataLoss);
  task = TaskAt(job, 0, {});
  task.version.counter = 3;
  task.streams[0].recipe.world = 2;
  task.streams[0].node_of_rank = {1, 1};
  EXPECT_EQ(derived.Of(task).back().status.code(), Code::kInvalidArgument);
}

// A task that takes seconds, of many jobs with many samples.
PlanTask Long() {
  constexpr std::uint32_t kSamples = 1'000'000;
  PlanTask task{.version = {.counter = 77},
                .capacities = {{.member = 1, .bytes = kSamples / 3}},
                .sizes = plan::Sizes::Equal(kSamples, 1)};
  for (StreamId id = 1; id <= 8; ++id) {
    task.streams.push_back({.id = 100 + id,
                            .recipe = {.sampler_kind = 1,
                                       .size = kSamples,
                                       .seed = static_cast<std::int64_t>(id),
                                       .world = 1},
                            .node_of_rank = {1}});
  }
  return task;
}

TEST(PlanDeriver, WhatNobodyWantsAnyMoreIsNotDerivedToItsEnd) {
  const Job job = Weighted(1, 8);
  Derived derived;
  derived.Begin(Long());
  const MonotonicTime at_it = SystemClock().Now() + std::chrono::milliseconds(50);
  while (SystemClock().Now() < at_it)  // it is at it, or has not begun
    std::this_thread::yield();
  derived.Of(TaskAt(job, 0, {}));
  EXPECT_EQ(derived.count_of(77), 0U);
}

}  // namespace
}  // namespace optcache::node
