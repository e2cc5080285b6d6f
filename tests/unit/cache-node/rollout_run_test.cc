// Nodes that go over from one revision to another, one after the other, while a job reads through
// them: their real datasets and derivers, joined by a queue of messages, with the test as the
// coordinator.

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>

#include <gtest/gtest.h>

#include "cache-node/serving/node_dataset.h"
#include "sampler/order_source.h"
#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using coordination::DatasetState;
using coordination::PassReport;
using coordination::RevisionState;

constexpr StreamId kRead = 42;
constexpr std::uint32_t kRunSamples = 2000;
constexpr std::uint32_t kRunSize = 100;
constexpr std::size_t kRunNodes = 3;
constexpr ByteCount kRunCapacity = kRunSamples * kRunSize / 10;  // three tenths of all
constexpr auto kWindowPatience = std::chrono::minutes(1);

const RevisionState kPinRevision{.name = "pin", .retention = Retention::kPin};
const RevisionState kLruRevision{.name = "lru", .retention = Retention::kLru};
const RevisionState kPlanRevision{.name = "plan", .retention = Retention::kOptimal};

class RolloutRun {
 public:
  explicit RolloutRun(const RevisionState& own)
      : source_(sampler::OrderSource::Make({.size = kRunSamples, .seed = 7, .world = kRunNodes})
                    .value()),
        cluster_(Options()) {
    state_.name = "a/b";
    state_.key = 77;
    state_.revision = own.name;
    state_.retention = own.retention;
    for (wire::MemberId member = 1; member <= kRunNodes; ++member) {
      state_.capacities.push_back({.member = member, .bytes = kRunCapacity});
      members_.push_back(member);
    }
    homes_ = members_;
    state_.streams = {
        {.id = kRead,
         .recipe = {.sampler_kind = 1, .size = kRunSamples, .seed = 7, .world = kRunNodes},
         .node_of_rank = {1, 2, 3},
         .complete = true}};
    Replan();
  }

  // The first `count` nodes follow `update`, the others what is the dataset's own.
  void GoOver(std::size_t count, const RevisionState& update) {
    state_.update = {.revision = update, .members = {}};
    for (std::size_t node = 0; node < count; ++node)
      state_.update->members.push_back(members_[node]);
    Replan();
  }
  // The update becomes the dataset's own; nothing is planned anew.
  void Complete(const std::string& name) {
    state_.retention = state_.update->revision.retention;
    state_.revision = name;
    state_.update.reset();
    for (auto& node : nodes_)
      EXPECT_FALSE(node->Apply(state_, homes_, cluster_.now())) << "a plan is asked for";
  }
  // The dataset is placed on the others alone, which take over its share and its ranks.
  void TakeShareOf(std::size_t node) {
    std::erase(homes_, members_[node]);
    for (auto& capacity : state_.capacities)
      capacity.bytes = kRunCapacity * kRunNodes / (kRunNodes - 1);
    state_.capacities[node] = {.member = members_[node], .departs = true};
    std::ranges::replace(state_.streams[0].node_of_rank, members_[node], homes_.front());
  }
  void PlanAnew() {
    Replan();
    for (auto& node : nodes_)
      Await([&] { return node->Report().derived >= state_.planned; });
  }
  // A coordinator takes the place of the one before, and has made no plan yet.
  void ChangeCoordinators() {
    DatasetState gathering = state_;
    gathering.planned = {};
    gathering.streams[0].cut = {};
    gathering.streams[0].complete = false;
    for (auto& node : nodes_)
      EXPECT_FALSE(node->Apply(gathering, homes_, cluster_.now())) << "a plan is asked for";
    state_.planned = {.term = state_.planned.term + 1, .counter = 0};
  }
  // Nodes are told what is to be planned, and nobody gives them the base.
  void LoseBase() {
    ++state_.planned.counter;
    for (auto& node : nodes_)
      EXPECT_TRUE(node->Apply(state_, homes_, cluster_.now()));
  }
  void Try(const RevisionState& revision) {
    state_.trials = {{.id = revision.name + "@trial", .revision = revision}};
    Replan();
    for (auto& node : nodes_)
      Await([&node] { return !node->Report().trials.empty(); });
  }
  coordination::TrialReport Tried(std::size_t node) { return nodes_[node]->Report().trials.at(0); }

