#include "cli/doctor/doctor_facts.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/unique_fd.h"
#include "handoff/codec.h"
#include "handoff/socket.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

constexpr int kLongMs = 300'000;
constexpr Duration kLong = std::chrono::milliseconds(kLongMs);

// Answers one client, after it has asked, with these bytes.
class OneAnswer {
 public:
  OneAnswer(const std::string& path, handoff::FrameBytes answer)
      : listener_(*handoff::ListenAt(path)), thread_([this, bytes = std::move(answer)] {
          pollfd waited{.fd = listener_.get(), .events = POLLIN, .revents = 0};
          EXPECT_EQ(::poll(&waited, 1, kLongMs), 1);
          const UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
          std::array<char, 64> asked = {};
          EXPECT_GT(::recv(client.get(), asked.data(), asked.size(), 0), 0);
          EXPECT_EQ(::send(client.get(), bytes.data(), bytes.size(), 0),
                    static_cast<ssize_t>(bytes.size()));
        }) {}

 private:
  UniqueFd listener_;
  std::jthread thread_;
};

TEST(AskSocket, TellsWhatIsAtThePath) {
  const TempDir dir;
  const std::string path = dir.path() + "/sock";
  EXPECT_EQ(AskSocket("", kLong).state, SocketState::kNotNamed);
  EXPECT_EQ(AskSocket(path, kLong).state, SocketState::kMissing);
  EXPECT_EQ(AskSocket(dir.path() + "/" + std::string(200, 'x'), kLong).state,
            SocketState::kMissing);
  {
    const auto listener = handoff::ListenAt(path);
    ASSERT_TRUE(listener.has_value());
    EXPECT_EQ(AskSocket(path, Duration::zero()).state, SocketState::kSilent);
  }
  EXPECT_EQ(AskSocket(path, kLong).state, SocketState::kRefused);
}

TEST(AskSocket, DoesNotWaitForASidecarThatAcceptsNobody) {
  const TempDir dir;
  const std::string path = dir.path() + "/sock";
  const auto listener = handoff::ListenAt(path);
  ASSERT_TRUE(listener.has_value());
  ASSERT_EQ(::listen(listener->get(), 0), 0);  // one client may wait
  const auto waits = handoff::ConnectTo(path);
  ASSERT_TRUE(waits.has_value());
  EXPECT_EQ(handoff::ConnectWithin(path, Duration::zero()).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(AskSocket(path, std::chrono::milliseconds(1)).state, SocketState::kSilent);
}

TEST(AskSocket, ASidecarWelcomesOrRefuses) {
  const TempDir dir;
  const std::string path = dir.path() + "/sock";
  {
    const OneAnswer welcome(path, handoff::EncodeWelcome(1, 1, 1_MiB));
    EXPECT_EQ(AskSocket(path, kLong).state, SocketState::kAnswers);
  }
  {
    const OneAnswer refusal(
        path, handoff::EncodeError(1, {Code::kPermissionDenied, "not for this user"}));
    EXPECT_EQ(AskSocket(path, kLong).state, SocketState::kForbidden);
  }
  {
    const OneAnswer refusal(path,
                            handoff::EncodeError(1, {Code::kInvalidArgument, "other versions"}));
    const SocketAnswer answer = AskSocket(path, kLong);
    EXPECT_EQ(answer.state, SocketState::kTurnsAway);
    EXPECT_EQ(answer.error, "other versions");
  }
  {
    handoff::FrameBytes half = handoff::EncodeError(1, {Code::kPermissionDenied, "not for"});
    half.resize(half.size() - 1);
    const OneAnswer refusal(path, half);
    EXPECT_EQ(AskSocket(path, kLong).state, SocketState::kSilent);
  }
  {
    const OneAnswer end(path, {});
    EXPECT_EQ(AskSocket(path, kLong).state, SocketState::kSilent);  // it closed the connection
  }
}

TEST(GatherFacts, SeesThisMachine) {
  const TempDir dir;
  const DoctorFacts facts =
      GatherFacts({.memory_wanted = 7, .socket = "", .state_dir = dir.path()});
  EXPECT_GT(facts.memory.bytes, facts.memory_free);
  EXPECT_GT(facts.memory_free, 0U);
  EXPECT_EQ(facts.memory_wanted, 7U);
  EXPECT_GT(facts.open_files.value_or(0), 0U);
  EXPECT_EQ(facts.socket_state, SocketState::kNotNamed);
  EXPECT_EQ(facts.cache.code(), Code::kNotFound);
}

TEST(GatherFacts, ACoordinatorThatDoesNotAnswerIsNamed) {
  const TempDir dir;
  const std::string address = "unix:" + dir.Join("none");
  dir.Write("coordinator", address + "\n");
  const DoctorFacts facts = GatherFacts({.socket = "", .state_dir = dir.path()});
  EXPECT_FALSE(facts.cache.ok());
  EXPECT_NE(facts.cache.code(), Code::kNotFound);
  EXPECT_TRUE(facts.cache.message().contains(address)) << facts.cache.message();
}

}  // namespace
}  // namespace optcache::cli
