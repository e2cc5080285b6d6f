#pragma once

// What was read in whole passes, and what had been predicted of them. A read is one sample handed
// to one rank in one pass. Whole numbers only: the same passes give the same figures everywhere.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordination/state.h"
#include "coordination/status.h"

namespace optcache::coordination {

inline constexpr std::size_t kMaxMarks = 256;

// A stream that has not ended: it reads, or pauses while its job is started again.
struct ReadingStream {
  StreamId id = 0;
  std::string name;
  std::string manifest{};  // that it reads: a digest
  PassNumber pass = 0;     // of its farthest rank
  bool gathering = false;  // some of its ranks have not come yet
  bool order_known = true;
};

// In which pass a stream was, or up to which its passes are counted.
struct PassMark {
  StreamId stream = 0;
  PassNumber pass = 0;
  std::uint32_t passes = 0;  // counted
  bool later = false;        // it has begun since marks were made: it is not waited for
  friend bool operator==(const PassMark&, const PassMark&) = default;
};

struct PassSums {
  std::uint64_t passes = 0;
  std::uint64_t reads = 0;
  std::uint64_t hits = 0;  // here or at a peer
  ByteCount store_bytes = 0;
  ByteCount moved_bytes = 0;
  std::uint64_t planned_reads = 0;  // that the plan in force covered
  std::uint64_t planned_hits = 0;
  ByteCount planned_store_bytes = 0;
  ByteCount planned_moved_bytes = 0;
  friend bool operator==(const PassSums&, const PassSums&) = default;
};

// Of a ratio of 1, as hit_permille has it.
inline constexpr std::uint64_t kPermilleInOne = 1000;

// Of one pass of every stream.
struct EpochNumbers {
  std::uint64_t hit_permille = 0;
  ByteCount store_bytes = 0;
  ByteCount moved_bytes = 0;
  friend bool operator==(const EpochNumbers&, const EpochNumbers&) = default;
};

struct ObservedEpoch {
  EpochNumbers numbers;
  std::uint64_t store_bytes_per_read_tenths = 0;
  friend bool operator==(const ObservedEpoch&, const ObservedEpoch&) = default;
};

std::string RatioText(std::uint64_t permille);  // "0.562"
std::string TenthsText(std::uint64_t tenths);   // "71234.5"

// Adds a whole pass. Reads that went past the nodes are no hits; they cost as much as the pass's
// misses do in the mean, or as a sample of mean size where it has none.
void AddPass(PassSums& sums, const PassStatus& pass, ByteCount mean_sample_bytes);

// "pass 7 of vision/resnet/imagenet/train".
std::string NameOf(const PassStatus& pass);

// By stream, the pass that it is in. At most kMaxMarks.
std::vector<PassMark> MarksOf(const std::vector<ReadingStream>& streams);

// By stream, the last pass of which something has been read, perhaps ahead, as the reports of its
// passes show; also of streams that have ended. At most kMaxMarks, those that read first.
std::vector<PassMark> MarksAheadOf(const std::vector<ReadingStream>& streams,
                                   const std::vector<PassStatus>& passes);

// Has every marked stream begun another pass, or another generation, or ended?
bool AllHaveBegunAnother(const std::vector<PassMark>& marks,
                         const std::vector<ReadingStream>& streams);

// A stream that is in an earlier pass than its mark, and reads none ahead that late, has begun
// another generation: its mark goes, unless `after` passes are counted.
void ForgetEarlierGenerations(const std::vector<ReadingStream>& streams,
                              const std::vector<PassStatus>& passes, std::uint32_t after,
                              std::vector<PassMark>& marks);

struct CountedPasses {
  bool some = false;
  bool awaited = false;  // some of them are of streams that are waited for
};

// Counts whole passes after the marks, up to `after` of each stream, and moves the marks. Streams
// without one have begun since marks were made: all their passes count, as long as there is room
// for a mark. `since` gets the name of the first.
CountedPasses CountPasses(const std::vector<PassStatus>& passes, ByteCount mean_sample_bytes,
                          std::uint32_t after, std::vector<PassMark>& marks, PassSums& sums,
                          std::string& since);

// Streams of which passes are counted.
std::uint64_t CountedStreams(const std::vector<PassMark>& marks);

// The latest whole pass of each stream, but none up to its mark. `streams` is how many those are.
struct LatestPasses {
  PassSums sums;
  std::uint64_t streams = 0;
  std::string since;
};
LatestPasses LatestOf(const std::vector<PassStatus>& passes, const std::vector<PassMark>& marks,
                      ByteCount mean_sample_bytes);

// For one pass of each of `streams`; nullopt: nothing was read.
std::optional<ObservedEpoch> ObservedOf(const PassSums& sums, std::uint64_t streams);
// The same of what the plan in force had predicted; nullopt: it covered less than nine tenths.
std::optional<EpochNumbers> PlannedOf(const PassSums& sums, std::uint64_t streams);
// Nullopt: nothing is read.
std::optional<EpochNumbers> NumbersOf(const Forecast& forecast);

// More store bytes for a read than `current`, by more than half a percent of them and a permille of
// what is read. A forecast of no reads says nothing.
bool IsPredictedWorse(const Forecast& update, const Forecast& current);

// Is `now` more than `before` by more than `millionths` of it?
bool IsMoreBy(std::uint64_t now, std::uint64_t before, std::uint64_t millionths);

// Of the source's bytes for a read, in tenths: by no more than half a percent of a sample passes
// differ as they come, a peer that answers late among them.
std::uint64_t LeastWorseTenths(ByteCount mean_sample_bytes);

}  // namespace optcache::coordination
