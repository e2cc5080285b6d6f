#include "control/control_server.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "net/address.h"
#include "net/http_client.h"
#include "support/temp_dir.h"

namespace optcache::control {
namespace {

class ControlServerTest : public testing::Test {
 protected:
  void Start(const ControlServerOptions& options = {}) {
    auto started = ControlServer::Start(loop_, SystemClock(), options);
    ASSERT_TRUE(started) << started.error().ToString();
    server_ = *std::move(started);
  }
  net::HttpResponse Get(const std::string& url) {
    net::HttpResponse response;
    const auto client =
        net::MakeHttpClient(loop_, {.unix_socket = net::UnixPathOf(server_->url())});
    const auto by_tcp = net::MakeHttpClient(loop_);
    const bool is_tcp = url.starts_with("http://");
    (is_tcp ? by_tcp : client)
        ->Send({.url = url}, std::chrono::minutes(2), [&](Result<net::HttpResponse> answer) {
          EXPECT_TRUE(answer) << answer.error().message();
          if (answer) response = *std::move(answer);
          loop_.Stop();
        });
    loop_.Run();
    return response;
  }

  net::EventLoop loop_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, ServesStatusAndPages) {
  Start();
  EXPECT_EQ(Get(server_->url() + "/v1/status").status, 200);
  EXPECT_EQ(Get(server_->url() + "/healthz").body, "ok\n");
  EXPECT_NE(Get(server_->url() + "/metrics").body.find("process_"), std::string::npos);
  EXPECT_EQ(server_->metrics_url(), "");
}

TEST_F(ControlServerTest, AtAUnixSocketItIsForItsUserAlone) {
  const TempDir folder;
  const std::string socket = folder.Join("coordinator.sock");
  Start({.address = "unix:" + socket});
  EXPECT_EQ(server_->url(), "unix:" + socket);
  EXPECT_EQ(Get(server_->url() + "/v1/status").status, 200);
  struct stat info{};
  ASSERT_EQ(::stat(socket.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(ControlServerTest, ThePortOfItsPagesHasPagesAlone) {
  const TempDir folder;
  Start({.address = "unix:" + folder.Join("coordinator.sock")});
  ASSERT_TRUE(server_->ServePages(0).ok());
  const std::string metrics = server_->metrics_url();
  const std::string base = metrics.substr(0, metrics.rfind('/'));
  const std::string page = Get(metrics).body;
  EXPECT_NE(page.find("process_"), std::string::npos);
  EXPECT_NE(page.find("server=\"control\""), std::string::npos);
  EXPECT_EQ(Get(base + "/healthz").body, "ok\n");
  for (const char* path : {"/v1/status", "/v1/state?after=0.0", "/v1/manifests/aa", "/v1/report"})
    EXPECT_EQ(Get(base + path).status, 404) << path;
}

TEST_F(ControlServerTest, TicksSoThatAPollIsAnswered) {
  Start();
  server_->service().SetDatasets({{.name = "a/b", .manifest_digest = "aa"}}, {});
  EXPECT_NE(Get(server_->url() + "/v1/state?after=0.0").body.find("\"a/b\""), std::string::npos);
}

TEST_F(ControlServerTest, SaysThatItsPortIsTaken) {
  Start();
  const std::string address = server_->url().substr(server_->url().rfind('/') + 1);
  const auto again = ControlServer::Start(loop_, SystemClock(), {.address = address});
  EXPECT_EQ(again.error().code(), Code::kConflict);
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const TempDir folder;
  const auto other =
      ControlServer::Start(loop_, SystemClock(), {.address = "unix:" + folder.Join("c.sock")});
  ASSERT_TRUE(other) << other.error().ToString();
  EXPECT_EQ((*other)->ServePages(port).code(), Code::kConflict);
}

}  // namespace
}  // namespace optcache::control
