// Judges what happened between two looks at the sidecars' pages.
//
// The idea: first how the processes that read spent their time, then what they waited for. If they
// hardly wait, the cache does not limit them: their workers do, if these always have samples to
// work on, and else what training does. If they wait, it is the cause that took most of the time.
// Before that, a store that is silent or holds reads back is named, as it is the reason for other
// waits, too: for room that its reads take. Begin to read at JudgeLimit.

#include "cli/explain/training_limit.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"

namespace optcache::cli {
namespace {

// This and kAhead are also in the alert OptcacheTrainersWait; kAhead is in the overview dashboard.
constexpr double kMuchWaiting = 0.2;    // of the readers' time
constexpr double kAhead = 0.25;         // of the workers' time without anything to do
constexpr double kAlwaysWorking = 0.8;  // of the workers' time
constexpr double kToldShare = 0.01;     // of the time waited: smaller ones are not worth a word
constexpr std::array<std::string_view, kCauses> kCauseNames = {"arena", "store", "network", "node"};
constexpr std::array<std::string_view, kCauses> kCauseWords = {
    "the arena", "the store", "other nodes", "the machine's own node"};

// What happened between the looks, and what is so at the second one.
struct Between {
  double seconds = 0;
  double ranks = 0;
  double rank_seconds = 0;
  double samples = 0;
  double samples_per_second = 0;
  double store_bytes_per_second = 0;
  double waited = 0;                     // by requests that have ended
  std::array<double, kCauses> causes{};  // of `waited`
  double process_seconds = 0;
  double process_waiting = 0;
  double worker_seconds = 0;
  double worker_working = 0;
  double worker_idle = 0;
  double held_back = 0;  // reads that wait until the store may be asked
  double batches_waiting = 0;
  bool is_silent = false;
};

double Grown(const PageLooks& looks, std::string_view name, const std::string& label = "",
             std::string_view value = "") {
  const double before = SumOf(looks.before, name, label, value);
  const double after = SumOf(looks.after, name, label, value);
  return after < before ? after : after - before;
}

// Of the looks at one page, the samples of the workers alone.
PageLooks OfWorkers(const PageLooks& looks) {
  PageLooks workers{.before = {}, .after = {}, .seconds = looks.seconds};
  const auto is_of_worker = [](const MetricSample& sample) {
    const auto process = sample.labels.find("process");
    return process != sample.labels.end() && process->second == "worker";
  };
  std::ranges::copy_if(looks.before, std::back_inserter(workers.before), is_of_worker);
  std::ranges::copy_if(looks.after, std::back_inserter(workers.after), is_of_worker);
  return workers;
}

void Add(const PageLooks& looks, Between& sum) {
  constexpr std::string_view kTime = "optcache_client_process_seconds_total";
  const auto now = [&](std::string_view name) { return SumOf(looks.after, name); };
  const double ranks = now("optcache_loaders_attached");
  sum.seconds = std::max(sum.seconds, looks.seconds);
  sum.ranks += ranks;
  sum.rank_seconds += ranks * looks.seconds;
  const double samples = Grown(looks, "optcache_client_samples_total");
  const double seconds = std::max(looks.seconds, 1e-3);
  sum.samples += samples;
  sum.samples_per_second += samples / seconds;
  sum.store_bytes_per_second += Grown(looks, "optcache_store_received_bytes_total") / seconds;
  sum.waited += Grown(looks, "optcache_client_wait_seconds_total");
  for (std::size_t i = 0; i < kCauses; ++i) {
    sum.causes[i] +=
        Grown(looks, "optcache_client_wait_cause_seconds_total", "cause", kCauseNames[i]);
  }
  sum.process_seconds += Grown(looks, kTime);
  sum.process_waiting += Grown(looks, kTime, "state", "waiting");
  const PageLooks workers = OfWorkers(looks);
  sum.worker_seconds += Grown(workers, kTime);
  sum.worker_working += Grown(workers, kTime, "state", "working");
  sum.worker_idle += Grown(workers, kTime, "state", "idle");
  sum.held_back += now("optcache_store_reads_held_back");
  sum.batches_waiting += now("optcache_client_batches_waiting");
  sum.is_silent = sum.is_silent || now("optcache_store_breaker_state") > 0;
}

double Share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double WaitingShare(const Between& sum) {
  if (sum.process_seconds > 0) return Share(sum.process_waiting, sum.process_seconds);
  return Share(sum.waited, sum.rank_seconds);
}

double WaitIn(const Between& sum) {
  // Workers that wait for samples, and then for somebody who takes their batches, are ahead.
  const bool is_ahead = Share(sum.worker_idle, sum.worker_seconds) > kAhead;
  return is_ahead ? 0 : WaitingShare(sum);
}

Limit LimitFor(Cause cause) {
  switch (cause) {
    case Cause::kArena:
      return Limit::kArena;
    case Cause::kStore:
      return Limit::kStore;
    case Cause::kNetwork:
      return Limit::kNetwork;
    case Cause::kNode:
      break;
  }
  return Limit::kNode;
}

Limit JudgeLimit(const Between& sum) {
  if (sum.ranks == 0) return Limit::kNoReader;
  // A cause is counted when the wait ends.
  const bool is_stuck = sum.samples == 0 && sum.batches_waiting > 0;
  if (!is_stuck && WaitIn(sum) < kMuchWaiting) {
    if (sum.samples == 0) return Limit::kNothingRead;
    const bool work = Share(sum.worker_working, sum.worker_seconds) >= kAlwaysWorking;
    return work ? Limit::kWorkers : Limit::kCompute;
  }
  if (sum.is_silent) return Limit::kStoreSilent;
  if (sum.held_back > 0) return Limit::kStoreHoldsBack;
  std::size_t most = 0;
  for (std::size_t i = 1; i < kCauses; ++i)
    most = sum.causes[i] > sum.causes[most] ? i : most;
  if (is_stuck || sum.causes[most] == 0) return Limit::kStore;
  return LimitFor(static_cast<Cause>(most));
}

// " (20 % of that for the arena, 80 % for the store)"; empty: it is not known.
std::string CausesText(const TrainingLimit& limit) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < kCauses; ++i) {
    if (limit.causes[i] < kToldShare) continue;
    parts.push_back(fmt::format("{:.0f} %{} for {}", 100 * limit.causes[i],
                                parts.empty() ? " of that" : "", kCauseWords[i]));
  }
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", "));
}

}  // namespace

