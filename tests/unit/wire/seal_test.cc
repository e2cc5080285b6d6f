#include "wire/seal.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "unit/wire/random_message.h"
#include "unit/wire/sum_mac.h"
#include "wire/frame_reader.h"

namespace optcache::wire {
namespace {

using Bytes = std::vector<std::byte>;

Bytes Sealed(FrameSeal& seal, std::uint32_t request_id) {
  Bytes frame;
  EXPECT_TRUE(AppendFrame(request_id, StoreReply{.id = request_id}, 0, frame, &seal).ok());
  return frame;
}

// What a reader that expects frames sealed with `key` makes of a stream: the request ids of the
// frames it took, and the code with which it ended.
struct Outcome {
  std::vector<std::uint32_t> taken;
  Code code = Code::kOk;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome Read(std::uint32_t key, const std::vector<Bytes>& frames) {
  Bytes stream;
  for (const Bytes& frame : frames)
    stream.insert(stream.end(), frame.begin(), frame.end());
  FrameSeal seal = SumSeal(key);
  Outcome outcome;
  ByteSpan rest = stream;
  while (!rest.empty()) {
    const auto decoded = DecodeFrame(rest, {}, &seal);
    if (!decoded) {
      outcome.code = decoded.error().code();
      return outcome;
    }
    const auto* frame = std::get_if<Frame>(&*decoded);
    if (frame == nullptr) break;
    outcome.taken.push_back(frame->request_id);
    rest = rest.subspan(frame->size);
  }
  return outcome;
}

TEST(Seal, FramesInOrderAreTaken) {
  FrameSeal seal = SumSeal(1);
  const auto first = Sealed(seal, 1);
  const auto second = Sealed(seal, 2);
  EXPECT_EQ(Read(1, {first, second}), (Outcome{.taken = {1, 2}}));
}

TEST(Seal, AFrameThatIsRepeatedEndsTheStream) {
  FrameSeal seal = SumSeal(1);
  const auto first = Sealed(seal, 1);
  EXPECT_EQ(Read(1, {first, first}), (Outcome{.taken = {1}, .code = Code::kPermissionDenied}));
}

TEST(Seal, FramesThatChangedPlacesEndTheStream) {
  FrameSeal seal = SumSeal(1);
  const auto first = Sealed(seal, 1);
  const auto second = Sealed(seal, 2);
  EXPECT_EQ(Read(1, {second, first}), (Outcome{.taken = {}, .code = Code::kPermissionDenied}));
}

TEST(Seal, AFrameMayTakeThePlaceOfOneThatWasNotSent) {
  FrameSeal seal = SumSeal(1);
  const auto first = Sealed(seal, 1);
  Sealed(seal, 2);
  Sealed(seal, 3);
  seal.Withdraw(2);
  EXPECT_EQ(Read(1, {first, Sealed(seal, 4)}), (Outcome{.taken = {1, 4}}));
}

TEST(Seal, AFrameThatIsLeftOutEndsTheStream) {
  FrameSeal seal = SumSeal(1);
  const auto first = Sealed(seal, 1);
  Sealed(seal, 2);
  const auto third = Sealed(seal, 3);
  EXPECT_EQ(Read(1, {first, third}), (Outcome{.taken = {1}, .code = Code::kPermissionDenied}));
}

TEST(Seal, AFrameOfAnotherKeyEndsTheStream) {
  FrameSeal seal = SumSeal(1);
  FrameSeal other = SumSeal(2);
  const auto first = Sealed(seal, 1);
  Sealed(other, 1);
  EXPECT_EQ(Read(1, {first, Sealed(other, 2)}),
            (Outcome{.taken = {1}, .code = Code::kPermissionDenied}));
}

TEST(Seal, AFrameWithoutSealEndsTheStream) {
  Bytes plain;
  EXPECT_TRUE(AppendFrame(1, StoreReply{}, 0, plain).ok());
  EXPECT_EQ(Read(1, {plain}), (Outcome{.taken = {}, .code = Code::kInvalidArgument}));
}

TEST(Seal, ASealedFrameMeansNothingWithoutAKey) {
  FrameSeal seal = SumSeal(1);
  const auto decoded = DecodeFrame(Sealed(seal, 1));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().message(), "StoreReply is sealed, but no key was agreed on");
}

TEST(Seal, EveryBitOfAFrameCounts) {
  FrameSeal seal = SumSeal(1);
  const auto frame = Sealed(seal, 1);
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto changed = frame;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    // A length that grew lets the reader wait for more.
    EXPECT_TRUE(Read(1, {changed}).taken.empty()) << bit;
  }
}

TEST(Seal, AFrameIsCountedOnceHoweverItsBytesCome) {
  Random random(4);
  FrameSeal seal = SumSeal(1);
  Bytes stream;
  const auto payload = RandomBytes(random, 1000);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(AppendFrame(0, Push{.crc = Crc32c(payload)}, payload.size(), stream, &seal).ok());
    stream.insert(stream.end(), payload.begin(), payload.end());
  }
  FrameReader reader;
  reader.ExpectSealed(SumSeal(1));
  Bytes sink(payload.size());
  int intact = 0;
  for (const std::byte byte : stream) {
    const auto space = reader.Space();
    (space[0].empty() ? space[1] : space[0])[0] = byte;
    reader.Commit(1);
    for (auto event = reader.Next();; event = reader.Next()) {
      ASSERT_TRUE(event.has_value()) << event.error().message();
      if (std::holds_alternative<NeedMore>(*event)) break;
      if (std::holds_alternative<Frame>(*event)) reader.SetSink(sink);
      if (const auto* end = std::get_if<PayloadEnd>(&*event)) intact += end->intact ? 1 : 0;
    }
  }
  EXPECT_EQ(intact, 5);
  EXPECT_EQ(sink, payload);
}

}  // namespace
}  // namespace optcache::wire
