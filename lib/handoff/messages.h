#pragma once

// What training processes and the sidecar say to each other (docs/formats/handoff.md).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"
#include "handoff/computed_messages.h"
#include "handoff/layout.h"

namespace optcache::handoff {

using DatasetHandle = std::uint32_t;  // chosen by the server, good as long as it lives
using BatchId = std::uint64_t;        // chosen by the server; 0: none
using RequestId = std::uint64_t;      // chosen by the client

// --- From the client ----------------------------------------------------------------------------

struct Hello {
  std::uint16_t min_version = kMinVersion;
  std::uint16_t max_version = kMaxVersion;
  std::uint32_t pid = 0;
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct OpenRequest {
  std::string name;  // empty: the only dataset there is
  friend bool operator==(const OpenRequest&, const OpenRequest&) = default;
};

// A loader begins to read. The recipe's fields are those of sampler/recipe.h.
struct AttachRequest {
  DatasetHandle dataset = 0;
  std::uint32_t incarnation = 0;  // 0: the server's own
  std::string owner;              // empty: the server's own
  std::string loader;
  bool known = true;  // false: the order cannot be replayed
  std::uint8_t kind = 0;
  std::uint64_t size = 0;
  std::int64_t seed = 0;
  std::uint32_t world = 1;
  Rank rank = 0;
  bool shuffle = true;
  bool drop_last = false;
  bool modern_randperm = true;
  std::uint8_t base_seed = 0;
  bool tail_permutation = true;
  std::uint32_t passes = 0;                 // how many there will be; 0: nobody knows
  PassNumber passes_from = kFromFirstPass;  // the first of them
  std::uint32_t behind = 0;                 // how far workers ask out of order, in samples
  // docs/formats/recipe.md, or "trace": then `known` is false, and the fields of the recipe but
  // world and rank mean nothing. Empty: they say it. From version 2 on.
  std::string order;
  // Each pass reads this many ids of the rank's list, from the front, and leaves the rest; 0: all.
  // From version 2 on.
  std::uint64_t pass_reads = 0;
  // The same in all processes of a job and in no other's; empty: nobody knows. From version 2 on.
  std::string job;
  friend bool operator==(const AttachRequest&, const AttachRequest&) = default;
};

// An iteration begins: `length` samples from index `start` of the rank's list.
struct PassRequest {
  StreamId stream = 0;
  Rank rank = 0;
  PassNumber pass = 0;
  std::uint64_t epoch = 0;
  std::uint64_t start = 0;
  std::uint64_t length = 0;
  std::optional<std::uint32_t> crc;  // of the order, as sampler/order_crc.h makes it
  friend bool operator==(const PassRequest&, const PassRequest&) = default;
};

// A batch is wanted. Stream 0: the read belongs to no stream.
struct GetRequest {
  DatasetHandle dataset = 0;
  StreamId stream = 0;
  Rank rank = 0;
  PassNumber pass = 0;
  std::uint64_t first = 0;  // index of ids[0] in the rank's list, or kNoIndex
  std::vector<SampleId> ids;
  friend bool operator==(const GetRequest&, const GetRequest&) = default;
};

struct ReleaseRequest {
  std::vector<BatchId> batches;
  friend bool operator==(const ReleaseRequest&, const ReleaseRequest&) = default;
};

struct DetachRequest {
  StreamId stream = 0;
  Rank rank = 0;
  friend bool operator==(const DetachRequest&, const DetachRequest&) = default;
};

// A part of the list that the rank will read in a pass: ids from index `first` on. The parts of a
// pass come in order; one with `first` 0 begins again. From version 2 on.
struct TraceRequest {
  StreamId stream = 0;
  Rank rank = 0;
  PassNumber pass = 0;
  std::uint64_t first = 0;
  std::uint64_t length = 0;  // of the whole list; 0: the list grows as the pass goes on
  std::vector<SampleId> ids;
  friend bool operator==(const TraceRequest&, const TraceRequest&) = default;
};

// What has been read of a dataset? From version 2 on.
struct ReadCountsRequest {
  DatasetHandle dataset = 0;
  friend bool operator==(const ReadCountsRequest&, const ReadCountsRequest&) = default;
};

using ClientMessage = std::variant<Hello, OpenRequest, AttachRequest, PassRequest, GetRequest,
                                   ReleaseRequest, DetachRequest, TraceRequest, OpenComputedRequest,
                                   ComputedPut, ComputedCountsRequest, ReadCountsRequest>;

// --- From the server ----------------------------------------------------------------------------

struct OpenReply {
  DatasetHandle dataset = 0;
  std::uint64_t samples = 0;
  std::array<std::byte, 32> digest{};
  std::uint64_t manifest_bytes = 0;
  std::string name;
  std::string notice{};  // what the client that opens it is to be told; from version 2 on
  int manifest_fd = -1;  // a sealed memory file (handoff/memory_file.h), lent for the call
};

struct AttachReply {
  StreamId stream = 0;
  PassNumber first_pass = 0;
  std::string loader;  // by which name it reads from here on; from version 2 on
};

// Where a sample of an answer lies: in the arena ...
struct ArenaSample {
  ByteCount offset = 0;
  ByteCount length = 0;
  bool stand_in = false;  // another sample's bytes, as headspace is measured
};
// ... or in memory that `pin` keeps until it has been sent.
struct InlineSample {
  ByteSpan bytes;
  std::shared_ptr<const void> pin;
};
// ... or nowhere, and the Status says why.
using ServedSample = std::variant<ArenaSample, InlineSample, Status>;

struct SamplesReply {
  BatchId batch = 0;  // not 0 if a sample lies in the arena
  std::vector<ServedSample> samples;
};

// Of one dataset, since the server began, for all its clients.
struct ReadCounts {
  struct Part {
    std::uint64_t samples = 0;
    ByteCount bytes = 0;
  };
  // Samples that were delivered, by where their bytes came from.
  Part node;
  Part peers;
  Part store;
  // What the same reads cost the store without a cache, and what it was asked for.
  std::uint64_t uncached_requests = 0;
  ByteCount uncached_bytes = 0;
  std::uint64_t store_requests = 0;
  ByteCount store_bytes = 0;
  std::uint64_t wait_us = 0;           // of all requests for samples
  std::optional<double> saved_cost{};  // nullopt: the user has said no price
};

}  // namespace optcache::handoff
