// Makes the reads of a run: who reads next, and what.
//
// The idea: orders and turns are made apart. Without drift turns come from plan::MergedOrder, so a
// planner that is told the same rates predicts them exactly. With drift the next job is drawn by
// its rate of the moment, and rates change a hundred times an epoch: a deviation keeps nine tenths
// of itself and gets as much by chance as keeps its spread. FollowTurns then walks each job's
// passes by the turns. ColdReads then finds where the cold start ends, in time and not in epochs of
// one job, as others may begin in the middle of a pass or have shorter ones.
//
// Invariants: the seed alone decides about chance. The number of reads, and of samples in all
// orders, is checked before anything of that size is made.

#include "simulation/reads.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "base/random.h"
#include "simulation/workload.h"

namespace optcache::simulation {
namespace {

// The fastest job's rate as a planner takes it; the others' follow.
constexpr double kPlannerRate = 1000;
// How often rates change in an epoch, and how much of a deviation is left each time.
constexpr double kDriftStepsInEpoch = 100;
constexpr double kDriftKept = 0.9;
constexpr double kLeastRate = 0.05;                 // of the mean, however far it drifts
constexpr std::uint64_t kDriftSeed = 0x6472696674;  // "drift"

// Who reads next while rates drift: any job, by chance and by its rate of that moment.
class DriftingTurns {
 public:
  DriftingTurns(const Pace& pace, std::size_t reads)
      : pace_(pace),
        random_(Random::Mix(pace.seed ^ kDriftSeed)),
        deviations_(pace.jobs.size()),
        step_(static_cast<std::size_t>(static_cast<double>(reads) / pace.epochs /
                                       kDriftStepsInEpoch) +
              1) {}

  std::size_t Next() {
    if (made_++ % step_ == 0) Change();
    const double at = random_.Unit() * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, at);
    return static_cast<std::size_t>(found - cumulative_.begin());
  }

 private:
  void Change() {
    cumulative_.clear();
    double sum = 0;
    for (std::size_t job = 0; job < deviations_.size(); ++job) {
      const double fresh = std::sqrt(1 - kDriftKept * kDriftKept) * pace_.drift * Normal(random_);
      deviations_[job] = kDriftKept * deviations_[job] + fresh;
      sum += pace_.jobs[job].rate * std::max(1 + deviations_[job], kLeastRate);
      cumulative_.push_back(sum);
    }
  }

