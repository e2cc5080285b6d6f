// Names a dataset's counters for /metrics, as docs/metrics.md describes them.
//
// Nothing is counted here. Each function reads one group of numbers: reads, keeping, memory, plan.
// A manifest that retires has series of its own, named by its digest, so that counters of one
// series never come from two caches.

#include "cache-node/serving/dataset_metrics.h"

#include <string>

namespace optcache::node {
namespace {

constexpr std::size_t kDigestShown = 12;

// The Dataset; while jobs still read one of its earlier manifests, that has series of its own.
std::string LabelOf(const NodeDataset& dataset, bool retiring) {
  if (!retiring) return dataset.name();
  return dataset.name() + "@" + dataset.state().manifest_digest.substr(0, kDigestShown);
}

void VisitReads(const CounterVisitor& visit, const std::string& dataset, const Counters& c) {
  const auto count = [&](const char* result, const char* source, std::uint64_t reads,
                         ByteCount bytes) {
    const MetricLabels labels = {{"dataset", dataset}, {"result", result}, {"source", source}};
    visit(MetricKind::kCounter, "optcache_requests_total", labels, static_cast<double>(reads));
    visit(MetricKind::kCounter, "optcache_request_bytes_total", labels, static_cast<double>(bytes));
  };
  count("hit", "local", c.hits_local, c.hit_bytes_local);
  count("hit", "peer", c.hits_peer, c.hit_bytes_peer);
  count("miss", "store", c.misses, c.miss_bytes);
  const auto count_tier = [&](const char* tier, std::uint64_t hits, ByteCount bytes) {
    const MetricLabels labels = {{"dataset", dataset}, {"tier", tier}};
    visit(MetricKind::kCounter, "optcache_tier_hits_total", labels, static_cast<double>(hits));
    visit(MetricKind::kCounter, "optcache_tier_hit_bytes_total", labels,
          static_cast<double>(bytes));
  };
  count_tier("memory", c.hits_local - c.hits_disk, c.hit_bytes_local - c.hit_bytes_disk);
  count_tier("disk", c.hits_disk, c.hit_bytes_disk);
  visit(MetricKind::kCounter, "optcache_spare_hits_total", {{"dataset", dataset}},
        static_cast<double>(c.hits_spare));
}

void VisitKeeping(const CounterVisitor& visit, const std::string& dataset, const Counters& c) {
  const auto count = [&](const char* name, const char* label, const char* value,
                         std::uint64_t number) {
    MetricLabels labels = {{"dataset", dataset}};
    if (label != nullptr) labels.emplace_back(label, value);
    visit(MetricKind::kCounter, name, labels, static_cast<double>(number));
  };
  count("optcache_puts_total", "result", "kept", c.puts_kept);
  count("optcache_puts_total", "result", "refused", c.puts_refused);
  count("optcache_moves_total", nullptr, nullptr, c.moves);
  count("optcache_relocations_total", "result", "moved", c.relocated);
  count("optcache_relocations_total", "result", "lost", c.relocations_lost);
  count("optcache_relocated_bytes_total", nullptr, nullptr, c.relocated_bytes);
  count("optcache_moved_bytes_total", nullptr, nullptr, c.moved_bytes);
  count("optcache_moves_refused_total", nullptr, nullptr, c.moves_refused);
  count("optcache_drops_total", "reason", "plan", c.dropped_by_plan);
  count("optcache_drops_total", "reason", "room", c.dropped_for_room);
  count("optcache_drops_total", "reason", "transit", c.dropped_in_transit);
  count("optcache_drops_total", "reason", "stale", c.dropped_stale);
  count("optcache_drops_total", "reason", "disk", c.dropped_by_disk);
  count("optcache_bad_bytes_total", nullptr, nullptr, c.bad_bytes);
  count("optcache_peer_timeouts_total", nullptr, nullptr, c.peer_timeouts);
  count("optcache_peer_losses_total", nullptr, nullptr, c.peer_losses);
  count("optcache_leases_ended_total", nullptr, nullptr, c.leases_ended);
  count("optcache_deferred_total", nullptr, nullptr, c.on_its_way);
}

void VisitMemory(const CounterVisitor& visit, const std::string& dataset,
                 const DatasetCache& cache) {
  const auto gauge = [&](const char* name, double value) {
    visit(MetricKind::kGauge, name, {{"dataset", dataset}}, value);
  };
  const cache::MemoryTier& tier = cache.tier();
  const auto visit_tier = [&](const char* name, ByteCount used, ByteCount capacity,
                              std::size_t samples) {
    const MetricLabels labels = {{"dataset", dataset}, {"tier", name}};
    visit(MetricKind::kGauge, "optcache_cache_bytes", labels, static_cast<double>(used));
    visit(MetricKind::kGauge, "optcache_cache_capacity_bytes", labels,
          static_cast<double>(capacity));
    visit(MetricKind::kGauge, "optcache_cache_samples", labels, static_cast<double>(samples));
  };
  const std::size_t on_disk = tier.samples_on_disk();
  visit_tier("memory", tier.in_memory(), tier.memory(), tier.samples() - on_disk);
  if (cache.has_disk()) visit_tier("disk", tier.on_disk(), tier.disk(), on_disk);
  gauge("optcache_cache_peak_bytes", static_cast<double>(tier.peak()));
  gauge("optcache_cache_reserve_bytes", static_cast<double>(tier.reserve()));
  const PrivateEntries& copies = cache.retention_manager().private_entries();
  gauge("optcache_cache_spare_bytes", static_cast<double>(cache.retention_manager().spare_bytes()));
  gauge("optcache_cache_private_bytes", static_cast<double>(copies.bytes()));
  gauge("optcache_cache_overhead_bytes",
        static_cast<double>(cache::MemoryTier::OverheadOf(tier.samples() + copies.samples())));
  gauge("optcache_push_queue_bytes", static_cast<double>(cache.push_queue().bytes()));
  gauge("optcache_relay_bytes", static_cast<double>(cache.relay_bytes()));
  gauge("optcache_directory_samples", static_cast<double>(cache.directory().samples()));
}

// What came of the reads that the plan covers, in whose words it is predicted.
void VisitCovered(const CounterVisitor& visit, const std::string& dataset, const Counters& c) {
  const auto count = [&](const char* result, const char* source, std::uint64_t reads,
                         ByteCount bytes) {
    const MetricLabels labels = {{"dataset", dataset}, {"result", result}, {"source", source}};
    visit(MetricKind::kCounter, "optcache_plan_covered_requests_total", labels,
          static_cast<double>(reads));
    visit(MetricKind::kCounter, "optcache_plan_covered_request_bytes_total", labels,
          static_cast<double>(bytes));
  };
  count("hit", "local", c.covered_local, c.covered_bytes_local);
  count("hit", "peer", c.covered_peer, c.covered_bytes_peer);
  count("miss", "store", c.covered_misses, c.covered_miss_bytes);
}

void VisitPlan(const CounterVisitor& visit, const std::string& dataset,
               const NodeDataset& node_dataset) {
  const Counters& c = node_dataset.cache().counters();
  const auto count = [&](const char* result, const char* source, std::uint64_t reads,
                         ByteCount bytes) {
    const MetricLabels labels = {{"dataset", dataset}, {"result", result}, {"source", source}};
    visit(MetricKind::kCounter, "optcache_plan_predicted_requests_total", labels,
          static_cast<double>(reads));
    visit(MetricKind::kCounter, "optcache_plan_predicted_request_bytes_total", labels,
          static_cast<double>(bytes));
  };
  count("hit", "local", c.predicted_local, c.predicted_bytes_local);
  count("hit", "peer", c.predicted_peer, c.predicted_bytes_peer);
  count("miss", "store", c.predicted_misses, c.predicted_miss_bytes);
  VisitCovered(visit, dataset, c);
  visit(MetricKind::kCounter, "optcache_plan_predicted_moved_bytes_total", {{"dataset", dataset}},
        static_cast<double>(c.predicted_moved_bytes));
  visit(MetricKind::kGauge, "optcache_plan_predicted_hit_ratio", {{"dataset", dataset}},
        node_dataset.book().hit_ratio());
  visit(MetricKind::kGauge, "optcache_plan_revision_info",
        {{"dataset", dataset}, {"revision", node_dataset.revision()}}, 1);
}

}  // namespace

void VisitDataset(const CounterVisitor& visit, const NodeDataset& dataset, bool retiring) {
  const std::string name = LabelOf(dataset, retiring);
  VisitReads(visit, name, dataset.cache().counters());
  VisitKeeping(visit, name, dataset.cache().counters());
  VisitMemory(visit, name, dataset.cache());
  VisitPlan(visit, name, dataset);
}

}  // namespace optcache::node
