#include "control/control_gate.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "coordination/codec.h"
#include "support/manual_clock.h"

namespace optcache::control {
namespace {

class ControlGateTest : public testing::Test {
 protected:
  ControlGateTest() { gate_->Lead(service_); }

  struct Answer {
    int status = 0;
    std::string body;
    std::string location;
  };
  // The answer, or status 0 while there is none.
  std::shared_ptr<Answer> Send(net::HttpRequest request) {
    auto answer = std::make_shared<Answer>();
    gate_->Handle(request, [answer](const net::HttpResponse& response) {
      *answer = {.status = response.status, .body = response.body, .location = {}};
      if (const auto location = net::FindHeader(response.headers, "Location")) {
        answer->location = *location;
      }
    });
    return answer;
  }
  std::shared_ptr<Answer> Get(std::string url, std::vector<std::string> names) {
    return Send({.url = std::move(url), .peer = {.address = "p", .dns_names = std::move(names)}});
  }
  std::shared_ptr<Answer> AskCertificate(const std::string& token, std::string request = "CSR") {
    net::HttpRequest post{.method = "POST", .url = "/v1/certificates", .body = std::move(request)};
    if (!token.empty()) post.headers = {{"authorization", "Bearer " + token}};
    return Send(std::move(post));
  }
  std::shared_ptr<Answer> Report(const std::string& node, std::vector<std::string> names) {
    return Send({.method = "POST",
                 .url = "/v1/report",
                 .body = coordination::ToJson(
                     coordination::Report{.node = node, .incarnation = 1, .address = "n:1"}),
                 .peer = {.dns_names = std::move(names)}});
  }
  double Count(const std::string& name, const std::string& reason = "") {
    double sum = 0;
    gate_->VisitCounters(
        [&](MetricKind, std::string_view metric, const MetricLabels& labels, double value) {
          if (metric == name && (reason.empty() || labels.at(0).second == reason)) sum += value;
        });
    return sum;
  }

  ManualClock clock_;
  ControlService service_{clock_, {.nodes_prove_names = true}};
  std::vector<std::function<void(Result<std::string>)>> reviews_;
  std::vector<std::string> tokens_;
  std::unique_ptr<ControlGate> gate_ = std::make_unique<ControlGate>(
      clock_,
      ControlGateOptions{
          .review_token =
              [this](const std::string& token, std::function<void(Result<std::string>)> answer) {
                tokens_.push_back(token);
                reviews_.push_back(std::move(answer));
              },
          .sign = [](const std::string& request, const std::string& pod) -> Result<std::string> {
            if (request != "CSR") return Error(Code::kInvalidArgument, "no certificate request");
            return "certificate of " + pod;
          },
          .max_reviews = 2});
};

TEST_F(ControlGateTest, ANodeIsAnsweredByTheService) {
  EXPECT_EQ(Get("/v1/status", {"optcache-node", "node-a"})->status, 200);
}

TEST_F(ControlGateTest, NobodyElseIs) {
  const auto none = Get("/v1/status", {});
  EXPECT_EQ(none->status, 403);
  EXPECT_NE(none->body.find("POST /v1/certificates"), std::string::npos);
  EXPECT_EQ(Get("/v1/status", {"optcache-operator"})->status, 403);
  EXPECT_EQ(Count("optcache_control_refusals_total", "no_certificate"), 1);
  EXPECT_EQ(Count("optcache_control_refusals_total", "no_node"), 1);
}

TEST_F(ControlGateTest, ManyRefusalsAreFewLines) {
  SetUpLog("control_test", LogLevel::kInfo, LogFormat::kText);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i)
    Get("/v1/status", {});
  Get("/v1/status", {"optcache-operator"});
  clock_.Advance(std::chrono::seconds(1));
  Get("/v1/status", {});
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 3) << log;
  EXPECT_NE(log.find("reason=no_node"), std::string::npos) << log;
  EXPECT_TRUE(log.ends_with("not_logged=99\n")) << log;
  EXPECT_EQ(Count("optcache_control_refusals_total", "no_certificate"), 101);
}

