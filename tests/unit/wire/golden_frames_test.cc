// The frames of versions 1 to 6, byte by byte: a change here is a change of the protocol.
// UPDATE_GOLDEN=1 writes the files anew.

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "support/golden_file.h"
#include "support/hex.h"
#include "wire/codec.h"

namespace optcache::wire {
namespace {

// One value in each field, no two alike where the type allows it.
std::map<std::string, Message> Examples() {
  const ReadItem item{.pass = 3, .position = 0x0102030405, .id = 77};
  return {
      {"hello", Hello{.max_version = 1,
                      .role = Role::kNode,
                      .name = "node-7",
                      .member = 7,
                      .token = "secret"}},
      {"hello_bulk", Hello{.max_version = 1,
                           .role = Role::kSidecar,
                           .name = "vision/pod-0",
                           .token = "secret",
                           .bulk = true}},
      {"welcome", Welcome{.version = 1, .name = "node-1"}},
      {"welcome_bulk", Welcome{.version = 1, .name = "node-1", .bulk = true}},
      {"refusal", Refusal{.code = Code::kPermissionDenied, .message = "no such token"}},
      {"get", Get{.dataset = 0x1122334455667788,
                  .stream = 9,
                  .mode = GetMode::kUrgent,
                  .items = {item, {.pass = 4, .position = 1, .id = 2}}}},
      {"sample_reply_here", SampleReply{.index = 1, .answer = Answer::kHere, .crc = 0xe3069283}},
      {"sample_reply_miss", SampleReply{.index = 2, .answer = Answer::kMissKeep, .lease = 5}},
      {"sample_reply_wait", SampleReply{.index = 3, .answer = Answer::kOnItsWay, .wait_ms = 20}},
      {"put", Put{.dataset = 1, .stream = 2, .item = item, .lease = 5, .crc = 0xe3069283}},
      {"store_reply",
       StoreReply{.dataset = 1, .id = 77, .accepted = false, .reason = Code::kResourceExhausted}},
      {"lease_update",
       LeaseUpdate{.dataset = 1, .event = LeaseEvent::kDone, .leases = {{77, 5}, {78, 6}}}},
      {"stream_attach", StreamAttach{.dataset = 1,
                                     .dataset_name = "vision/imagenet",
                                     .stream = 2,
                                     .stream_name = "vision/job/imagenet/train",
                                     .incarnation = 4,
                                     .sampler_kind = 1,
                                     .size = 1281167,
                                     .seed = -42,
                                     .world = 8,
                                     .rank = 3,
                                     .shuffle = true,
                                     .drop_last = true,
                                     .modern_randperm = false,
                                     .base_seed = 2,
                                     .tail_permutation = false,
                                     .known = true,
                                     .passes = 90}},
      {"stream_order",
       StreamOrder{.stream = 2, .rank = 3, .recipe = "spdl-random size=9 drop_last=true"}},
      {"stream_trace", StreamTrace{.stream = 2,
                                   .rank = 3,
                                   .pass = 5,
                                   .bits = 4,
                                   .length = 70,
                                   .offset = 32,
                                   .packed = {std::byte{0x05}, std::byte{0x99}, std::byte{0x02}}}},
      {"stream_pass_end", StreamPassEnd{.stream = 2, .rank = 3, .reads = 40000}},
      {"store_health", StoreHealth{.dataset = 1,
                                   .state = StoreState::kSilent,
                                   .silent_ms = 12500,
                                   .cause = "a.jpg: connection refused"}},
      {"store_health_changed",
       StoreHealth{.dataset = 1, .state = StoreState::kChanged, .cause = "train/a.jpg"}},
      {"savings", Savings{.dataset = 1, .requests = 870000, .bytes = -4096, .wait_us = 41500000}},
      {"store_demand", StoreDemand{.dataset = 1,
                                   .requests_milli = 12500,
                                   .bytes = 52428800,
                                   .requests_held_back = false,
                                   .bytes_held_back = true}},
      {"store_share", StoreShare{.dataset = 1, .requests_milli = 6250, .bytes = 26214400}},
      {"stream_progress", StreamProgress{.stream = 2,
                                         .rank = 3,
                                         .pass = 5,
                                         .epoch = 6,
                                         .start = 3,
                                         .position = 4096,
                                         .wait_us = 1500,
                                         .order_known = true,
                                         .ended = true}},
      {"lookup", Lookup{.dataset = 1, .want_lease = false, .ids = {1, 2, 0xfffffffe}}},
      {"lookup_reply",
       LookupReply{.dataset = 1,
                   .items = {{.id = 1, .found = Found::kHeld, .holder = 7},
                             {.id = 2, .found = Found::kLeased, .lease = 9, .keep = true}}}},
      {"holding", Holding{.dataset = 1, .gained = {1, 2}, .lost = {3}}},
      {"announce", Announce{.dataset = 1, .ids = {77}}},
      {"push", Push{.dataset = 1, .stream = 2, .item = item, .crc = 0xe3069283}},
  };
}

TEST(GoldenFrames, AreWrittenAndReadAsEver) {
  for (const auto& [name, message] : Examples()) {
    SCOPED_TRACE(name);
    std::vector<std::byte> frame;
    EXPECT_TRUE(AppendFrame(0x01020304, message, CarriesPayload(message) ? 9 : 0, frame).ok());
    const std::string text = Hex(frame, kHeaderBytes);
    ExpectGolden(text, "wire/" + name + ".hex");
    const auto decoded = DecodeFrame(Unhex(text));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().ToString();
    EXPECT_EQ(std::get<Frame>(*decoded).message, message);
  }
}

}  // namespace
}  // namespace optcache::wire