  const Pace& pace_;
  Random random_;
  std::vector<double> deviations_;
  std::vector<double> cumulative_;
  std::size_t step_;
  std::size_t made_ = 0;
};

Status CheckPace(std::uint32_t sample_count, const Pace& pace) {
  const auto invalid = [](std::string message) {
    return Status(Code::kInvalidArgument, std::move(message));
  };
  if (sample_count == 0) return invalid("samples: 0; there must be one at least");
  if (pace.epochs == 0) return invalid("epochs: 0; there must be one at least");
  if (pace.nodes == 0 || pace.nodes > kMaxNodes) {
    return invalid("nodes: " + std::to_string(pace.nodes) + "; it takes 1 to " +
                   std::to_string(kMaxNodes));
  }
  if (pace.ranks == 0 || pace.ranks > kMaxRanks) {
    return invalid("ranks: " + std::to_string(pace.ranks) + "; it takes 1 to " +
                   std::to_string(kMaxRanks));
  }
  if (pace.jobs.empty() || pace.jobs.size() > kMaxJobs) {
    return invalid("jobs: " + std::to_string(pace.jobs.size()) + "; it takes 1 to " +
                   std::to_string(kMaxJobs));
  }
  if (!(pace.pass_length > 0 && pace.pass_length <= 1)) {
    return invalid("pass length: it is a share, above 0 and at most 1");
  }
  if (!(pace.drift >= 0 && pace.drift <= 0.5)) return invalid("drift: it is a share, 0 to 0.5");
  for (const JobPace& job : pace.jobs) {
    if (!(job.rate > 0 && job.rate < 1e9)) return invalid("rates: they must be positive numbers");
    if (!(job.ahead >= 0 && job.ahead < 1)) return invalid("ahead: it is in epochs, 0 to 1");
    if (job.ranks > kMaxRanks) {
      return invalid("ranks: " + std::to_string(job.ranks) + "; it takes 1 to " +
                     std::to_string(kMaxRanks));
    }
  }
  const auto by_rate = [](const JobPace& a, const JobPace& b) { return a.rate < b.rate; };
  const auto [slowest, fastest] = std::minmax_element(pace.jobs.begin(), pace.jobs.end(), by_rate);
  if (fastest->rate > kPlannerRate * slowest->rate) {
    return invalid("rates: the fastest job is more than 1000 times as fast as the slowest");
  }
  return OkStatus();
}

// What each job reads until the one whose epochs take longest has done its epochs.
std::vector<std::uint64_t> ReadsByJob(const std::vector<JobReads>& jobs, std::uint32_t epochs) {
  const auto by_time = [](const JobReads& a, const JobReads& b) {
    return std::uint64_t{a.pass_reads} * b.rate < std::uint64_t{b.pass_reads} * a.rate;
  };
  const JobReads& longest = *std::max_element(jobs.begin(), jobs.end(), by_time);
  std::vector<std::uint64_t> reads;
  for (const JobReads& job : jobs)
    reads.push_back(std::uint64_t{longest.pass_reads} * epochs * job.rate / longest.rate);
  return reads;
}

// By read, the job that makes it.
std::vector<std::uint8_t> Turns(const Pace& pace, const Reads& run, std::size_t count) {
  std::vector<std::uint8_t> turns(count);
  if (pace.drift > 0) {
    DriftingTurns drifting(pace, count);
    for (std::uint8_t& job : turns)
      job = static_cast<std::uint8_t>(drifting.Next());
    return turns;
  }
  std::vector<plan::MergeStream> streams;
  for (const JobReads& job : run.jobs) {
    plan::MergeStream& stream = streams.emplace_back();
    stream.node_of_rank = job.node_of_rank;
    stream.rate = job.rate;
    for (const plan::Order& order : job.passes) {
      stream.segments.push_back({.order = order, .pass = 0, .begin = 0, .end = job.pass_reads});
    }
    stream.segments.front().begin = job.first_position;
  }
  const plan::MergedOrder merged(std::move(streams), count);
  plan::MergedOrder::Cursor cursor(merged);
  for (std::uint8_t& job : turns)
    job = cursor.Next().stream;
  return turns;
}

// Where a job is in its passes.
struct Place {
  std::size_t pass = 0;
  Position position = 0;
};

void FollowTurns(const std::vector<std::uint8_t>& turns, Reads& run) {
  std::vector<Place> places;
  for (const JobReads& job : run.jobs)
    places.push_back({.pass = 0, .position = job.first_position});
  run.reads.reserve(turns.size());
  for (const std::uint8_t turn : turns) {
    Place& place = places[turn];
    const JobReads& job = run.jobs[turn];
    const std::vector<SampleId>& order = *job.passes[place.pass];
    run.reads.push_back({.sample = order[place.position],
                         .reader = job.node_of_rank[place.position % job.node_of_rank.size()],
                         .job = turn,
                         .tenth = static_cast<std::uint8_t>(place.position * 10 / job.pass_reads)});
    if (++place.position == job.pass_reads) place = {.pass = place.pass + 1, .position = 0};
  }
}

// Passes that are as long as a whole one together.
std::uint64_t PassesInWhole(const JobReads& job) {
  return (job.passes.front()->size() + job.pass_reads - 1) / job.pass_reads;
}

// How many reads the cold start has, by the rule of steady_from. A job that begins in the middle of
// a pass finds new samples in the next one, too.
std::size_t ColdReads(const Pace& pace, const Reads& run) {
  std::uint64_t epochs = 1;
  std::vector<std::uint64_t> left;  // by job: its reads that may be cold
  for (std::size_t j = 0; j < run.jobs.size(); ++j) {
    const JobReads& job = run.jobs[j];
    const std::uint64_t passes = PassesInWhole(job);
    if (pace.jobs[j].stops_at == 0) epochs = std::max(epochs, passes);
    const Position begun = job.first_position == 0 ? 0 : job.pass_reads - job.first_position;
    left.push_back(begun + passes * job.pass_reads);
  }
  if (epochs >= run.epochs) return run.reads.size();
  std::size_t cold = run.EndOfEpoch(static_cast<std::uint32_t>(epochs - 1));
  std::vector<bool> known(run.sample_count);
  std::uint64_t all_left = std::accumulate(left.begin(), left.end(), std::uint64_t{0});
  for (std::size_t t = 0; t < run.reads.size() && all_left > 0; ++t) {
    const Read& read = run.reads[t];
    const bool is_new = !known[read.sample];
    known[read.sample] = true;
    if (left[read.job] == 0) continue;
    --left[read.job];
    --all_left;
    if (is_new) cold = std::max(cold, t + 1);
  }
  return cold;
}

// With its first pass, which says how long the others are.
Result<JobReads> FirstOfJob(const Pace& pace, const MakeOrder& make_order, std::uint32_t index,
                            double fastest) {
  const JobPace& job = pace.jobs[index];
  ASSIGN_OR_RETURN(std::vector<SampleId> first, make_order(index, 0));
  if (first.empty())
    return Error(Code::kInvalidArgument, "job " + std::to_string(index) + ": it reads nothing");
  JobReads reads;
  reads.rate = static_cast<std::uint32_t>(std::lround(kPlannerRate * job.rate / fastest));
  const double part = std::round(static_cast<double>(first.size()) * pace.pass_length);
  reads.pass_reads = job.stops_at == 0 ? static_cast<Position>(std::max(part, 1.0))
                                       : std::min<Position>(job.stops_at, first.size());
  reads.first_position = static_cast<Position>(job.ahead * static_cast<double>(reads.pass_reads));
  const std::uint32_t ranks = job.ranks == 0 ? pace.ranks : job.ranks;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    reads.node_of_rank.push_back(static_cast<NodeIndex>(rank % pace.nodes));
  reads.passes.push_back(std::make_shared<const std::vector<SampleId>>(std::move(first)));
  return reads;
}

}  // namespace

