#include "control/control_service.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "coordination/codec.h"
#include "coordination/plan_base.h"
#include "sampler/id_list.h"
#include "support/manual_clock.h"

namespace optcache::control {
namespace {

class ControlServiceTest : public testing::Test {
 protected:
  ControlServiceTest() {
    service_.SetDatasets({{.name = "a/b",
                           .manifest_digest = "aa",
                           .key = 1,
                           .samples = 100,
                           .bytes = 1000,
                           .capacity = 300}},
                         {{"aa", std::make_shared<const std::string>("the manifest")}});
    service_.Tick();
  }

  // The response, or status 0 if none has come yet.
  std::shared_ptr<net::HttpResponse> Send(net::HttpRequest request) {
    auto response = std::make_shared<net::HttpResponse>(net::HttpResponse{.status = 0});
    service_.Handle(request,
                    [response](net::HttpResponse answer) { *response = std::move(answer); });
    return response;
  }
  std::shared_ptr<net::HttpResponse> Get(std::string url) { return Send({.url = std::move(url)}); }
  std::shared_ptr<net::HttpResponse> Post(std::string url, std::string body) {
    return Send({.method = "POST", .url = std::move(url), .body = std::move(body)});
  }
  coordination::Report NodeReport() {
    return {.node = "n", .incarnation = 1, .address = "n:1", .capacity = 1000};
  }
  // A node with a stream of one rank.
  coordination::Report ReadingReport() {
    coordination::Report report = NodeReport();
    report.streams.push_back(
        {.id = 5,
         .name = "s",
         .dataset = "a/b",
         .dataset_key = 1,
         .ranks = {{.rank = 0, .recipe = {.size = 100, .world = 1}, .started = true}}});
    return report;
  }

  ManualClock clock_;
  ControlService service_{clock_, {}};
};

TEST_F(ControlServiceTest, SaysWhichSidecarsItsHostHasStarted) {
  service_.SetSidecars({{.name = "sidecar-0", .socket = "/s", .metrics = "http://h:1/metrics"}});
  const auto status = coordination::ParseClusterStatus(Get("/v1/status")->body);
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(status->sidecars, service_.Status().sidecars);
  EXPECT_EQ(status->sidecars.at(0).name, "sidecar-0");
}

TEST_F(ControlServiceTest, AnswersAReportWithTheMembersId) {
  const auto response = Post("/v1/report", coordination::ToJson(NodeReport()));
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, R"({"member":1,"version":"0.1"})");
}

TEST_F(ControlServiceTest, TakesTheListsOfANodeWhoseNameIsEncoded) {
  const std::vector<SampleId> ids = {7, 3};
  const std::string list = sampler::EncodeList(ids, sampler::BitsFor(100));
  const std::string digest = coordination::DigestHex(list);
  coordination::Report report = ReadingReport();
  report.node = "my laptop & me+";
  report.streams[0].ranks[0].recipe.known = false;
  report.streams[0].ranks[0].traces = {{.length = 2, .digest = digest}};
  ASSERT_EQ(Post("/v1/report", coordination::ToJson(report))->status, 200);
  const std::string url = "/v1/traces/" + digest + "?node=";
  EXPECT_EQ(Post(url + "my laptop & me+", list)->status, 409) << "it ends at the &";
  const auto taken = Post(url + "my%20laptop%20%26%20me%2B", list);
  EXPECT_EQ(taken->status, 204) << taken->body;
}

TEST_F(ControlServiceTest, APollWaitsForAHigherVersion) {
  const auto first = Get("/v1/state?after=0.0&member=n");
  const auto second = Get("/v1/state?after=0.1&member=n");
  service_.Tick();
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(second->status, 0);
  Post("/v1/report", coordination::ToJson(NodeReport()));
  service_.Tick();
  ASSERT_EQ(second->status, 200);
  const auto state = coordination::ParseDesiredState(second->body);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->members.size(), 1U);
  EXPECT_EQ(service_.polls(), 0U);
}

TEST_F(ControlServiceTest, APollThatNothingHappensToEndsAfterTwentySeconds) {
  const auto response = Get("/v1/state?after=0.1&member=n");
  clock_.Advance(std::chrono::milliseconds(19999));
  service_.Tick();
  EXPECT_EQ(response->status, 0);
  clock_.Advance(std::chrono::milliseconds(1));
  service_.Tick();
  EXPECT_EQ(response->status, 204);
}

TEST_F(ControlServiceTest, ABigStateGoesOutBitByBitAndToWhoHasWaitedLongestFirst) {
  std::vector<coordination::DatasetSpec> specs;
  for (int i = 0; i < 200; ++i) {
    specs.push_back({.name = "a/" + std::to_string(i),
                     .manifest_digest = std::string(1000, 'a'),
                     .namespaces = std::vector<std::string>(64, std::string(63, 'n'))});
  }
  service_.SetDatasets(specs, {});
  std::vector<std::shared_ptr<net::HttpResponse>> polls;
  for (int i = 0; i < 20; ++i)
    polls.push_back(Get("/v1/state"));
  const auto answered = [&] {
    return static_cast<std::size_t>(
        std::ranges::count_if(polls, [](const auto& response) { return response->status == 200; }));
  };
  service_.Tick();
  const std::size_t size = polls.front()->body.size();
  ASSERT_GT(size, 1'000'000U);
  EXPECT_EQ(answered(), (ControlService::kBytesPerTick + size - 1) / size);
  EXPECT_EQ(polls.front()->status, 200);
  EXPECT_EQ(polls.back()->status, 0);
  clock_.Advance(ControlService::kPollWait);  // Late, but there is news for them.
  for (int i = 0; i < 20; ++i)
    service_.Tick();
  EXPECT_EQ(answered(), polls.size());
}

