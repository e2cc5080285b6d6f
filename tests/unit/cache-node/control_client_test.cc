#include "cache-node/control_client.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::node {
namespace {

// Keeps what is sent, and answers reports, if at all.
class ReportHttp : public net::HttpClient {
 public:
  void Send(net::HttpRequest request, Duration, net::HttpCallback callback) override {
    const bool is_report = request.url.ends_with("/v1/report");
    urls.push_back(std::move(request.url));
    if (is_report && !answer.empty()) callback(net::HttpResponse::Json(200, answer));
  }
  std::unique_ptr<net::HttpStream> Stream(net::HttpRequest, net::HttpStreamLimits,
                                          net::HttpStreamEvents) override {
    return nullptr;
  }
  std::string answer;
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

}  // namespace
}  // namespace optcache::node
