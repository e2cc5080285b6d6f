#pragma once

// The ranks that read through this sidecar: who has attached, which passes they are in, what their
// node is told of them.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/result.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"
#include "sidecar/prefetch/rank_reader.h"

namespace optcache::sidecar {

// What a training process says when it attaches a loader.
struct AttachRequest {
  const DatasetPort* dataset = nullptr;
  std::string owner;              // of the job; empty: the sidecar's own
  std::string loader = "train";   // tells the loaders of one job apart
  std::uint32_t incarnation = 0;  // 0: the sidecar's own
  sampler::Recipe recipe;
  Rank rank = 0;
  bool known = true;                      // false: the sampler cannot be replayed
  bool traced = false;                    // ... but lists of what it reads will come
  std::uint32_t passes = 0;               // how many there will be; 0: nobody knows
  std::optional<PassNumber> passes_from;  // the first of them; nothing: the next that begins
  std::uint32_t behind = 0;               // how far workers ask out of order, in samples
  std::uint64_t pass_reads = 0;           // of the rank's list, in each pass; 0: not known
  std::string job;                        // of all processes of the job; empty: nobody knows
  std::int32_t process = 0;               // its id; 0: one that cannot be seen from here
};

struct ReaderOptions {
  std::string name_space;       // of the job; empty: that of each dataset
  std::string owner = "local";  // of the job: the same in all its pods
  std::uint32_t incarnation = 1;
  // Processes of several jobs may attach loaders of one name: these get names of their own.
  bool several_jobs = false;
  Duration report_every = std::chrono::seconds(1);
  PredictWhen predict = PredictWhen::kHalfStaged;
};

// Not thread-safe: belongs to the event loop's thread.
class ReaderTable {
 public:
  static constexpr std::size_t kReadersMax = 256;

  // `on_work` is called when there may be something new to stage.
  ReaderTable(NodePort& node, OrderPort& orders, Alarms& alarms, ReaderOptions options,
              std::function<void()> on_work);

  // An error is a sentence for the training script's author. A rank that attaches again, after
  // a reconnect or in a new process, goes on with its passes. Where there are several jobs, the
  // rank of another that reads by its name is left alone (sidecar/prefetch/name_claims.h).
  Result<ReaderId> Attach(ClientId client, const AttachRequest& request);
  Status Begin(ReaderId reader, const PassSpan& span, std::optional<std::uint32_t> crc);
  // A part of the list that the rank reads in a pass, as RankReader::TakeTrace. kNotFound: it is
  // not attached.
  Status TakeTrace(ReaderId reader, PassNumber pass, std::uint64_t first, std::uint64_t length,
                   std::span<const SampleId> ids);
  // The client's loader reads no more. Nothing happens if the rank is attached by another by now.
  void Detach(ClientId client, ReaderId reader);
  void OnClientGone(ClientId client);
  void EndAll();

  // The node has come (back): tells it everything.
  void OnNodeUp();
  // Wants the orders of passes that are near.
  void Predict();
  // What the trainer asks for is not what was predicted.
  void OnDrift(ReaderId reader, Pass& pass, const std::string& what);

  // Null if there is none.
  RankReader* Find(ReaderId reader);
  // The rank that is attached; 0 if it is not.
  ReaderId Find(StreamId stream, Rank rank) const;
  std::map<ReaderId, RankReader>& readers() { return readers_; }
  const std::map<ReaderId, RankReader>& readers() const { return readers_; }

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  Result<Attachment> Check(const AttachRequest& request) const;
  std::string FreeName(const Attachment& newcomer) const;
  Status CheckAgainstOthers(const Attachment& attachment) const;
  RankReader& Open(ReaderId id, Attachment attachment, ClientId client);
  void ForgetEnded();
  void SendAttach(const RankReader& reader);
  void SendTrace(const RankReader& reader, PassNumber pass);
  void WantOrder(ReaderId reader);
  void OnOrder(ReaderId reader, const PassSpan& span,
               Result<std::shared_ptr<const RankPass>> order);
  void End(RankReader& reader);
  void VerifyOrder(RankReader& reader);
  void Report(const RankReader& reader);
  void ReportLater();

  NodePort& node_;
  OrderPort& orders_;
  Alarms& alarms_;
  ReaderOptions options_;
  std::function<void()> on_work_;
  std::map<ReaderId, RankReader> readers_;
  std::set<ReaderId> replaying_;  // wait for an order
  ReaderId last_id_ = 0;
  bool reporting_ = false;
  std::uint64_t passes_ = 0;
  std::uint64_t unknown_orders_ = 0;
};

}  // namespace optcache::sidecar
