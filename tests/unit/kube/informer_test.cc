#include "kube/informer.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "unit/kube/api_fixture.h"
#include "unit/kube/scripted_client.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Waits short enough for a test; the real ones are tested in watch_cycle_test.cc.
constexpr WatchCycleOptions kQuick = {.idle_deadline = seconds(20),
                                      .backoff_first = milliseconds(5),
                                      .backoff_limit = milliseconds(50)};

class InformerTest : public ApiFixture {
 protected:
  void Start(InformerOptions options = {.resource = kPods, .cycle = kQuick}) {
    informer = std::make_unique<Informer>(loop, SystemClock(), *client, std::move(options));
    informer->OnChange([this](const ObjectChange& change) {
      const char* what = !change.before ? "added " : change.after ? "changed " : "removed ";
      changes.push_back(what + change.key.ToString());
    });
    informer->Start();
  }
  void StartAndSync(InformerOptions options = {.resource = kPods, .cycle = kQuick}) {
    Start(std::move(options));
    RunUntil([&] { return informer->synced() && server.open_watches() == 1; });
  }
  void Remove(const std::string& name) {
    server.store([&](FakeApiStore& store) { store.Remove(kPods, Key(name)); });
  }
  bool Has(const std::string& name) { return informer->cache().Find(Key(name)) != nullptr; }
  void Compact() {
    server.store([](FakeApiStore& store) { store.Compact(); });
  }
  double Counter(std::string_view wanted) {
    double found = -1;
    informer->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          EXPECT_EQ(labels, (MetricLabels{{"kind", "Pod"}}));
          if (name == wanted) found = value;
        });
    return found;
  }

  std::vector<std::string> changes;
  std::unique_ptr<Informer> informer;
};

using Strings = std::vector<std::string>;

TEST_F(InformerTest, ListThenWatch) {
  Put(Pod("a"));
  StartAndSync();
  EXPECT_EQ(changes, Strings{"added vision/a"});
  Put(Pod("b"));
  RunUntil([&] { return Has("b"); });
  Remove("a");
  RunUntil([&] { return !Has("a"); });
  EXPECT_EQ(changes, (Strings{"added vision/a", "added vision/b", "removed vision/a"}));
  EXPECT_EQ(server.Count("list"), 1U);
}

TEST_F(InformerTest, ListsInPagesAndIsSyncedOnlyAfterTheLast) {
  server.store([](FakeApiStore& store) {
    for (int i = 0; i < 1200; ++i)
      store.Put(kPods, MakeObject(kPods, {.ns = "vision", .name = "p" + std::to_string(i)}));
  });
  std::size_t at_sync = 0;
  Start();
  informer->OnSynced([&] { at_sync = informer->cache().size(); });
  EXPECT_FALSE(informer->synced());
  RunUntil([&] { return informer->synced(); });
  EXPECT_EQ(at_sync, 1200U);
  EXPECT_EQ(changes.size(), 1200U);
  EXPECT_EQ(server.Count("list"), 3U);
  EXPECT_EQ(server.requests().front().query.at("limit"), "500");
}

TEST_F(InformerTest, ABookmarkMovesTheVersionWithoutAChange) {
  Put(Pod("a"));
  StartAndSync();
  // Another kind's changes raise the server's version.
  server.store([](FakeApiStore& store) {
    for (int i = 0; i < 20; ++i)
      store.Put(kConfigMaps, MakeObject(kConfigMaps, {.ns = "x", .name = std::to_string(i)}));
  });
  server.SendBookmark();
  RunUntil([&] { return Counter("optcache_informer_events_total") == 1; });
  EXPECT_EQ(changes.size(), 1U);
  server.ForgetRequests();
  server.BreakWatches();
  RunUntil([&] { return server.Count("watch") == 1; });
  std::uint64_t version = 0;
  server.store([&](FakeApiStore& store) { version = store.version(); });
  EXPECT_EQ(server.requests().back().query.at("resourceVersion"), std::to_string(version));
}

