#pragma once

// Measures how much faster training would get if its samples were there at once: lib/headspace, on
// the ranks of this sidecar. docs/formats/headspace.md says what is measured and when.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "headspace/report.h"
#include "headspace/step_clock.h"
#include "sidecar/ports/ports.h"
#include "sidecar/ports/sample_memory.h"
#include "sidecar/prefetch/reader_table.h"

namespace optcache::sidecar {

// Follows the ranks of one stream: the first of which a rank has warmed up. Holds samples of it for
// the steps in which none are fetched. Not thread-safe: belongs to the event loop's thread.
class HeadspaceMeter {
 public:
  // Of the arena for the samples that are held.
  static constexpr ByteCount kHeldPart = 4;

  HeadspaceMeter(const headspace::Options& options, ReaderTable& readers, ByteCount arena_bytes);

  // The rank asks for its next batch, of this many samples. True: it is to have Instead() of each.
  bool OnAsk(RankReader& reader, std::size_t samples, MonotonicTime now);
  // A held sample of about that size, another each time. There is one while OnAsk says true.
  BufferRef Instead(ByteCount size);
  // The rank was answered, `hits` of them by a node.
  void OnAnswer(const RankReader& reader, const std::vector<Served>& samples, std::uint64_t hits,
                Duration waited);

  headspace::Report Report() const;
  // What training processes are to know of it.
  std::string Notice() const;
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  using RankKey = std::pair<StreamId, Rank>;

  bool HoldsStaging(const RankKey& rank, const RankReader& reader,
                    const headspace::StepClock& clock);
  bool Attached(const RankKey& rank) const;
  void OnOther(const RankKey& rank, PassNumber pass);
  void Choose(const RankReader& reader);
  void OnPhase(const RankReader& reader, const headspace::StepClock& clock, headspace::Phase before,
               std::size_t samples);
  void GiveUp(std::string why);
  void FinishIfAllHave();
  headspace::State StateNow() const;
  std::uint64_t StepsOf(const RankReader& reader, std::size_t samples) const;

  headspace::Options options_;
  ReaderTable& readers_;
  ByteCount held_max_;
  std::map<RankKey, headspace::StepClock> ranks_;  // of all streams until one is chosen
  std::set<RankKey> drained_;                      // of what was staged before
  std::map<RankKey, PassNumber> others_;           // of other streams, the pass that each reads
  StreamId stream_ = 0;                            // 0: not chosen
  std::string stream_name_;
  std::uint64_t announced_steps_ = 0;
  std::multimap<ByteCount, BufferRef> held_;  // by size
  ByteCount held_bytes_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t given_ = 0;
  std::optional<headspace::Report> finished_;
};

}  // namespace optcache::sidecar