  // Reads on to that position of the present pass, or to its end.
  void ReadTo(Position until) {
    const std::vector<SampleId> order = source_.PassOrder(pass_).value();
    for (; position_ < std::min<Position>(until, order.size()); ++position_) {
      const std::size_t rank = position_ % kRunNodes;
      const std::size_t reader = state_.streams[0].node_of_rank[rank] - 1;
      for (auto& node : nodes_)
        if (position_ < kRunNodes) node->OnPassSeen(kRead, pass_);
      if (position_ < kRunNodes) AwaitPlans();
      const SampleId id = order[position_];
      if (cluster_.Read(reader, kRead, {pass_, position_, id})) {
        ++misses_[pass_];
      } else {
        EXPECT_EQ(cluster_.last_payload(), BytesOf(id, kRunSize));
      }
      for (std::size_t node = 0; node < kRunNodes; ++node) {
        const DatasetConfig& config = cluster_.cache(node).config();
        EXPECT_LE(cluster_.cache(node).tier().used(),
                  std::max(config.capacity, kRunCapacity) + config.reserve);
      }
    }
    if (position_ < order.size()) return;
    position_ = 0;
    ++pass_;
  }
  void ReadPass() { ReadTo(kRunSamples * 2); }
  // Which number of an inventory the first node answers.
  coordination::RequestNumber AskFor(coordination::RequestNumber number) {
    state_.inventory_wanted = number;
    EXPECT_FALSE(nodes_[0]->Apply(state_, homes_, cluster_.now()));
    return nodes_[0]->TakeInventoryRequest();
  }
  // The job begins again, and nodes are told; it has not been planned yet.
  void StartAgain() {
    pass_ = 0;
    position_ = 0;
    misses_.clear();
    ++state_.streams[0].generation.counter;
    for (auto& node : nodes_)
      EXPECT_FALSE(node->Apply(state_, homes_, cluster_.now())) << "a plan is asked for";
  }
  std::uint64_t MissesOf(PassNumber pass) { return misses_[pass]; }
  PassNumber pass() const { return pass_; }

  NodeDataset& node(std::size_t i) { return *nodes_[i]; }
  LoopbackCluster& cluster() { return cluster_; }
  // Of all nodes together.
  PassReport Counted(PassNumber pass) {
    PassReport sum{.stream = kRead, .pass = pass};
    for (auto& node : nodes_) {
      for (const PassReport& one : node->Report().passes) {
        if (one.pass != pass) continue;
        sum.hits += one.hits;
        sum.peer_hits += one.peer_hits;
        sum.misses += one.misses;
        sum.miss_bytes += one.miss_bytes;
        sum.moved_bytes += one.moved_bytes;
        sum.planned_reads += one.planned_reads;
        sum.planned_misses += one.planned_misses;
        sum.planned_miss_bytes += one.planned_miss_bytes;
        sum.planned_moved_bytes += one.planned_moved_bytes;
      }
    }
    return sum;
  }

 private:
  LoopbackCluster::Options Options() {
    const std::vector<std::uint32_t> sizes(kRunSamples, kRunSize);
    return {.nodes = kRunNodes,
            .sizes = sizes,
            .make = [this, sizes](wire::MemberId member, Effects& effects) -> DatasetCache& {
              DatasetState nothing{.name = "a/b", .key = 77};
              nodes_.push_back(std::make_unique<NodeDataset>(
                  nothing, member, plan::Sizes(sizes), std::vector<dataset::Digest>{}, effects,
                  [this, member](DerivedWindow window) {
                    const std::lock_guard lock(mutex_);
                    windows_.emplace_back(member - 1, std::move(window));
                    changed_.notify_all();
                  },
                  ends_));
              return nodes_.back()->cache();
            }};
  }

