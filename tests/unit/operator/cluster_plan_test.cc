#include "operator/reconcile/cluster/cluster_plan.h"

#include <gtest/gtest.h>

#include "dataset/digest.h"

namespace optcache::reconcile {
namespace {

constexpr const char* kManifestDigest = "0100000000000080ff";
constexpr const char* kName = "vision/imagenet";

ClusterDataset Indexed(const std::string& name) {
  ClusterDataset dataset{.ns = "vision", .name = name, .created = "2026-01-01T00:00:00Z"};
  dataset.spec.capacity = {.percent = 50};
  dataset.spec.access = {"speech", "vision"};
  dataset.status.manifest_digest = kManifestDigest;
  dataset.status.samples = 10;
  dataset.status.bytes = 1000;
  return dataset;
}

class ClusterPlanTest : public testing::Test {
 protected:
  void AddMember(const std::string& name, const std::string& node) {
    const auto id = static_cast<coordination::MemberId>(status_.members.size() + 1);
    state_.members.push_back({.id = id, .name = name, .address = "h:1", .capacity = 1000});
    status_.members.push_back(
        {.id = id, .name = name, .capacity = 1000, .applied = {.term = 0, .counter = 7}});
    machines_[name] = {.node = node};
  }
  ClusterObserved Observe() {
    return {.datasets = datasets_, .machines = &machines_, .state = &state_, .status = &status_};
  }

