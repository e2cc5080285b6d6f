#pragma once

// How one sample's bytes come into memory: the node first, the store for what it does not have and
// whenever it is gone.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "sidecar/fetch/lease_tracker.h"
#include "sidecar/fetch/put_window.h"
#include "sidecar/fetch/store_queue.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "wire/messages.h"

namespace optcache::sidecar {

// Where a sample came from.
enum class Source : std::uint8_t { kNode, kPeer, kStore };
inline constexpr std::array<std::string_view, 3> kSourceNames = {"local", "peer", "store"};
inline constexpr std::size_t kSources = kSourceNames.size();

// Why the store was read though the node had not said so.
enum class Fallback : std::uint8_t { kNodeDown, kNodeLost, kNoAnswer, kCorrupt, kNeverCame };
inline constexpr std::array<std::string_view, 5> kFallbackNames = {
    "node_down", "node_lost", "no_answer", "corrupt", "never_came"};
inline constexpr std::size_t kFallbacks = kFallbackNames.size();

enum class Urgency : std::uint8_t { kStaged, kUrgent };

using FetchId = std::uint64_t;  // 0: none

struct FetchOptions {
  std::size_t store_concurrency = 32;
  // Of one staging Get, and how many of those may be unanswered.
  std::size_t items_per_get = 64;
  ByteCount bytes_per_get = 1_MiB;
  std::size_t gets_in_flight = 4;
  // Of all Gets that are unanswered: samples, and bytes with the largest Get aside. So the answers
  // stay within what a connection may queue.
  std::size_t items_in_flight = 16'384;
  ByteCount bytes_in_flight = 256_MiB;
  PutLimits puts;
  // For the node to answer an item before the store is read instead: longer than the node's own
  // deadlines, after which it answers with a miss and a lease. A sample whose bytes are coming is
  // not late.
  Duration staged_deadline = std::chrono::seconds(3);
  Duration urgent_deadline = std::chrono::seconds(5);
  // How long a sample may be on its way before the store is read instead.
  Duration arrival_deadline = std::chrono::seconds(10);
  Duration lease_renewal = std::chrono::seconds(2);
};

// Asks the node for many samples at once, reads misses from the store under the node's lease, and
// puts back what the node's plan keeps; while much waits to be put back, nothing is staged. Every
// fetch ends: whatever becomes of the node, the store is read, and that has a deadline of its own.
// Not thread-safe: belongs to the event loop's thread.
class Fetcher {
 public:
  struct Spec {
    const DatasetPort* dataset = nullptr;
    StreamId stream = 0;
    wire::ReadItem item;
    Urgency urgency = Urgency::kStaged;
    BufferRef buffer;  // of the sample's length
    ReadDue due{};
  };
  // The bytes lie in the buffer, or the store's error.
  using Done = std::function<void(Result<Source>)>;

  // `on_work` is called when there is something to Flush.
  Fetcher(NodePort& node, StorePort& store, Alarms& alarms, FetchOptions options,
          std::function<void()> on_work);

  // Counts for `dataset` begin at 0 now, not with its first sample: a rate sees that one, too.
  void CountFor(const std::string& dataset) { fetched_[dataset]; }

  // `done` is called once, never from within Start, unless the fetch is abandoned.
  FetchId Start(Spec spec, Done done);
  // A trainer waits for it now.
  void MakeUrgent(FetchId id);
  // Nobody wants it any more: what has not begun never will; a store read that has begun is
  // finished, and put back if the plan keeps it.
  void Abandon(FetchId id);
  // Sends what has gathered since the last time.
  void Flush();

  // --- What the node says
  void OnNodeLost();
  // An answer without payload.
  void OnAnswer(std::uint32_t request, const wire::SampleReply& reply);
  // A payload of `length` begins: where it goes, null if nowhere.
  BufferRef OnPayloadStart(std::uint32_t request, const wire::SampleReply& reply, ByteCount length);
  // It has arrived (ok), is damaged (kDataLoss), or was thrown away.
  void OnPayload(std::uint32_t request, const wire::SampleReply& reply, const Status& status);

