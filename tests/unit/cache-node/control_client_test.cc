#include "cache-node/control/control_client.h"

#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache-node/control/savings_table.h"
#include "coordination/codec.h"
#include "coordinator/savings_collector.h"
#include "unit/net/loop_fixture.h"

namespace optcache::node {
namespace {

// Keeps what is sent, and answers reports, if at all.
class ReportHttp : public net::HttpClient {
 public:
  void Send(net::HttpRequest request, Duration, net::HttpCallback callback) override {
    const bool is_report = request.url.ends_with("/v1/report");
    urls.push_back(std::move(request.url));
    if (is_report && !answer.empty()) callback(net::HttpResponse::Json(status, answer));
  }
  std::unique_ptr<net::HttpStream> Stream(net::HttpRequest, net::HttpStreamLimits,
                                          net::HttpStreamEvents) override {
    return nullptr;
  }
  std::string answer;
  int status = 200;
  std::vector<std::string> urls;
};

TEST(ControlClient, ANodesNameMayHaveBlanks) {
  net::EventLoop loop;
  ReportHttp silent;
  ControlHttp http(silent, "http://127.0.0.1:1");
  ControlClient client(loop, http, {.node = "my laptop & me"},
                       {.report = [] { return coordination::Report{}; },
                        .apply = [](const coordination::DesiredState&) {},
                        .trace = nullptr});
  client.Start();
  EXPECT_THAT(silent.urls,
              testing::UnorderedElementsAre(
                  "http://127.0.0.1:1/v1/report",
                  "http://127.0.0.1:1/v1/state?after=0.0&member=my%20laptop%20%26%20me"));
}

TEST(ControlClient, ANodesNameMayHaveBlanksWhereItSendsLists) {
  net::EventLoop loop;
  ReportHttp answering;
  answering.answer = R"({"member":1,"version":"0.1","traces_wanted":["aa"]})";
  ControlHttp http(answering, "http://127.0.0.1:1");
  ControlClient client(
      loop, http, {.node = "my laptop & me"},
      {.report = [] { return coordination::Report{}; },
       .apply = [](const coordination::DesiredState&) {},
       .trace = [](const std::string&) { return std::make_shared<const std::string>("a list"); }});
  client.Start();
  EXPECT_THAT(answering.urls, testing::Contains("http://127.0.0.1:1/v1/traces/aa"
                                                "?node=my%20laptop%20%26%20me"));
}

TEST(ControlClient, ReportsSoonAgainIfTheAnswerAsksForIt) {
  net::EventLoop loop;
  ReportHttp answering;
  answering.answer = R"({"member":1,"version":"0.1"})";
  ControlHttp http(answering, "http://127.0.0.1:1");
  std::optional<ControlClient> client;
  int reports = 0;
  client.emplace(loop, http,
                 ControlClient::Options{.node = "a", .report_every = std::chrono::hours(1)},
                 ControlClient::Hooks{.report =
                                          [&] {
                                            ++reports;
                                            return coordination::Report{};
                                          },
                                      .answered =
                                          [&](std::uint64_t) {
                                            if (reports < 3) client->ReportSoon();
                                          },
                                      .apply = [](const coordination::DesiredState&) {},
                                      .trace = nullptr});
  client->Start();
  net::RunUntil(loop, [&] { return reports == 3; });
  EXPECT_EQ(reports, 3);
}

TEST(ControlClient, TellsWhatTheAnswerSaysOfStores) {
  net::EventLoop loop;
  ReportHttp answering;
  answering.answer =
      R"({"member":1,"version":"0.1","shares":[{"dataset":"a/b","requests":12.5,"bytes":7}]})";
  ControlHttp http(answering, "http://127.0.0.1:1");
  std::vector<coordination::DatasetShare> told;
  ControlClient client(
      loop, http, ControlClient::Options{.node = "a", .report_every = std::chrono::hours(1)},
      ControlClient::Hooks{
          .report = [] { return coordination::Report{}; },
          .answered = nullptr,
          .apply = [](const coordination::DesiredState&) {},
          .trace = nullptr,
          .shares = [&](const std::vector<coordination::DatasetShare>& shares) { told = shares; }});
  client.Start();
  net::RunUntil(loop, [&] { return !told.empty(); });
  EXPECT_EQ(
      told,
      (std::vector<coordination::DatasetShare>{{.dataset = "a/b", .requests = 12.5, .bytes = 7}}));
}

// So a node divides its share again among its own sidecars while the coordinator is away.
TEST(ControlClient, WithoutAnAnswerItSaysNothingNewOfStores) {
  for (const int status : {503, 409, 200}) {
    SCOPED_TRACE(status);
    net::EventLoop loop;
    ReportHttp failing;
    failing.status = status;
    failing.answer = "no report's answer";
    ControlHttp http(failing, "http://127.0.0.1:1");
    int calls = 0;
    ControlClient client(
        loop, http, ControlClient::Options{.report_every = std::chrono::milliseconds(1)},
        ControlClient::Hooks{.report = [] { return coordination::Report{}; },
                             .answered = nullptr,
                             .apply = [](const coordination::DesiredState&) {},
                             .trace = nullptr,
                             .shares =
                                 [&](const std::vector<coordination::DatasetShare>& shares) {
                                   EXPECT_TRUE(shares.empty());
                                   ++calls;
                                 }});
    client.Start();
    net::RunUntil(loop, [&] { return calls >= 2; });
    EXPECT_GE(calls, 2);
  }
}

// A node's table and its reports on one side, the coordinator's book on the other.
class ReportedSavingsTest : public testing::Test {
 protected:
  void Say(std::int64_t requests) {
    table_.OnSavings(/*from=*/1, "a/b", {.dataset = 1, .requests = requests});
  }
  // The next report. The coordinator reads it, if it `takes` it.
  void WaitForReport(bool takes) {
    net::RunUntil(loop_, [this] { return http_.answer_report != nullptr; });
    const auto report = coordination::ParseReport(http_.body);
    ASSERT_TRUE(report) << report.error().message();
    numbers_.push_back(report->savings.datasets.empty() ? 0 : report->savings.number);
    if (!takes) return;
    book_.Take(*report);
    for (const auto& [dataset, saved] : book_.Collect())
      sum_ += saved.requests;
  }
  void Answer(Result<net::HttpResponse> response) {
    std::exchange(http_.answer_report, nullptr)(std::move(response));
  }

