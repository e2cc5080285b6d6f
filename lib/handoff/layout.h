#pragma once

// The bytes of the hand-over protocol: docs/formats/handoff.md is the specification.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/clock.h"

namespace optcache::handoff {

inline constexpr std::uint16_t kMinVersion = 1;
inline constexpr std::uint16_t kMaxVersion = 2;

enum class FrameType : std::uint8_t {
  kHello = 1,
  kOpen = 2,
  kAttach = 3,
  kPass = 4,
  kGet = 5,
  kRelease = 6,
  kDetach = 7,
  // From version 2 on.
  kTrace = 8,
  kOpenComputed = 9,
  kComputedPut = 10,
  kComputedCounts = 11,
  kReadCounts = 12,

  kWelcome = 65,
  kOpened = 66,
  kAttached = 67,
  kDone = 68,
  kSamples = 69,
  kWaiting = 70,
  kError = 71,
  kComputedOpened = 72,
  kValue = 73,
  kCompute = 74,
  kCounts = 75,
  kReads = 76,
};

// Precedes every body.
struct FrameHeader {
  std::uint32_t body_bytes = 0;
  FrameType type = FrameType::kHello;
  std::uint8_t zero[3] = {};
  std::uint64_t request = 0;
};
static_assert(sizeof(FrameHeader) == 16 && std::is_trivially_copyable_v<FrameHeader>);
static_assert(offsetof(FrameHeader, type) == 4 && offsetof(FrameHeader, request) == 8);

// In Samples, before the entries.
struct SamplesHeader {
  std::uint64_t batch = 0;
  std::uint32_t count = 0;
  std::uint32_t others = 0;
};
static_assert(sizeof(SamplesHeader) == 16 && std::is_trivially_copyable_v<SamplesHeader>);

enum class EntryKind : std::uint8_t { kArena = 0, kInline = 1, kError = 2, kStandIn = 3 };

struct SampleEntry {
  std::uint64_t place = 0;
  std::uint64_t length = 0;
};
static_assert(sizeof(SampleEntry) == 16 && std::is_trivially_copyable_v<SampleEntry>);

// GetRequest::first: the place in the rank's list is not known.
inline constexpr std::uint64_t kNoIndex = std::numeric_limits<std::uint64_t>::max();

// AttachRequest::order: Trace messages will say what is read.
inline constexpr std::string_view kTraceOrder = "trace";

// AttachRequest::passes_from: the pass that the answer names.
inline constexpr std::uint32_t kFromFirstPass = std::numeric_limits<std::uint32_t>::max();

inline constexpr std::uint32_t kMaxRequestBytes = 1U << 20U;
inline constexpr std::uint32_t kMaxReplyBytes = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::size_t kMaxStringBytes = 4096;
inline constexpr std::size_t kMaxPutBytes = kMaxRequestBytes - 24;  // in one part of a value
inline constexpr std::size_t kMaxIds = 65'536;
inline constexpr std::size_t kMaxReleases = 65'536;
inline constexpr std::uint64_t kMaxTraceIds = 1ULL << 26U;  // of a rank's list of one pass
inline constexpr std::size_t kMaxWaitingGets = 64;          // of a connection
inline constexpr std::size_t kMaxClients = 4096;
inline constexpr ByteCount kMaxQueuedBytes = 1_MiB;  // then the client is not read from

inline constexpr Duration kFrameDeadline = std::chrono::seconds(10);
inline constexpr Duration kWriteDeadline = std::chrono::seconds(60);
// Well below the silence after which a client reads the source itself.
inline constexpr Duration kWaitingInterval = std::chrono::seconds(2);

}  // namespace optcache::handoff
