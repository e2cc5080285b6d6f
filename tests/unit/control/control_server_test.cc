#include "control/control_server.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "net/http_client.h"

namespace optcache::control {
namespace {

class ControlServerTest : public testing::Test {
 protected:
  // The answer to GET `path`.
  net::HttpResponse Get(const std::string& path) {
    net::HttpResponse response;
    client_->Send({.url = server_->url() + path}, std::chrono::seconds(10),
                  [&](Result<net::HttpResponse> answer) {
                    EXPECT_TRUE(answer) << answer.error().message();
                    if (answer) response = *std::move(answer);
                    loop_.Stop();
                  });
    loop_.Run();
    return response;
  }

  net::EventLoop loop_;
  std::unique_ptr<ControlServer> server_ = *ControlServer::Start(loop_, SystemClock(), 0);
  std::unique_ptr<net::HttpClient> client_ = net::MakeHttpClient(loop_);
};

TEST_F(ControlServerTest, ServesStatusAndPages) {
  EXPECT_EQ(Get("/v1/status").status, 200);
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  EXPECT_NE(Get("/metrics").body.find("process_"), std::string::npos);
}

TEST_F(ControlServerTest, TicksSoThatAPollIsAnswered) {
  server_->service().SetDatasets({{.name = "a/b", .manifest_digest = "aa"}}, {});
  EXPECT_NE(Get("/v1/state?after=0.0").body.find("\"a/b\""), std::string::npos);
}

TEST_F(ControlServerTest, SaysThatItsPortIsTaken) {
  const auto port =
      static_cast<std::uint16_t>(std::stoi(server_->url().substr(server_->url().rfind(':') + 1)));
  EXPECT_EQ(ControlServer::Start(loop_, SystemClock(), port).error().code(), Code::kConflict);
}

}  // namespace
}  // namespace optcache::control