  // What the nodes hold now is the next plan's base, where the job is its cut.
  void Replan() {
    PlanTask::Base base;
    std::set<SampleId> held;
    for (auto& node : nodes_) {
      auto& ids = base.emplace_back(members_[base.size()], std::vector<SampleId>()).second;
      for (const SampleId id : node->cache().retention_manager().Inventory()) {
        if (held.insert(id).second) ids.push_back(id);
      }
    }
    ++state_.planned.counter;
    state_.streams[0].cut = {.pass = pass_, .position = position_};
    for (auto& node : nodes_) {
      if (node->Apply(state_, homes_, cluster_.now())) node->StartPlan(base, {});
    }
    cluster_.Settle();
    for (auto& node : nodes_) {
      const Following following = Follow(state_, node->cache().config().self);
      Await([&] { return node->revision() == following.revision; });
    }
  }
  // Everybody knows the pass that begins, and has planned it if there is a plan.
  void AwaitPlans() {
    for (auto& node : nodes_) {
      node->FollowStreams(streams_);
      if (node->cache().config().retention != Retention::kOptimal) continue;
      Await([&] { return node->book().Find({kRead, pass_, kRunSamples - 1}).has_value(); });
    }
  }
  template <typename Condition>
  void Await(Condition condition) {
    while (!condition()) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, kWindowPatience, [this] { return !windows_.empty(); })) {
        FAIL() << "no window came";
      }
      auto [node, window] = std::move(windows_.front());
      windows_.pop_front();
      lock.unlock();
      EXPECT_TRUE(window.status.ok()) << window.status.ToString();
      nodes_[node]->OnDerived(std::move(window), cluster_.now());
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::size_t, DerivedWindow>> windows_;
  sampler::OrderSource source_;
  DatasetState state_;
  std::vector<wire::MemberId> members_;
  std::vector<wire::MemberId> homes_;  // those that have a share
  StreamTable streams_;                // no rank is attached: passes are those of the reads
  PassNumber pass_ = 0;
  Position position_ = 0;
  std::map<PassNumber, std::uint64_t> misses_;
  const std::shared_ptr<DeriverEnds> ends_ = std::make_shared<DeriverEnds>();
  std::vector<std::unique_ptr<NodeDataset>> nodes_;
  LoopbackCluster cluster_;
};

constexpr double kAtTheBound = 0.7 * kRunSamples;  // store reads of a pass, at the bound

TEST(RolloutRun, FromPinToAPlanNodeByNodeAndWhatWasPredictedComesTrue) {
  RolloutRun run(kPinRevision);
  run.ReadPass();
  run.ReadPass();
  EXPECT_NEAR(static_cast<double>(run.MissesOf(1)), kAtTheBound, 0.02 * kRunSamples);
  run.Try(kPlanRevision);
  const auto forecast = run.Tried(0);
  EXPECT_EQ(forecast.error, "");
  for (std::size_t node = 1; node < kRunNodes; ++node) {
    EXPECT_EQ(run.Tried(node).digest, forecast.digest);
    EXPECT_EQ(run.Tried(node).all, forecast.all);
  }
  for (std::size_t gone_over = 1; gone_over <= kRunNodes; ++gone_over) {
    run.ReadTo(500 * gone_over);
    run.GoOver(gone_over, kPlanRevision);
    for (std::size_t node = 0; node < kRunNodes; ++node)
      EXPECT_EQ(run.node(node).revision(), node < gone_over ? "plan" : "pin");
  }
  run.ReadTo(1700);
  run.Complete("plan");
  EXPECT_EQ(run.node(0).revision(), "plan");
  run.ReadPass();
  EXPECT_LT(run.Counted(2).planned_reads, kRunSamples) << "part of it was read without a plan";

  const PassNumber first = run.pass();
  run.ReadPass();
  run.ReadPass();
  for (PassNumber pass = first; pass < first + 2; ++pass) {
    const PassReport counted = run.Counted(pass);
    EXPECT_EQ(counted.hits + counted.peer_hits + counted.misses, kRunSamples + 1)
        << "one is padding";
    EXPECT_EQ(counted.misses, run.MissesOf(pass));
    EXPECT_EQ(counted.planned_reads, kRunSamples + 1);
    EXPECT_NEAR(static_cast<double>(counted.misses), static_cast<double>(forecast.all.store_reads),
                0.01 * kRunSamples)
        << pass;
    EXPECT_NEAR(static_cast<double>(counted.misses), static_cast<double>(counted.planned_misses),
                0.01 * kRunSamples)
        << pass;
    EXPECT_NEAR(static_cast<double>(counted.moved_bytes),
                static_cast<double>(counted.planned_moved_bytes), 0.01 * kRunSamples * kRunSize)
        << pass;
  }
}

