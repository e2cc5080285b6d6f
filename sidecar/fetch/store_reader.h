#pragma once

// Reads samples from the object stores, on their threads, and checks what came.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "net/event_loop.h"
#include "sidecar/manifests/served_dataset.h"
#include "sidecar/ports/ports.h"
#include "storage/destination.h"
#include "storage/failed_read_log.h"

namespace optcache::sidecar {

// Read is called on the loop's thread, and calls back there. Where the manifest has digests, a
// sample with other bytes is read once more, past caches, and refused if these are not the right
// ones either.
class StoreReader final : public StorePort {
 public:
  StoreReader(net::EventLoop& loop, const Clock& clock)
      : loop_(loop), clock_(clock), differs_(clock), refused_(clock) {}

  // How long Health tells of an object that has changed: a node that does not know the dataset yet
  // is told again.
  static constexpr Duration kChangedFor = std::chrono::minutes(1);

  // The dataset outlives the reader.
  void Add(const ServedDataset& dataset) { datasets_.try_emplace(&dataset, dataset); }

  void Read(const DatasetPort& dataset, Part part, OnWait on_wait) override;
  void ReadTogether(const DatasetPort& dataset, std::vector<Part> parts, OnWait on_wait) override;
  ByteCount Arrived(const DatasetPort& dataset) const override {
    return datasets_.at(&dataset).traffic->arrived;
  }
  std::uint64_t Requests(const DatasetPort& dataset) const override {
    return datasets_.at(&dataset).traffic->requests;
  }
  std::vector<std::string> Waits() const override;
  std::vector<wire::StoreHealth> Health() const override;
  std::vector<StoreUse> Uses() const override;
  void SetRates(wire::DatasetKey dataset, const StoreRate& rates) override;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Entry {
    explicit Entry(const ServedDataset& served) : dataset(served) {}
    const ServedDataset& dataset;
    const storage::TrafficRef traffic = std::make_shared<storage::Traffic>();
    std::atomic<std::uint64_t> mismatches = 0;  // samples that came with other bytes
    // The last object that was not the one that was indexed, and when it was met. Of the loop's
    // thread.
    std::string changed{};
    MonotonicTime changed_at{};
  };
  struct Pending;
  // What one read fills.
  using Together = std::vector<std::shared_ptr<Pending>>;
  void Start(std::shared_ptr<Together> reads, storage::ReadRequest request);
  void ReadAgain(std::shared_ptr<Pending> read);
  void OnRead(std::shared_ptr<Together> reads, const storage::ReadOutcome& outcome);
  void OnSample(std::shared_ptr<Pending> read, const storage::ReadOutcome& outcome);
  static void NoteChange(const Pending& read, MonotonicTime now);
  Status LogMismatch(const Pending& read, bool is_last);
  void End(std::shared_ptr<Pending> read, Result<std::uint32_t> crc);

  net::EventLoop& loop_;
  const Clock& clock_;
  storage::FailedReadLog differs_;  // samples that came with other bytes, and are read once more
  storage::FailedReadLog refused_;  // and that came so again
  std::unordered_map<const DatasetPort*, Entry> datasets_;
};

}  // namespace optcache::sidecar
