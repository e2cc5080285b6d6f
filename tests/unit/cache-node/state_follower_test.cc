#include "cache-node/serving/state_follower.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cache-node/planning/plan_parts.h"
#include "coordination/codec.h"
#include "dataset/manifest_builder.h"
#include "unit/cache-node/fake_visitors.h"
#include "unit/net/loop_fixture.h"

namespace optcache::node {
namespace {

constexpr wire::DatasetKey kFollowedKey = 1;

dataset::Manifest FollowedManifest() {
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  EXPECT_TRUE(builder.Add({.path = "a", .size = 10}).ok());
  return std::move(builder).Finish().value();
}

// Tells the states that the test sets, gives the manifest, and keeps the reports.
class TellingCoordinator final : public net::HttpClient {
 public:
  void Tell(coordination::DesiredState state) {
    state.version = {.counter = ++told_};
    state_ = ToJson(state);
    Answer();
  }
  void Send(net::HttpRequest request, Duration, net::HttpCallback callback) override {
    if (request.url.ends_with("/v1/report")) {
      reports.push_back(coordination::ParseReport(request.body).value());
      callback(net::HttpResponse::Json(200, R"({"member":1,"version":"0.1"})"));
    } else if (request.url.contains("/v1/manifests/")) {
      callback(
          net::HttpResponse{.status = 200, .body = std::string(manifest_.shared_bytes().view())});
    } else {
      poll_ = std::move(callback);
      Answer();
    }
  }
  std::unique_ptr<net::HttpStream> Stream(net::HttpRequest, net::HttpStreamLimits,
                                          net::HttpStreamEvents) override {
    return nullptr;
  }
  std::vector<coordination::Report> reports;

 private:
  void Answer() {
    if (!poll_ || state_.empty()) return;
    std::exchange(poll_,
                  nullptr)(net::HttpResponse::Json(200, std::exchange(state_, std::string())));
  }

  dataset::Manifest manifest_ = FollowedManifest();
  std::uint64_t told_ = 0;
  std::string state_;  // that is not told yet
  net::HttpCallback poll_;
};

// Node "a" on a laptop, from the state that the coordinator tells to the dataset that is served.
class StateFollowerTest : public testing::Test {
 protected:
  StateFollowerTest() { follower_.Join(host_, router_); }

  // Nodes "a" and "b", of which "a" has that id, with the dataset.
  static coordination::DesiredState State(wire::MemberId self) {
    return {.members = {{.id = self, .name = "a", .address = "unix:/nowhere/a"},
                        {.id = 9, .name = "b", .address = "unix:/nowhere/b"}},
            .datasets = {{.name = "vision/birds",
                          .manifest_digest = dataset::ToHex(FollowedManifest().digest()),
                          .key = kFollowedKey,
                          .capacities = {{.member = self, .bytes = 1_MiB}}}}};
  }
  // Has been told that state, and serves what it names.
  void Follow(const coordination::DesiredState& state) {
    coordinator_.Tell(state);
    net::RunUntil(loop_, [&] { return follower_.Ready().ok(); });
  }
  const coordination::Report& NextReport() {
    const std::size_t before = coordinator_.reports.size();
    follower_.control().ReportSoon();
    net::RunUntil(loop_, [&] { return coordinator_.reports.size() > before; });
    return coordinator_.reports.back();
  }

  net::EventLoop loop_;
  const Clock& clock_ = SystemClock();
  TellingCoordinator coordinator_;
  ControlHttp http_{coordinator_, "http://127.0.0.1:1"};
  StreamTable streams_;
  StoreTable stores_;
  SavingsTable savings_;
  RateTable rates_;
  LiveMemory live_memory_{1_GiB};
  net::WorkerThread worker_{loop_, clock_};
  PeerLinks links_{loop_, clock_, {.name = "a"}, std::make_shared<DeafHandler>()};
  StateFollower follower_{loop_,
                          clock_,
                          {.name = "a", .advertise = "unix:/nowhere/a", .memory = 1_MiB},
                          {.http = http_,
                           .streams = streams_,
                           .stores = stores_,
                           .savings = savings_,
                           .rates = rates_,
                           .links = links_,
                           .worker = worker_}};
  PlanParts plan_parts_{follower_.control(), nullptr, follower_.state()};
  DatasetHost host_{loop_,
                    clock_,
                    {.name = "a", .memory = 1_MiB},
                    {.state = follower_.state(),
                     .effects = links_,
                     .control = follower_.control(),
                     .plan_parts = plan_parts_,
                     .worker = worker_,
                     .streams = streams_}};
  MessageRouter router_{clock_,
                        {.streams = streams_,
                         .stores = stores_,
                         .savings = savings_,
                         .rates = rates_,
                         .live_memory = live_memory_,
                         .datasets = host_.datasets(),
                         .effects = links_},
                        {}};
};

TEST_F(StateFollowerTest, IsReadyOnceWhatAStateNamesIsServed) {
  follower_.Start();
  EXPECT_EQ(follower_.Ready().message(), "waiting for the coordinator");
  coordinator_.Tell(State(1));
  net::RunUntil(loop_, [&] { return follower_.state().version.counter == 1; });
  net::RunUntil(loop_, [&] { return follower_.Ready().ok(); });
  ASSERT_NE(host_.Find(kFollowedKey), nullptr);
  EXPECT_TRUE(links_.has_peers());
  const coordination::Report& report = NextReport();
  EXPECT_EQ(report.member, 1U);
  EXPECT_EQ(report.applied, follower_.state().version);
  ASSERT_EQ(report.datasets.size(), 1U);
  EXPECT_EQ(report.datasets[0].name, "vision/birds");
}

TEST_F(StateFollowerTest, WhatItHoldsStaysWhileAStateDoesNotListIt) {
  follower_.Start();
  Follow(State(1));
  const auto before = host_.Find(kFollowedKey);
  coordination::DesiredState without = State(1);
  without.members.erase(without.members.begin());
  without.datasets.clear();
  coordinator_.Tell(without);
  net::RunUntil(loop_, [&] { return follower_.state().version.counter == 2; });
  EXPECT_EQ(host_.Find(kFollowedKey), before);
  EXPECT_FALSE(links_.has_peers());
}

TEST_F(StateFollowerTest, WhatNoStateNamesAnyMoreGoes) {
  follower_.Start();
  Follow(State(1));
  coordination::DesiredState without = State(1);
  without.datasets.clear();
  Follow(without);
  net::RunUntil(loop_, [&] { return host_.datasets().empty(); });
}

TEST_F(StateFollowerTest, AsAnotherMemberItBeginsAgain) {
  follower_.Start();
  Follow(State(1));
  const auto before = host_.Find(kFollowedKey);
  coordinator_.Tell(State(2));
  net::RunUntil(loop_, [&] {
    const auto now = host_.Find(kFollowedKey);
    return now && now != before;
  });
}

TEST_F(StateFollowerTest, ANodeWithOthersDrainsAndTellsThatItLeaves) {
  follower_.Start();
  Follow(State(1));
  bool drained = false;
  follower_.Drain(std::chrono::minutes(1), [&] { drained = true; });
  EXPECT_EQ(follower_.Ready().message(), "draining");
  EXPECT_TRUE(NextReport().leaving);
  net::RunUntil(loop_, [&] { return drained; });
}

TEST_F(StateFollowerTest, ANodeAloneEndsAtOnce) {
  bool drained = false;
  follower_.Drain(std::chrono::minutes(1), [&] { drained = true; });
  EXPECT_TRUE(drained);
}

}  // namespace
}  // namespace optcache::node
