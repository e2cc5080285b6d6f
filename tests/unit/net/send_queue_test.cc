#include "net/internal/send_queue.h"

#include <algorithm>
#include <array>
#include <deque>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "wire/codec.h"

namespace optcache::net {
namespace {

// What a receiver would see if the queue were written in pieces of random length.
std::vector<std::byte> Drain(SendQueue& queue, Random& random) {
  std::vector<std::byte> written;
  std::array<ByteSpan, 8> pieces;
  while (!queue.empty()) {
    const std::size_t count = queue.Peek(pieces);
    std::vector<std::byte> offered;
    for (const ByteSpan& piece : std::span(pieces).first(count)) {
      offered.insert(offered.end(), piece.begin(), piece.end());
    }
    const std::size_t n = 1 + random.Below(offered.size());
    written.insert(written.end(), offered.begin(),
                   offered.begin() + static_cast<std::ptrdiff_t>(n));
    queue.Consume(n);
  }
  return written;
}

TEST(SendQueue, WritesFramesAndPayloadsInOrderInWhateverSteps) {
  Random random(5);
  SendQueue queue;
  std::vector<std::byte> expected;
  std::vector<std::vector<std::byte>> payloads(50);
  for (std::uint32_t i = 0; i < 50; ++i) {
    payloads[i].resize(random.Below(3) * 1000, static_cast<std::byte>(i));
    const bool small = i % 3 != 0;
    const wire::Message message =
        small ? wire::Message(wire::StoreReply{.id = i}) : wire::Message(wire::Push{});
    const ByteSpan payload = small ? ByteSpan() : ByteSpan(payloads[i]);
    EXPECT_TRUE(queue.Push(i, message, payload, nullptr).ok());
    EXPECT_TRUE(wire::AppendFrame(i, message, payload.size(), expected).ok());
    expected.insert(expected.end(), payload.begin(), payload.end());
  }
  EXPECT_EQ(queue.frames(), 50U);
  EXPECT_EQ(queue.bytes(), expected.size());
  EXPECT_EQ(Drain(queue, random), expected);
  EXPECT_EQ(queue.frames(), 0U);
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(SendQueue, DropsAPinWhenItsPayloadIsWritten) {
  SendQueue queue;
  const auto bytes = std::make_shared<std::vector<std::byte>>(100);
  const std::weak_ptr<std::vector<std::byte>> alive = bytes;
  EXPECT_TRUE(queue.Push(0, wire::Push{}, *bytes, std::shared_ptr<const void>(bytes)).ok());
  EXPECT_TRUE(queue.Push(0, wire::StoreReply{}, {}, nullptr).ok());
  EXPECT_EQ(alive.use_count(), 2);
  const ByteCount all = queue.bytes();
  queue.Consume(120);
  EXPECT_EQ(alive.use_count(), 2);
  queue.Consume(all - 120 - 1);
  EXPECT_EQ(alive.use_count(), 1);
  EXPECT_FALSE(queue.at_boundary());
  queue.Consume(1);
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueue, JoinsSmallFramesIntoOnePiece) {
  SendQueue queue;
  for (std::uint32_t i = 0; i < 100; ++i)
    EXPECT_TRUE(queue.Push(i, wire::StoreReply{}, {}, nullptr).ok());
  std::array<ByteSpan, 8> pieces;
  EXPECT_EQ(queue.Peek(pieces), 1U);
  EXPECT_EQ(pieces[0].size(), queue.bytes());
}

TEST(SendQueue, AMessageThatIsTooLargeLeavesTheQueueAsItWas) {
  const wire::Message too_large = wire::Announce{.ids = std::vector<SampleId>(wire::kMaxItems + 1)};
  SendQueue queue;
  EXPECT_EQ(queue.Push(0, too_large, {}, nullptr).code(), Code::kResourceExhausted);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.Push(1, wire::StoreReply{.id = 1}, {}, nullptr).ok());
  EXPECT_EQ(queue.Push(2, too_large, {}, nullptr).code(), Code::kResourceExhausted);
  EXPECT_EQ(queue.frames(), 1U);
  std::vector<std::byte> expected;
  EXPECT_TRUE(wire::AppendFrame(1, wire::StoreReply{.id = 1}, 0, expected).ok());
  EXPECT_EQ(queue.bytes(), expected.size());
  Random random(1);
  EXPECT_EQ(Drain(queue, random), expected);
}

// Against a slow way to say the same: the largest of those that are there.
TEST(SendQueue, KnowsWhatWaitsBesideTheLargest) {
  Random random(7);
  SendQueue queue;
  const std::vector<std::byte> bytes(100'000);
  std::array<ByteSpan, 8> pieces;
  std::deque<ByteCount> sizes;
  for (int round = 0; round < 500; ++round) {
    if (random.Below(2) == 0 || queue.empty()) {
      const ByteCount length = 1 + random.Below(bytes.size());
      const ByteCount before = queue.bytes();
      EXPECT_TRUE(queue.Push(0, wire::Push{}, ByteSpan(bytes).first(length), nullptr).ok());
      sizes.push_back(queue.bytes() - before);
    } else {
      queue.Peek(pieces);
      queue.Consume(sizes.front());
      sizes.pop_front();
    }
    const ByteCount all = std::accumulate(sizes.begin(), sizes.end(), ByteCount{0});
    const ByteCount largest = sizes.empty() ? 0 : *std::ranges::max_element(sizes);
    ASSERT_EQ(queue.bytes_beside_largest(), all - largest) << round;
  }
}

TEST(SendQueue, WhatIsPeekedStaysWhereItIs) {
  SendQueue queue;
  EXPECT_TRUE(queue.Push(0, wire::StoreReply{}, {}, nullptr).ok());
  std::array<ByteSpan, 8> pieces;
  ASSERT_EQ(queue.Peek(pieces), 1U);
  const ByteSpan before = pieces[0];
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(queue.Push(0, wire::StoreReply{}, {}, nullptr).ok());
  ASSERT_EQ(queue.Peek(pieces), 2U);
  EXPECT_EQ(pieces[0].data(), before.data());
  EXPECT_EQ(pieces[0].size(), before.size());
}

}  // namespace
}  // namespace optcache::net