TrainingLimit LimitOf(const std::vector<PageLooks>& pages) {
  Between sum;
  for (const PageLooks& looks : pages)
    Add(looks, sum);
  TrainingLimit limit{.limit = JudgeLimit(sum),
                      .waiting = WaitingShare(sum),
                      .working = Share(sum.worker_working, sum.worker_seconds),
                      .seconds = sum.seconds,
                      .store_bytes_per_second = sum.store_bytes_per_second,
                      .samples_per_second = sum.samples_per_second};
  const double all = std::accumulate(sum.causes.begin(), sum.causes.end(), 0.0);
  for (std::size_t i = 0; i < kCauses; ++i)
    limit.causes[i] = Share(sum.causes[i], all);
  return limit;
}

double TrainingWait(const PageLooks& looks) {
  Between sum;
  Add(looks, sum);
  return WaitIn(sum);
}

Finding FindingOnLimit(const TrainingLimit& limit) {
  const std::string about = "limit";
  const std::string waited = fmt::format(
      "in {:.1f} s, ranks read {:.0f} samples/s and waited for {:.0f} % of their time{}",
      limit.seconds, limit.samples_per_second, 100 * limit.waiting, CausesText(limit));
  const std::string rate = FormatBytes(ToWhole<ByteCount>(limit.store_bytes_per_second));
  switch (limit.limit) {
    case Limit::kNoReader:
      return Fine(about, "no loader is attached now: what limits other readers is not known");
    case Limit::kNothingRead:
      return Fine(about, fmt::format("in {:.1f} s, no rank read or waited: training does something "
                                     "else, for example a checkpoint or the end of an epoch",
                                     limit.seconds));
    case Limit::kCompute: {
      Finding finding = Fine(about, waited + ", so the cache does not limit it");
      finding.to_do =
          "If the GPU is idle, decoding is the limit: give the DataLoader more workers "
          "(num_workers), or keep the decoded samples (docs/user/computed.md).";
      return finding;
    }
    case Limit::kWorkers:
      return Warn(about,
                  fmt::format("{}; workers of loaders worked on samples for {:.0f} % of theirs, so "
                              "their number limits it, and not the cache",
                              waited, 100 * limit.working),
                  "Give the DataLoader more workers (num_workers) and the pod the processors for "
                  "them, or keep the decoded samples (docs/user/computed.md).");
    case Limit::kStoreSilent:
      return Fault(about, waited + "; the store does not answer",
                   "Try the store from the machine or namespace of the job. The logs of the "
                   "sidecars name the cause.");
    case Limit::kStoreHoldsBack:
      return Warn(about, waited + "; the store is overloaded, so it is asked for less at a time",
                  "Raise the request limits of the store, or set a larger spec.cache.capacity so "
                  "that it is asked less.");
    case Limit::kArena:
      return Warn(about, waited + "; the arena has no room to read further ahead",
                  "Make the arena larger: the annotation optcache.io/arena of the pod, or --arena "
                  "of `optcache up`.");
    case Limit::kStore:
      return Warn(about, fmt::format("{}; the store limits it, and delivers {}/s", waited, rate),
                  "In a first epoch this is normal. Later, set a larger spec.cache.capacity; "
                  "`optcache simulate` shows what another capacity brings.");
    case Limit::kNetwork:
      return Warn(about, waited + "; the network between nodes limits it",
                  "Look at the network between the machines, and at the processors of the nodes. "
                  "If a few nodes hold the Dataset, place it on the machines of the job "
                  "(spec.placement).");
    case Limit::kNode:
      break;
  }
  return Warn(about, waited + "; the machine's own node, or the sidecar, limits it",
              "Give the sidecar and the node more processor time: the annotation "
              "optcache.io/resources of the pod, and node.resources of the chart.");
}

}  // namespace optcache::cli
