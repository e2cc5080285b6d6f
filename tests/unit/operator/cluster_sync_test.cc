// Against a fake API server, with a clock moved by hand.

#include "operator/manager/cluster_sync.h"

#include <gtest/gtest.h>

#include "coordination/codec.h"
#include "dataset/digest.h"
#include "operator/api/resources.h"
#include "operator/reconcile/warmup/warm_job.h"
#include "support/manual_clock.h"
#include "unit/kube/api_fixture.h"

namespace optcache::manager {
namespace {

using kube::Json;
using reconcile::PlacedReason;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ClusterSyncTest : public kube::ApiFixture {
 protected:
  static constexpr const char* kSystem = "optcache-system";
  static constexpr Duration kSomeTicks = milliseconds(200);
  const kube::ObjectKey dataset_key{.ns = "vision", .name = "imagenet"};

  ClusterSyncTest() {
    PutDataset(dataset_key);
    PutNodePod("x");
    watches.Start();
    RunUntil([&] { return watches.Missing().empty(); });
  }
  ~ClusterSyncTest() override { watches.Stop(); }

  void PutDataset(const kube::ObjectKey& key, std::uint64_t read_rate = 0) {
    Json dataset = kube::MakeObject(api::kDatasets, key);
    dataset["spec"] = Json::parse(
        R"({"source": {"http": {"baseURL": "http://store/"}}, "cache": {"capacity": "30%"}})");
    dataset["status"] = {{"manifestDigest", std::string(64, 'a')},
                         {"samples", 1000},
                         {"bytes", 100000},
                         {"largestSample", 500},
                         {"capacity", {{"readBytesPerSecond", read_rate}}}};
    server.store([&](kube::FakeApiStore& store) { store.Put(api::kDatasets, dataset); });
  }
  // A leader's: whether it takes the place of another.
  void Lead(bool successor) {
    service.emplace(clock, control::ControlOptions{.coordinator = {.successor = successor}});
    sync.emplace(
        ClusterSync::Parts{.loop = loop,
                           .clock = clock,
                           .watches = watches,
                           .datasets = datasets,
                           .service = *service,
                           .leads = [this] { return leads; }},
        [this](const kube::ObjectKey& dataset) {
          placed.push_back(dataset);
          loop.Post(
              [this, dataset] { seen.push_back(sync->ViewOf(dataset.ToString()).has_value()); });
        },
        [this] { begun = true; });
  }
  // "node-x" on "machine-x".
  void PutNodePod(const std::string& letter) {
    Json pod = kube::MakeObject(kube::kPods, {.ns = kSystem, .name = "node-" + letter});
    pod["metadata"]["labels"] = {{"app.kubernetes.io/name", "optcache"},
                                 {"app.kubernetes.io/component", "node"}};
    pod["spec"]["nodeName"] = "machine-" + letter;
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  }
  void PutMachine(const std::string& name, bool cordoned) {
    Json machine = kube::MakeObject(kube::kNodes, {.ns = "", .name = name});
    machine["spec"]["unschedulable"] = cordoned;
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kNodes, machine); });
    RunUntil([&] {
      const auto known = watches.nodes.cache().Find({.ns = "", .name = name});
      return known != nullptr && kube::BoolAt(*known, "/spec/unschedulable") == cordoned;
    });
    sync->Touch();
  }
  // A node that is there from now on, with so much of the Dataset; `member` is what a coordinator
  // before has called it.
  void Report(const std::string& letter = "x", ByteCount used = 0,
              coordination::MemberId member = 0) {
    const coordination::Report report{
        .node = "node-" + letter,
        .incarnation = 1,
        .address = "10.0.0.9:4100",
        .capacity = 1_MiB,
        .member = member,
        .datasets = {{.name = dataset_key.ToString(), .used_bytes = used}}};
    service->Handle({.method = "POST", .url = "/v1/report", .body = coordination::ToJson(report)},
                    [](const net::HttpResponse&) {});
  }
  // The same node with room for 40000 of the 60000 bytes that two Datasets want, as jobs that read
  // them have come so far, in samples.
  void ReportReads(const std::map<std::string, std::uint64_t>& progress,
                   coordination::MemberId member = 0) {
    coordination::Report report{.node = "node-x",
                                .incarnation = 1,
                                .address = "10.0.0.9:4100",
                                .capacity = 40000,
                                .member = member};
    for (const auto& [name, samples] : progress) {
      const std::string dataset = "vision/" + name;
      const coordination::RankReport rank{.recipe = {.size = 1000},
                                          .started = true,
                                          .pass = static_cast<PassNumber>(samples / 1000),
                                          .epoch = samples / 1000,
                                          .position = samples % 1000};
      report.streams.push_back({.id = report.streams.size() + 1,
                                .name = "vision/job-" + name + "/" + name + "/train",
                                .incarnation = 1,
                                .dataset = dataset,
                                .dataset_key = dataset::KeyOf(dataset, std::string(64, 'a')),
                                .ranks = {rank}});
    }
    service->Handle({.method = "POST", .url = "/v1/report", .body = coordination::ToJson(report)},
                    [](const net::HttpResponse&) {});
  }
  // The same node, as a coordinator before has called it, and what its sidecars have saved since.
  void ReportSavings(std::uint64_t batch, std::int64_t requests) {
    const coordination::Report report{.node = "node-x",
                                      .incarnation = 1,
                                      .address = "10.0.0.9:4100",
                                      .capacity = 1_MiB,
                                      .member = 1,
                                      .savings = {.number = batch,
                                                  .datasets = {{.dataset = dataset_key.ToString(),
                                                                .saved = {.requests = requests}}}}};
    service->Handle({.method = "POST", .url = "/v1/report", .body = coordination::ToJson(report)},
                    [](const net::HttpResponse&) {});
  }
  // The node's one rank has read its only pass.
  void ReportEnd() {
    coordination::Report report{
        .node = "node-x", .incarnation = 1, .address = "10.0.0.9:4100", .capacity = 40000};
    const coordination::RankReport rank{
        .recipe = {.size = 1000}, .started = true, .position = 1000, .ended = true};
    report.streams = {{.id = 1,
                       .name = "vision/job-imagenet/imagenet/train",
                       .incarnation = 1,
                       .dataset = dataset_key.ToString(),
                       .dataset_key = dataset::KeyOf(dataset_key.ToString(), std::string(64, 'a')),
                       .ranks = {rank}}};
    report.datasets = {
        {.name = dataset_key.ToString(), .passes = {{.stream = 1, .pass = 0, .hits = 7}}}};
    service->Handle({.method = "POST", .url = "/v1/report", .body = coordination::ToJson(report)},
                    [](const net::HttpResponse&) {});
  }
  ByteCount GrantedTo(const std::string& name) const {
    const auto found = sync->PlacedOf("vision/" + name);
    return found ? found->granted : 0;
  }
  std::optional<PlacedReason> Reason() const {
    const auto found = sync->PlacedOf(dataset_key.ToString());
    return found ? std::optional(found->reason) : std::nullopt;
  }
  std::vector<std::string> Members() const {
    const auto found = sync->PlacedOf(dataset_key.ToString());
    return found ? found->members : std::vector<std::string>();
  }
  std::size_t DatasetsServed() const { return service->coordinator().state().datasets.size(); }

