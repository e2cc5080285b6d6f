// Runs one policy over the reads of a run, and finds the bound below which no policy can go.
//
// The idea: a policy on all nodes is a Cluster, which answers each read with where the sample was.
// One loop feeds it, counts, and moves a StallClock for each store, so figures of several stores
// cost one run. What is told as steady state begins at steady_from; moves of the last epoch are
// left out, since nothing is kept for its end.
//
// BoundOf is exact in two cases. A job that shuffles holds at most the capacity between two passes,
// and the smallest samples first if requests count. For samples of one size, MIN over one cache as
// large as all nodes is the least. Otherwise nothing is known, and nothing is said.

#include "simulation/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "simulation/cluster.h"
#include "simulation/policies/opt4torch.h"
#include "simulation/policies/policy.h"
#include "simulation/stall_clock.h"

namespace optcache::simulation {
namespace {

constexpr std::uint64_t kReadsBetweenReports = 1U << 18U;

ByteCount CapacityOf(const CacheOptions& options) {
  const double bytes = options.capacity * static_cast<double>(options.sizes.total());
  return static_cast<ByteCount>(std::llround(bytes));
}

// The capacity, spread as evenly as whole samples of one size allow.
std::vector<ByteCount> CapacityByNode(const CacheOptions& options, std::uint32_t nodes) {
  const ByteCount unit = options.sizes.equal() ? std::max(options.sizes[0], 1U) : 1;
  const ByteCount units = CapacityOf(options) / unit;
  std::vector<ByteCount> capacities(nodes, units / nodes * unit);
  for (ByteCount node = 0; node < units % nodes; ++node)
    capacities[node] += unit;
  return capacities;
}

Status CheckCache(const Reads& run, const CacheOptions& options) {
  const auto invalid = [](std::string message) {
    return Status(Code::kInvalidArgument, std::move(message));
  };
  if (options.sizes.count() != run.sample_count) {
    return invalid("sizes: of " + std::to_string(options.sizes.count()) +
                   " samples, the jobs read " + std::to_string(run.sample_count));
  }
  if (!(options.capacity >= 0 && options.capacity <= 1)) {
    return invalid("capacity: it is a share of the dataset, 0 to 1");
  }
  if (!(options.lookahead >= 0)) return invalid("lookahead: it is in epochs, 0 or more");
  for (const StoreOptions& store : options.stores) {
    if (!(store.bandwidth >= kLeastBandwidth && store.bandwidth <= kMostBandwidth))
      return invalid("store bandwidth: it takes 0.001 to 1000");
    if (!(store.latency >= 0 && store.latency <= kMostLatency))
      return invalid("store latency: it takes 0 to 1000000");
    if (store.staging_slots == 0 || store.staging_slots > kMaxStagingSlots) {
      return invalid("staging slots: " + std::to_string(store.staging_slots) + "; it takes 1 to " +
                     std::to_string(kMaxStagingSlots));
    }
  }
  return OkStatus();
}

// OPT4Torch's policy, which owns the steps that it carries out.
class OwningOpt4Torch final : public plan::Policy {
 public:
  OwningOpt4Torch(const Home& home, std::size_t slots)
      : steps_(plan::PlanAsOpt4Torch(home.future, home.room.sizes.count(), slots)),
        runtime_(plan::RunOpt4Torch(steps_, home.room.sizes.count(), slots,
                                    plan::Opt4TorchRuntime::kOneProcess)) {}
  bool Read(SampleId sample) override { return runtime_->Read(sample); }
  bool Holds(SampleId sample) const override { return runtime_->Holds(sample); }