TEST_F(InformerTest, GoneByStatusRelistsKeepsTheCacheAndTellsDeletionsByDifference) {
  Put(Pod("stays"));
  Put(Pod("goes"));
  Put(Pod("changes"));
  StartAndSync();
  changes.clear();
  server.Stop();
  Remove("goes");
  Put(Pod("comes"));
  Json changed = Pod("changes");
  changed["spec"]["x"] = 1;
  Put(changed);
  Compact();
  server.Start();
  EXPECT_TRUE(Has("goes"));  // An old copy is better than none.
  RunUntil([&] { return Has("comes") && !Has("goes"); });
  RunUntil([&] { return changes.size() == 3; });
  std::sort(changes.begin(), changes.end());
  EXPECT_EQ(changes,
            (Strings{"added vision/comes", "changed vision/changes", "removed vision/goes"}));
  EXPECT_TRUE(informer->synced());
}

TEST_F(InformerTest, GoneInTheStreamRelists) {
  Put(Pod("a"));
  StartAndSync();
  server.SendError(FakeError(410, "Expired", "too old resource version").body);
  RunUntil([&] { return server.Count("list") == 2 && server.open_watches() == 1; });
  EXPECT_EQ(changes, Strings{"added vision/a"});  // The list brought nothing new.
  Put(Pod("b"));
  RunUntil([&] { return Has("b"); });
}

TEST_F(InformerTest, AnObjectThatWasDeletedAndMadeAgainUnseenIsTwo) {
  Put(Pod("a"));
  StartAndSync();
  changes.clear();
  server.Stop();
  Remove("a");
  Put(Pod("a"));
  Compact();
  server.Start();
  RunUntil([&] { return changes.size() == 2; });
  EXPECT_EQ(changes, (Strings{"removed vision/a", "added vision/a"}));
}

TEST_F(InformerTest, AnExpiredContinueTokenListsFromScratchWithoutALimit) {
  server.store([](FakeApiStore& store) {
    for (int i = 0; i < 700; ++i)
      store.Put(kPods, MakeObject(kPods, {.ns = "vision", .name = "p" + std::to_string(i)}));
  });
  server.FailNext("list", "",
                  {.response = FakeError(410, "Expired", "the continue token is too old")},
                  /*count=*/1, /*good=*/1);
  Start();
  RunUntil([&] { return informer->synced(); });
  EXPECT_EQ(informer->cache().size(), 700U);
  EXPECT_EQ(changes.size(), 700U);
  ASSERT_EQ(server.Count("list"), 3U);
  const auto requests = server.requests();
  EXPECT_TRUE(requests[1].query.contains("continue"));
  EXPECT_FALSE(requests[2].query.contains("limit"));
  EXPECT_FALSE(requests[2].query.contains("continue"));
}

TEST_F(InformerTest, ACleanEndOfAWatchIsNoErrorAndGoesOnAtOnce) {
  StartAndSync();
  Put(Pod("a"));
  RunUntil([&] { return Has("a"); });
  server.EndWatches();
  RunUntil([&] { return server.Count("watch") == 2; });
  EXPECT_EQ(Counter("optcache_informer_failures_total"), 0);
  EXPECT_EQ(server.Count("list"), 1U);
}

TEST_F(InformerTest, WatchTimeoutsAreSentAndBetweenFiveAndTenMinutes) {
  StartAndSync();
  const int timeout = std::stoi(server.requests().back().query.at("timeoutSeconds"));
  EXPECT_GE(timeout, 300);
  EXPECT_LE(timeout, 600);
}

TEST_F(InformerTest, AHalfOpenStreamIsLeftWithinItsDeadline) {
  WatchCycleOptions cycle = kQuick;
  cycle.idle_deadline = milliseconds(200);
  StartAndSync({.resource = kPods, .cycle = cycle});
  server.set_mute(true);
  Put(Pod("a"));
  RunFor(milliseconds(50));
  EXPECT_FALSE(Has("a"));
  RunUntil([&] { return server.Count("watch") >= 2; });
  server.set_mute(false);
  RunUntil([&] { return Has("a"); });
}

TEST_F(InformerTest, LinesInPiecesSeveralAtOnceAndVeryLongOnes) {
  StartAndSync();
  server.set_piece_bytes(1000);
  Json big = Pod("big");
  big["metadata"]["annotations"]["text"] = std::string(1 << 20U, 'x') + "世界";
  server.store([&](FakeApiStore& store) {
    for (int i = 0; i < 50; ++i)
      store.Put(kPods, MakeObject(kPods, {.ns = "vision", .name = "p" + std::to_string(i)}));
    store.Put(kPods, big);
  });
  RunUntil([&] { return Has("big"); });
  EXPECT_EQ(informer->cache().size(), 51U);
  EXPECT_TRUE(AnnotationOf(*informer->cache().Find(Key("big")), "text")->ends_with("世界"));
}