  ManualClock clock;
  Watches watches{loop, SystemClock(), *client, "optcache", kSystem, /*seed=*/1};
  DatasetDirectory datasets{watches.datasets, watches.nodes};
  std::optional<control::ControlService> service;
  bool leads = true;
  bool begun = false;
  std::vector<kube::ObjectKey> placed;  // as it was told
  std::vector<bool> seen;               // whether there was something to see of it by then
  std::optional<ClusterSync> sync;
};

TEST_F(ClusterSyncTest, ALeaderAddsWhatNodesSayWasSavedToWhatTheStatusSays) {
  server.store([&](kube::FakeApiStore& store) {
    Json dataset = store.Find(api::kDatasets, dataset_key);
    dataset["status"]["saved"] = {{"requests", 100}, {"bytes", 0}};
    store.Put(api::kDatasets, dataset);
  });
  RunUntil([&] {
    const auto found = datasets.all().find(dataset_key);
    return found != datasets.all().end() && found->second.status.saved.has_value();
  });
  Lead(/*successor=*/true);
  ReportSavings(7, 5);
  RunFor(kSomeTicks);
  EXPECT_FALSE(sync->SavedOf(dataset_key.ToString())) << "nodes are not heard yet";
  clock.Advance(seconds(2));
  RunUntil([&] { return sync->SavedOf(dataset_key.ToString()).has_value(); });
  EXPECT_EQ(sync->SavedOf(dataset_key.ToString())->requests, 105);
  ReportSavings(7, 5);
  ReportSavings(8, 1);
  clock.Advance(seconds(1));
  RunUntil([&] { return sync->SavedOf(dataset_key.ToString())->requests != 105; });
  EXPECT_EQ(sync->SavedOf(dataset_key.ToString())->requests, 106);
}