// It is long in making one here: a pass ends meanwhile.
TEST(RolloutRun, ThePlanGoesOnUntilANewCoordinatorHasMadeOne) {
  RolloutRun run(kPlanRevision);
  run.ReadPass();
  run.ReadTo(700);
  run.PlanAnew();
  run.ReadPass();
  run.ReadTo(600);
  run.ChangeCoordinators();
  EXPECT_TRUE(run.node(0).book().Decides({.stream = kRead, .pass = 2, .position = 600}));
  EXPECT_EQ(run.node(0).revision(), "plan");
  run.ReadPass();
  run.ReadTo(400);
  run.PlanAnew();
  run.ReadPass();
  for (PassNumber pass = 1; pass <= 3; ++pass) {
    const PassReport counted = run.Counted(pass);
    EXPECT_EQ(counted.misses, run.MissesOf(pass));
    EXPECT_EQ(counted.planned_reads, kRunSamples + 1) << pass;
    EXPECT_NEAR(static_cast<double>(counted.misses), static_cast<double>(counted.planned_misses),
                0.01 * kRunSamples)
        << pass;
    EXPECT_NEAR(static_cast<double>(counted.misses), kAtTheBound, 0.02 * kRunSamples) << pass;
  }
}

TEST(RolloutRun, EachNumberOfAnInventoryIsAnsweredOnce) {
  RolloutRun run(kPlanRevision);
  EXPECT_EQ(run.AskFor(9), 9U);
  EXPECT_EQ(run.AskFor(9), 0U);
  EXPECT_EQ(run.AskFor(0), 0U);
  EXPECT_EQ(run.AskFor(2), 2U) << "another coordinator does";
}

// Its passes count from 0 again, and both plans begin there: the cut does not go back.
TEST(RolloutRun, AJobThatIsStartedAgainIsPlannedAndCountedFromItsBegin) {
  RolloutRun run(kPlanRevision);
  for (int pass = 0; pass < 4; ++pass)
    run.ReadPass();
  run.ReadTo(700);
  run.StartAgain();
  run.PlanAnew();
  for (int pass = 0; pass < 3; ++pass)
    run.ReadPass();
  for (PassNumber pass = 0; pass < 3; ++pass) {
    const PassReport counted = run.Counted(pass);
    EXPECT_EQ(counted.hits + counted.peer_hits + counted.misses, kRunSamples + 1) << pass;
    EXPECT_EQ(counted.misses, run.MissesOf(pass));
    EXPECT_NEAR(static_cast<double>(counted.misses), static_cast<double>(counted.planned_misses),
                0.01 * kRunSamples)
        << pass;
  }
  for (std::size_t node = 0; node < kRunNodes; ++node)
    EXPECT_FALSE(run.node(node).book().Find({kRead, 0, 0})) << "that pass is over";
}

TEST(RolloutRun, AllGoBackAtOnceInTheMiddleOfAPassAndNothingIsLost) {
  for (const RevisionState& other : {kPinRevision, kLruRevision}) {
    RolloutRun run(other);
    run.ReadPass();
    run.ReadTo(700);
    run.GoOver(2, kPlanRevision);
    run.ReadTo(1500);
    run.GoOver(kRunNodes, kPlanRevision);
    run.ReadPass();
    run.ReadTo(900);
    std::size_t held = 0;
    for (std::size_t node = 0; node < kRunNodes; ++node)
      held += run.cluster().cache(node).tier().samples();
    run.GoOver(0, kPlanRevision);
    std::size_t held_after = 0;
    for (std::size_t node = 0; node < kRunNodes; ++node) {
      EXPECT_EQ(run.node(node).revision(), other.name);
      EXPECT_EQ(run.cluster().cache(node).push_queue().samples(), 0U);
      held_after += run.cluster().cache(node).tier().samples();
      EXPECT_LE(run.cluster().cache(node).tier().used(), kRunCapacity);
    }
    EXPECT_GE(held_after + kRunSamples / 100, held) << "beyond what was in transit";
    for (int pass = 0; pass < 4; ++pass)
      run.ReadPass();
    EXPECT_EQ(run.Counted(5).planned_reads, 0U);
    if (other.retention == Retention::kPin) {
      EXPECT_NEAR(static_cast<double>(run.MissesOf(4)), kAtTheBound, 0.02 * kRunSamples);
      EXPECT_NEAR(static_cast<double>(run.MissesOf(5)), kAtTheBound, 0.02 * kRunSamples);
    }
  }
}