TEST_F(ControlGateTest, ANodeReportsUnderItsOwnNameOnly) {
  EXPECT_EQ(Report("node-a", {"optcache-node", "node-a"})->status, 200);
  EXPECT_EQ(Report("node-b", {"optcache-node", "node-a"})->status, 403);
}

TEST_F(ControlGateTest, AReplicaThatDoesNotLeadNamesTheLeader) {
  gate_->Follow("https://10.0.0.7:8443");
  const auto elsewhere = Get("/v1/state?after=1.2", {"optcache-node"});
  EXPECT_EQ(elsewhere->status, 307);
  EXPECT_EQ(elsewhere->location, "https://10.0.0.7:8443/v1/state?after=1.2");
  EXPECT_EQ(AskCertificate("t")->location, "https://10.0.0.7:8443/v1/certificates");
  EXPECT_EQ(Get("/v1/status", {})->status, 403);  // not told to strangers
  gate_->Follow("");
  EXPECT_EQ(Get("/v1/status", {"optcache-node"})->status, 503);
}

TEST_F(ControlGateTest, SignsForThePodOfAToken) {
  const auto answer = AskCertificate("t0ken");
  EXPECT_EQ(answer->status, 0);
  ASSERT_EQ(tokens_, (std::vector<std::string>{"t0ken"}));
  reviews_[0]("node-a");
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "certificate of node-a");
  EXPECT_EQ(Count("optcache_node_certificates_total"), 1);
}

TEST_F(ControlGateTest, SignsNothingWithoutATokenOfANode) {
  EXPECT_EQ(AskCertificate("")->status, 403);
  EXPECT_EQ(AskCertificate(std::string(kMaxTokenBytes + 1, 't'))->status, 403);
  EXPECT_TRUE(tokens_.empty());
  const auto refused = AskCertificate("t");
  reviews_.at(0)(Error(Code::kPermissionDenied, "the token is that of vision/default"));
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(Count("optcache_control_refusals_total", "no_token"), 2);
  EXPECT_EQ(Count("optcache_control_refusals_total", "token_refused"), 1);
}

TEST_F(ControlGateTest, AReviewThatFailedIsNoRefusal) {
  const auto failed = AskCertificate("t");
  reviews_.at(0)(Error(Code::kUnavailable, "the API server does not answer"));
  EXPECT_EQ(failed->status, 503);
  EXPECT_EQ(Count("optcache_control_refusals_total"), 0);
}

TEST_F(ControlGateTest, RefusesWhatIsNoRequest) {
  EXPECT_EQ(AskCertificate("t", "")->status, 400);
  EXPECT_EQ(AskCertificate("t", std::string(kMaxCertificateRequestBytes + 1, 'x'))->status, 400);
  const auto wrong = AskCertificate("t", "nonsense");
  reviews_.at(0)("node-a");
  EXPECT_EQ(wrong->status, 400);
  EXPECT_EQ(Count("optcache_control_refusals_total", "invalid_request"), 3);
}

TEST_F(ControlGateTest, ReviewsSoManyAtATime) {
  AskCertificate("a");
  AskCertificate("b");
  EXPECT_EQ(AskCertificate("c")->status, 503);
  reviews_.at(0)("node-a");
  EXPECT_EQ(AskCertificate("c")->status, 0);
}

TEST_F(ControlGateTest, SignsNoMoreWhenLeadershipHasGoneMeanwhile) {
  const auto answer = AskCertificate("t");
  gate_->Follow("");
  reviews_.at(0)("node-a");
  EXPECT_EQ(answer->status, 503);
}

TEST_F(ControlGateTest, AReviewMayEndAfterTheGate) {
  const auto answer = AskCertificate("t");
  gate_.reset();
  reviews_.at(0)("node-a");
  EXPECT_EQ(answer->status, 0);
}

}  // namespace
}  // namespace optcache::control