TEST_F(ClusterSyncTest, ThatThereIsNoNodeIsSaidAfterAMinute) {
  Lead(/*successor=*/true);
  RunUntil([&] { return begun; });
  clock.Advance(seconds(60));
  RunFor(kSomeTicks);
  EXPECT_EQ(Reason(), std::nullopt);
  placed.clear();
  clock.Advance(seconds(1));
  RunUntil([&] { return Reason() == PlacedReason::kNoNodes; });
  EXPECT_EQ(placed, std::vector{dataset_key});

  // Two reports that it learns from, and one that makes the node a member.
  for (int i = 0; i < 3; ++i) {
    Report();
    clock.Advance(seconds(2));
    RunFor(kSomeTicks);
  }
  RunUntil([&] { return Reason() == PlacedReason::kPlaced; });
}

// A successor places before it speaks: what it has placed meanwhile is told once it does.
TEST_F(ClusterSyncTest, WhatASuccessorPlacedWhileItLearnedIsTold) {
  Lead(/*successor=*/true);
  Report("x", /*used=*/0, /*member=*/7);
  RunUntil([&] { return !placed.empty(); });
  RunFor(kSomeTicks);
  EXPECT_EQ(Reason(), std::nullopt);
  placed.clear();
  clock.Advance(seconds(2));
  RunUntil([&] { return Reason() == PlacedReason::kPlaced; });
  EXPECT_EQ(placed, std::vector{dataset_key});
}

// Who is told looks at once, and again only if there is something to look at.
TEST_F(ClusterSyncTest, WhatIsToldToBePlacedCanBeSeen) {
  Lead(/*successor=*/false);
  RunUntil([&] { return begun; });
  Report();
  RunUntil([&] { return Reason() == PlacedReason::kPlaced; });
  const kube::ObjectKey indexed_later{.ns = "vision", .name = "birds"};
  placed.clear();
  seen.clear();
  PutDataset(indexed_later);
  RunUntil([&] { return datasets.all().contains(indexed_later); });
  sync->Touch();
  RunUntil([&] { return !seen.empty(); });
  EXPECT_EQ(placed.front(), indexed_later);
  EXPECT_TRUE(seen.front());
}

TEST_F(ClusterSyncTest, BeginsWhenItLeadsByTheClock) {
  leads = false;
  Lead(/*successor=*/false);
  RunFor(kSomeTicks);
  EXPECT_FALSE(begun);
  leads = true;
  RunUntil([&] { return begun; });
}

// Another one may lead by now: what this one hears and sees is void until it knows better.
TEST_F(ClusterSyncTest, OneThatWasFrozenDecidesNothingAndTakesNobodyForSilent) {
  Lead(/*successor=*/false);
  Report();
  RunUntil([&] { return DatasetsServed() == 1 && Reason() == PlacedReason::kPlaced; });
  const coordination::Version version = service->coordinator().state().version;

  leads = false;
  clock.Advance(std::chrono::minutes(10));
  server.store([&](kube::FakeApiStore& store) { store.Remove(api::kDatasets, dataset_key); });
  RunUntil([&] { return datasets.all().empty(); });
  sync->Touch();
  RunFor(kSomeTicks);
  EXPECT_EQ(service->coordinator().state().version, version);
  EXPECT_EQ(DatasetsServed(), 1U);

  leads = true;
  RunUntil([&] { return DatasetsServed() == 0; });
  EXPECT_EQ(service->Status().members.size(), 1U);
}

