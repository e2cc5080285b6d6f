#include "handoff/codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::handoff {
namespace {

using testing::HasSubstr;

ByteSpan BodyOf(const FrameBytes& frame) {
  return ByteSpan(frame).subspan(sizeof(FrameHeader));
}

FrameHeader HeaderOf(const FrameBytes& frame) {
  FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof(header));
  return header;
}

const std::vector<ClientMessage>& AllMessages() {
  static const std::vector<ClientMessage> messages = {
      Hello{.min_version = 1, .max_version = 3, .pid = 4242},
      OpenRequest{.name = "vision/imagenet"},
      OpenRequest{},
      AttachRequest{.dataset = 2,
                    .incarnation = 9,
                    .owner = "job",
                    .loader = "train",
                    .known = true,
                    .kind = 1,
                    .size = 1'281'167,
                    .seed = -5,
                    .world = 8,
                    .rank = 7,
                    .shuffle = false,
                    .drop_last = true,
                    .modern_randperm = false,
                    .base_seed = 2,
                    .tail_permutation = false,
                    .passes = 90,
                    .passes_from = 4,
                    .behind = 4352},
      AttachRequest{.dataset = 2, .known = false, .order = "spdl-random size=9 drop_last=true"},
      AttachRequest{.dataset = 2, .order = "torch-random size=9 draws=5", .pass_reads = 4},
      AttachRequest{.dataset = 2, .pass_reads = 1ULL << 40U},
      AttachRequest{.dataset = 2, .job = "8f3a"},
      AttachRequest{.dataset = 2, .order = "trace", .pass_reads = 7, .job = "8f3a"},
      TraceRequest{.stream = 2, .rank = 3, .pass = 4, .first = 5, .length = 70, .ids = {5, 0, 6}},
      PassRequest{.stream = 1ULL << 63U,
                  .rank = 3,
                  .pass = 2,
                  .epoch = 7,
                  .start = 5,
                  .length = 100,
                  .crc = 0},
      PassRequest{.stream = 1, .crc = {}},
      GetRequest{.dataset = 1,
                 .stream = 2,
                 .rank = 3,
                 .pass = 4,
                 .first = kNoIndex,
                 .ids = {5, 0, kNoSample}},
      GetRequest{},
      ReleaseRequest{.batches = {1, 1ULL << 40U}},
      DetachRequest{.stream = 5, .rank = 6},
      OpenComputedRequest{
          .name = "train-224", .what = "data.Faces", .samples = 100, .max_bytes = 1ULL << 33U},
      ComputedPut{.lease = 9,
                  .length = 1ULL << 32U,
                  .offset = 5,
                  .bytes = {std::byte{1}, std::byte{2}, std::byte{3}}},
      ComputedPut{.lease = 9},
      ComputedCountsRequest{.dataset = 1U << 31U},
      ReadCountsRequest{.dataset = 3},
  };
  return messages;
}

TEST(Codec, DecodesWhatItEncodes) {
  for (const ClientMessage& message : AllMessages()) {
    const FrameBytes frame = EncodeClientFrame(99, message);
    const FrameHeader header = HeaderOf(frame);
    EXPECT_EQ(header.request, 99U);
    EXPECT_EQ(header.body_bytes, BodyOf(frame).size());
    const auto decoded = DecodeClientMessage(header.type, BodyOf(frame));
    ASSERT_TRUE(decoded) << decoded.error().ToString();
    EXPECT_EQ(*decoded, message);
  }
}

TEST(Codec, RefusesEveryBodyThatEndsEarly) {
  for (const ClientMessage& message : AllMessages()) {
    const FrameBytes frame = EncodeClientFrame(0, message);
    const bool trace = std::holds_alternative<TraceRequest>(message);
    const std::size_t list_item = trace || std::holds_alternative<GetRequest>(message) ? 4
                                  : std::holds_alternative<ReleaseRequest>(message)    ? 8
                                  : std::holds_alternative<ComputedPut>(message)       ? 1
                                                                                       : 0;
    const auto* attach = std::get_if<AttachRequest>(&message);
    // All came with version 2, one after the other.
    const std::size_t job = attach == nullptr || attach->job.empty() ? 0 : 2 + attach->job.size();
    const bool has_reads = attach != nullptr && (attach->pass_reads != 0 || job != 0);
    const std::size_t reads = has_reads ? 8 : 0;
    const bool has_order = reads != 0 || (attach != nullptr && !attach->order.empty());
    const std::size_t order = has_order ? 2 + attach->order.size() : 0;
    for (std::size_t length = 0; length < BodyOf(frame).size(); ++length) {
      const auto decoded = DecodeClientMessage(HeaderOf(frame).type, BodyOf(frame).first(length));
      const std::size_t rest = BodyOf(frame).size() - length;
      if (attach != nullptr &&
          (rest == job || rest == job + reads || rest == job + reads + order)) {
        continue;
      }
      const std::size_t fixed = trace ? 32 : list_item == 4 ? 28 : list_item == 1 ? 24 : 0;
      if (list_item > 0 && length >= fixed && (length - fixed) % list_item == 0) continue;
      EXPECT_FALSE(decoded) << message.index() << " cut to " << length;
    }
  }
}

