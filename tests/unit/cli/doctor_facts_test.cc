#include "cli/doctor_facts.h"

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
  EXPECT_EQ(AskSocket("", kLong), SocketState::kNotNamed);
  EXPECT_EQ(AskSocket(path, kLong), SocketState::kMissing);
  EXPECT_EQ(AskSocket(dir.path() + "/" + std::string(200, 'x'), kLong), SocketState::kMissing);
  {
    const auto listener = handoff::ListenAt(path);
    ASSERT_TRUE(listener.has_value());
    EXPECT_EQ(AskSocket(path, Duration::zero()), SocketState::kSilent);
  }
  EXPECT_EQ(AskSocket(path, kLong), SocketState::kRefused);
}

TEST(AskSocket, ASidecarWelcomesOrRefuses) {
  const TempDir dir;
  const std::string path = dir.path() + "/sock";
  {
    const OneAnswer welcome(path, handoff::EncodeWelcome(1, 1, 1_MiB));
    EXPECT_EQ(AskSocket(path, kLong), SocketState::kAnswers);
  }
  {
    const OneAnswer refusal(
        path, handoff::EncodeError(1, {Code::kPermissionDenied, "not for this user"}));
    EXPECT_EQ(AskSocket(path, kLong), SocketState::kForbidden);
  }
  {
    const OneAnswer end(path, {});
    EXPECT_EQ(AskSocket(path, kLong), SocketState::kSilent);  // it closed the connection
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
}

}  // namespace
}  // namespace optcache::cli