// Each byte of a Dataset is worth what is read of it a second.
TEST_F(ClusterSyncTest, MemoryFollowsRatesButOnlyNowAndThen) {
  PutDataset({.ns = "vision", .name = "birds"});
  RunUntil([&] { return datasets.all().size() == 2; });
  Lead(/*successor=*/false);
  RunUntil([&] { return begun; });
  std::map<std::string, std::uint64_t> progress{{"birds", 0}, {"imagenet", 0}};
  const auto read_for = [&](int steps, std::uint64_t birds, std::uint64_t images) {
    for (int i = 0; i < steps; ++i) {
      clock.Advance(seconds(4));
      progress["birds"] += birds;
      progress["imagenet"] += images;
      ReportReads(progress);
    }
  };
  ReportReads(progress);
  RunUntil([&] { return DatasetsServed() == 2; });
  read_for(1, 0, 0);
  RunUntil([&] { return GrantedTo("birds") == 20000 && GrantedTo("imagenet") == 20000; });
  read_for(2, 40, 400);
  RunUntil([&] { return GrantedTo("birds") == 10000 && GrantedTo("imagenet") == 30000; });
  const std::string why = sync->PlacedOf("vision/birds")->why;

  read_for(30, 400, 40);  // two minutes
  RunFor(kSomeTicks);
  EXPECT_EQ(GrantedTo("birds"), 10000U);
  EXPECT_EQ(sync->PlacedOf("vision/birds")->why, why);
  read_for(20, 400, 40);
  RunUntil([&] { return GrantedTo("birds") == 30000 && GrantedTo("imagenet") == 10000; });
}

TEST_F(ClusterSyncTest, ASuccessorDividesMemoryAsItsPredecessorDid) {
  PutDataset({.ns = "vision", .name = "birds"}, /*read_rate=*/9000);
  PutDataset(dataset_key, /*read_rate=*/100);
  RunUntil([&] {
    return datasets.all().size() == 2 &&
           datasets.all().at(dataset_key).status.capacity->read_rate > 0;
  });
  Lead(/*successor=*/true);
  for (int i = 0; i < 2; ++i) {  // it knows no Dataset yet at the first
    ReportReads({{"birds", 1}, {"imagenet", 1}}, /*member=*/7);
    RunFor(kSomeTicks);
  }
  clock.Advance(seconds(2));
  RunUntil([&] { return Reason() == PlacedReason::kPlaced; });
  EXPECT_EQ(GrantedTo("birds"), 30000U);
  EXPECT_EQ(GrantedTo("imagenet"), 10000U);
}

// A job of a single pass ends with it: the rollout has to see that pass all the same.
TEST_F(ClusterSyncTest, TheLastPassOfAJobThatHasEndedIsSeen) {
  Lead(/*successor=*/false);
  RunUntil([&] { return begun; });
  ReportReads({{"imagenet", 0}});
  RunUntil([&] { return Reason() == PlacedReason::kPlaced; });
  clock.Advance(seconds(1));
  ReportEnd();
  clock.Advance(seconds(1));
  const auto view = [&] { return sync->PlanViewOf(dataset_key.ToString()); };
  RunUntil([&] { return view() && view()->streams.empty() && !view()->passes.empty(); });
  EXPECT_TRUE(view()->passes[0].complete);
  EXPECT_EQ(view()->passes[0].sum.hits, 7U);
}

TEST_F(ClusterSyncTest, ASuccessorKnowsStreamsWhenAllNodesHaveReportedOrHadTimeTo) {
  PutNodePod("y");
  RunUntil([&] { return watches.node_pods.cache().List().size() == 2; });
  Lead(/*successor=*/true);
  Report("x", 0, /*member=*/7);
  RunFor(kSomeTicks);
  clock.Advance(seconds(2));
  const auto known = [&] {
    const auto view = sync->PlanViewOf(dataset_key.ToString());
    return view && view->all_known;
  };
  RunUntil([&] { return sync->PlanViewOf(dataset_key.ToString()).has_value(); });
  EXPECT_FALSE(known());
  Report("y");
  clock.Advance(seconds(1));
  RunUntil(known);
}

TEST_F(ClusterSyncTest, ASuccessorKnowsAllWhenItHasGrantedMemory) {
  Lead(/*successor=*/true);
  Report("x", 0, /*member=*/7);
  RunFor(kSomeTicks);
  clock.Advance(seconds(2));
  const auto view = [&] { return sync->PlanViewOf(dataset_key.ToString()); };
  RunUntil([&] { return view() && view()->all_known; });
  EXPECT_EQ(view()->nodes_desired, 1U);
  EXPECT_EQ(view()->memory, 30000U);
}