 private:
  std::vector<plan::Opt4TorchStep> steps_;
  std::unique_ptr<plan::Policy> runtime_;
};

// Slots for samples of mean size.
std::unique_ptr<plan::Policy> MakeOpt4Torch(const Home& home) {
  const plan::Sizes& sizes = home.room.sizes;
  if (sizes.total() == 0) return plan::MakeNone();
  const ByteCount slots = home.room.capacity * sizes.count() / sizes.total();
  if (slots == 0) return plan::MakeNone();
  return std::make_unique<OwningOpt4Torch>(home, static_cast<std::size_t>(slots));
}

plan::MinOptions MinOptionsOf(const Reads& run, const CacheOptions& options,
                              plan::Admission admission) {
  plan::MinOptions min{.admission = admission};
  if (options.lookahead <= 0) return min;
  const double epoch = static_cast<double>(run.reads.size()) / run.epochs / run.nodes;
  min.lookahead = static_cast<std::uint32_t>(
      std::clamp(options.lookahead * epoch, 1.0, static_cast<double>(plan::kNoRead)));
  return min;
}

Result<std::unique_ptr<Cluster>> MakeCluster(const ClusterInput& input, const CacheOptions& options,
                                             PolicyKind kind) {
  const auto homed = [&](auto make) {
    return MakeHomedCluster(input, NeedsFuture::kNo,
                            [make](const Home& home) { return make(home.room); });
  };
  const auto min = [&](plan::Admission admission) {
    const plan::MinOptions how = MinOptionsOf(input.run, options, admission);
    return MakeHomedCluster(input, NeedsFuture::kYes, [how](const Home& home) {
      return plan::MakeMin(home.room, home.future, how);
    });
  };
  const auto lfu = [](plan::Counting counting) {
    return [counting](const plan::Room& room) { return plan::MakeLfu(room, counting); };
  };
  switch (kind) {
    case PolicyKind::kOptimal:
      return MakePlannedCluster(input, options.objective);
    case PolicyKind::kMin:
      return min(plan::Admission::kBypass);
    case PolicyKind::kMinForced:
      return min(plan::Admission::kForced);
    case PolicyKind::kOpt4Torch:
      return MakeHomedCluster(input, NeedsFuture::kYes, MakeOpt4Torch);
    case PolicyKind::kNoPfs:
      return MakeNoPfsCluster(input);
    case PolicyKind::kPin:
      return homed(plan::MakePin);
    case PolicyKind::kLfu:
      return homed(lfu(plan::Counting::kWhileHeld));
    case PolicyKind::kLfuForEver:
      return homed(lfu(plan::Counting::kForEver));
    case PolicyKind::kSieve:
      return homed(plan::MakeSieve);
    case PolicyKind::kRandom:
      return MakeHomedCluster(input, NeedsFuture::kNo, [&](const Home& home) {
        return plan::MakeRandom(home.room, options.seed ^ home.seed);
      });
    case PolicyKind::kFifo:
      return homed(plan::MakeFifo);
    case PolicyKind::kLru:
      return homed(plan::MakeLru);
    case PolicyKind::kNone:
      return homed([](const plan::Room& /*room*/) { return plan::MakeNone(); });
  }
  return Error(Code::kInternal, "simulate: no such policy");
}

double Ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Adds up what happens from some read on.
class Tally {
 public:
  void Add(const Read& read, const Outcome& outcome, std::uint32_t bytes) {
    const bool hit = outcome.from != Outcome::From::kStore;
    ++reads_;
    bytes_ += bytes;
    hit_bytes_ += hit ? bytes : 0U;
    hits_ += std::uint64_t{hit};
    peer_hits_ += std::uint64_t{outcome.from == Outcome::From::kPeer};
    ++reads_by_tenth_[read.tenth];
    hits_by_tenth_[read.tenth] += std::uint64_t{hit};
  }
  void WriteTo(PolicyResult& result) const {
    result.hit_ratio = Ratio(hits_, reads_);
    result.byte_hit_ratio = Ratio(hit_bytes_, bytes_);
    result.peer_per_access = Ratio(peer_hits_, reads_);
    result.local_per_access = Ratio(hits_ - peer_hits_, reads_);
    for (std::size_t i = 0; i < 10; ++i)
      result.hit_ratio_by_tenth[i] = Ratio(hits_by_tenth_[i], reads_by_tenth_[i]);
  }