TEST_F(InformerTest, ComesBackAfterARestartOfTheServer) {
  StartAndSync();
  server.Stop();
  RunUntil([&] { return Counter("optcache_informer_failures_total") >= 3; });
  Put(Pod("a"));
  server.Start();
  RunUntil([&] { return Has("a"); });
}

TEST_F(InformerTest, AServerThatAnswersNothingButErrorsIsNotAskedInAHotLoop) {
  WatchCycleOptions cycle = kQuick;
  cycle.backoff_first = milliseconds(100);
  cycle.backoff_limit = milliseconds(100);
  server.FailNext("list", "", {.response = FakeError(500, "InternalError", "etcd is away")}, 1000);
  const MonotonicTime begin = SystemClock().Now();
  Start({.resource = kPods, .cycle = cycle});
  RunUntil([&] { return server.Count("list") >= 6; });
  EXPECT_GE(SystemClock().Now() - begin, 5 * milliseconds(100));
}

TEST_F(InformerTest, TooManyRequestsForAWatchWaitsAsTheServerSays) {
  const MonotonicTime begin = SystemClock().Now();
  Start();
  server.FailNext("watch", "", TooManyRequests(1));
  RunUntil([&] { return server.open_watches() == 1; });
  EXPECT_GE(SystemClock().Now() - begin, seconds(1));
  EXPECT_EQ(server.Count("watch"), 2U);
  EXPECT_EQ(server.Count("list"), 1U);
}

TEST_F(InformerTest, AListThatIsForbiddenIsTriedUntilItIsNot) {
  server.FailNext("list", "", {.response = FakeError(403, "Forbidden", "no rights")}, 3);
  Put(Pod("a"));
  StartAndSync();
  EXPECT_TRUE(Has("a"));
}

TEST_F(InformerTest, FollowsWhatItsSelectorsSelect) {
  Json mine = Pod("mine");
  mine["metadata"]["labels"]["app.kubernetes.io/managed-by"] = "optcache";
  Put(mine);
  Put(Pod("other"));
  StartAndSync({.resource = kPods,
                .selection = {.ns = "", .labels = "app.kubernetes.io/managed-by=optcache"},
                .cycle = kQuick});
  EXPECT_EQ(informer->cache().size(), 1U);
  // What loses its label is gone for us.
  Put(Pod("mine"));
  RunUntil([&] { return informer->cache().size() == 0; });
  EXPECT_EQ(changes.back(), "removed vision/mine");
}

TEST_F(InformerTest, KeepsOnlyWhatTheTransformLeaves) {
  Json pod = Pod("a");
  pod["metadata"]["managedFields"] = Json::array({1, 2, 3});
  pod["spec"] = {{"nodeName", "n"}, {"containers", Json::array({1})}};
  pod["status"] = {{"phase", "Running"}, {"hostIP", "x"}};
  Put(pod);
  StartAndSync({.resource = kPods,
                .transform = KeepOnly({"/spec/nodeName", "/status/phase", "/status/none"}),
                .cycle = kQuick});
  Json kept = *informer->cache().Find(Key("a"));
  EXPECT_EQ(kept["spec"], Json({{"nodeName", "n"}}));
  EXPECT_EQ(kept["status"], Json({{"phase", "Running"}}));
  EXPECT_FALSE(kept["metadata"].contains("managedFields"));
  EXPECT_EQ(TextAt(kept, "/kind"), "Pod");
}

TEST_F(InformerTest, WhatTheTransformHidesIsNoChange) {
  Json pod = Pod("a");
  pod["status"] = {{"phase", "Running"}, {"heartbeat", 1}};
  Put(pod);
  StartAndSync({.resource = kPods, .transform = KeepOnly({"/status/phase"}), .cycle = kQuick});
  std::size_t told = 0;
  informer->OnChange([&](const ObjectChange&) { ++told; });
  ASSERT_EQ(told, 1U);  // what is there
  const std::string version = ResourceVersionOf(*informer->cache().Find(Key("a")));
  pod["status"]["heartbeat"] = 2;
  Put(pod);
  RunUntil([&] { return ResourceVersionOf(*informer->cache().Find(Key("a"))) != version; });
  EXPECT_EQ(told, 1U);
  pod["status"]["phase"] = "Failed";
  Put(pod);
  RunUntil([&] { return told == 2; });
}

