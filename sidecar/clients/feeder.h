#pragma once

// The core of the sidecar: what training processes ask for, ready before they ask.
//
//   clients --> BatchService --.                       .--> NodePort
//                            >-- HeldSample, Fetcher
//   passes --> ReaderTable --> Prefetcher --'           '--> StorePort
//
// Whatever happens may make work: the parts say so, and the feeder looks at all of it once, after
// everything that was due. It has no socket, no thread and no file: those are behind its ports.

#include <optional>

#include "base/clock.h"
#include "base/counters.h"
#include "sidecar/clients/batch_service.h"
#include "sidecar/clients/headspace_meter.h"
#include "sidecar/clients/savings_watch.h"
#include "sidecar/fetch/fetcher.h"
#include "sidecar/fetch/rate_watch.h"
#include "sidecar/fetch/store_watch.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "sidecar/ports/sample_memory.h"
#include "sidecar/prefetch/prefetcher.h"
#include "sidecar/prefetch/reader_table.h"

namespace optcache::sidecar {

struct FeederOptions {
  FetchOptions fetch;
  ReaderOptions readers;
  ByteCount overflow_bytes = 256_MiB;
  std::optional<headspace::Options> headspace;  // measure it
};

struct FeederPorts {
  ArenaPort& arena;
  NodePort& node;
  StorePort& store;
  OrderPort& orders;
  ClientPort& clients;
};

// Not thread-safe: belongs to the event loop's thread. Its owner runs the alarms when they are due,
// and lets go of all buffers before the feeder dies.
class Feeder final : public NodeListener {
 public:
  Feeder(const FeederPorts& ports, Alarms& alarms, const FeederOptions& options);
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // What training processes want: Attach and Begin of `readers`, Ask and Release of `batches`.
  ReaderTable& readers() { return readers_; }
  BatchService& batches() { return batches_; }
  const BatchService& batches() const { return batches_; }
  SampleMemory& memory() { return memory_; }
  const SampleMemory& memory() const { return memory_; }
  // A training process has gone, and with it all that it held.
  void OnClientGone(ClientId client);

  // Null if it is not measured.
  const HeadspaceMeter* headspace() const { return headspace_ ? &*headspace_ : nullptr; }

  // From now on tells the node whether the stores answer, what is wanted of them, and what was
  // saved.
  void TellNode() {
    stores_.Start();
    rates_.Start();
    savings_.Start();
  }

  // The store has one more.
  void OnDataset() { rates_.OnDataset(); }

  // What the node says goes to the fetcher, but for shares of stores.
  void OnNodeUp() override;
  void OnNodeLost() override;
  void OnAnswer(std::uint32_t request, const wire::SampleReply& reply) override;
  BufferRef OnPayloadStart(std::uint32_t request, const wire::SampleReply& reply,
                           ByteCount length) override;
  void OnPayload(std::uint32_t request, const wire::SampleReply& reply,
                 const Status& status) override;
  void OnShare(const wire::StoreShare& share) override { rates_.OnShare(share); }
  Fetcher& fetcher() { return fetcher_; }

  // All loaders have ended, and what was saved in all: told to the node, for a stop.
  void EndAll();
  // Gives up what was asked for and what was staged, answering nobody: what remains are the reads
  // of the store that have begun, and none begins any more. For the end.
  void GiveUp();

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void WorkLater();
  void Work();

  Alarms& alarms_;
  bool work_due_ = false;
  bool staging_waits_ = false;  // until others have had their turn
  SampleMemory memory_;
  Fetcher fetcher_;
  ReaderTable readers_;
  std::optional<HeadspaceMeter> headspace_;
  BatchService batches_;
  Prefetcher prefetcher_;
  StoreWatch stores_;
  RateWatch rates_;
  SavingsWatch savings_;
};

}  // namespace optcache::sidecar
