#pragma once

// Reads samples from the object stores, on their threads, and checks what came.

#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "net/event_loop.h"
#include "sidecar/ports.h"
#include "sidecar/served_dataset.h"
#include "storage/failed_read_log.h"

namespace optcache::sidecar {

// Read is called on the loop's thread, and calls back there.
class StoreReader final : public StorePort {
 public:
  StoreReader(net::EventLoop& loop, const Clock& clock)
      : loop_(loop), clock_(clock), damaged_(clock) {}

  // The dataset outlives the reader.
  void Add(const ServedDataset& dataset) { datasets_.emplace(&dataset, &dataset); }

  void Read(const DatasetPort& dataset, SampleId id, BufferRef into, OnWait on_wait,
            Done done) override;
  void ReadTogether(const DatasetPort& dataset, std::vector<Part> parts, OnWait on_wait) override;
  std::vector<std::string> Waits() const override;
  std::vector<wire::StoreHealth> Health() const override;

 private:
  struct Pending;
  // What one read fills.
  using Together = std::vector<std::shared_ptr<Pending>>;
  void OnRead(std::shared_ptr<Together> reads, const storage::ReadOutcome& outcome);
  Result<std::uint32_t> Check(const Pending& read, unsigned attempt);
  void End(std::shared_ptr<Pending> read, Result<std::uint32_t> crc);

  net::EventLoop& loop_;
  const Clock& clock_;
  storage::FailedReadLog damaged_;  // what came and is not what the manifest says
  std::unordered_map<const DatasetPort*, const ServedDataset*> datasets_;
};

}  // namespace optcache::sidecar
