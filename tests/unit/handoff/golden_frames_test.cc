// The frames of the hand-over protocol, byte by byte, and the limits that both sides know. Python
// writes and reads the same files (tests/python/test_protocol_golden.py): neither side can change
// alone. UPDATE_GOLDEN=1 writes them.

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "handoff/codec.h"
#include "sampler/recipe.h"
#include "support/golden_file.h"
#include "support/hex.h"

namespace optcache::handoff {
namespace {

constexpr RequestId kRequest = 0x01020304;

// One value in each field, no two alike where the type allows it.
std::map<std::string, FrameBytes> Frames() {
  const std::map<std::string, ClientMessage> asked = {
      {"hello", Hello{.pid = 4242}},
      {"open", OpenRequest{.name = "vision/imagenet"}},
      {"attach", AttachRequest{.dataset = 2,
                               .loader = "train",
                               .kind = 1,
                               .size = 1'281'167,
                               .seed = -5,
                               .world = 8,
                               .rank = 7,
                               .shuffle = true,
                               .drop_last = false,
                               .modern_randperm = false,
                               .base_seed = 2,
                               .tail_permutation = true,
                               .passes = 90,
                               .passes_from = 4,
                               .behind = 4352}},
      {"attach_of_job", AttachRequest{.dataset = 2,
                                      .known = false,
                                      .size = 9,
                                      .shuffle = true,
                                      .drop_last = true,
                                      .modern_randperm = false,
                                      .tail_permutation = false,
                                      .order = "torch-random size=9 draws=5",
                                      .pass_reads = 4,
                                      .job = "8f3a"}},
      {"pass", PassRequest{.stream = 1ULL << 63U,
                           .rank = 3,
                           .pass = 2,
                           .epoch = 7,
                           .start = 5,
                           .length = 100,
                           .crc = 0xe3069283}},
      {"get",
       GetRequest{
           .dataset = 2, .stream = 9, .rank = 3, .pass = 4, .first = 96, .ids = {5, 0, 70'000}}},
      {"release", ReleaseRequest{.batches = {1, 0x0102030405}}},
      {"detach", DetachRequest{.stream = 9, .rank = 3}},
      {"trace",
       TraceRequest{.stream = 2, .rank = 3, .pass = 4, .first = 5, .length = 70, .ids = {5, 0, 6}}},
      {"open_computed",
       OpenComputedRequest{.name = "resized", .what = "v1", .samples = 100, .max_bytes = 1 << 20}},
      {"computed_put",
       ComputedPut{
           .lease = 6, .length = 9, .offset = 7, .bytes = {std::byte{0xab}, std::byte{0xcd}}}},
      {"computed_counts", ComputedCountsRequest{.dataset = 3}},
      {"read_counts", ReadCountsRequest{.dataset = 2}},
  };
  std::map<std::string, FrameBytes> frames;
  for (const auto& [name, message] : asked)
    frames[name] = EncodeClientFrame(kRequest, message);

  OpenReply opened{
      .dataset = 2, .samples = 1'281'167, .manifest_bytes = 77, .name = "a/b", .notice = "old"};
  for (std::size_t i = 0; i < opened.digest.size(); ++i)
    opened.digest[i] = static_cast<std::byte>(i);
  frames["welcome"] = EncodeWelcome(kRequest, kMaxVersion, 1_GiB);
  frames["opened"] = EncodeOpened(kRequest, opened, kMaxVersion);
  frames["attached"] = EncodeAttached(
      kRequest, AttachReply{.stream = 9, .first_pass = 4, .loader = "train"}, kMaxVersion);
  frames["done"] = EncodeDone(kRequest);
  frames["waiting"] = EncodeWaiting(kRequest, "the store is away");
  frames["error"] = EncodeError(kRequest, Status(Code::kNotFound, "no such dataset"));
  frames["computed_opened"] = EncodeComputedOpened(
      kRequest, OpenComputedReply{.dataset = 3, .first = true, .capacity = 5, .memory_size = 6});
  frames["value"] = EncodeValue(kRequest, ValueReply{.offset = 7, .length = 8});
  frames["compute"] = EncodeCompute(kRequest, ComputeReply{.lease = 6, .room = 9});
  frames["counts"] = EncodeCounts(
      kRequest,
      ComputedCounts{
          .capacity = 1, .bytes = 2, .values = 3, .hits = 4, .misses = 5, .evictions = 6});
  frames["reads"] = EncodeReads(kRequest, ReadCounts{.node = {.samples = 1, .bytes = 2},
                                                     .peers = {.samples = 3, .bytes = 4},
                                                     .store = {.samples = 5, .bytes = 6},
                                                     .uncached_requests = 7,
                                                     .uncached_bytes = 8,
                                                     .store_requests = 9,
                                                     .store_bytes = 10,
                                                     .wait_us = 11,
                                                     .saved_cost = 0.5});
  return frames;
}

std::string Constants() {
  std::map<std::string, std::uint64_t> values = {
      {"min_version", kMinVersion},
      {"max_version", kMaxVersion},
      {"no_index", kNoIndex},
      {"from_first_pass", kFromFirstPass},
      {"ids_max", kMaxIds},
      {"releases_max", kMaxReleases},
      {"trace_max", kMaxTraceIds},
      {"string_max", kMaxStringBytes},
      {"put_max", kMaxPutBytes},
      {"kind_arena", static_cast<std::uint64_t>(EntryKind::kArena)},
      {"kind_inline", static_cast<std::uint64_t>(EntryKind::kInline)},
      {"kind_error", static_cast<std::uint64_t>(EntryKind::kError)},
      {"kind_stand_in", static_cast<std::uint64_t>(EntryKind::kStandIn)},
      {"sequential", static_cast<std::uint64_t>(sampler::Kind::kSequential)},
      {"torch_distributed", static_cast<std::uint64_t>(sampler::Kind::kTorchDistributed)},
      {"torch_random", static_cast<std::uint64_t>(sampler::Kind::kTorchRandom)},
      {"base_seed_every_pass", static_cast<std::uint64_t>(sampler::BaseSeed::kEveryPass)},
      {"base_seed_first_pass", static_cast<std::uint64_t>(sampler::BaseSeed::kFirstPass)},
      {"base_seed_never", static_cast<std::uint64_t>(sampler::BaseSeed::kNever)},
  };
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    values["code_" + std::string(CodeName(static_cast<Code>(code)))] =
        static_cast<std::uint64_t>(code);
  }
  std::string text;
  for (const auto& [name, value] : values)
    text += name + " " + std::to_string(value) + "\n";
  return text;
}

TEST(GoldenHandoff, FramesAreThoseOfTheFiles) {
  for (const auto& [name, frame] : Frames())
    ExpectGolden(Hex(frame), "handoff/" + name + ".hex");
}

TEST(GoldenHandoff, SamplesAreThoseOfTheFile) {
  const SamplesReply reply{.batch = 12,
                           .samples = {ArenaSample{.offset = 4096, .length = 100},
                                       ArenaSample{.offset = 8192, .length = 7, .stand_in = true},
                                       Status(Code::kDataLoss, "cut")}};
  const auto pieces = EncodeSamples(kRequest, reply, kMaxVersion);
  ASSERT_TRUE(pieces.has_value()) << pieces.error().ToString();
  FrameBytes frame;
  for (const Piece& piece : *pieces)
    frame.insert(frame.end(), piece.bytes().begin(), piece.bytes().end());
  ExpectGolden(Hex(frame), "handoff/samples.hex");
}

TEST(GoldenHandoff, LimitsAreThoseOfTheFile) {
  ExpectGolden(Constants(), "handoff/constants.txt");
}

}  // namespace
}  // namespace optcache::handoff
