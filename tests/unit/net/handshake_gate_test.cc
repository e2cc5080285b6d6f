#include "net/internal/handshake_gate.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

// One comes in hours, which no test waits for.
constexpr double kNever = 1e-4;

class HandshakeGateTest : public testing::Test {
 protected:
  void Enter(HandshakeGate& gate, const std::string& source, std::uint64_t id) {
    gate.Enter(source, id, [this, source, id] { begun.push_back(source + std::to_string(id)); });
  }

  EventLoop loop;
  std::vector<std::string> begun;
};

TEST_F(HandshakeGateTest, ABurstBeginsAtOnce) {
  HandshakeGate gate(loop, {.per_second_of_source = kNever, .burst_of_source = 2});
  for (std::uint64_t id = 1; id <= 3; ++id)
    Enter(gate, "a", id);
  EXPECT_EQ(begun, (std::vector<std::string>{"a1", "a2"}));
  EXPECT_EQ(gate.delayed(), 1U);
}

TEST_F(HandshakeGateTest, AnotherSourceDoesNotWaitForIt) {
  HandshakeGate gate(loop, {.per_second_of_source = kNever, .burst_of_source = 1});
  for (std::uint64_t id = 1; id <= 100; ++id)
    Enter(gate, "a", id);
  Enter(gate, "b", 101);
  EXPECT_EQ(begun, (std::vector<std::string>{"a1", "b101"}));
}

TEST_F(HandshakeGateTest, TheRestBeginsInTime) {
  HandshakeGate gate(loop, {.per_second_of_source = 2000, .burst_of_source = 1});
  for (std::uint64_t id = 1; id <= 20; ++id)
    Enter(gate, "a", id);
  RunUntil(loop, [&] { return begun.size() == 20; });
  EXPECT_EQ(begun.front(), "a1");
  EXPECT_EQ(begun.back(), "a20") << "who came first goes first";
}

TEST_F(HandshakeGateTest, AllTogetherHaveAPaceAndSourcesTakeTurns) {
  HandshakeGate gate(loop, {.per_second = kNever, .burst = 1});
  Enter(gate, "a", 1);
  Enter(gate, "b", 2);
  EXPECT_EQ(begun, std::vector<std::string>{"a1"});

  HandshakeGate quick(loop, {.per_second = 500, .burst = 1});
  begun.clear();
  for (std::uint64_t id = 1; id <= 10; ++id)
    Enter(quick, "a", id);
  Enter(quick, "b", 11);
  const std::size_t before = begun.size();
  RunUntil(loop, [&] { return begun.size() >= before + 2; });
  EXPECT_NE(
      std::find(begun.begin(), begun.begin() + static_cast<std::ptrdiff_t>(before + 2), "b11"),
      begun.end());
}

TEST_F(HandshakeGateTest, WhoHasGoneDoesNotBegin) {
  HandshakeGate gate(loop, {.per_second_of_source = 1000, .burst_of_source = 1});
  for (std::uint64_t id = 1; id <= 3; ++id)
    Enter(gate, "a", id);
  const bool waits = begun.size() < 2;  // else the machine stood still for a while
  gate.Leave("a", 2);
  gate.Leave("b", 2);
  RunUntil(loop, [&] { return !begun.empty() && begun.back() == "a3"; });
  if (waits) {
    EXPECT_EQ(begun, (std::vector<std::string>{"a1", "a3"}));
  }
}

}  // namespace
}  // namespace optcache::net