Result<Reads> MakeReads(std::uint32_t sample_count, const Pace& pace, const MakeOrder& make_order) {
  RETURN_IF_ERROR(CheckPace(sample_count, pace));
  Reads run{.sample_count = sample_count,
            .epochs = pace.epochs,
            .nodes = pace.nodes,
            .drifts = pace.drift > 0};
  double fastest = 0;
  for (const JobPace& job : pace.jobs)
    fastest = std::max(fastest, job.rate);
  for (std::uint32_t j = 0; j < pace.jobs.size(); ++j) {
    ASSIGN_OR_RETURN(JobReads job, FirstOfJob(pace, make_order, j, fastest));
    run.jobs.push_back(std::move(job));
  }
  const std::vector<std::uint64_t> wanted = ReadsByJob(run.jobs, pace.epochs);
  const std::uint64_t count = std::accumulate(wanted.begin(), wanted.end(), std::uint64_t{0});
  if (count > kMaxReads) {
    return Error(Code::kInvalidArgument, "the run has " + std::to_string(count) +
                                             " reads, at most " + std::to_string(kMaxReads) +
                                             " are simulated: take fewer samples, epochs "
                                             "or jobs, or rates that are closer together");
  }
  const auto passes_of = [&](std::size_t j) {
    const std::uint64_t length = run.jobs[j].pass_reads;
    const std::uint64_t passes = (run.jobs[j].first_position + wanted[j] + length - 1) / length;
    return pace.drift > 0 ? passes + passes / 4 + 2 : passes;  // it may get ahead of its rate
  };
  std::uint64_t listed = 0;
  for (std::size_t j = 0; j < run.jobs.size(); ++j)
    listed += passes_of(j) * run.jobs[j].passes.front()->size();
  if (listed > kMaxListed) {
    return Error(Code::kInvalidArgument,
                 "the run's passes are parts of orders that list " + std::to_string(listed) +
                     " samples, at most " + std::to_string(kMaxListed) +
                     " are simulated: take fewer samples, epochs or jobs, or longer passes");
  }
  for (std::size_t j = 0; j < run.jobs.size(); ++j) {
    JobReads& job = run.jobs[j];
    for (PassNumber pass = 1; pass < passes_of(j); ++pass) {
      ASSIGN_OR_RETURN(std::vector<SampleId> order,
                       make_order(static_cast<std::uint32_t>(j), pass));
      job.passes.push_back(std::make_shared<const std::vector<SampleId>>(std::move(order)));
    }
  }
  FollowTurns(Turns(pace, run, static_cast<std::size_t>(count)), run);
  run.cold_reads = ColdReads(pace, run);
  return run;
}

}  // namespace optcache::simulation
