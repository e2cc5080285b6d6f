#pragma once

// Answers the trainers: finds out which reads a batch is, has them ready, hands them out, and takes
// them back.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "sidecar/clients/client_time.h"
#include "sidecar/clients/headspace_meter.h"
#include "sidecar/clients/saved.h"
#include "sidecar/clients/wait_cause.h"
#include "sidecar/fetch/fetcher.h"
#include "sidecar/fetch/held_sample.h"
#include "sidecar/ports/sample_memory.h"
#include "sidecar/prefetch/reader_table.h"

namespace optcache::sidecar {

// What a training process asks for: all of it in one answer.
struct BatchRequest {
  std::uint64_t request = 0;  // the client's own number
  const DatasetPort* dataset = nullptr;
  std::vector<SampleId> ids;
  ReaderId reader = 0;  // 0: the read belongs to no order
  PassNumber pass = 0;
  std::optional<std::uint64_t> first;  // place in the rank's list; the others follow it there
  // What an answer to this client may carry outside the arena.
  ByteCount copy_max = std::numeric_limits<ByteCount>::max();
  // Whether the client is a training process: its time is counted if it reads for a `reader`.
  bool by_process = true;
};

// Each request is answered once, unless its client goes. A sample that the arena has no room for is
// fetched into the overflow and answered by copy; a request takes from the overflow what it needs
// at once or waits in line, and one that has its memory never waits for another's: so whatever the
// sizes, the line moves. What has no place even alone is refused before it is read. Not
// thread-safe: belongs to the event loop's thread.
class BatchService {
 public:
  static constexpr std::size_t kBatchMax = 65'536;  // samples in a request
  static constexpr ByteCount kBatchBytesMax =
      SampleMemory::kAloneAlways;                          // of more than one sample
  static constexpr std::size_t kWaitingPerClientMax = 64;  // requests

  BatchService(ReaderTable& readers, SampleMemory& memory, Fetcher& fetcher, ClientPort& clients,
               const Alarms& alarms);

  // Tells it of every batch of a rank, and has those answered at once that it says.
  void Measure(HeadspaceMeter& headspace) { headspace_ = &headspace; }

  void Ask(ClientId client, const BatchRequest& request);
  void Release(ClientId client, BatchId batch);
  void OnClientGone(ClientId client);
  // Every client has gone.
  void GiveUp();
  // What an unanswered request waits for, in words.
  std::string WhyWaiting(ClientId client, std::uint64_t request) const;

  // A sample that batches may wait for has arrived or failed.
  void OnEnded(HeldSample& sample);
  // Memory has become free: gives it to those in line.
  void Admit();

  std::size_t waiting() const { return waiting_; }
  // What trainers got of that dataset, and what its store was asked for.
  Delivered DeliveredOf(const DatasetPort& dataset) const;
  StoreCost AskedOf(const DatasetPort& dataset) const;
  // Of each dataset of which samples were delivered.
  std::vector<DatasetSaved> SavedOfAll() const;
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Item {
    HeldSampleRef sample;
    ReaderId reader = 0;  // 0: a read without an order
    PassNumber pass = 0;
    std::uint64_t index = 0;
  };
  // Of a sample that has ended.
  struct Ended {
    Source source = Source::kStore;  // also of one that has failed
    bool had_no_room = false;
  };
  // What trainers got of one dataset.
  struct Tally {
    const DatasetPort* dataset = nullptr;
    Delivered delivered;
    std::array<Duration, kWaitCauses> waits{};  // of delivered.wait
  };
  struct Batch {
    ClientId client = 0;
    Tally* tally = nullptr;
    std::uint64_t request = 0;
    MonotonicTime asked_at{};
    std::vector<Item> items;
    std::size_t missing = 0;  // items that have not ended; 0 and answered: the client holds slots
    bool answered = false;
    bool room_would_help = false;  // as WouldRoomHelp, when it began to wait
    bool timed = false;            // it is one of those that times_ knows
    std::vector<BufferRef> handed_out;
  };

  Status Check(ClientId client, const BatchRequest& request) const;
  bool BeginTime(ClientId client, const BatchRequest& request, MonotonicTime now);
  bool WouldRoomHelp(bool in_line, bool is_behind) const;
  Item Resolve(const BatchRequest& request, std::size_t i, MonotonicTime now);
  Item Claim(ReaderId reader, Pass& pass, std::uint64_t index, SampleId id, MonotonicTime now);
  Item WithoutOrder(const BatchRequest& request, SampleId id);
  bool Place(HeldSample& sample, BufferRef buffer);
  bool PlaceInArena(Batch& batch);
  enum class Placed { kAll, kInLine, kRefused };
  Placed PlaceAnywhere(BatchId id, Batch& batch);
  void RefuseForWantOfRoom(BatchId id, ByteCount bytes);
  void LetGo(BatchId id, const Batch& batch);
  Status CheckSize(const BatchRequest& request) const;
  bool AnswerAtOnce(ClientId client, const BatchRequest& request);
  // `last`: the sample that it waited for longest. Nothing: it has not waited.
  void Answer(BatchId id, Batch& batch, std::optional<Ended> last);
  void Deliver(const Item& item, Tally& tally);
  Pass* PassOf(const Item& item);
  void WarnOfOverflow(ByteCount bytes);

  ReaderTable& readers_;
  SampleMemory& memory_;
  Fetcher& fetcher_;
  ClientPort& clients_;
  const Alarms& alarms_;
  HeadspaceMeter* headspace_ = nullptr;  // if it is measured
  std::unordered_map<BatchId, Batch> batches_;
  std::deque<BatchId> in_line_;  // for the overflow; may name batches that are gone
  BatchId last_id_ = 0;
  std::size_t waiting_ = 0;
  bool warned_ = false;

  ClientTime times_;
  std::map<std::string, Tally> tallies_;  // by dataset: those asked for so far
  std::uint64_t copied_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t unpredicted_ = 0;
  std::uint64_t answered_ = 0;
};

}  // namespace optcache::sidecar
