#pragma once

// The hand-over socket's end of the core: requests of training processes in, answers out.

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "handoff/arena.h"
#include "handoff/channel.h"
#include "net/event_loop.h"
#include "net/periodic_timer.h"
#include "sidecar/clients/feeder.h"
#include "sidecar/computed/computed_cache.h"
#include "sidecar/manifests/dataset_registry.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

// The most that one answer carries by copy: a frame, but for its head and the sample's entry.
inline constexpr ByteCount kCopyMax = handoff::kMaxReplyBytes - 4_KiB;

// The shared memory as the core sees it.
class SharedArena final : public ArenaPort {
 public:
  explicit SharedArena(handoff::Arena arena) : arena_(std::move(arena)) {}
  ByteCount capacity() const override { return arena_.allocator().capacity(); }
  std::optional<Slot> Allocate(ByteCount length) override;
  void Free(Slot slot) override { arena_.Free({.offset = slot.offset, .length = slot.length}); }
  MutableByteSpan Bytes(Slot slot) override {
    return arena_.Bytes({.offset = slot.offset, .length = slot.length});
  }
  const handoff::Arena& arena() const { return arena_; }

 private:
  handoff::Arena arena_;
};

// Used on the loop's thread only.
class ClientService final : public ClientPort, public ComputedPort, public handoff::ChannelHandler {
 public:
  // A handle is a place in the registry, counted from 1.
  explicit ClientService(const DatasetRegistry& datasets) : datasets_(datasets) {}

  // Listens at `socket` and serves until Close. Errors as ChannelServer::Listen.
  // `users`: those whose processes may connect, beside root; unset: everybody.
  Status Open(net::EventLoop& loop, const Clock& clock, const std::string& socket,
              const std::optional<std::vector<std::uint32_t>>& users, const handoff::Arena& arena,
              Feeder& feeder);
  // Before Open: computed samples are kept, in that memory. Else to open any is refused.
  void KeepComputed(ComputedCache& cache, const handoff::Arena& memory) {
    computed_ = &cache;
    computed_memory_ = &memory;
  }
  // Answers that come after it go nowhere.
  void Close();

  // Connections of training processes.
  std::size_t clients() const { return channel_ ? channel_->clients() : 0; }
  void VisitCounters(const CounterVisitor& visitor) const;

  // From the core.
  void Reply(ClientId client, std::uint64_t request, BatchId batch,
             const std::vector<Served>& samples) override;
  void Refuse(ClientId client, std::uint64_t request, const Status& why) override;
  void Value(ClientId client, std::uint64_t request, Slot slot) override;
  void Compute(ClientId client, std::uint64_t request, ComputedLease lease,
               ByteCount room) override;
  void RefuseComputed(ClientId client, std::uint64_t request, const Status& why) override {
    Refuse(client, request, why);
  }

  // From the channel.
  Result<handoff::OpenReply> OnOpen(handoff::ClientId client,
                                    const handoff::OpenRequest& request) override;
  Result<handoff::AttachReply> OnAttach(handoff::ClientId client,
                                        const handoff::AttachRequest& request) override;
  Status OnTrace(handoff::ClientId client, handoff::TraceRequest request) override;
  Status OnPass(handoff::ClientId client, const handoff::PassRequest& request) override;
  void OnGet(handoff::ClientId client, handoff::RequestId request,
             handoff::GetRequest get) override;
  void OnRelease(handoff::ClientId client, const std::vector<handoff::BatchId>& batches) override;
  void OnDetach(handoff::ClientId client, const handoff::DetachRequest& request) override;
  Result<handoff::OpenComputedReply> OnOpenComputed(
      handoff::ClientId client, const handoff::OpenComputedRequest& request) override;
  void OnComputedPut(handoff::ClientId client, const handoff::ComputedPut& put) override;
  Result<handoff::ComputedCounts> OnComputedCounts(
      handoff::ClientId client, const handoff::ComputedCountsRequest& request) override;
  Result<handoff::ReadCounts> OnReadCounts(handoff::ClientId client,
                                           const handoff::ReadCountsRequest& request) override;
  void OnClientClosed(handoff::ClientId client) override;
  std::string WhyWaiting(handoff::ClientId client, handoff::RequestId request) override;

 private:
  Result<handoff::OpenReply> Open(const DatasetRegistry::Place& place,
                                  handoff::DatasetHandle handle) const;
  Result<const ServedDataset*> Dataset(handoff::DatasetHandle handle) const;
  // Where a rank is attached, or, with a handle, would be: among those of samples, or of computed
  // ones.
  ReaderTable& ReadersOf(StreamId stream, Rank rank);
  ReaderTable& ReadersOf(handoff::DatasetHandle handle);
  Result<const DatasetPort*> PortOf(handoff::ClientId client, handoff::DatasetHandle handle) const;
  void GetComputed(handoff::ClientId client, handoff::RequestId request,
                   const handoff::GetRequest& get);

  const DatasetRegistry& datasets_;
  Feeder* feeder_ = nullptr;
  ComputedCache* computed_ = nullptr;
  const handoff::Arena* computed_memory_ = nullptr;
  std::unique_ptr<handoff::ChannelServer> channel_;
  net::Watch watch_;
  net::PeriodicTimer tick_;
};

}  // namespace optcache::sidecar