 private:
  std::uint64_t reads_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t peer_hits_ = 0;
  ByteCount bytes_ = 0;
  ByteCount hit_bytes_ = 0;
  std::array<std::uint64_t, 10> reads_by_tenth_{};
  std::array<std::uint64_t, 10> hits_by_tenth_{};
};

std::vector<StallClock> MakeClocks(const Reads& run, const CacheOptions& options) {
  ByteCount bytes = 0;
  for (const Read& read : run.reads)
    bytes += options.sizes[read.sample];
  const double mean = static_cast<double>(bytes) / static_cast<double>(run.reads.size());
  std::vector<StallClock> clocks;
  for (const StoreOptions& store : options.stores) {
    clocks.emplace_back(StoreSpeed{.bandwidth = store.bandwidth * mean,
                                   .latency = store.latency,
                                   .staging_slots = store.staging_slots});
  }
  return clocks;
}

}  // namespace

std::string_view PolicyName(PolicyKind kind) {
  return kPolicyNames[static_cast<std::size_t>(kind)];
}

std::optional<PolicyKind> PolicyFromName(std::string_view name) {
  const auto* const found = std::find(kPolicyNames.begin(), kPolicyNames.end(), name);
  if (found == kPolicyNames.end()) return std::nullopt;
  return static_cast<PolicyKind>(found - kPolicyNames.begin());
}

Result<PolicyResult> Simulate(const Reads& run, const CacheOptions& options, PolicyKind kind,
                              const Progress& progress) {
  RETURN_IF_ERROR(CheckCache(run, options));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Cluster> cluster,
      MakeCluster(
          {.run = run, .sizes = options.sizes, .capacities = CapacityByNode(options, run.nodes)},
          options, kind));
  const std::size_t steady_from = run.steady_from();
  const std::size_t last_epoch = run.epochs > 1 ? run.EndOfEpoch(run.epochs - 2) : run.reads.size();
  std::vector<StallClock> clocks = MakeClocks(run, options);
  std::vector<double> steady_since(clocks.size());
  PolicyResult result;
  Tally tally;
  std::uint64_t moves = 0;
  for (std::size_t t = 0; t < run.reads.size(); ++t) {
    if (progress && t % kReadsBetweenReports == 0) progress(t);
    if (t == steady_from) {
      for (std::size_t i = 0; i < clocks.size(); ++i)
        steady_since[i] = clocks[i].now();
    }
    const Read& read = run.reads[t];
    const std::uint32_t bytes = options.sizes[read.sample];
    ASSIGN_OR_RETURN(const Outcome outcome, cluster->Read(read));
    const bool miss = outcome.from == Outcome::From::kStore;
    if (miss) {
      ++result.store_reads;
      result.store_bytes += bytes;
    }
    for (StallClock& clock : clocks)
      miss ? clock.Miss(bytes) : clock.Hit();
    if (t < steady_from) continue;
    tally.Add(read, outcome, bytes);
    moves += std::uint64_t{outcome.moved && t < last_epoch};
  }
  tally.WriteTo(result);
  result.moved_per_access = Ratio(moves, last_epoch - std::min(steady_from, last_epoch));
  const auto steady_reads = static_cast<double>(run.reads.size() - steady_from);
  for (std::size_t i = 0; i < clocks.size(); ++i)
    result.epoch_time.push_back((clocks[i].now() - steady_since[i]) / steady_reads);
  return result;
}

namespace {

// One job that reads a permutation of all samples in each pass, and whole passes alone.
bool IsShuffling(const Reads& run) {
  if (run.jobs.size() != 1 || run.jobs[0].pass_reads != run.sample_count) return false;
  if (run.jobs[0].first_position != 0) return false;
  std::vector<std::uint32_t> last_pass(run.sample_count);
  std::uint32_t pass = 0;
  for (const plan::Order& order : run.jobs[0].passes) {
    ++pass;
    if (order->size() != run.sample_count) return false;
    for (const SampleId sample : *order) {
      if (std::exchange(last_pass[sample], pass) == pass) return false;
    }
  }
  return true;
}

// Between two passes at most this many samples are held: the smallest ones, as many as fit.
std::uint64_t MostHeld(const plan::Sizes& sizes, ByteCount capacity) {
  std::vector<std::uint32_t> by_size(sizes.count());
  for (SampleId sample = 0; sample < sizes.count(); ++sample)
    by_size[sample] = sizes[sample];
  std::sort(by_size.begin(), by_size.end());
  ByteCount used = 0;
  std::uint64_t held = 0;
  while (held < by_size.size() && used + by_size[held] <= capacity)
    used += by_size[held++];
  return held;
}

}  // namespace

Result<Bound> BoundOf(const Reads& run, const CacheOptions& options) {
  RETURN_IF_ERROR(CheckCache(run, options));
  const ByteCount capacity = CapacityOf(options);
  if (IsShuffling(run)) {
    const std::uint64_t samples = run.sample_count;
    const ByteCount total = options.sizes.total();
    const std::uint64_t again = run.epochs - 1;
    return Bound{.store_reads = samples + again * (samples - MostHeld(options.sizes, capacity)),
                 .store_bytes = total + again * (total - std::min(capacity, total))};
  }
  if (!options.sizes.equal()) return Bound{};
  std::vector<SampleId> samples;
  samples.reserve(run.reads.size());
  for (const Read& read : run.reads)
    samples.push_back(read.sample);
  const plan::Future future = plan::FutureOf(std::move(samples), run.sample_count);
  const auto min = plan::MakeMin({.sizes = options.sizes, .capacity = capacity}, future);
  std::uint64_t misses = 0;
  for (const SampleId sample : future.samples)
    misses += std::uint64_t{!min->Read(sample)};
  return Bound{.store_reads = misses, .store_bytes = misses * options.sizes[0]};
}

}  // namespace optcache::simulation
