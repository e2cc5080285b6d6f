#include "wire/codec.h"

#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "unit/wire/random_message.h"

namespace optcache::wire {
namespace {

std::vector<std::byte> Encode(const Message& message, ByteCount payload_length = 0) {
  std::vector<std::byte> bytes;
  EXPECT_TRUE(AppendFrame(7, message, payload_length, bytes).ok());
  return bytes;
}

// Puts the right CRC on a frame that a test has changed.
void Resign(std::vector<std::byte>& frame) {
  const ByteSpan bytes(frame);
  const std::uint32_t crc = Crc32c(bytes.subspan(kHeaderBytes), Crc32c(bytes.first(24)));
  for (std::size_t i = 0; i < 4; ++i)
    frame[24 + i] = static_cast<std::byte>(crc >> (8 * i));
}

void Set32(std::vector<std::byte>& frame, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i)
    frame[at + i] = static_cast<std::byte>(value >> (8 * i));
}

Status ErrorOf(const std::vector<std::byte>& bytes) {
  const auto decoded = DecodeFrame(bytes);
  return decoded ? OkStatus() : decoded.error();
}

TEST(Codec, GivesBackWhatWasEncoded) {
  const char* given = std::getenv("TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20240607;
  std::cout << "TEST_SEED=" << seed << "\n";
  Random random(seed);
  for (int i = 0; i < 3000; ++i) {
    const Message message = RandomMessage(random);
    const ByteCount payload = CarriesPayload(message) ? random.Below(kMaxPayloadBytes + 1) : 0;
    std::vector<std::byte> bytes;
    const auto request_id = static_cast<std::uint32_t>(random.Next());
    EXPECT_TRUE(AppendFrame(request_id, message, payload, bytes).ok());
    const auto decoded = DecodeFrame(bytes);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().ToString();
    const auto* frame = std::get_if<Frame>(&*decoded);
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->message, message);
    EXPECT_EQ(frame->request_id, request_id);
    EXPECT_EQ(frame->payload_length, payload);
    EXPECT_EQ(frame->size, bytes.size());
  }
}

TEST(Codec, SaysHowMuchMoreItNeeds) {
  const auto bytes = Encode(Announce{.dataset = 1, .ids = {1, 2, 3}});
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto decoded = DecodeFrame(ByteSpan(bytes).first(n));
    ASSERT_TRUE(decoded.has_value());
    const auto* more = std::get_if<NeedMore>(&*decoded);
    ASSERT_NE(more, nullptr) << n;
    EXPECT_EQ(more->bytes, n < kHeaderBytes ? kHeaderBytes : bytes.size());
  }
}

TEST(Codec, EveryDamagedBitIsFound) {
  const auto good = Encode(StoreReply{.dataset = 1, .id = 2, .accepted = true});
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const auto decoded = DecodeFrame(bytes);
    // A longer body length asks for bytes that will not come: that is the deadline's business.
    EXPECT_TRUE(!decoded || std::holds_alternative<NeedMore>(*decoded)) << bit;
  }
}

TEST(Codec, ADamagedFrameIsDataLoss) {
  auto bytes = Encode(Announce{.dataset = 1, .ids = {1}});
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(ErrorOf(bytes).code(), Code::kDataLoss);
}

TEST(Codec, RefusesWhatIsNotTheProtocol) {
  std::vector<std::byte> bytes;
  for (const char c : std::string("GET /metrics HTTP/1.1\r\nHost: node\r\n")) {
    bytes.push_back(static_cast<std::byte>(c));
  }
  EXPECT_EQ(ErrorOf(bytes).code(), Code::kInvalidArgument);
}

TEST(Codec, RefusesUnknownLayoutTypeAndRequiredFlags) {
  for (const auto& [at, value] : std::vector<std::pair<std::size_t, int>>{
           {2, 2}, {3, 0}, {3, 16}, {3, 255}, {4, 1}, {4, 2}, {5, 0x80}}) {
    auto bytes = Encode(Welcome{});
    bytes[at] = static_cast<std::byte>(value);
    Resign(bytes);
    EXPECT_EQ(ErrorOf(bytes).code(), Code::kInvalidArgument) << at;
  }
}

TEST(Codec, IgnoresHints) {
  auto bytes = Encode(Welcome{});
  bytes[6] = std::byte{1};
  Resign(bytes);
  EXPECT_TRUE(ErrorOf(bytes).ok());
}

TEST(Codec, RefusesLengthsOverTheLimitsBeforeTheBytesCome) {
  auto bytes = Encode(Put{}, kMaxPayloadBytes);
  bytes.resize(kHeaderBytes);
  EXPECT_TRUE(ErrorOf(bytes).ok());
  EXPECT_FALSE(DecodeFrame(bytes, {.payload_bytes = 1024}).has_value());
  auto long_payload = bytes;
  long_payload[23] = std::byte{0xff};
  EXPECT_EQ(ErrorOf(long_payload).code(), Code::kInvalidArgument);
  auto long_body = bytes;
  Set32(long_body, 12, kMaxBodyBytes + 1);
  EXPECT_EQ(ErrorOf(long_body).code(), Code::kInvalidArgument);
}

