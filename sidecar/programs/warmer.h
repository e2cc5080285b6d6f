#pragma once

// Fills the node of this machine ahead of a job: asks it for sample after sample, reads from the
// store those that no node has, and puts them into the node. What some node has already is not read
// again, so a warm-up that was stopped goes on where it was.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sidecar/fetch/lease_tracker.h"
#include "sidecar/fetch/store_queue.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "sidecar/ports/sample_memory.h"
#include "wire/messages.h"

namespace optcache::sidecar {

struct WarmOptions {
  std::size_t items_per_get = 64;
  std::size_t gets_in_flight = 4;
  ByteCount memory = 64_MiB;  // of samples that are asked for, read or put
  std::size_t store_concurrency = 32;
  Duration ask_again = std::chrono::milliseconds(500);
  Duration lease_renewal = std::chrono::seconds(2);
  Duration silence = std::chrono::seconds(10);  // then the connection is given up
  Duration stall = std::chrono::minutes(2);     // without a sample that ends: it has failed
  std::size_t failures_max = 16;  // samples in a row that cannot be read: see OnFailed
};

// By samples. Each of a warm-up ends in one of these.
struct WarmCounts {
  std::uint64_t samples = 0;  // all of them
  ByteCount bytes = 0;
  std::uint64_t held = 0;  // a node had it
  ByteCount held_bytes = 0;
  std::uint64_t read = 0;  // from the store, and a node has it now
  ByteCount read_bytes = 0;
  std::uint64_t no_room = 0;  // the node does not keep it
  std::uint64_t failed = 0;   // it cannot be read

  std::uint64_t ended() const { return held + read + no_room + failed; }
  // This many may fail without the whole failing: one sample, or a hundredth of them.
  std::uint64_t tolerated() const { return std::max<std::uint64_t>(1, samples / 100); }
  // The node is not among the dataset's, say. Whether others keep some, those know who see all.
  bool kept_nothing() const { return samples > 0 && held + read == 0; }
  friend bool operator==(const WarmCounts&, const WarmCounts&) = default;
};

// Reads without a stream (docs/formats/wire.md, Get): what it puts lies at its node for the next
// reader, and no plan decides about it before there is one. Not thread-safe: belongs to the
// event loop's thread.
class Warmer final : public NodeListener {
 public:
  // `on_end` is called once, never from within another call. All of it outlives this.
  Warmer(const DatasetPort& dataset, std::vector<SampleId> samples, NodePort& node,
         StorePort& store, Alarms& alarms, WarmOptions options, std::function<void()> on_end);
  Warmer(const Warmer&) = delete;
  Warmer& operator=(const Warmer&) = delete;

  void Start();
  // Ends it with this, if it has not ended; reads of the store that have begun go on to their end.
  void Stop(Status why);

  const WarmCounts& counts() const { return counts_; }
  // Nothing while it goes on. Ok: each sample was held, read or had no room, as it may be with all
  // of them, but for few that could not be read. An error is a sentence.
  const std::optional<Status>& result() const { return result_; }
  // Why the first sample that could not be read could not; ok: there is none.
  const Status& first_failure() const { return first_failure_; }

  void OnNodeUp() override;
  void OnNodeLost() override;
  void OnAnswer(std::uint32_t request, const wire::SampleReply& reply) override;
  BufferRef OnPayloadStart(std::uint32_t request, const wire::SampleReply& reply,
                           ByteCount length) override;
  void OnPayload(std::uint32_t request, const wire::SampleReply& reply,
                 const Status& status) override;
  void OnStored(const wire::StoreReply& reply) override;

 private:
  // All samples lie outside an arena.
  class NoArena final : public ArenaPort {
   public:
    ByteCount capacity() const override { return 0; }
    std::optional<Slot> Allocate(ByteCount /*length*/) override { return std::nullopt; }
    void Free(Slot /*slot*/) override {}
    MutableByteSpan Bytes(Slot /*slot*/) override { return {}; }
  };
  struct Ask {
    std::vector<SampleId> ids;  // kNoSample: answered
    std::size_t open = 0;
  };
  struct Reading {
    wire::LeaseId lease = 0;
    StoreQueue::Ticket ticket = 0;
    BufferRef buffer;
  };
  struct Putting {
    std::uint32_t crc = 0;
    BufferRef buffer;
    bool sent = false;
  };

  void WorkLater();
  void Work();
  bool SendOne();
  std::optional<SampleId> NextToAsk() const;
  std::optional<SampleId> TakeAnswered(std::uint32_t request, std::uint32_t index);
  void AskLater(SampleId id, Duration wait);
  void ReadStore(SampleId id, wire::LeaseId lease);
  void OnRead(SampleId id, const Result<std::uint32_t>& crc);
  void SendPut(SampleId id, Putting& put, wire::LeaseId lease);
  void Ended(SampleId id, std::uint64_t& count);
  void RenewLeasesLater();
  void Watch();
  Status Outcome() const;
  void OnFailed(SampleId id, const Status& why);
  Status Unreadable(std::string_view which, const Status& why) const;
  Status Stalled() const;

  const DatasetPort& dataset_;
  const std::vector<SampleId> samples_;
  NodePort& node_;
  Alarms& alarms_;
  const WarmOptions options_;
  std::function<void()> on_end_;
  NoArena arena_;
  SampleMemory memory_;
  StoreQueue store_;
  LeaseTracker leases_;

  std::size_t next_ = 0;        // of samples_: asked for next
  std::deque<SampleId> again_;  // asked for before those
  ByteCount in_flight_ = 0;     // bytes of what is in the next three
  std::map<std::uint32_t, Ask> asks_;
  std::map<SampleId, Reading> reading_;
  std::map<SampleId, Putting> putting_;
  std::uint32_t last_request_ = 0;
  bool work_due_ = false;
  Alarms::Id renewal_ = 0;
  MonotonicTime heard_at_{};           // of the node, or bytes moved, or nothing was owed
  NodeTraffic traffic_;                // when that was looked at last
  MonotonicTime moved_at_{};           // a sample ended, or the store was being read
  bool unknown_ = false;               // the node's last word: it does not know the dataset
  bool has_read_ = false;              // a sample from the store
  std::size_t failures_in_a_row_ = 0;  // of reads
  std::size_t refusals_in_a_row_ = 0;  // of these, for no fault of the sample's
  Status first_failure_;
  WarmCounts counts_;
  std::optional<Status> result_;
};

}  // namespace optcache::sidecar
