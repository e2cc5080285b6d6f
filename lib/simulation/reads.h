#pragma once

// All reads of a run, of all jobs, in the order in which they happen.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "plan/merged_order.h"

namespace optcache::simulation {

inline constexpr std::uint64_t kMaxReads = 100'000'000;  // a run takes some 24 bytes each
// Samples in the orders of all passes, whole as they are.
inline constexpr std::uint64_t kMaxListed = 4 * kMaxReads;
inline constexpr std::size_t kMaxJobs = 64;
inline constexpr std::uint32_t kMaxNodes = 4096;
inline constexpr std::uint32_t kMaxRanks = 1U << 20U;

// One job. Its position p is read by rank p % ranks, rank r is on node r % nodes.
struct JobPace {
  double rate = 1;          // reads in a unit of time, beside the other jobs'
  double ahead = 0;         // where it is at the start, in epochs, below 1
  std::uint32_t ranks = 0;  // 0: as many as Pace says
  Position stops_at = 0;    // reads of each pass, its first ones; 0: by Pace::pass_length
};

// How the jobs go through the dataset beside each other. Nobody waits.
struct Pace {
  std::vector<JobPace> jobs{JobPace{}};
  std::uint32_t epochs = 12;  // of the job whose epochs take longest; the others read until it ends
  double pass_length = 1;     // of every pass, the share that is read: its first part
  double drift = 0;           // standard deviation of the rates over time, as a share; at most 0.5
  std::uint32_t ranks = 1;    // of each job that does not say its own
  std::uint32_t nodes = 1;
  std::uint64_t seed = 0;  // of the drift
};

struct Read {
  SampleId sample = 0;
  NodeIndex reader = 0;
  std::uint8_t job = 0;
  std::uint8_t tenth = 0;  // of its pass
};

// What a job reads: of each pass, the first `pass_reads`.
struct JobReads {
  std::uint32_t rate = 1;  // as a planner takes it
  std::vector<plan::Order> passes;
  Position pass_reads = 0;      // an epoch of the job
  Position first_position = 0;  // in the first pass
  std::vector<NodeIndex> node_of_rank;
};

struct Reads {
  std::uint32_t sample_count = 0;
  std::uint32_t epochs = 1;
  std::size_t cold_reads = 0;  // see steady_from
  std::uint32_t nodes = 1;
  bool drifts = false;  // the reads are in another order than rates alone say
  std::vector<JobReads> jobs;
  std::vector<Read> reads;

  // Where epoch `epoch` of the job whose epochs take longest ends.
  std::size_t EndOfEpoch(std::uint32_t epoch) const {
    return static_cast<std::size_t>(reads.size() * (epoch + 1ULL) / epochs);
  }
  // Reads before this one are the cold start, unless there is nothing else. It lasts an epoch (with
  // Pace::pass_length, as many as make a whole pass), and then until each job has read what is new
  // in the first pass that it reads from the beginning, or in as many as make a whole one.
  std::size_t steady_from() const { return cold_reads < reads.size() ? cold_reads : 0; }
};

// The order of a job's pass; those of one job have the same length. Asked for job after job, pass
// after pass.
using MakeOrder = std::function<Result<std::vector<SampleId>>(std::uint32_t job, PassNumber pass)>;

// kInvalidArgument names what is out of its limits. The first error of `make_order` is returned.
Result<Reads> MakeReads(std::uint32_t sample_count, const Pace& pace, const MakeOrder& make_order);

}  // namespace optcache::simulation