  std::vector<ClusterDataset> datasets_ = {Indexed("imagenet")};
  std::map<std::string, MemberMachine> machines_;
  coordination::DesiredState state_;
  coordination::ClusterStatus status_;
};

TEST_F(ClusterPlanTest, TellsTheCoordinatorWhatToServe) {
  AddMember("pod-a", "a");
  const ClusterPlan plan = PlanCluster(Observe());
  ASSERT_EQ(plan.specs.size(), 1U);
  EXPECT_EQ(plan.specs[0], (coordination::DatasetSpec{.name = kName,
                                                      .manifest_digest = kManifestDigest,
                                                      .key = dataset::KeyOf(kName, kManifestDigest),
                                                      .samples = 10,
                                                      .bytes = 1000,
                                                      .capacity = 500,
                                                      .namespaces = {"vision", "speech"},
                                                      .placed = {{"pod-a"}},
                                                      .shares = {500}}));
  EXPECT_EQ(plan.placed.at(kName).members, std::vector<std::string>{"pod-a"});
}

TEST_F(ClusterPlanTest, TellsTheCoordinatorWhatTheSourceMayBeAsked) {
  AddMember("pod-a", "a");
  datasets_[0].spec.limits = {.requests_per_second = 200, .bytes_per_second = 50_MiB};
  EXPECT_EQ(PlanCluster(Observe()).specs[0].limits,
            (coordination::StoreLimits{.requests = 200, .bytes = 50.0 * (1 << 20)}));
}

TEST_F(ClusterPlanTest, ADatasetWithTierDiskGetsWhatMemoryDoesNotGive) {
  AddMember("pod-a", "a");
  status_.members[0].capacity = 200;
  status_.members[0].disk = 1000;
  EXPECT_EQ(PlanCluster(Observe()).specs[0].with_disk, 0U);
  datasets_[0].spec.on_disk = true;
  const ClusterPlan plan = PlanCluster(Observe());
  EXPECT_EQ(plan.specs[0].capacity, 200U);
  EXPECT_EQ(plan.specs[0].with_disk, 500U);
  EXPECT_EQ(plan.placed.at(kName).granted, 500U);
  EXPECT_EQ(plan.specs[0].note, "");
}

TEST_F(ClusterPlanTest, LooksAgainWhenADiskIsGone) {
  AddMember("pod-a", "a");
  status_.members[0].disk = 1000;
  const ClusterSigns before = SignsOf(status_);
  status_.members[0].disk = 0;
  EXPECT_NE(SignsOf(status_), before);
}

TEST_F(ClusterPlanTest, LeavesOutWhatIsNotIndexed) {
  datasets_[0].status.manifest_digest.clear();
  EXPECT_TRUE(PlanCluster(Observe()).specs.empty());
}

TEST_F(ClusterPlanTest, NeverAsksForMoreThanTheDatasetHas) {
  AddMember("pod-a", "a");
  datasets_[0].spec.capacity = {.bytes = 5000};
  EXPECT_EQ(PlanCluster(Observe()).specs[0].capacity, 1000U);
}

TEST_F(ClusterPlanTest, DividesMemoryByTheRatesThatItIsGiven) {
  AddMember("pod-a", "a");
  datasets_ = {Indexed("fast"), Indexed("slow"), Indexed("idle")};
  for (ClusterDataset& dataset : datasets_)
    dataset.spec.capacity = {.percent = 80};
  datasets_[2].spec.min_capacity = api::Capacity{.bytes = 50};
  const coordination::ClusterReads reads = {
      {"vision/fast", {{"vision/job", {.rate = 900, .measured = true}}}},
      {"vision/slow", {{"vision/other", {.rate = 90, .measured = true}}}}};
  ClusterObserved observed = Observe();
  observed.reads = &reads;
  const ClusterPlan plan = PlanCluster(observed);
  EXPECT_EQ(plan.specs[0].capacity, 800U);
  EXPECT_EQ(plan.specs[0].note, "");
  EXPECT_EQ(plan.specs[1].capacity, 50U);
  EXPECT_EQ(plan.specs[1].note, plan.placed.at("vision/idle").why);
  EXPECT_EQ(plan.placed.at("vision/slow").granted, 150U);
  EXPECT_NEAR(SavedBy(plan, observed), .8 * 900 + .15 * 90, 1e-6);
}

TEST_F(ClusterPlanTest, TakesTheOldestWhereThereAreTooMany) {
  datasets_.clear();
  for (std::size_t i = 0; i <= coordination::kMaxDatasets; ++i) {
    datasets_.push_back(Indexed("d" + std::to_string(1000 + i)));
  }
  datasets_.front().created = "2026-02-01T00:00:00Z";
  const ClusterPlan plan = PlanCluster(Observe());
  EXPECT_EQ(plan.specs.size(), coordination::kMaxDatasets);
  EXPECT_EQ(plan.too_many, std::set<std::string>{"vision/d1000"});
}

TEST_F(ClusterPlanTest, FollowsReadersAndHolders) {
  for (const char* name : {"pod-a", "pod-b", "pod-c", "pod-d"})
    AddMember(name, "n");
  status_.datasets.push_back({.name = kName, .readers = {"pod-c"}});
  status_.datasets[0].nodes = {{"pod-a", 100}, {"pod-b", 5}, {"pod-d", 0}};
  const ClusterSigns signs = SignsOf(status_);
  EXPECT_EQ(signs.readers.at(kName), std::set<std::string>{"pod-c"});
  EXPECT_EQ(signs.holders.at(kName), std::set<std::string>{"pod-a"});  // 5 is next to nothing
  EXPECT_EQ(PlanCluster(Observe()).placed.at(kName).members,
            (std::vector<std::string>{"pod-a", "pod-c"}));
}

// Else the first node that holds something would be taken for enough.
TEST_F(ClusterPlanTest, MachinesThatAWarmUpFillsStay) {
  for (const char* name : {"pod-a", "pod-b", "pod-c", "pod-d"})
    AddMember(name, std::string("machine-") + name);
  EXPECT_EQ(PlanCluster(Observe()).placed.at(kName).members.size(), kIdleNodes);
  status_.datasets.push_back({.name = kName});
  status_.datasets[0].nodes = {{"pod-a", 100}};
  ClusterObserved observed = Observe();
  EXPECT_EQ(PlanCluster(observed).placed.at(kName).members, std::vector<std::string>{"pod-a"});
  std::map<std::string, std::set<std::string>> warmed = {
      {kName, {"machine-pod-a", "machine-pod-b", "machine-pod-c"}}, {"vision/other", {"x"}}};
  observed.warmed = &warmed;
  EXPECT_EQ(PlanCluster(observed).placed.at(kName).members,
            (std::vector<std::string>{"pod-a", "pod-b", "pod-c"}));
  machines_["pod-c"].leaving = true;
  EXPECT_EQ(PlanCluster(observed).placed.at(kName).members,
            (std::vector<std::string>{"pod-a", "pod-b"}));
}

TEST_F(ClusterPlanTest, TellsWhatEachMachineHasGranted) {
  AddMember("pod-a", "a");
  AddMember("pod-b", "b");
  status_.datasets.push_back({.name = kName});
  state_.datasets.push_back(
      {.name = kName, .capacities = {{.member = 2, .bytes = 300}, {.member = 1, .bytes = 5}}});
  EXPECT_EQ(ViewOf(Observe(), kName)->placed, (std::vector<api::NodeBytes>{{"a", 5}, {"b", 300}}));
}

TEST_F(ClusterPlanTest, AJobThatReadsAnEarlierManifestCountsForItsDataset) {
  AddMember("pod-a", "a");
  status_.datasets.push_back({.name = kName});
  status_.retiring.push_back({.name = kName, .readers = {"pod-c"}});
  status_.retiring[0].nodes = {{"pod-b", 100}};
  status_.retiring[0].streams = {{.name = "vision/job-1/d/train", .conflict = "seed"},
                                 {.name = "vision/job-1/d/val"},
                                 {.name = "speech/job-2/vision:d/train"}};
  const ClusterSigns signs = SignsOf(status_);
  EXPECT_EQ(signs.readers.at(kName), std::set<std::string>{"pod-c"});
  EXPECT_EQ(signs.holders.at(kName), std::set<std::string>{"pod-b"});
  const auto view = ViewOf(Observe(), kName);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->jobs_of_before, 2U);
  EXPECT_EQ(view->conflicts, std::vector<std::string>{"vision/job-1/d/train: seed"});
  EXPECT_EQ(PlanViewOf(Observe(), kName)->jobs.size(), 3U);
}

TEST_F(ClusterPlanTest, LeavesMachinesThatDrain) {
  AddMember("pod-a", "a");
  AddMember("pod-b", "b");
  status_.datasets.push_back({.name = kName});
  status_.datasets[0].nodes = {{"pod-a", 100}};
  machines_["pod-a"].cordoned = true;
  EXPECT_EQ(PlanCluster(Observe()).specs[0].placed, std::vector<std::string>{"pod-a"});
  machines_["pod-a"].draining = true;
  EXPECT_EQ(PlanCluster(Observe()).specs[0].placed, std::vector<std::string>{"pod-b"});
}

// It counts as a member until it has been silent for long.
TEST_F(ClusterPlanTest, LeavesMembersWhosePodsAreGone) {
  AddMember("pod-a", "a");
  AddMember("pod-b", "b");
  status_.members[0].capacity = 2000;
  EXPECT_EQ(PlanCluster(Observe()).specs[0].placed, (std::vector<std::string>{"pod-a", "pod-b"}));
  machines_.erase("pod-a");
  EXPECT_EQ(PlanCluster(Observe()).specs[0].placed, std::vector<std::string>{"pod-b"});
}

TEST_F(ClusterPlanTest, SignsChangeWithMembersAndTheirMemory) {
  AddMember("pod-a", "a");
  const ClusterSigns before = SignsOf(status_);
  EXPECT_EQ(SignsOf(status_), before);
  status_.members[0].capacity = 5;
  EXPECT_NE(SignsOf(status_), before);
}

TEST_F(ClusterPlanTest, ShowsWhatNodesHoldByMachine) {
  AddMember("pod-a", "a");
  AddMember("pod-b", "b");
  AddMember("pod-b2", "b");
  state_.datasets.push_back({.name = kName, .capacities = {{1, 10}}});
  coordination::DatasetStatus dataset{.name = kName, .manifest_digest = kManifestDigest};
  dataset.nodes = {{"pod-b", 5}, {"pod-b2", 6}};
  dataset.sum = {.used_bytes = 11, .predicted_hit_ratio = 0.75};
  dataset.ratios = {.observed = 0.25};
  dataset.store = {.answering = 2, .silent = 1, .members_silent = 1, .quiet_seconds = 0.5};
  dataset.streams = {{.name = "s", .conflict = "seed: 0 (rank 0), 1 (rank 3)"}};
  status_.datasets.push_back(dataset);
  const auto view = ViewOf(Observe(), kName);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->nodes, (std::vector<api::NodeBytes>{{"a", 0}, {"b", 11}}));
  EXPECT_EQ(view->cached_bytes, 11U);
  EXPECT_EQ(view->hit_ratio, 0.25);
  EXPECT_FALSE(view->predicted_hit_ratio);
  EXPECT_EQ(view->store, dataset.store);
  EXPECT_EQ(view->conflicts, std::vector<std::string>{"s: seed: 0 (rank 0), 1 (rank 3)"});
  EXPECT_FALSE(ViewOf(Observe(), "vision/other"));
}

