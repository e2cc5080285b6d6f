#include "cli/local/coordinator_status.h"

#include <thread>

#include <gtest/gtest.h>

#include "net/http_server.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

// FetchStatus of a server that answers everything with `status`.
Result<std::string> FetchFrom(const std::string& address, int status) {
  net::EventLoop loop;
  const auto server =
      net::ListenHttp(loop, address, {}, [status](const auto&, const net::HttpResponder& respond) {
        respond(net::HttpResponse::Json(status, "{}"));
      });
  EXPECT_TRUE(server) << server.error().ToString();
  const std::jthread serves([&] { loop.Run(); });
  const bool is_unix = address.starts_with("unix:");
  auto answer =
      FetchStatus(is_unix ? address : "http://127.0.0.1:" + std::to_string((*server)->port()));
  loop.Stop();
  return answer;
}

TEST(CoordinatorStatus, IsWhatTheCoordinatorAnswers) {
  const TempDir folder;
  EXPECT_EQ(FetchFrom("unix:" + folder.Join("c.sock"), 200), "{}");
  EXPECT_EQ(FetchFrom("127.0.0.1:0", 200), "{}");
}

TEST(CoordinatorStatus, APortOfPagesIsAnsweredWithTheWayToTheSocket) {
  const auto answer = FetchFrom("127.0.0.1:0", 404);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_TRUE(answer.error().message().ends_with(
      "Leave out --coordinator and OPTCACHE_COORDINATOR to find it by --state, or name "
      "unix:STATE/run/coordinator.sock"))
      << answer.error().message();
}

TEST(CoordinatorStatus, AnotherServerIsNoCoordinator) {
  const TempDir folder;
  const auto answer = FetchFrom("unix:" + folder.Join("c.sock"), 404);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_TRUE(answer.error().message().ends_with("is it a coordinator of optcache?"));
}

TEST(CoordinatorStatus, SaysThatNothingAnswers) {
  const TempDir folder;
  const auto answer = FetchStatus("unix:" + folder.Join("c.sock"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace optcache::cli
