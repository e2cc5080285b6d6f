#pragma once

// What nodes and sidecars say to each other. Bytes: docs/formats/wire.md; encoding: wire/codec.h.
//
// A message may carry a payload (a sample's bytes), which follows its frame and is never copied
// into the message: the receiver says where it goes (net/connection.h).

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"

namespace optcache::wire {

using DatasetKey = std::uint64_t;  // of its name and manifest: dataset::KeyOf (dataset/digest.h)
using MemberId = std::uint32_t;    // given by the coordinator, never reused
using LeaseId = std::uint64_t;     // 0: none

inline constexpr std::uint16_t kMinVersion = 1;
inline constexpr std::uint16_t kMaxVersion = 6;
// What one side speaks.
struct VersionRange {
  std::uint16_t min = kMinVersion;
  std::uint16_t max = kMaxVersion;
};
inline constexpr std::size_t kMaxItems = 4096;            // in one Get, Lookup, Holding, ...
inline constexpr std::size_t kMaxPartBytes = 1U << 19;    // of a list that goes by parts
inline constexpr std::uint32_t kMaxBodyBytes = 1U << 20;  // of a frame, payload not counted
inline constexpr ByteCount kMaxPayloadBytes = 1ULL << 32;

// Who sends a message to whom; several may be joined. Hello and Welcome have none: they come before
// it is known who the peer is.
using Directions = std::uint8_t;
inline constexpr Directions kNoDirection = 0;
inline constexpr Directions kSidecarToNode = 1;
inline constexpr Directions kNodeToSidecar = 2;
inline constexpr Directions kNodeToNode = 4;
inline constexpr Directions kAllDirections = kSidecarToNode | kNodeToSidecar | kNodeToNode;

// What each message declares of itself, as the table in docs/formats/wire.md has it.
struct About {
  std::uint8_t number = 0;  // on the wire: never used again for another
  std::string_view name{};
  std::uint16_t since = 0;  // version of the protocol in which it came
  Directions directions = kNoDirection;
};

// --- Connection -----------------------------------------------------------------------------

enum class Role : std::uint8_t { kSidecar = 1, kNode = 2 };

// First message of the side that connects.
struct Hello {
  static constexpr About kAbout = {
      .number = 1, .name = "Hello", .since = 1, .directions = kNoDirection};
  std::uint16_t min_version = kMinVersion;
  std::uint16_t max_version = kMaxVersion;
  Role role = Role::kSidecar;
  std::string name;     // pod or node name, for logs
  MemberId member = 0;  // of a node
  std::string token;    // who asks, checked by the server; may be empty on one machine
  bool bulk = false;    // offers to go on in plaintext with sealed frames
  friend bool operator==(const Hello&, const Hello&) = default;
};
// The answer: the version both speak.
struct Welcome {
  static constexpr About kAbout = {
      .number = 2, .name = "Welcome", .since = 1, .directions = kNoDirection};
  std::uint16_t version = kMaxVersion;
  std::string name;
  bool bulk = false;  // takes that offer: this is the last frame within TLS
  friend bool operator==(const Welcome&, const Welcome&) = default;
};
// The last message before a side closes the connection.
struct Refusal {
  static constexpr About kAbout = {
      .number = 3, .name = "Refusal", .since = 1, .directions = kAllDirections};
  Code code = Code::kInternal;
  std::string message;
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// --- Reading ----------------------------------------------------------------------------------

// One read: the key by which the plan decides, and the sample.
struct ReadItem {
  PassNumber pass = 0;
  Position position = 0;
  SampleId id = 0;
  friend bool operator==(const ReadItem&, const ReadItem&) = default;
};

enum class GetMode : std::uint8_t {
  kStage = 0,   // ahead of the trainer: the answer may be kOnItsWay
  kUrgent = 1,  // the trainer waits: bytes or a miss; kOnItsWay while a long payload comes
  kPeer = 2,    // from another node: a copy, nothing is consumed, no lease; or a miss
};

// Answered by one SampleReply an item, in any order, with the Get's request id. Stream 0: reads
// without an order.
struct Get {
  static constexpr About kAbout = {
      .number = 4, .name = "Get", .since = 1, .directions = kSidecarToNode | kNodeToNode};
  DatasetKey dataset = 0;
  StreamId stream = 0;
  GetMode mode = GetMode::kStage;
  std::vector<ReadItem> items;
  friend bool operator==(const Get&, const Get&) = default;
};

enum class Answer : std::uint8_t {
  kHere = 0,      // payload follows, from this node's memory
  kPeer = 1,      // payload follows, fetched from another node
  kMissKeep = 2,  // read the store, then Put under `lease`
  kMissDrop = 3,  // read the store, then LeaseDone (lease 0: nothing to say)
  kOnItsWay = 4,  // ask again after wait_ms
  kAbsent = 5,    // only for GetMode::kPeer: ask its home again; after kMissDrop do not
};

struct SampleReply {
  static constexpr About kAbout = {
      .number = 5, .name = "SampleReply", .since = 1, .directions = kNodeToSidecar | kNodeToNode};
  std::uint32_t index = 0;  // into Get::items
  Answer answer = Answer::kMissDrop;
  LeaseId lease = 0;
  std::uint32_t wait_ms = 0;
  std::uint32_t crc = 0;  // CRC-32C of the payload
  friend bool operator==(const SampleReply&, const SampleReply&) = default;
};

// A sample read from the store, for the node to keep where the plan says. Payload follows.
struct Put {
  static constexpr About kAbout = {
      .number = 6, .name = "Put", .since = 1, .directions = kSidecarToNode};
  DatasetKey dataset = 0;
  StreamId stream = 0;
  ReadItem item;
  LeaseId lease = 0;
  std::uint32_t crc = 0;
  friend bool operator==(const Put&, const Put&) = default;
};
// To Put and to Push. Not accepted: `reason` says why; the sender need not try again for a Put.
struct StoreReply {
  static constexpr About kAbout = {
      .number = 7, .name = "StoreReply", .since = 1, .directions = kNodeToSidecar | kNodeToNode};
  DatasetKey dataset = 0;
  SampleId id = 0;
  bool accepted = false;
  Code reason = Code::kOk;
  friend bool operator==(const StoreReply&, const StoreReply&) = default;
};

// Lease holder to its node, and node to the home. A lease lives kLeaseSeconds unless renewed.
inline constexpr int kLeaseSeconds = 5;
enum class LeaseEvent : std::uint8_t { kRenew = 0, kDone = 1, kFailed = 2 };
struct LeaseUpdate {
  static constexpr About kAbout = {
      .number = 8, .name = "LeaseUpdate", .since = 1, .directions = kSidecarToNode | kNodeToNode};
  DatasetKey dataset = 0;
  LeaseEvent event = LeaseEvent::kRenew;
  std::vector<std::pair<SampleId, LeaseId>> leases;
  friend bool operator==(const LeaseUpdate&, const LeaseUpdate&) = default;
};

// --- Streams: sidecar to its node, which reports to the coordinator ------------------------------

// A rank has attached to a stream. The sampler's fields are those of sampler/order_source.h.
struct StreamAttach {
  static constexpr About kAbout = {
      .number = 9, .name = "StreamAttach", .since = 1, .directions = kSidecarToNode};
  DatasetKey dataset = 0;
  std::string dataset_name;  // "namespace/name"
  StreamId stream = 0;
  std::string stream_name;  // "namespace/owner/dataset/loader"
  std::uint32_t incarnation = 0;
  std::uint8_t sampler_kind = 0;
  std::uint64_t size = 0;
  std::int64_t seed = 0;
  std::uint32_t world = 1;
  Rank rank = 0;
  bool shuffle = true;
  bool drop_last = false;
  bool modern_randperm = true;
  std::uint8_t base_seed = 0;
  bool tail_permutation = true;
  bool known = true;         // false: the order cannot be replayed
  std::uint32_t passes = 0;  // the stream ends before this pass; 0: nobody knows
  friend bool operator==(const StreamAttach&, const StreamAttach&) = default;
};

// The same rank's order, where StreamAttach cannot say it and so says that it is not known. Follows
// it.
struct StreamOrder {
  static constexpr About kAbout = {
      .number = 16, .name = "StreamOrder", .since = 2, .directions = kSidecarToNode};
  StreamId stream = 0;
  Rank rank = 0;
  std::string recipe;  // docs/formats/recipe.md
  friend bool operator==(const StreamOrder&, const StreamOrder&) = default;
};

// A part of the list of ids that a rank reads in a pass, where the training process hands it over
// (docs/formats/list.md). Parts come in order; one from offset 0 begins the list again.
struct StreamTrace {
  static constexpr About kAbout = {
      .number = 17, .name = "StreamTrace", .since = 3, .directions = kSidecarToNode};
  StreamId stream = 0;
  Rank rank = 0;
  PassNumber pass = 0;
  std::uint8_t bits = 0;     // of an id
  std::uint64_t length = 0;  // of the whole list, in ids
  std::uint64_t offset = 0;  // of this part, in bytes of packed ids
  std::vector<std::byte> packed;
  friend bool operator==(const StreamTrace&, const StreamTrace&) = default;
};

// The rank reads this many ids of its list in each pass, from the front, and leaves the rest: it
// has said so, or two passes in a row ended there. Sent after StreamAttach, before the
// StreamProgress with which a pass begins, and when a pass goes on beyond.
struct StreamPassEnd {
  static constexpr About kAbout = {
      .number = 18, .name = "StreamPassEnd", .since = 3, .directions = kSidecarToNode};
  StreamId stream = 0;
  Rank rank = 0;
  std::uint64_t reads = 0;  // 0: as far as anybody knows, passes end with the list
  friend bool operator==(const StreamPassEnd&, const StreamPassEnd&) = default;
};

// Where a rank is. Sent at each pass's start, then about once a second while it reads, and at the
// end.
struct StreamProgress {
  static constexpr About kAbout = {
      .number = 10, .name = "StreamProgress", .since = 1, .directions = kSidecarToNode};
  StreamId stream = 0;
  Rank rank = 0;
  PassNumber pass = 0;
  std::uint64_t epoch = 0;    // what the sampler's seed is made of
  Position start = 0;         // first position of the pass that this rank reads
  Position position = 0;      // reads before it have been handed to the trainer
  std::uint64_t wait_us = 0;  // how long the trainer has waited in this pass
  bool order_known = true;    // the order asked for is the one predicted
  bool ended = false;         // the rank has detached
  friend bool operator==(const StreamProgress&, const StreamProgress&) = default;
};

// --- Stores: sidecar to its node, which reports to the coordinator

enum class StoreState : std::uint8_t {
  kUntried = 0,  // nothing was asked of it, or not for a while
  kAnswers = 1,
  kSilent = 2,   // it answers nothing, and is taken for gone
  kChanged = 3,  // it answers, lately with an object that is not the one that was indexed. From
                 // version 5 on
};

// Whether the sidecar reaches the store of a dataset. Sent when it changes, and now and then.
struct StoreHealth {
  static constexpr About kAbout = {
      .number = 19, .name = "StoreHealth", .since = 3, .directions = kSidecarToNode};
  DatasetKey dataset = 0;
  StoreState state = StoreState::kUntried;
  std::uint64_t silent_ms = 0;  // kSilent: for how long
  std::string cause;            // kSilent: of the last attempt, for people; kChanged: the object
  friend bool operator==(const StoreHealth&, const StoreHealth&) = default;
};

// What the sidecar wants to ask of the store of a dataset that has a limit. Of a rate by which
// reads are held back it would take more than it has, and the number says nothing. Sent each
// second.
struct StoreDemand {
  static constexpr About kAbout = {
      .number = 21, .name = "StoreDemand", .since = 6, .directions = kSidecarToNode};
  DatasetKey dataset = 0;
  std::uint64_t requests_milli = 0;  // thousandths of a request in a second
  std::uint64_t bytes = 0;           // in a second
  bool requests_held_back = false;
  bool bytes_held_back = false;
  friend bool operator==(const StoreDemand&, const StoreDemand&) = default;
};

// Node to sidecar: what it may ask of that store from now on. 0: as much as it was started with.
// Sent each second.
struct StoreShare {
  static constexpr About kAbout = {
      .number = 22, .name = "StoreShare", .since = 6, .directions = kNodeToSidecar};
  DatasetKey dataset = 0;
  std::uint64_t requests_milli = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const StoreShare&, const StoreShare&) = default;
};

// --- Savings: sidecar to its node, which reports to the coordinator

// What a sidecar has saved of a dataset (docs/user/what-it-saves.md) since this connection began.
// What it saved before and has told another connection is not in it, so nothing counts twice.
struct Savings {
  static constexpr About kAbout = {
      .number = 20, .name = "Savings", .since = 4, .directions = kSidecarToNode};
  DatasetKey dataset = 0;
  std::int64_t requests = 0;  // below 0: it has sent more than the reads need without a cache
  std::int64_t bytes = 0;
  std::uint64_t wait_us = 0;  // how long training processes have waited
  friend bool operator==(const Savings&, const Savings&) = default;
};

// --- Between nodes -------------------------------------------------------------------------------

// To the home node of each id: who holds it? If nobody: a lease for the asker.
struct Lookup {
  static constexpr About kAbout = {
      .number = 11, .name = "Lookup", .since = 1, .directions = kNodeToNode};
  DatasetKey dataset = 0;
  bool want_lease = true;
  std::vector<SampleId> ids;
  friend bool operator==(const Lookup&, const Lookup&) = default;
};
enum class Found : std::uint8_t {
  kHeld = 0,     // at `holder`
  kLeased = 1,   // the asker has the lease `lease`
  kWaiting = 2,  // another reads it from the store: ask again
  kNobody = 3,   // only if no lease was wanted
};
struct LookupItem {
  SampleId id = 0;
  Found found = Found::kNobody;
  MemberId holder = 0;
  LeaseId lease = 0;
  bool keep = false;  // the home has room to own it (retention pin and LRU)
  friend bool operator==(const LookupItem&, const LookupItem&) = default;
};
struct LookupReply {
  static constexpr About kAbout = {
      .number = 12, .name = "LookupReply", .since = 1, .directions = kNodeToNode};
  DatasetKey dataset = 0;
  std::vector<LookupItem> items;
  friend bool operator==(const LookupReply&, const LookupReply&) = default;
};

// To the home: the sender now holds these, or no longer does.
struct Holding {
  static constexpr About kAbout = {
      .number = 13, .name = "Holding", .since = 1, .directions = kNodeToNode};
  DatasetKey dataset = 0;
  std::vector<SampleId> gained;
  std::vector<SampleId> lost;
  friend bool operator==(const Holding&, const Holding&) = default;
};

// To the receiver: these pushes are coming; a Get for them may be told kOnItsWay.
struct Announce {
  static constexpr About kAbout = {
      .number = 14, .name = "Announce", .since = 1, .directions = kNodeToNode};
  DatasetKey dataset = 0;
  std::vector<SampleId> ids;
  friend bool operator==(const Announce&, const Announce&) = default;
};

// A kept sample on its way to the node of its next reader. Payload follows.
struct Push {
  static constexpr About kAbout = {
      .number = 15, .name = "Push", .since = 1, .directions = kNodeToNode};
  DatasetKey dataset = 0;
  StreamId stream = 0;  // whose plan keeps it; 0: the receiver is its home (pin, LRU)
  ReadItem item;        // the read after which it is kept
  std::uint32_t crc = 0;
  friend bool operator==(const Push&, const Push&) = default;
};

// In the order of their numbers.
using Message = std::variant<Hello, Welcome, Refusal, Get, SampleReply, Put, StoreReply,
                             LeaseUpdate, StreamAttach, StreamProgress, Lookup, LookupReply,
                             Holding, Announce, Push, StreamOrder, StreamTrace, StreamPassEnd,
                             StoreHealth, Savings, StoreDemand, StoreShare>;

}  // namespace optcache::wire
