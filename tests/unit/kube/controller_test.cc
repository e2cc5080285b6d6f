#include "kube/controller.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gmock/gmock.h>

#include "base/log.h"
#include "unit/kube/api_fixture.h"

namespace optcache::kube {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class ControllerTest : public ApiFixture, public Reconciler {
 protected:
  ControllerTest() : informer(loop, SystemClock(), *client, {.resource = kJobs}) { Make({}); }
  void Make(ControllerOptions options) {
    options.name = "jobs";
    controller = std::make_unique<Controller>(loop, SystemClock(), std::move(options), *this);
  }
  void Start() {
    controller->For(informer);
    controller->Start();
    informer.Start();
  }
  void Reconcile(const ObjectKey& key, ReconcileDone done) override {
    runs.push_back(key.name);
    if (hold) {
      held.emplace_back(key.name, std::move(done));
    } else {
      done(result(key));
    }
  }
  static Json Job(const std::string& name) {
    return MakeObject(kJobs, {.ns = "vision", .name = name});
  }
  void PutJob(const Json& job) {
    server.store([&](FakeApiStore& store) { store.Put(kJobs, job); });
  }
  std::ptrdiff_t Runs(const std::string& name) {
    return std::count(runs.begin(), runs.end(), name);
  }
  double Counter(std::string_view wanted, const std::string& result_label = "") {
    double found = 0;
    controller->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == wanted && (result_label.empty() || labels.back().second == result_label)) {
            found = value;
          }
        });
    return found;
  }

  Informer informer;
  std::unique_ptr<Controller> controller;
  std::vector<std::string> runs;
  bool hold = false;
  std::vector<std::pair<std::string, ReconcileDone>> held;
  std::function<ReconcileResult(const ObjectKey&)> result = [](const ObjectKey&) {
    return ReconcileResult{};
  };
};

TEST_F(ControllerTest, ReconcilesEachObjectOnceAfterTheCacheIsSynced) {
  bool synced_at_first = false;
  result = [&](const ObjectKey&) {
    if (runs.size() == 1) synced_at_first = informer.synced();
    return ReconcileResult{};
  };
  for (int i = 0; i < 1200; ++i)
    PutJob(Job(std::to_string(i)));
  Start();
  RunUntil([&] { return runs.size() == 1200; });
  EXPECT_TRUE(synced_at_first);
  RunFor(milliseconds(50));
  EXPECT_EQ(runs.size(), 1200U);
  EXPECT_TRUE(controller->idle());
}

TEST_F(ControllerTest, AChangeOfTheSpecIsReconciledOneOfTheStatusIsNot) {
  PutJob(Job("a"));
  Start();
  RunUntil([&] { return runs.size() == 1; });
  Json job = Job("a");
  job["status"]["active"] = 1;
  PutJob(job);
  RunUntil([&] { return Find(*informer.cache().Find(Key("a")), "/status/active") == 1; });
  RunFor(milliseconds(20));
  EXPECT_EQ(runs.size(), 1U);
  job["spec"]["x"] = 1;
  PutJob(job);
  RunUntil([&] { return runs.size() == 2; });
  job["metadata"]["annotations"]["optcache.io/reindex"] = "1";
  PutJob(job);
  RunUntil([&] { return runs.size() == 3; });
  server.store([](FakeApiStore& store) { store.Remove(kJobs, {.ns = "vision", .name = "a"}); });
  RunUntil([&] { return runs.size() == 4; });
}

TEST_F(ControllerTest, WhatItOwnsLeadsToItsOwner) {
  Informer pods(loop, SystemClock(), *client, {.resource = kPods});
  controller->Watch(pods, MapToController(kJobs));
  pods.Start();
  PutJob(Job("a"));
  Start();
  RunUntil([&] { return runs.size() == 1; });
  Json pod = Pod("child");
  pod["metadata"]["ownerReferences"] = Json::array({OwnerReference(kJobs, Job("a"))});
  Put(pod);
  RunUntil([&] { return Runs("a") == 2; });
  server.store([](FakeApiStore& store) { store.Remove(kPods, {.ns = "vision", .name = "child"}); });
  RunUntil([&] { return Runs("a") == 3; });
  // A pod of another kind's owner is none of ours.
  pod["metadata"]["ownerReferences"][0]["apiVersion"] = "example.org/v1";
  pod["metadata"]["name"] = "foreign";
  Put(pod);
  RunUntil([&] { return pods.cache().size() == 1; });
  RunFor(milliseconds(20));
  EXPECT_EQ(runs.size(), 3U);
}

TEST_F(ControllerTest, NeverTwoAtATimeOfOneKey) {
  hold = true;
  Start();
  controller->Enqueue(Key("a"));
  RunUntil([&] { return held.size() == 1; });
  controller->Enqueue(Key("a"));
  controller->Enqueue(Key("b"));
  RunUntil([&] { return held.size() == 2; });
  EXPECT_EQ(runs, (std::vector<std::string>{"a", "b"}));
  held[0].second({});
  RunUntil([&] { return held.size() == 3; });
  EXPECT_EQ(runs.back(), "a");
}

