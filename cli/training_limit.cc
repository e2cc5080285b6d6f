#include "cli/training_limit.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"

namespace optcache::cli {
namespace {

constexpr double kMuchWaiting = 0.2;  // of the ranks' time, as the alert OptcacheTrainersWait
constexpr double kManySamples = 0.1;  // of those read: without room in the arena, or from afar

// What happened between the looks, and what is so at the second one.
struct Between {
  double rank_seconds = 0;
  double waited = 0;
  double local = 0;  // samples
  double peer = 0;
  double store = 0;
  double without_room = 0;
  double store_bytes = 0;
  double seconds = 0;
  double ranks = 0;
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

void Add(const PageLooks& looks, Between& sum) {
  const auto now = [&](std::string_view name) { return SumOf(looks.after, name); };
  const double ranks = now("optcache_loaders_attached");
  sum.ranks += ranks;
  sum.rank_seconds += ranks * looks.seconds;
  sum.seconds = std::max(sum.seconds, looks.seconds);
  sum.waited += Grown(looks, "optcache_client_wait_seconds_total");
  sum.local += Grown(looks, "optcache_client_samples_total", "source", "local");
  sum.peer += Grown(looks, "optcache_client_samples_total", "source", "peer");
  sum.store += Grown(looks, "optcache_client_samples_total", "source", "store");
  sum.without_room += Grown(looks, "optcache_client_copied_samples_total") +
                      Grown(looks, "optcache_overflow_samples_total");
  sum.store_bytes += Grown(looks, "optcache_store_received_bytes_total");
  sum.held_back += now("optcache_store_reads_held_back");
  sum.batches_waiting += now("optcache_client_batches_waiting");
  sum.is_silent = sum.is_silent || now("optcache_store_breaker_state") > 0;
}

Limit JudgeLimit(const Between& sum) {
  const double samples = sum.local + sum.peer + sum.store;
  if (sum.ranks == 0) return Limit::kNoReader;
  const bool waits = sum.waited >= kMuchWaiting * sum.rank_seconds && sum.waited > 0;
  // A wait is counted when it ends.
  const bool is_stuck = samples == 0 && sum.batches_waiting > 0;
  if (!waits && !is_stuck) return samples == 0 ? Limit::kNothingRead : Limit::kCompute;
  if (sum.is_silent) return Limit::kStoreSilent;
  if (sum.held_back > 0) return Limit::kStoreHoldsBack;
  if (samples > 0 && sum.without_room >= kManySamples * samples) return Limit::kArena;
  if (is_stuck) return Limit::kStore;
  const double most = std::max(sum.store, sum.peer);
  if (most == 0 || most < kManySamples * samples) return Limit::kNode;
  return sum.store >= sum.peer ? Limit::kStore : Limit::kNetwork;
}

}  // namespace

TrainingLimit LimitOf(const std::vector<PageLooks>& pages) {
  Between sum;
  for (const PageLooks& looks : pages)
    Add(looks, sum);
  const double seconds = std::max(sum.seconds, 1e-3);
  return {.limit = JudgeLimit(sum),
          .waiting = sum.rank_seconds > 0 ? sum.waited / sum.rank_seconds : 0,
          .seconds = sum.seconds,
          .store_bytes_per_second = sum.store_bytes / seconds,
          .samples_per_second = (sum.local + sum.peer + sum.store) / seconds};
}

Finding FindingOnLimit(const TrainingLimit& limit) {
  const std::string about = "limit";
  const std::string waited =
      fmt::format("in {:.1f} s, ranks read {:.0f} samples/s and waited for {:.0f} % of their time",
                  limit.seconds, limit.samples_per_second, 100 * limit.waiting);
  const std::string rate = FormatBytes(ToWhole<ByteCount>(limit.store_bytes_per_second));
  switch (limit.limit) {
    case Limit::kNoReader:
      return Fine(about, "no rank is attached now, so nothing limits it");
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
    case Limit::kStoreSilent:
      return Fault(about, waited + "; the store does not answer",
                   "Try the store from the machine or namespace of the job. The logs of the "
                   "sidecars name the cause.");
    case Limit::kStoreHoldsBack:
      return Warn(about, waited + "; the store is overloaded, so it is asked for less at a time",
                  "Raise the request limits of the store, or set a larger spec.cache.capacity so "
                  "that it is asked less.");
    case Limit::kArena:
      return Warn(about, waited + "; many samples find no room in the arena",
                  "Make the arena larger: the annotation optcache.io/arena of the pod, or --arena "
                  "of `optcache up`.");
    case Limit::kStore:
      return Warn(about, fmt::format("{}; the store limits it, and delivers {}/s", waited, rate),
                  "In a first epoch this is normal. Later, set a larger spec.cache.capacity; "
                  "`optcache simulate` shows what another capacity brings.");
    case Limit::kNetwork:
      return Warn(about, waited + "; many samples come from other nodes, so the network limits it",
                  "Look at the network between the machines, and at the processors of the nodes.");
    case Limit::kNode:
      break;
  }
  return Warn(about, waited + "; most samples come from the machine's own node",
              "Give the sidecar and the node more processor time: the annotation "
              "optcache.io/resources of the pod, and node.resources of the chart.");
}

}  // namespace optcache::cli