// What some nodes kept beside what the others had pinned is not lost.
TEST(RolloutRun, NodeByNodeWithWholePassesBetweenAndAllTheWayBack) {
  RolloutRun run(kPinRevision);
  run.ReadPass();
  for (std::size_t gone_over = 1; gone_over <= kRunNodes; ++gone_over) {
    run.GoOver(gone_over, kPlanRevision);
    run.ReadPass();
    run.ReadTo(300 * gone_over);
  }
  run.ReadPass();
  run.ReadPass();
  const PassNumber planned = run.pass() - 1;
  EXPECT_NEAR(static_cast<double>(run.MissesOf(planned)), kAtTheBound, 0.01 * kRunSamples);
  run.ReadTo(700);
  run.GoOver(0, kPlanRevision);
  for (int pass = 0; pass < 3; ++pass)
    run.ReadPass();
  EXPECT_NEAR(static_cast<double>(run.MissesOf(run.pass() - 1)), kAtTheBound, 0.01 * kRunSamples);
}

TEST(RolloutRun, WhatANodeWithoutAShareHoldsGoesToItsNextReadersByThePlan) {
  RolloutRun run(kPlanRevision);
  run.ReadPass();
  run.ReadPass();
  run.ReadTo(700);
  const DatasetCache& loser = run.cluster().cache(2);
  const std::size_t held = loser.tier().samples();
  EXPECT_GT(held, kRunSamples / 12U);
  const PassReport before = run.Counted(2);
  run.TakeShareOf(2);
  run.PlanAnew();
  run.ReadPass();
  EXPECT_EQ(loser.tier().samples(), 0U);
  EXPECT_GE(loser.counters().relocated, held - held / 20) << "but for what is spare";
  EXPECT_EQ(loser.counters().relocations_lost, 0U);
  // Where they are read, but for those that are read before they can have moved.
  EXPECT_LT(run.Counted(2).peer_hits - before.peer_hits, held / 5);
  run.ReadPass();
  EXPECT_NEAR(static_cast<double>(run.MissesOf(2)), kAtTheBound, 0.01 * kRunSamples);
  EXPECT_NEAR(static_cast<double>(run.MissesOf(3)), kAtTheBound, 0.01 * kRunSamples);
}

TEST(RolloutRun, WhatANodeWithoutAShareHoldsDoesNotWaitForeverForAPlan) {
  RolloutRun run(kPlanRevision);
  run.ReadPass();
  run.ReadTo(700);
  const DatasetCache& loser = run.cluster().cache(2);
  const std::size_t held = loser.tier().samples();
  run.TakeShareOf(2);
  run.LoseBase();
  run.cluster().Settle();
  for (const SampleId id : loser.retention_manager().Inventory())
    EXPECT_FALSE(run.cluster().Read(0, 0, {0, 0, id})) << "it is found meanwhile";
  run.cluster().Advance(std::chrono::seconds(29));
  run.node(2).GiveAwayIfDue(run.cluster().now());
  EXPECT_EQ(loser.push_queue().samples(), 0U);
  run.cluster().Advance(std::chrono::seconds(1));
  run.node(2).GiveAwayIfDue(run.cluster().now());
  EXPECT_GE(loser.push_queue().samples(), held - held / 20) << "but for what is spare";
}

TEST(RolloutRun, WhatANodeWithoutAShareHoldsOutlastsAChangeOfRevision) {
  RolloutRun run(kPlanRevision);
  run.ReadPass();
  run.ReadTo(700);
  const DatasetCache& loser = run.cluster().cache(2);
  const std::size_t held = loser.tier().samples();
  run.TakeShareOf(2);
  run.LoseBase();
  run.GoOver(kRunNodes, kPinRevision);
  run.cluster().Advance(std::chrono::seconds(30));
  run.node(2).GiveAwayIfDue(run.cluster().now());
  EXPECT_GE(loser.push_queue().samples(), held - held / 20) << "but for what is spare";
}

}  // namespace
}  // namespace optcache::node