TEST_F(ControlServiceTest, ANodeHasOnePoll) {
  const auto poll = [this](const std::string& node) {
    return Send({.url = "/v1/state?after=0.9", .peer = {.dns_names = {"optcache-node", node}}});
  };
  const auto first = poll("node-x");
  const auto other = poll("node-y");
  const auto second = poll("node-x");
  EXPECT_EQ(first->status, 204);
  EXPECT_EQ(other->status, 0);
  EXPECT_EQ(second->status, 0);
  EXPECT_EQ(service_.polls(), 2U);
}

TEST_F(ControlServiceTest, AHostThatStoodStillTakesNobodyForSilent) {
  Post("/v1/report", coordination::ToJson(NodeReport()));
  service_.Tick();
  clock_.Advance(std::chrono::minutes(5));
  service_.Tick();
  EXPECT_EQ(service_.coordinator().state().members.size(), 1U);
  for (int i = 0; i < 31; ++i) {  // While it listens, silence counts.
    clock_.Advance(std::chrono::seconds(1));
    service_.Tick();
  }
  EXPECT_TRUE(service_.coordinator().state().members.empty());
}

TEST_F(ControlServiceTest, RefusesMorePollsThanItsLimit) {
  for (std::size_t i = 0; i < ControlService::kMaxPolls; ++i)
    Get("/v1/state?after=0.9");
  EXPECT_EQ(Get("/v1/state?after=0.9")->status, 503);
}

TEST_F(ControlServiceTest, ServesTheBaseOfAPlanMadeFromInventories) {
  Post("/v1/report", coordination::ToJson(ReadingReport()));
  clock_.Advance(coordination::CoordinatorOptions{}.stream_gathering);
  service_.Tick();
  const auto asked = Get("/v1/state");
  service_.Tick();
  const auto state = coordination::ParseDesiredState(asked->body);
  ASSERT_TRUE(state);
  const coordination::Inventory inventory{.node = "n",
                                          .incarnation = 1,
                                          .dataset = "a/b",
                                          .request = state->datasets[0].inventory_wanted,
                                          .ids = {7, 9}};
  EXPECT_EQ(Post("/v1/inventory", coordination::ToJson(inventory))->status, 204);
  service_.Tick();
  const auto planned = Get("/v1/state");
  service_.Tick();
  const auto plan = coordination::ParseDesiredState(planned->body);
  ASSERT_TRUE(plan);
  const auto base = Get("/v1/base/" + plan->datasets[0].base_digest);
  EXPECT_EQ(base->status, 200);
  EXPECT_EQ(coordination::DecodePlanBase(*base->shared_body),
            (coordination::PlanBase{{{.member = 1, .ids = {7, 9}}}}));
}

TEST_F(ControlServiceTest, ServesManifestsByDigest) {
  EXPECT_EQ(*Get("/v1/manifests/aa")->shared_body, "the manifest");
  EXPECT_EQ(Get("/v1/manifests/bb")->status, 404);
  EXPECT_EQ(Get("/v1/manifests/bb")->body,
            "{\"error\":\"not_found: no manifest of this digest\"}\n");
}

TEST_F(ControlServiceTest, ServesTheStatus) {
  const auto response = Get("/v1/status");
  const auto status = coordination::ParseClusterStatus(response->body);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->datasets[0].name, "a/b");
}

TEST_F(ControlServiceTest, RefusesWhatItDoesNotUnderstandWithASentence) {
  EXPECT_EQ(Post("/v1/report", "{}")->body,
            "{\"error\":\"invalid_argument: node: missing or empty\"}\n");
  EXPECT_EQ(Post("/v1/report", "{}")->status, 400);
  EXPECT_EQ(Get("/v1/state?after=x")->status, 400);
  EXPECT_EQ(Get("/v2/state")->status, 404);
  EXPECT_EQ(Get("/v1/base/00")->status, 404);
  EXPECT_EQ(Post("/v1/state", "")->status, 405);
  EXPECT_EQ(Get("/healthz")->status, 200);
}

TEST_F(ControlServiceTest, AnInventoryThatNobodyAskedForIsAConflict) {
  Post("/v1/report", coordination::ToJson(NodeReport()));
  const coordination::Inventory inventory{
      .node = "n", .incarnation = 1, .dataset = "a/b", .request = 4};
  EXPECT_EQ(Post("/v1/inventory", coordination::ToJson(inventory))->status, 409);
}

}  // namespace
}  // namespace optcache::control
