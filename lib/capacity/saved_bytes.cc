// Looks up the hit ratio that jobs get from a share of a dataset, as slopes for each byte.
//
// The idea: the hit ratio depends on the share that is kept and on how many equally fast jobs read.
// The table has it at nine shares and for five numbers of jobs. Between these it is a straight
// line, in the share and in 1 / jobs. Jobs of unequal rates count as fewer equally fast ones: 1 /
// jobs is the sum of squared rates over the square of their sum. Jobs whose order is not known hit
// as often as pinned bytes do: their part is a line.
//
// Invariant: slopes descend with the share, so that capacity_shares can give bytes to the largest
// slope first.

#include "capacity/saved_bytes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace optcache::coordination {
namespace {

constexpr std::size_t kRows = 5;
constexpr std::size_t kColumns = 9;
// MIN's hit ratio by `optcache simulate --jobs J --drift .1 --policies min`, and last by
// `--workload replacement`: in orders of very many jobs any sample may come next, as if it were
// drawn. Between the rows the hit ratio is nearly a straight line in 1 / jobs.
constexpr std::array<double, kColumns> kShares{0, .05, .1, .2, .3, .5, .7, .9, 1};
constexpr std::array<double, kRows> kInverseJobs{1, .5, .25, .125, 0};
constexpr std::array<std::array<double, kColumns>, kRows> kHits{{
    {0, .05, .1, .2, .3, .5, .7, .9, 1},
    {0, .224, .324, .459, .562, .730, .850, .950, 1},
    {0, .263, .370, .513, .618, .773, .884, .970, 1},
    {0, .281, .391, .538, .642, .793, .899, .974, 1},
    {0, .296, .412, .560, .666, .810, .905, .976, 1},
}};

double Between(double at, double from, double to, double first, double last) {
  return first + (last - first) * (at - from) / (to - from);
}

// At kShares[column].
double HitRatioAt(double inverse_jobs, std::size_t column) {
  std::size_t row = 0;
  while (row + 2 < kRows && inverse_jobs < kInverseJobs[row + 1])
    ++row;
  return Between(inverse_jobs, kInverseJobs[row], kInverseJobs[row + 1], kHits[row][column],
                 kHits[row + 1][column]);
}

// Rates as the curve needs them.
struct Rates {
  double planned = 0;
  double unplanned = 0;
  double squares = 0;  // of the rates of jobs that read each sample once a pass

  // 1 / jobs: two jobs of which one is slow share little more than the fast one alone has.
  double InverseJobs() const { return planned > 0 ? squares / (planned * planned) : 1; }
};

Rates SumOf(const DatasetReads& reads, Retention retention) {
  Rates rates;
  for (const auto& [job, read] : reads) {
    const bool planned = read.order_known && retention == Retention::kOptimal;
    (planned ? rates.planned : rates.unplanned) += read.rate;
    if (planned && !read.repeats) rates.squares += read.rate * read.rate;
  }
  return rates;
}

// All jobs of one machine have this owner: there each loader is a job.
constexpr std::string_view kOneMachine = "/local";

// "namespace/owner" of a stream, which is "namespace/owner/dataset/loader".
std::string JobOf(const std::string& stream) {
  std::string job = stream.substr(0, stream.find('/', stream.find('/') + 1));
  return job.ends_with(kOneMachine) ? stream : job;
}

}  // namespace

ClusterReads ReadsOf(const ClusterStatus& status) {
  ClusterReads reads;
  for (const auto* list : {&status.datasets, &status.retiring}) {
    for (const DatasetStatus& dataset : *list) {
      const double mean = dataset.total_samples == 0
                              ? 0
                              : static_cast<double>(dataset.total_bytes) /
                                    static_cast<double>(dataset.total_samples);
      for (const StreamStatus& stream : dataset.streams) {
        JobReads& job = reads[dataset.name][JobOf(stream.name)];
        if (const double rate = stream.rate * mean; rate >= job.rate) {
          job = {.rate = rate,
                 .measured = rate > 0,
                 .order_known = stream.order_known && stream.conflict.empty(),
                 .repeats = stream.repeats};
        }
      }
    }
  }
  return reads;
}

double RateOf(const DatasetReads& reads) {
  double rate = 0;
  for (const auto& [job, read] : reads)
    rate += read.rate;
  return rate;
}

bool IsMeasured(const DatasetReads& reads) {
  return std::ranges::any_of(reads, [](const auto& item) { return item.second.measured; });
}

double HitRatio(double inverse_jobs, double share) {
  const double at = std::clamp(share, 0.0, 1.0);
  std::size_t column = 0;
  while (column + 2 < kColumns && at > kShares[column + 1])
    ++column;
  const double inverse = std::clamp(inverse_jobs, 0.0, 1.0);
  return Between(at, kShares[column], kShares[column + 1], HitRatioAt(inverse, column),
                 HitRatioAt(inverse, column + 1));
}

std::vector<MarginalBenefit> MarginalBenefitOf(const DatasetReads& reads, ByteCount dataset_bytes,
                                               Retention retention) {
  if (reads.empty() || dataset_bytes == 0) return {};
  if (retention == Retention::kNone) return {{.until = dataset_bytes, .slope = 0}};
  const Rates rates = SumOf(reads, retention);
  // Least recently used saves less than its share of the dataset up to all of it, so only all of it
  // is worth anything: then as much as pinned bytes.
  const double inverse = rates.InverseJobs();
  const auto size = static_cast<double>(dataset_bytes);
  std::vector<MarginalBenefit> benefit;
  for (std::size_t column = 1; column < kColumns; ++column) {
    const double more = kShares[column] - kShares[column - 1];
    const double hits = HitRatio(inverse, kShares[column]) - HitRatio(inverse, kShares[column - 1]);
    benefit.push_back({.until = static_cast<ByteCount>(std::llround(kShares[column] * size)),
                       .slope = (rates.planned * hits / more + rates.unplanned) / size});
  }
  return benefit;
}

double SavedBy(std::span<const MarginalBenefit> benefit, ByteCount capacity) {
  double saved = 0;
  ByteCount from = 0;
  for (const auto& [until, slope] : benefit) {
    if (capacity <= from) break;
    saved += slope * static_cast<double>(std::min(capacity, until) - from);
    from = until;
  }
  return saved;
}

double NextSlope(std::span<const MarginalBenefit> benefit, ByteCount capacity) {
  for (const auto& [until, slope] : benefit) {
    if (capacity < until) return slope;
  }
  return 0;
}

double LastSlope(std::span<const MarginalBenefit> benefit, ByteCount capacity) {
  for (const auto& [until, slope] : benefit) {
    if (capacity <= until) return slope;
  }
  return 0;
}

}  // namespace optcache::coordination
