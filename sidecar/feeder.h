#pragma once

// The core of the sidecar: what training processes ask for, ready before they ask.
//
//   clients --> BatchDesk --.                       .--> NodePort
//                            >-- HeldSample, Fetcher
//   passes --> ReaderTable --> Stager --'           '--> StorePort
//
// Whatever happens may make work: the parts say so, and the feeder looks at all of it once, after
// everything that was due. It has no socket, no thread and no file: those are behind its ports.

#include "base/clock.h"
#include "base/counters.h"
#include "sidecar/alarms.h"
#include "sidecar/batch_desk.h"
#include "sidecar/fetcher.h"
#include "sidecar/ports.h"
#include "sidecar/reader_table.h"
#include "sidecar/sample_memory.h"
#include "sidecar/stager.h"

namespace optcache::sidecar {

struct FeederOptions {
  FetchOptions fetch;
  ReaderOptions readers;
  ByteCount overflow_bytes = 256_MiB;
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
class Feeder {
 public:
  Feeder(const FeederPorts& ports, Alarms& alarms, const FeederOptions& options);
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  // What training processes want: Attach and Begin of `readers`, Ask and Release of `desk`.
  ReaderTable& readers() { return readers_; }
  BatchDesk& desk() { return desk_; }
  // A training process has gone, and with it all that it held.
  void OnClientGone(ClientId client);

  // What the node says goes to the fetcher, but for these two.
  Fetcher& fetcher() { return fetcher_; }
  void OnNodeUp();
  void OnNodeLost();

  // All loaders have ended: told to the node, for a stop.
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
  SampleMemory memory_;
  Fetcher fetcher_;
  ReaderTable readers_;
  BatchDesk desk_;
  Stager stager_;
};

}  // namespace optcache::sidecar