TEST_F(ControllerTest, OnlySoManyAtATime) {
  Make({.max_concurrent = 2});
  hold = true;
  Start();
  for (const char* name : {"a", "b", "c"})
    controller->Enqueue(Key(name));
  RunUntil([&] { return held.size() == 2; });
  RunFor(milliseconds(20));
  EXPECT_EQ(held.size(), 2U);
  EXPECT_FALSE(controller->idle());
  held[0].second({});
  RunUntil([&] { return held.size() == 3; });
}

TEST_F(ControllerTest, AnErrorIsTriedAgainLaterAndLaterAndOthersGoOn) {
  result = [](const ObjectKey& key) {
    return ReconcileResult{.status = key.name == "poison" ? Status(Code::kUnavailable, "no")
                                                          : OkStatus()};
  };
  Start();
  controller->Enqueue(Key("poison"));
  RunUntil([&] { return Runs("poison") >= 4; });
  for (int i = 0; i < 50; ++i)
    controller->Enqueue(Key("good" + std::to_string(i)));
  RunUntil([&] { return runs.size() >= 50U + static_cast<std::size_t>(Runs("poison")); });
  EXPECT_GE(Counter("optcache_reconcile_total", "error"), 4);
  EXPECT_EQ(Counter("optcache_reconcile_total", "success"), 50);
  EXPECT_GE(Counter("workqueue_retries_total"), 4);
}

TEST_F(ControllerTest, RequeueAfterComesAgainThen) {
  result = [&](const ObjectKey&) {
    return ReconcileResult{.requeue_after = runs.size() == 1
                                                ? std::optional<Duration>(milliseconds(30))
                                                : std::nullopt};
  };
  Start();
  const MonotonicTime begin = SystemClock().Now();
  controller->Enqueue(Key("a"));
  RunUntil([&] { return runs.size() == 2; });
  EXPECT_GE(SystemClock().Now() - begin, milliseconds(30));
  RunFor(milliseconds(60));
  EXPECT_EQ(runs.size(), 2U);
  EXPECT_EQ(Counter("optcache_reconcile_total", "requeue_after"), 1);
}

TEST_F(ControllerTest, ResyncFindsDriftWithoutEvents) {
  Make({.resync = milliseconds(50)});
  PutJob(Job("a"));
  Start();
  RunUntil([&] { return Runs("a") >= 3; });
}

TEST_F(ControllerTest, AReconciliationThatIsDroppedHasFailed) {
  hold = true;
  Start();
  controller->Enqueue(Key("a"));
  RunUntil([&] { return held.size() == 1; });
  hold = false;
  held.clear();
  RunUntil([&] { return runs.size() == 2; });
  EXPECT_EQ(Counter("optcache_reconcile_total", "error"), 1);
}

TEST_F(ControllerTest, AKeyStaysBusyUntilALateReconciliationEnds) {
  SetUpLog("kube_test", LogLevel::kInfo, LogFormat::kText);
  Make({.late_after = milliseconds(30)});
  hold = true;
  Start();
  testing::internal::CaptureStderr();
  controller->Enqueue(Key("a"));
  RunUntil([&] { return !held.empty(); });
  hold = false;
  controller->Enqueue(Key("a"));
  // The controller's own timer is older, so it has run when this one has.
  bool late = false;
  const net::Timer timer = loop.After(milliseconds(30), [&] { late = true; });
  RunUntil([&] { return late; });
  // What is ready goes in turn: had "a" been, it would come before "b".
  controller->Enqueue(Key("b"));
  RunUntil([&] { return Runs("b") == 1; });
  EXPECT_EQ(Runs("a"), 1);
  EXPECT_EQ(Counter("optcache_reconcile_total", "error"), 0);
  held.front().second({});
  RunUntil([&] { return Runs("a") == 2; });
  RunUntil([&] { return Counter("optcache_reconcile_total", "success") == 3; });
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("a reconciliation takes long"));
}

TEST_F(ControllerTest, StopWaitsForWhatIsUnderWay) {
  hold = true;
  Start();
  controller->Enqueue(Key("a"));
  RunUntil([&] { return held.size() == 1; });
  bool stopped = false;
  controller->Stop([&] { stopped = true; });
  controller->Enqueue(Key("b"));
  RunFor(milliseconds(20));
  EXPECT_FALSE(stopped);
  held[0].second({});
  RunUntil([&] { return stopped; });
  EXPECT_EQ(runs, std::vector<std::string>{"a"});
}

TEST_F(ControllerTest, MayDieBeforeItsReconciliationsAndItsInformers) {
  hold = true;
  Start();
  controller->Enqueue(Key("a"));
  RunUntil([&] { return held.size() == 1; });
  controller.reset();
  held[0].second({});
  held.clear();
  PutJob(Job("b"));
  RunUntil([&] { return informer.cache().size() == 1; });
  EXPECT_EQ(runs.size(), 1U);
}

}  // namespace
}  // namespace optcache::kube