TEST_F(ClusterSyncTest, AMachineWhoseNodeFallsSilentIsMissing) {
  using Nodes = std::vector<std::string>;
  PutNodePod("y");
  RunUntil([&] { return watches.node_pods.cache().List().size() == 2; });
  Lead(/*successor=*/false);
  RunUntil([&] { return begun; });
  Report("x");
  Report("y");
  RunUntil([&] { return Members() == Nodes{"node-x", "node-y"}; });
  const auto missing = [&] {
    const auto view = sync->PlanViewOf(dataset_key.ToString());
    return view ? view->missing : Nodes();
  };
  const auto only_x_reports_until = [&](const auto& done) {
    for (int i = 0; i < 30 && !done(); ++i) {
      clock.Advance(seconds(4));  // more would be a pause of this host
      Report("x");
      RunFor(kSomeTicks);
    }
    EXPECT_TRUE(done());
  };
  only_x_reports_until([&] { return Members() == Nodes{"node-x"}; });
  EXPECT_EQ(missing(), Nodes());
  only_x_reports_until([&] { return missing() == Nodes{"machine-y"}; });
  Report("y");
  RunUntil([&] { return missing().empty(); });
}

TEST_F(ClusterSyncTest, ADatasetStaysOnMachinesThatAWarmUpFills) {
  using Nodes = std::vector<std::string>;
  PutNodePod("y");
  RunUntil([&] { return watches.node_pods.cache().List().size() == 2; });
  Lead(/*successor=*/false);
  RunUntil([&] { return begun; });
  Report("x");
  Report("y");
  RunUntil([&] { return Members() == Nodes{"node-x", "node-y"}; });
  Json job = kube::MakeObject(kube::kJobs, {.ns = "vision", .name = "images-warm-1"});
  job["metadata"]["labels"] = {{reconcile::kManagedByLabel, reconcile::kManagedBy},
                               {"app.kubernetes.io/component", reconcile::kWarmComponent},
                               {reconcile::kWarmupLabel, "images"}};
  job["metadata"]["annotations"] = {{reconcile::kWarmsAnnotation, "imagenet"},
                                    {reconcile::kWarmNodesAnnotation, "machine-x,machine-y"}};
  server.store([&](kube::FakeApiStore& store) { store.Put(kube::kJobs, job); });
  RunUntil([&] { return watches.jobs.cache().size() == 1; });
  const auto placed_for = [&] { return sync->PlacedFor(dataset_key.ToString()); };
  Report("x", /*used=*/5000);
  clock.Advance(seconds(5));
  Report("x", /*used=*/5000);
  RunFor(kSomeTicks);
  EXPECT_EQ(Members(), (Nodes{"node-x", "node-y"}));
  EXPECT_EQ(placed_for(), seconds(5));
  server.store([&](kube::FakeApiStore& store) { store.Remove(kube::kJobs, kube::KeyOf(job)); });
  RunUntil([&] { return watches.jobs.cache().size() == 0; });
  clock.Advance(seconds(1));
  RunUntil([&] { return Members() == Nodes{"node-x"}; });
  EXPECT_EQ(placed_for(), seconds(0));
}

TEST_F(ClusterSyncTest, AMachineThatStaysCordonedIsLeftUntilItIsUncordoned) {
  using Nodes = std::vector<std::string>;
  PutNodePod("y");
  RunUntil([&] { return watches.node_pods.cache().List().size() == 2; });
  Lead(/*successor=*/false);
  RunUntil([&] { return DatasetsServed() == 1; });
  const auto both_report = [this] {
    Report("x", 30000);
    Report("y");
  };
  both_report();
  RunUntil([&] { return Members() == Nodes{"node-x"}; });

  PutMachine("machine-x", /*cordoned=*/true);
  RunFor(kSomeTicks);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Members(), Nodes{"node-x"});
    clock.Advance(reconcile::kCordonIsMeantAfter / 2);
    both_report();
    RunFor(kSomeTicks);
  }
  RunUntil([&] { return Members() == Nodes{"node-y"}; });

  PutMachine("machine-x", /*cordoned=*/false);
  RunUntil([&] { return Members() == Nodes{"node-x"}; });
}

}  // namespace
}  // namespace optcache::manager