  std::size_t fetching() const { return fetches_.size(); }
  // Whether some of it waits for its turn: to be asked of the node, to be read from the store, or
  // until the store may be asked again.
  bool IsBehind();
  bool node_connected() const { return node_.connected(); }
  const StorePort& store() const { return store_.store(); }
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  enum class State : std::uint8_t { kToAsk, kAsked, kReceiving, kOnItsWay, kHeld, kStore };
  struct Fetch {
    Spec spec;
    Done done;  // empty: abandoned
    State state = State::kToAsk;
    std::uint32_t request = 0;   // kAsked, kReceiving: the Get that asked
    Alarms::Id alarm = 0;        // kOnItsWay: when to ask again
    MonotonicTime give_up_at{};  // kOnItsWay: set at the first such answer
    StoreQueue::Ticket ticket = 0;
    wire::LeaseId lease = 0;
    bool keep = false;       // the plan keeps it: put it back
    bool in_window = false;  // kStore: counted by puts_window_
  };
  // A Get that is not wholly answered. Answers may come after its deadline.
  struct Ask {
    wire::Get get;
    std::vector<FetchId> fetches;  // by item; 0: answered
    std::size_t open = 0;
    ByteCount bytes = 0;
    std::uint64_t progress = 0;  // Progress() when it was sent, or looked at last
    Alarms::Id alarm = 0;
    bool counted = false;  // one of those in flight
  };

  struct Fetched {
    std::array<std::uint64_t, kSources> samples{};
    std::array<ByteCount, kSources> bytes{};
  };

  Fetch* Find(FetchId id);
  void QueueToAsk(FetchId id, Fetch& fetch);
  Fetch* NextToAsk(Urgency urgency);
  bool SendOne(Urgency urgency);
  bool NodeHasEnough();
  bool MayAsk(const Fetch& fetch) const;
  bool MayBeInFlight(ByteCount size) const;
  void SendGet(Ask ask);
  Ask* FindItem(std::uint32_t request, std::uint32_t index);
  FetchId TakeItem(std::uint32_t request, std::uint32_t index);
  void StartAlarm(std::uint32_t request, Ask& ask);
  void OnAskDeadline(std::uint32_t request);
  // Rises with whatever the node says.
  std::uint64_t Progress() const { return answers_ + node_.traffic().received; }
  void StopCounting(Ask& ask);

  void OnMiss(FetchId id, const wire::Get& get, const wire::SampleReply& reply);
  void Wait(FetchId id, Fetch& fetch, wire::GetMode asked_as, std::uint32_t wait_ms);
  void ReadStoreInstead(FetchId id, Fetch& fetch, Fallback why);
  void ReadStore(FetchId id, Fetch& fetch);
  void StartHeld();
  void LeaveWindow(Fetch& fetch);
  void OnStoreRead(FetchId id, const Result<std::uint32_t>& crc);
  void GiveBack(const Fetch& fetch, std::uint32_t crc);
  void Finish(FetchId id, Result<Source> result);
  void RenewLeasesLater();

  NodePort& node_;
  Alarms& alarms_;
  FetchOptions options_;
  std::function<void()> on_work_;
  StoreQueue store_;
  LeaseTracker leases_;
  std::unordered_map<FetchId, Fetch> fetches_;
  std::unordered_map<std::uint32_t, Ask> asks_;
  std::array<std::deque<FetchId>, 2> to_ask_;  // by Urgency; may name fetches that have gone on
  std::deque<FetchId> held_;                   // the same
  PutWindow puts_window_;
  FetchId last_id_ = 0;
  std::uint32_t last_request_ = 0;
  std::size_t gets_in_flight_ = 0;  // staging ones
  std::size_t items_in_flight_ = 0;
  ByteCount bytes_in_flight_ = 0;
  std::uint64_t answers_ = 0;
  Alarms::Id renewal_ = 0;
  Alarms::Id look_again_ = 0;  // whether what is held may be read

  std::map<std::string, Fetched> fetched_;  // by dataset
  std::array<std::uint64_t, kFallbacks> fallbacks_{};
  std::uint64_t puts_ = 0;
  std::uint64_t puts_withheld_ = 0;
};

}  // namespace optcache::sidecar