TEST(Codec, RefusesBodiesThatGoOn) {
  FrameBytes frame = EncodeClientFrame(0, DetachRequest{.stream = 1, .rank = 2});
  frame.push_back(std::byte{0});
  const auto decoded = DecodeClientMessage(FrameType::kDetach, BodyOf(frame));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(decoded.error().message(), HasSubstr("Detach"));
}

TEST(Codec, LetsHelloGrow) {
  FrameBytes frame = EncodeClientFrame(0, Hello{.pid = 1});
  frame.push_back(std::byte{7});
  EXPECT_TRUE(DecodeClientMessage(FrameType::kHello, BodyOf(frame)));
}

TEST(Codec, RefusesListsAndStringsOverTheirLimit) {
  const FrameBytes ids =
      EncodeClientFrame(0, GetRequest{.ids = std::vector<SampleId>(kMaxIds + 1)});
  EXPECT_FALSE(DecodeClientMessage(FrameType::kGet, BodyOf(ids)));
  FrameBytes name(2 + kMaxStringBytes + 1);
  const auto length = static_cast<std::uint16_t>(kMaxStringBytes + 1);
  std::memcpy(name.data(), &length, sizeof(length));
  EXPECT_FALSE(DecodeClientMessage(FrameType::kOpen, name));
}

TEST(Codec, ThePartOfAValueThatFillsAFrameIsTheLongest) {
  const auto decode = [](std::size_t bytes) {
    const FrameBytes frame =
        EncodeClientFrame(0, ComputedPut{.bytes = std::vector<std::byte>(bytes)});
    return DecodeClientMessage(FrameType::kComputedPut, BodyOf(frame));
  };
  EXPECT_TRUE(decode(kMaxPutBytes));
  EXPECT_FALSE(decode(kMaxPutBytes + 1));
}

TEST(Codec, RefusesTruthValuesThatAreNeither) {
  FrameBytes frame = EncodeClientFrame(0, PassRequest{.stream = 1, .crc = 5});
  frame[sizeof(FrameHeader) + 40] = std::byte{2};
  EXPECT_FALSE(DecodeClientMessage(FrameType::kPass, BodyOf(frame)));
}

TEST(Codec, RefusesTypesThatNoClientSends) {
  EXPECT_FALSE(DecodeClientMessage(FrameType::kSamples, {}));
  EXPECT_FALSE(DecodeClientMessage(static_cast<FrameType>(0), {}));
}

TEST(Codec, SamplesOfTheArenaNeedNoKinds) {
  const auto pieces = EncodeSamples(
      3, {.batch = 8, .samples = {ArenaSample{.offset = 64, .length = 5}, ArenaSample{}}},
      kMaxVersion);
  ASSERT_TRUE(pieces);
  ASSERT_EQ(pieces->size(), 1U);
  const FrameBytes& frame = pieces->front().owned;
  EXPECT_EQ(frame.size(), sizeof(FrameHeader) + sizeof(SamplesHeader) + 2 * sizeof(SampleEntry));
  SamplesHeader header;
  std::memcpy(&header, BodyOf(frame).data(), sizeof(header));
  EXPECT_EQ(header.batch, 8U);
  EXPECT_EQ(header.count, 2U);
  EXPECT_EQ(header.others, 0U);
  SampleEntry entry;
  std::memcpy(&entry, BodyOf(frame).data() + sizeof(header), sizeof(entry));
  EXPECT_EQ(entry.place, 64U);
  EXPECT_EQ(entry.length, 5U);
}