TEST_F(ClusterPlanTest, CountsNodesThatFollowThePlan) {
  AddMember("pod-a", "a");
  AddMember("pod-b", "b");
  AddMember("pod-c", "c");
  state_.datasets.push_back({.name = kName, .capacities = {{1, 10}, {2, 10}}});
  status_.datasets.push_back({.name = kName, .planned = {.term = 0, .counter = 7}});
  status_.datasets[0].sum = {.hits = 1, .misses = 3};
  status_.datasets[0].nodes = {{.name = "pod-a", .derived = {.term = 0, .counter = 7}},
                               {.name = "pod-b", .derived = {.term = 0, .counter = 6}}};
  const auto view = PlanViewOf(Observe(), kName);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->nodes_desired, 2U);
  EXPECT_EQ(view->nodes_active, 1U);
  EXPECT_TRUE(view->nodes[0].planned);
  EXPECT_FALSE(view->nodes[1].planned) << "it has the state, and derives";
}

TEST_F(ClusterPlanTest, ARolloutKnowsAllStreamsThatHaveNotEnded) {
  AddMember("pod-a", "a");
  status_.datasets.push_back({.name = kName, .manifest_digest = "now"});
  status_.datasets[0].streams = {
      {.name = "vision/paused/imagenet/train", .ranks = 2, .ranks_lost = 2}};
  status_.datasets[0].passes = {{.sum = {.stream = 9, .pass = 1}}};
  status_.retiring.push_back({.name = kName, .manifest_digest = "before"});
  status_.retiring[0].streams = {
      {.name = "vision/old/imagenet/train", .pass = 4, .ranks = 2, .conflict = "seed"}};
  status_.retiring[0].passes = {{.sum = {.stream = 3, .pass = 7}}};
  status_.datasets[0].capacity = 5;
  status_.retiring[0].capacity = 7;
  status_.retiring.push_back({.name = "vision/other"});
  const auto view = PlanViewOf(Observe(), kName);
  ASSERT_TRUE(view);
  ASSERT_EQ(view->streams.size(), 2U);
  EXPECT_EQ(view->streams[0].name, "vision/paused/imagenet/train");
  EXPECT_EQ(view->streams[1].name, "vision/old/imagenet/train");
  EXPECT_EQ(view->streams[1].pass, 4U);
  EXPECT_EQ(view->streams[0].manifest, "now");
  EXPECT_EQ(view->streams[1].manifest, "before");
  EXPECT_TRUE(view->streams[0].order_known);
  EXPECT_FALSE(view->streams[1].order_known) << "its ranks disagree on it";
  ASSERT_EQ(view->passes.size(), 2U);
  EXPECT_EQ(view->passes[0].sum.stream, 3U);
  ASSERT_EQ(view->jobs.size(), 2U);
  EXPECT_FALSE(view->jobs[0].reads_earlier);
  EXPECT_TRUE(view->jobs[1].reads_earlier);
  EXPECT_TRUE(view->all_known);
  EXPECT_EQ(view->memory, 12U);
}

}  // namespace
}  // namespace optcache::reconcile