TEST(Codec, RefusesALongerListThanItsBytes) {
  for (const std::uint32_t count : {2U, 5000U, 0xffffffffU}) {
    auto bytes = Encode(Announce{.dataset = 1, .ids = {1}});
    Set32(bytes, kHeaderBytes + 8, count);
    Resign(bytes);
    EXPECT_EQ(ErrorOf(bytes).code(), Code::kInvalidArgument) << count;
  }
}

TEST(Codec, RefusesBytesAfterTheLastField) {
  auto bytes = Encode(Lookup{});
  bytes.push_back(std::byte{0});
  Set32(bytes, 12, static_cast<std::uint32_t>(bytes.size() - kHeaderBytes));
  Resign(bytes);
  EXPECT_EQ(ErrorOf(bytes).code(), Code::kInvalidArgument);
}

TEST(Codec, AHelloMayHaveGrown) {
  auto bytes = Encode(Hello{.name = "new"});
  bytes.push_back(std::byte{9});
  Set32(bytes, 12, static_cast<std::uint32_t>(bytes.size() - kHeaderBytes));
  Resign(bytes);
  const auto decoded = DecodeFrame(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Hello>(std::get<Frame>(*decoded).message).name, "new");
}

TEST(Codec, AHelloOfAnOlderPeerOffersNoBulk) {
  auto bytes = Encode(Hello{.name = "old", .bulk = true});
  bytes.pop_back();
  Set32(bytes, 12, static_cast<std::uint32_t>(bytes.size() - kHeaderBytes));
  Resign(bytes);
  const auto decoded = DecodeFrame(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Frame>(*decoded).message, Message(Hello{.name = "old", .bulk = false}));
}

TEST(Codec, RefusesUnknownEnumerators) {
  auto bytes = Encode(Get{});
  bytes[kHeaderBytes + 16] = std::byte{3};  // mode
  Resign(bytes);
  EXPECT_EQ(ErrorOf(bytes).code(), Code::kInvalidArgument);
  bytes = Encode(Hello{});
  bytes[kHeaderBytes + 4] = std::byte{0};  // role
  Resign(bytes);
  EXPECT_EQ(ErrorOf(bytes).code(), Code::kInvalidArgument);
}

TEST(Codec, AnUnknownCodeIsInternal) {
  auto bytes = Encode(Refusal{.code = Code::kConflict, .message = "x"});
  bytes[kHeaderBytes] = std::byte{200};
  Resign(bytes);
  const auto decoded = DecodeFrame(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Refusal>(std::get<Frame>(*decoded).message).code, Code::kInternal);
}

TEST(Codec, RefusesAPayloadWhereNoneMayBe) {
  auto bytes = Encode(SampleReply{.answer = Answer::kHere}, 5);
  bytes[kHeaderBytes + 4] = static_cast<std::byte>(Answer::kMissDrop);
  Resign(bytes);
  EXPECT_EQ(ErrorOf(bytes).code(), Code::kInvalidArgument);
}

TEST(Codec, CutsLongStrings) {
  const auto decoded = DecodeFrame(Encode(Refusal{.message = std::string(5000, 'x')}));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Refusal>(std::get<Frame>(*decoded).message).message.size(), kMaxStringBytes);
}

TEST(Codec, WhatIsOverALimitIsRefusedAndNothingIsAppended) {
  const std::vector<Message> too_large = {
      LeaseUpdate{.leases = std::vector<std::pair<SampleId, LeaseId>>(kMaxItems + 1)},
      Announce{.ids = std::vector<SampleId>(kMaxItems + 1)},
      Holding{.gained = {1}, .lost = std::vector<SampleId>(kMaxItems + 1)},
      StreamTrace{.packed = std::vector<std::byte>(kMaxPartBytes + 1)},
  };
  for (const Message& message : too_large) {
    auto bytes = Encode(Welcome{});
    const auto before = bytes;
    EXPECT_EQ(AppendFrame(7, message, 0, bytes).code(), Code::kResourceExhausted);
    EXPECT_EQ(bytes, before);
  }
  std::vector<std::byte> bytes;
  EXPECT_EQ(AppendFrame(7, too_large[0], 0, bytes).message(),
            "LeaseUpdate cannot be sent: a list has more than 4096 items");
}

TEST(Codec, RandomBytesNeverDecode) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    auto bytes = RandomBytes(random, random.Below(200));
    if (bytes.size() > 4) {
      bytes[0] = std::byte{'O'};
      bytes[1] = std::byte{'C'};
      bytes[2] = std::byte{1};
    }
    const auto decoded = DecodeFrame(bytes);
    EXPECT_TRUE(!decoded || std::holds_alternative<NeedMore>(*decoded));
  }
}

}  // namespace
}  // namespace optcache::wire
