#include "cli/local/coordinator_status.h"

#include <thread>

#include <gtest/gtest.h>

#include "net/http_server.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

// Asks a server that answers everything so.
Result<CoordinatorAnswer> AskAt(const std::string& address, int status, const std::string& body) {
  net::EventLoop loop;
  const auto server =
      net::ListenHttp(loop, address, {}, [&](const auto&, const net::HttpResponder& respond) {
        respond(net::HttpResponse::Json(status, body));
      });
  EXPECT_TRUE(server) << server.error().ToString();
  const std::jthread serves([&] { loop.Run(); });
  const bool is_unix = address.starts_with("unix:");
  auto answer =
      AskCoordinator(is_unix ? address : "http://127.0.0.1:" + std::to_string((*server)->port()));
  loop.Stop();
  return answer;
}

TEST(CoordinatorStatus, IsWhatTheCoordinatorAnswers) {
  const TempDir folder;
  coordination::ClusterStatus status;
  status.sidecars = {{.name = "sidecar-0", .socket = "s", .metrics = "http://127.0.0.1:1/metrics"},
                     {.name = "sidecar-1", .socket = "t", .metrics = ""}};
  const std::string json = coordination::ToJson(status);
  for (const std::string& address : {"unix:" + folder.Join("c.sock"), std::string("127.0.0.1:0")}) {
    const auto answer = AskAt(address, 200, json);
    ASSERT_TRUE(answer) << answer.error().message();
    EXPECT_EQ(answer->json, json);
    EXPECT_EQ(answer->status, status);
    EXPECT_EQ(SidecarUrls(answer->status), std::vector<std::string>{"http://127.0.0.1:1/metrics"});
  }
}

TEST(CoordinatorStatus, WhatIsNoStatusIsOfNoCoordinator) {
  const TempDir folder;
  const std::string address = "unix:" + folder.Join("c.sock");
  const auto answer = AskAt(address, 200, "[]");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_TRUE(answer.error().message().starts_with("the coordinator at " + address))
      << answer.error().message();
}

TEST(CoordinatorStatus, APortOfPagesIsAnsweredWithTheWayToTheSocket) {
  const auto answer = AskAt("127.0.0.1:0", 404, "{}");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_TRUE(answer.error().message().ends_with(
      "Leave out --coordinator and OPTCACHE_COORDINATOR to find it by --state, or name "
      "unix:STATE/run/coordinator.sock"))
      << answer.error().message();
}

TEST(CoordinatorStatus, AnotherServerIsNoCoordinator) {
  const TempDir folder;
  const auto answer = AskAt("unix:" + folder.Join("c.sock"), 404, "{}");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_TRUE(answer.error().message().ends_with("is it a coordinator of optcache?"));
}

TEST(CoordinatorStatus, SaysThatNothingAnswers) {
  const TempDir folder;
  const auto answer = AskCoordinator("unix:" + folder.Join("c.sock"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace optcache::cli
