#pragma once

// Computed samples: what an expensive dataset of the training processes returns, kept for all of
// them. They compute, encode and decode; here is decided what stays, and who computes. See
// docs/formats/handoff.md.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "base/result.h"
#include "handoff/computed_messages.h"
#include "sidecar/computed/computed_values.h"
#include "sidecar/computed/next_uses.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "sidecar/ports/sample_memory.h"
#include "sidecar/prefetch/reader_table.h"

namespace optcache::sidecar {

using ComputedHandle =
    std::uint32_t;  // of a dataset of computed samples; at least kComputedHandles
inline constexpr ComputedHandle kComputedHandles = 1U << 31U;
using ComputedLease = std::uint64_t;  // 0: none

// The training processes.
class ComputedPort {
 public:
  virtual ~ComputedPort() = default;
  // Each answers one request, once.
  virtual void Value(ClientId client, std::uint64_t request, Slot slot) = 0;
  virtual void Compute(ClientId client, std::uint64_t request, ComputedLease lease,
                       ByteCount room) = 0;
  virtual void RefuseComputed(ClientId client, std::uint64_t request, const Status& why) = 0;
};

// One sample that is asked for. Stream 0: the read belongs to no order.
struct ComputedRequest {
  std::uint64_t request = 0;
  ComputedHandle dataset = 0;
  StreamId stream = 0;
  Rank rank = 0;
  PassNumber pass = 0;
  std::optional<std::uint64_t> index;  // in the rank's list
  SampleId id = 0;
};

// Of what is missing, one process computes each sample, and others that ask for it wait for that,
// kWaitMax at most: then they compute it themselves. Who ends, or fails, gives the next in line
// leave at once. A value is seen when all of it has come, and stays as it is while somebody reads
// it. Not thread-safe: belongs to the event loop's thread.
class ComputedCache {
 public:
  static constexpr Duration kWaitMax = std::chrono::seconds(10);
  // Values of a dataset that nobody has open any more are kept for this long: workers come and go.
  static constexpr Duration kLinger = std::chrono::seconds(60);
  static constexpr std::size_t kDatasetsMax = 64;
  static constexpr std::size_t kLeasesMax = 64;  // of a client, before it may ask again
  static constexpr SampleId kSamplesMax = 1U << 28U;

  ComputedCache(ArenaPort& memory, OrderPort& orders, Alarms& alarms, ReaderOptions options,
                ComputedPort& clients);
  ComputedCache(const ComputedCache&) = delete;
  ComputedCache& operator=(const ComputedCache&) = delete;

  struct Opened {
    ComputedHandle dataset = 0;
    bool first = false;  // nobody had it open
    ByteCount capacity = 0;
  };
  // kConflict: a client that has that name open computes something else. kResourceExhausted: there
  // is no room, or there are too many.
  Result<Opened> Open(ClientId client, const std::string& name, const std::string& what,
                      std::uint64_t samples, ByteCount max_bytes);
  // What a client has opened, to be attached to `readers()`.
  Result<const DatasetPort*> Dataset(ClientId client, ComputedHandle handle) const;
  ReaderTable& readers() { return readers_; }

  void Ask(ClientId client, const ComputedRequest& request);
  // A part of a value; length 0: there is none. What does not fit together ends the lease.
  void Put(ClientId client, ComputedLease lease, ByteCount length, ByteCount offset,
           ByteSpan bytes);
  void OnClientGone(ClientId client);
  // Whether the request waits for another process.
  bool Waits(ClientId client, std::uint64_t request) const;

  Result<handoff::ComputedCounts> CountsOf(ClientId client, ComputedHandle handle) const;
  void VisitCounters(const CounterVisitor& visitor) const;
  // Where no memory is given for them, so that a page has the same series everywhere.
  static void VisitNone(const CounterVisitor& visitor);

 private:
  static void VisitFigures(std::uint64_t hits, std::uint64_t misses, ByteCount capacity,
                           ByteCount in_use, const CounterVisitor& visitor);
  // Nodes hear nothing of computed samples.
  class NoNode final : public NodePort {
   public:
    bool connected() const override { return false; }
    void Send(std::uint32_t /*request*/, const wire::Message& /*message*/) override {}
    void Put(const wire::Put& /*put*/, BufferRef /*payload*/) override {}
    void Drop(Status /*why*/) override {}
  };
  class Described final : public DatasetPort {
   public:
    const std::string& name() const override { return name_; }
    wire::DatasetKey key() const override { return 0; }
    SampleId samples() const override { return samples_; }
    ByteCount SizeOf(SampleId /*id*/) const override { return 0; }
    std::string name_;
    SampleId samples_ = 0;
  };
  struct Waiter {
    ClientId client = 0;
    std::uint64_t request = 0;
    Alarms::Id deadline = 0;
  };
  // What is being computed, and who waits for it.
  struct Computing {
    ComputedLease lease = 0;
    std::deque<Waiter> waiters;
  };
  struct Computed {
    Described described;
    std::string what;
    std::set<ClientId> clients;  // who has it open
    Alarms::Id closes = 0;
    bool open = false;  // false: free for another name
    std::unique_ptr<NextUses> uses;
    std::unique_ptr<ComputedValues> values;
    std::unordered_map<SampleId, Computing> computing;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
  };
  struct Lease {
    Computed* dataset = nullptr;
    SampleId id = 0;
    ClientId client = 0;
    BufferRef value;  // null before its first part
    ByteCount received = 0;
  };

  const Computed* Find(ClientId client, ComputedHandle handle) const;
  Computed* FreePlace();
  ByteCount Unclaimed() const;
  void Close(Computed& dataset);
  void Resolve(const Computed& dataset, const ComputedRequest& request);
  Status Check(ClientId client, const ComputedRequest& request) const;
  void Answer(Computed& dataset, ClientId client, std::uint64_t request, BufferRef value);
  void Grant(Computed& dataset, SampleId id, ClientId client, std::uint64_t request);
  void Wait(Computed& dataset, SampleId id, ClientId client, std::uint64_t request);
  void TakeOver(Computed& dataset, SampleId id, ClientId client, std::uint64_t request);
  void Complete(Lease lease);
  void Abandon(ComputedLease id);
  void DropLease(std::map<ComputedLease, Lease>::iterator lease);
  ComputedValues::Ties TiesOf(const Computed& dataset) const;
  void WorkLater();
  void Work();

  SampleMemory memory_;
  ByteCount capacity_;
  Alarms& alarms_;
  ComputedPort& clients_;
  NoNode no_node_;
  ReaderTable readers_;
  std::deque<Computed> datasets_;  // stay where they are: readers point to them
  std::map<ComputedLease, Lease> leases_;
  std::map<ClientId, BufferRef> read_;  // what each client reads at present
  ComputedLease last_lease_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  bool work_due_ = false;
};

}  // namespace optcache::sidecar