  // Holds the answer to a report until the test gives it.
  class HeldHttp final : public net::HttpClient {
   public:
    void Send(net::HttpRequest request, Duration, net::HttpCallback callback) override {
      if (!request.url.ends_with("/v1/report")) return;
      body = std::move(request.body);
      answer_report = std::move(callback);
    }
    std::unique_ptr<net::HttpStream> Stream(net::HttpRequest, net::HttpStreamLimits,
                                            net::HttpStreamEvents) override {
      return nullptr;
    }
    std::string body;
    net::HttpCallback answer_report;
  };

  net::EventLoop loop_;
  HeldHttp http_;
  ControlHttp control_{http_, "http://127.0.0.1:1"};
  SavingsTable table_;
  coordination::SavingsCollector book_;
  std::int64_t sum_ = 0;
  std::vector<std::uint64_t> numbers_;  // of the batches that reports had; 0: none
  ControlClient client_{loop_,
                        control_,
                        {.node = "a", .report_every = std::chrono::milliseconds(1)},
                        {.report =
                             [this] {
                               return coordination::Report{.node = "a",
                                                           .incarnation = 1,
                                                           .address = "10.0.0.9:4100",
                                                           .savings = table_.Batch()};
                             },
                         .answered = [this](std::uint64_t batch) { table_.OnAnswered(batch); },
                         .apply = [](const coordination::DesiredState&) {},
                         .trace = nullptr}};
};

TEST_F(ReportedSavingsTest, CountOnceIfTheAnswerSaysThatTheyWereTaken) {
  Say(5);
  client_.Start();
  WaitForReport(/*takes=*/true);
  Say(7);  // while the report is under way
  Answer(net::HttpResponse::Json(200, "{}"));
  WaitForReport(/*takes=*/true);
  Answer(net::HttpResponse::Json(200, "{}"));
  WaitForReport(/*takes=*/true);
  EXPECT_EQ(numbers_, (std::vector<std::uint64_t>{1, 2, 0}));
  EXPECT_EQ(sum_, 7);
}

TEST_F(ReportedSavingsTest, CountOnceLaterIfAReportIsRefused) {
  Say(5);
  client_.Start();
  for (const int status : {503, 409}) {
    WaitForReport(/*takes=*/false);
    Answer(net::HttpResponse::Text(status, "not now"));
  }
  WaitForReport(/*takes=*/true);
  Answer(Error(Code::kUnavailable, "the connection has ended"));
  EXPECT_EQ(sum_, 5);
  WaitForReport(/*takes=*/true);
  Answer(net::HttpResponse::Json(200, "{}"));
  EXPECT_EQ(sum_, 5) << "that was the same batch again";
  Say(7);
  WaitForReport(/*takes=*/true);
  EXPECT_EQ(numbers_, (std::vector<std::uint64_t>{1, 1, 1, 1, 2}));
  EXPECT_EQ(sum_, 7);
}

}  // namespace
}  // namespace optcache::node
