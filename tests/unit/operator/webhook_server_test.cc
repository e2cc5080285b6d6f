#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "metrics/metrics_page.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "operator/webhook/json_access.h"
#include "operator/webhook/server.h"
#include "support/fake_datasets.h"
#include "support/manual_clock.h"

namespace optcache::webhook {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ReviewOf(const std::string& dataset) {
  const Json pod = {{"metadata",
                     {{"name", "train-0"},
                      {"labels", {{"optcache.io/inject", "true"}}},
                      {"annotations", {{"optcache.io/dataset", dataset}}}}},
                    {"spec", {{"containers", Json::array({{{"name", "c"}}})}}}};
  return Json{{"apiVersion", "admission.k8s.io/v1"},
              {"kind", "AdmissionReview"},
              {"request",
               {{"uid", "u"},
                {"kind", {{"group", ""}, {"kind", "Pod"}}},
                {"namespace", "vision"},
                {"operation", "CREATE"},
                {"object", pod}}}}
      .dump();
}

class WebhookServer : public testing::Test {
 protected:
  void SetUp() override {
    auto listening =
        net::ListenHttp(loop_, "127.0.0.1:0", WebhookHttpOptions(), webhook_.Handler());
    ASSERT_TRUE(listening) << listening.error().message();
    server_ = *std::move(listening);
  }

  net::HttpResponse Ask(const std::string& method, const std::string& path,
                        const std::string& body) {
    std::optional<Result<net::HttpResponse>> answer;
    client_->Send({.method = method,
                   .url = "http://127.0.0.1:" + std::to_string(server_->port()) + path,
                   .headers = {{"Content-Type", "application/json"}},
                   .body = body},
                  std::chrono::minutes(2), [&](Result<net::HttpResponse> response) {
                    answer = std::move(response);
                    loop_.Stop();
                  });
    loop_.Run();
    EXPECT_TRUE(*answer) << answer->error().message();
    return *answer ? **answer : net::HttpResponse{.status = 0};
  }

  std::string Metrics() const {
    metrics::MetricsPage page;
    page.Add([this](const CounterVisitor& visitor) { webhook_.VisitCounters(visitor); });
    return page.Render();
  }

  net::EventLoop loop_;
  ManualClock clock_;
  FakeDatasets datasets_ = FakeDatasets::OfCorpus();
  Webhook webhook_{clock_, {.version = "1", .sidecar_image = "sidecar"}, datasets_};
  std::unique_ptr<net::HttpClient> client_ = net::MakeHttpClient(loop_);
  std::unique_ptr<net::HttpServer> server_;
};

TEST_F(WebhookServer, InjectsAndCounts) {
  const net::HttpResponse response = Ask("POST", "/mutate?timeout=5s", ReviewOf("imagenet"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(net::FindHeader(response.headers, "Content-Type"), "application/json");
  EXPECT_EQ(Json::parse(response.body)["response"]["allowed"], true);
  const std::string metrics = Metrics();
  EXPECT_THAT(metrics,
              HasSubstr(R"(optcache_injection_total{result="injected",reason="injected"} 1)"));
  EXPECT_THAT(metrics, HasSubstr("optcache_webhook_request_duration_seconds_count 1"));
  EXPECT_THAT(metrics, HasSubstr("optcache_metrics_unknown 0"));
}

TEST_F(WebhookServer, OldMachinesChangeWhatIsInjectedFromThenOn) {
  const auto patch = [this] {
    const Json answer = Json::parse(Ask("POST", "/mutate", ReviewOf("imagenet")).body);
    return answer["response"]["patch"].get<std::string>();
  };
  const std::string native = patch();
  webhook_.SetOldMachines({{.name = "m1", .labels = Json::object()}});
  EXPECT_NE(patch(), native);
  EXPECT_THAT(Metrics(), HasSubstr("optcache_machines_without_native_sidecars 1"));
  webhook_.SetOldMachines({});
  EXPECT_EQ(patch(), native);
}

TEST_F(WebhookServer, DeniesWithStatus200) {
  const net::HttpResponse response = Ask("POST", "/mutate", ReviewOf("nothing"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(Json::parse(response.body)["response"]["allowed"], false);
  EXPECT_THAT(Metrics(),
              HasSubstr(R"(optcache_injection_total{result="denied",reason="unknown_dataset"} 1)"));
}

TEST_F(WebhookServer, IsNotReadyBeforeItKnowsTheDatasets) {
  EXPECT_TRUE(webhook_.ready().ok());
  datasets_.set_synced(false);
  EXPECT_EQ(webhook_.ready().code(), Code::kUnavailable);
  EXPECT_EQ(Ask("POST", "/mutate", ReviewOf("imagenet")).status, 503);
  EXPECT_THAT(Metrics(), HasSubstr(R"({result="failed",reason="not_ready"} 1)"));
}

TEST_F(WebhookServer, RefusesWhatIsNoReview) {
  const net::HttpResponse response = Ask("POST", "/mutate", "{}");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("expected AdmissionReview"));
  EXPECT_THAT(Metrics(), HasSubstr(R"({result="failed",reason="bad_request"} 1)"));
}

TEST_F(WebhookServer, HasOneResource) {
  EXPECT_EQ(Ask("GET", "/mutate", "").status, 405);
  EXPECT_EQ(Ask("POST", "/", ReviewOf("imagenet")).status, 404);
  EXPECT_THAT(Metrics(), Not(HasSubstr("optcache_injection_total{")));
}

TEST_F(WebhookServer, TakesWhatApiServersSendAndNoMore) {
  std::string large = ReviewOf("imagenet");
  large.resize(3U << 20U, ' ');
  EXPECT_EQ(Ask("POST", "/mutate", large).status, 200);
  large.resize(kMaxReviewBytes + 1, ' ');
  EXPECT_EQ(Ask("POST", "/mutate", large).status, 413);
}

}  // namespace
}  // namespace optcache::webhook