TEST_F(InformerTest, HasIndexes) {
  StartAndSync({.resource = kPods, .indexes = {{"namespace", ByNamespace()}}, .cycle = kQuick});
  Put(Pod("a"));
  Put(Pod("b", "speech"));
  RunUntil([&] { return informer->cache().size() == 2; });
  EXPECT_EQ(informer->cache().Lookup("namespace", "speech").size(), 1U);
}

TEST_F(InformerTest, WhoAsksLateHearsWhatIsThere) {
  Put(Pod("a"));
  StartAndSync();
  Strings heard;
  bool synced = false;
  informer->OnChange([&](const ObjectChange& change) {
    EXPECT_EQ(change.before, nullptr);
    heard.push_back(change.key.name);
  });
  informer->OnSynced([&] { synced = true; });
  EXPECT_EQ(heard, Strings{"a"});
  EXPECT_TRUE(synced);
}

TEST_F(InformerTest, StoppedItHearsNothingMore) {
  StartAndSync();
  informer->Stop();
  RunUntil([&] { return server.open_watches() == 0; });
  Put(Pod("a"));
  RunFor(milliseconds(50));
  EXPECT_TRUE(changes.empty());
}

// What is left of a list that a callback has stopped is neither told nor followed.
TEST_F(InformerTest, ACallbackMayStopItAndStartItAgain) {
  ScriptedClient scripted;
  Informer restarted(loop, SystemClock(), scripted, {.resource = kPods, .cycle = kQuick});
  restarted.OnChange([&](const ObjectChange& change) {
    changes.push_back(change.key.name);
    if (change.key.name != "a") return;
    restarted.Stop();
    restarted.Start();
  });
  const auto answer = [&](const std::vector<Json>& pods) {
    scripted.Answer(Json{{"metadata", {{"resourceVersion", "7"}}}, {"items", pods}});
  };
  restarted.Start();
  answer({Pod("a"), Pod("b")});
  EXPECT_EQ(changes, Strings{"a"});
  EXPECT_TRUE(scripted.watches.empty());
  ASSERT_EQ(scripted.waiting.size(), 1U);
  answer({Pod("b"), Pod("c")});  // "a" goes when the list is complete
  EXPECT_EQ(changes, (Strings{"a", "b", "c", "a"}));
  EXPECT_TRUE(scripted.watches.empty());
  ASSERT_EQ(scripted.waiting.size(), 1U);
  answer({Pod("b"), Pod("c")});
  EXPECT_TRUE(restarted.synced());
  EXPECT_EQ(scripted.watches.size(), 1U);
  EXPECT_TRUE(scripted.waiting.empty());
}

TEST_F(InformerTest, MayDieWhileItLists) {
  server.FailNext("list", "", {.kind = FakeFault::Kind::kStall});
  Start();
  RunUntil([&] { return server.Count("list") == 1; });
  informer.reset();
  RunFor(milliseconds(20));
  EXPECT_TRUE(changes.empty());
}

// Whatever breaks, the cache ends up equal to the server.
TEST_F(InformerTest, ConvergesThroughRandomFaults) {
  Random random(5);
  Start();
  for (int i = 0; i < 120; ++i) {
    const std::string name = std::to_string(random.Below(20));
    switch (random.Below(9)) {
      case 0:
        server.BreakWatches();
        break;
      case 1:
        server.EndWatches();
        break;
      case 2:
        Compact();
        server.BreakWatches();
        break;
      case 3:
        server.FailNext("", "", {.response = FakeError(503, "Unavailable", "busy")}, 2);
        break;
      case 4:
        Remove(name);
        break;
      default:
        Json pod = Pod(name);
        pod["spec"]["x"] = i;
        Put(pod);
    }
    RunFor(milliseconds(random.Below(4)));
  }
  const auto equal = [&] {
    std::vector<Json> expected;
    server.store([&](FakeApiStore& store) { expected = store.List(kPods); });
    const auto kept = informer->cache().List();
    return std::equal(kept.begin(), kept.end(), expected.begin(), expected.end(),
                      [](const auto& entry, const Json& object) { return *entry == object; });
  };
  RunUntil([&] { return informer->synced() && equal(); });
}

}  // namespace
}  // namespace optcache::kube
