#include "wire/frame_reader.h"

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "unit/wire/random_message.h"

namespace optcache::wire {
namespace {

struct Received {
  Message message;
  std::vector<std::byte> payload;
  bool intact = false;
  friend bool operator==(const Received&, const Received&) = default;
};

// Feeds a reader from a stream as a socket would, and keeps what it said.
class Receiver {
 public:
  // `cut` bytes at most at a time.
  void Feed(ByteSpan bytes, Random& cuts, std::size_t longest_cut) {
    while (!bytes.empty()) {
      const auto space = reader.Space();
      std::size_t room = std::min(bytes.size(), 1 + cuts.Below(longest_cut));
      std::size_t taken = 0;
      for (const MutableByteSpan& part : space) {
        const std::size_t n = std::min(room - taken, part.size());
        if (n > 0) std::memcpy(part.data(), bytes.data() + taken, n);
        taken += n;
      }
      ASSERT_GT(taken, 0U);
      bytes = bytes.subspan(taken);
      reader.Commit(taken);
      Drain();
      if (error) return;
    }
  }

  FrameReader reader;
  std::vector<Received> received;
  std::optional<Status> error;
  bool refuse_payloads = false;

 private:
  void Drain() {
    for (;;) {
      auto event = reader.Next();
      if (!event) {
        error = event.error();
        return;
      }
      if (std::holds_alternative<NeedMore>(*event)) return;
      if (auto* frame = std::get_if<Frame>(&*event)) {
        received.push_back({.message = std::move(frame->message), .payload = {}, .intact = true});
        if (!CarriesPayload(received.back().message)) continue;
        if (!refuse_payloads) received.back().payload.resize(frame->payload_length);
        reader.SetSink(received.back().payload);
      } else {
        received.back().intact = std::get<PayloadEnd>(*event).intact;
      }
    }
  }
};

TEST(FrameReader, ReadsFramesAndPayloadsInArbitraryCuts) {
  const char* given = std::getenv("TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 991;
  std::cout << "TEST_SEED=" << seed << "\n";
  Random random(seed);
  for (const std::size_t longest_cut : {1U, 7U, 100U, 5000U, 1000000U}) {
    std::vector<Received> sent;
    std::vector<std::byte> stream;
    for (int i = 0; i < (longest_cut == 1 ? 8 : 60); ++i) {
      Received one{.message = RandomMessage(random), .payload = {}, .intact = true};
      if (CarriesPayload(one.message)) {
        const std::size_t limit = longest_cut == 1 ? 300 : random.Below(4) == 0 ? 700'000 : 3'000;
        one.payload = RandomBytes(random, random.Below(limit));
        SetPayloadCrc(one.message, Crc32c(one.payload));
      }
      EXPECT_TRUE(AppendFrame(0, one.message, one.payload.size(), stream).ok());
      stream.insert(stream.end(), one.payload.begin(), one.payload.end());
      sent.push_back(std::move(one));
    }
    Receiver receiver;
    receiver.Feed(stream, random, longest_cut);
    ASSERT_FALSE(receiver.error) << receiver.error->ToString();
    EXPECT_TRUE(receiver.received == sent) << longest_cut;
    EXPECT_FALSE(receiver.reader.mid_frame());
  }
}

std::vector<std::byte> PutFrame(ByteSpan payload, std::uint32_t crc) {
  std::vector<std::byte> stream;
  EXPECT_TRUE(AppendFrame(0, Put{.crc = crc}, payload.size(), stream).ok());
  stream.insert(stream.end(), payload.begin(), payload.end());
  return stream;
}

TEST(FrameReader, AWrongPayloadSumIsToldAndTheStreamGoesOn) {
  Random random(1);
  const auto payload = RandomBytes(random, 50'000);
  auto stream = PutFrame(payload, Crc32c(payload) ^ 1U);
  EXPECT_TRUE(AppendFrame(0, StoreReply{}, 0, stream).ok());
  Receiver receiver;
  receiver.Feed(stream, random, 9'000);
  ASSERT_EQ(receiver.received.size(), 2U);
  EXPECT_FALSE(receiver.received[0].intact);
  EXPECT_EQ(receiver.received[1].message, Message(StoreReply{}));
}

TEST(FrameReader, ThrowsARefusedPayloadAway) {
  Random random(1);
  const auto payload = RandomBytes(random, 300'000);
  auto stream = PutFrame(payload, Crc32c(payload));
  EXPECT_TRUE(AppendFrame(0, StoreReply{}, 0, stream).ok());
  Receiver receiver;
  receiver.refuse_payloads = true;
  receiver.Feed(stream, random, 90'000);
  ASSERT_EQ(receiver.received.size(), 2U);
  EXPECT_TRUE(receiver.received[0].payload.empty());
  EXPECT_EQ(receiver.received[1].message, Message(StoreReply{}));
}

TEST(FrameReader, AnEmptyPayloadHasASumToo) {
  Random random(1);
  Receiver receiver;
  receiver.Feed(PutFrame({}, 0), random, 100);
  ASSERT_EQ(receiver.received.size(), 1U);
  EXPECT_TRUE(receiver.received[0].intact);
  receiver.Feed(PutFrame({}, 5), random, 100);
  EXPECT_FALSE(receiver.received[1].intact);
}

TEST(FrameReader, OffersTheSinkItself) {
  std::vector<std::byte> head;
  EXPECT_TRUE(AppendFrame(0, Put{}, 100'000, head).ok());
  FrameReader reader;
  const auto space = reader.Space();
  std::memcpy(space[1].data(), head.data(), head.size());
  reader.Commit(head.size());
  ASSERT_TRUE(std::holds_alternative<Frame>(*reader.Next()));
  std::vector<std::byte> sink(100'000);
  reader.SetSink(sink);
  ASSERT_TRUE(std::holds_alternative<NeedMore>(*reader.Next()));
  EXPECT_EQ(reader.Space()[0].data(), sink.data());
  EXPECT_EQ(reader.Space()[0].size(), sink.size());
  EXPECT_GE(reader.Space()[1].size(), kHeaderBytes);
  EXPECT_TRUE(reader.mid_frame());
}

TEST(FrameReader, ALongBodyMakesItsBufferGrowOnlyAsFarAsNeeded) {
  Random random(1);
  std::vector<std::byte> stream;
  const Get get{.items = std::vector<ReadItem>(kMaxItems)};
  EXPECT_TRUE(AppendFrame(0, get, 0, stream).ok());
  Receiver receiver;
  receiver.Feed(stream, random, 1'000'000);
  ASSERT_EQ(receiver.received.size(), 1U);
  EXPECT_EQ(receiver.received[0].message, Message(get));
  EXPECT_LE(receiver.reader.Space()[1].size(), 64U << 10U);
}

TEST(FrameReader, ErrorsAreThoseOfTheDecoder) {
  Random random(1);
  Receiver receiver;
  receiver.Feed(RandomBytes(random, 100), random, 100);
  ASSERT_TRUE(receiver.error);
  EXPECT_EQ(receiver.error->code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::wire