TEST(Codec, SamplesByCopyAndErrorsFollowInOneTail) {
  const auto bytes = std::make_shared<const std::string>("inline");
  const auto pieces =
      EncodeSamples(3,
                    {.batch = 0,
                     .samples = {InlineSample{.bytes = AsBytes(*bytes), .pin = bytes},
                                 Status(Code::kNotFound, "gone")}},
                    kMaxVersion);
  ASSERT_TRUE(pieces);
  FrameBytes all;
  for (const Piece& piece : *pieces) {
    all.insert(all.end(), piece.bytes().begin(), piece.bytes().end());
  }
  EXPECT_EQ(HeaderOf(all).body_bytes, BodyOf(all).size());
  const std::size_t kinds = sizeof(SamplesHeader) + 2 * sizeof(SampleEntry);
  EXPECT_EQ(BodyOf(all)[kinds], std::byte{1});
  EXPECT_EQ(BodyOf(all)[kinds + 1], std::byte{2});
  EXPECT_EQ(AsText(BodyOf(all).subspan(kinds + 2)), std::string("inline\x01gone"));
}

TEST(Codec, SaysWhichSamplesStandInForOthers) {
  const SamplesReply reply{
      .batch = 8,
      .samples = {ArenaSample{.length = 5}, ArenaSample{.length = 6, .stand_in = true}}};
  const auto others = [&reply](std::uint16_t version) {
    const auto pieces = EncodeSamples(3, reply, version).value();
    const ByteSpan body = BodyOf(pieces.front().owned);
    SamplesHeader header;
    std::memcpy(&header, body.data(), sizeof(header));
    if (header.others > 0) {
      const std::size_t kinds = sizeof(SamplesHeader) + 2 * sizeof(SampleEntry);
      EXPECT_EQ(body.size(), kinds + 2);
      EXPECT_EQ(body[kinds], std::byte{0});
      EXPECT_EQ(body[kinds + 1], std::byte{3});
    }
    return header.others;
  };
  EXPECT_EQ(others(2), 1U);
  EXPECT_EQ(others(1), 0U) << "who knows no such kind";
}

TEST(Codec, ReadsAreElevenCountsAndTheSavedCost) {
  const FrameBytes frame = EncodeReads(7, {.node = {.samples = 1, .bytes = 2},
                                           .peers = {.samples = 3, .bytes = 4},
                                           .store = {.samples = 5, .bytes = 6},
                                           .uncached_requests = 7,
                                           .uncached_bytes = 8,
                                           .store_requests = 9,
                                           .store_bytes = 10,
                                           .wait_us = 1ULL << 40U,
                                           .saved_cost = 0.5});
  EXPECT_EQ(HeaderOf(frame).type, FrameType::kReads);
  std::array<std::uint64_t, 11> numbers{};
  double saved_cost = 0;
  ASSERT_EQ(BodyOf(frame).size(), sizeof(numbers) + 1 + sizeof(saved_cost));
  std::memcpy(numbers.data(), BodyOf(frame).data(), sizeof(numbers));
  EXPECT_THAT(numbers, testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1ULL << 40U));
  EXPECT_EQ(BodyOf(frame)[sizeof(numbers)], std::byte{1});
  std::memcpy(&saved_cost, BodyOf(frame).data() + sizeof(numbers) + 1, sizeof(saved_cost));
  EXPECT_EQ(saved_cost, 0.5);
}

TEST(Codec, ReadsSayThatNoPriceIsKnown) {
  const FrameBytes frame = EncodeReads(7, {});
  EXPECT_TRUE(std::ranges::all_of(BodyOf(frame), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Codec, RefusesSamplesThatNoFrameCanHold) {
  const auto pin = std::make_shared<const int>(0);
  const ByteSpan huge(static_cast<const std::byte*>(nullptr), std::size_t{1} << 32U);
  const auto pieces = EncodeSamples(
      3, {.batch = 0, .samples = {InlineSample{.bytes = huge, .pin = pin}}}, kMaxVersion);
  ASSERT_FALSE(pieces);
  EXPECT_EQ(pieces.error().code(), Code::kResourceExhausted);
}

TEST(Codec, CutsTextsToTheirLimit) {
  const FrameBytes frame = EncodeError(1, Status(Code::kInternal, std::string(9999, 'x')));
  EXPECT_EQ(BodyOf(frame).size(), 1 + 2 + kMaxStringBytes);
}

}  // namespace
}  // namespace optcache::handoff
