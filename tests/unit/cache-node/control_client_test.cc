#include "cache-node/control_client.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::node {
namespace {

// Keeps what is sent, and answers nothing.
class SilentHttp : public net::HttpClient {
 public:
  void Send(net::HttpRequest request, Duration, net::HttpCallback) override {
    urls.push_back(std::move(request.url));
  }
  std::unique_ptr<net::HttpStream> Stream(net::HttpRequest, net::HttpStreamLimits,
                                          net::HttpStreamEvents) override {
    return nullptr;
  }
  std::vector<std::string> urls;
};

TEST(ControlClient, ANodesNameMayHaveBlanks) {
  net::EventLoop loop;
  SilentHttp silent;
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

}  // namespace
}  // namespace optcache::node
