#include "sidecar/agent.h"

#include <sys/socket.h>

#include <numeric>

#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"
#include "handoff/codec.h"
#include "handoff/socket.h"
#include "support/scripted_http_server.h"
#include "support/temp_dir.h"

namespace optcache::sidecar {
namespace {

constexpr auto kWaitMax = std::chrono::minutes(1);
constexpr auto kLook = std::chrono::milliseconds(5);

// A hundred samples on a server that takes requests and answers none, and no node.
class AgentTest : public testing::Test {
 protected:
  static constexpr SampleId kSamples = 100;

  void SetUp() override {
    dataset::ManifestBuilder builder(dataset::Order::kPath, {});
    for (SampleId id = 0; id < kSamples; ++id) {
      const std::string path = std::to_string(100 + id);
      server_.AnswerNext(path, {.without_answer = true, .end = ScriptedAnswer::End::kStall});
      ASSERT_TRUE(builder.Add({.path = path, .size = 10}).ok());
    }
    dir_.Write("manifest", std::move(builder).Finish().value().bytes());
  }
  void Start(std::size_t store_concurrency) {
    auto agent = Agent::Start(loop_, SystemClock(),
                              {.name = "test",
                               .socket = dir_.Join("socket"),
                               .node = "127.0.0.1:1",
                               .arena_bytes = 1_MiB,
                               .datasets = {{.name = "images",
                                             .manifest_file = dir_.Join("manifest"),
                                             .store_uri = server_.url()}},
                               .feeder = {.fetch = {.store_concurrency = store_concurrency}}});
    ASSERT_TRUE(agent.has_value()) << agent.error().ToString();
    agent_ = std::move(*agent);
  }
  void AskForAll() {
    client_ = handoff::ConnectTo(dir_.Join("socket")).value();
    handoff::GetRequest get{.dataset = 1, .first = handoff::kNoIndex, .ids = {}};
    get.ids.resize(kSamples);
    std::iota(get.ids.begin(), get.ids.end(), 0);
    Say(1, handoff::Hello{.pid = 1});
    Say(2, handoff::OpenRequest{});
    Say(3, get);
  }
  void Say(handoff::RequestId request, const handoff::ClientMessage& message) {
    const auto frame = handoff::EncodeClientFrame(request, message);
    ASSERT_EQ(::send(client_.get(), frame.data(), frame.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(frame.size()));
  }
  // Turns the loop until the store was asked that often.
  void RunUntilRequests(std::size_t count) {
    LookFor(count, Deadline::After(SystemClock(), kWaitMax));
    loop_.Run();
    EXPECT_EQ(server_.requests().size(), count);
  }
  void LookFor(std::size_t count, Deadline deadline) {
    look_ = loop_.After(kLook, [this, count, deadline] {
      const bool over = deadline.Expired(SystemClock().Now());
      if (over || server_.requests().size() >= count) return loop_.Stop();
      LookFor(count, deadline);
    });
  }

  TempDir dir_;
  ScriptedHttpServer server_;
  net::EventLoop loop_;
  net::Timer look_;
  std::unique_ptr<Agent> agent_;
  UniqueFd client_;
};

TEST_F(AgentTest, EndsWhileManyReadsOfTheStoreWait) {
  Start(4);
  AskForAll();
  RunUntilRequests(4);
  agent_.reset();
  EXPECT_EQ(server_.requests().size(), 4U) << "none began when others were cancelled";
}

TEST_F(AgentTest, ReadsTheStoreAsOftenAtOnceAsItIsTold) {
  Start(kSamples);
  AskForAll();
  RunUntilRequests(kSamples);
}

// Else all sidecars of a cluster would ask a store again at the same moments.
TEST(Agent, SidecarsOfTwoNamesDoNotRetryInStep) {
  EXPECT_NE(StoreOptionsOf({.name = "a"}).retry.seed, StoreOptionsOf({.name = "b"}).retry.seed);
}

}  // namespace
}  // namespace optcache::sidecar
