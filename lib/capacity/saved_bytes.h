#pragma once

// What memory for a dataset is worth: the bytes a second that the store need not deliver.
//
// Jobs that read b bytes a second of a dataset of S bytes save b * h(C / S) at capacity C, where h
// is the hit ratio of their plan. One job that shuffles without replacement hits h(x) = x, whatever
// is kept; several jobs, each in an order of its own, hit more, since a sample that one of them has
// read may be what another reads soon (theory and figures: docs/benchmarks.md, "Where the future is
// worth most"; a test compares the table with lib/simulation). All are concave, so capacity is
// divided best by giving each byte to whom it saves most. Pure.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "coordination/state.h"
#include "coordination/status.h"

namespace optcache::coordination {

// Of one job on one dataset, all of its ranks.
struct JobReads {
  double rate = 0;          // payload bytes a second; 0: not known
  bool measured = false;    // else it is assumed
  bool order_known = true;  // else what it reads is kept as it comes
  bool repeats = false;     // a pass may read a sample several times, and others not at all
  friend bool operator==(const JobReads&, const JobReads&) = default;
};

using DatasetReads = std::map<std::string, JobReads>;      // by job: "namespace/owner"
using ClusterReads = std::map<std::string, DatasetReads>;  // by dataset, of those that are read

// Loaders of one job usually take turns: its rate is that of the fastest. Jobs that read an earlier
// manifest count for their Dataset.
ClusterReads ReadsOf(const ClusterStatus& status);

double RateOf(const DatasetReads& reads);    // of all jobs together
bool IsMeasured(const DatasetReads& reads);  // of some job

// Hit ratio at capacity `share` of the dataset, 0 to 1, of jobs as good as 1 / `inverse_jobs`
// equally fast ones: 1: one job, 0: very many, or one that reads with replacement.
double HitRatio(double inverse_jobs, double share);

// More capacity up to `until` saves `slope` a byte: bytes a second, per byte.
struct MarginalBenefit {
  ByteCount until = 0;
  double slope = 0;
  friend bool operator==(const MarginalBenefit&, const MarginalBenefit&) = default;
};

// Ascending by `until`, the last of which is the dataset's size; slopes descend. Empty: memory
// saves nothing, as nobody reads the dataset, or it keeps nothing.
std::vector<MarginalBenefit> MarginalBenefitOf(const DatasetReads& reads, ByteCount dataset_bytes,
                                               Retention retention);

// Bytes a second that the capacity saves.
double SavedBy(std::span<const MarginalBenefit> benefit, ByteCount capacity);
// Of the next byte beyond the capacity, and of the last one before it.
double NextSlope(std::span<const MarginalBenefit> benefit, ByteCount capacity);
double LastSlope(std::span<const MarginalBenefit> benefit, ByteCount capacity);

}  // namespace optcache::coordination
