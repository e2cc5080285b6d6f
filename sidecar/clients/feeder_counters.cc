// What the core reports of itself; names as in docs/metrics.md.

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "sidecar/clients/feeder.h"

namespace optcache::sidecar {
namespace {

// As nodes call them.
constexpr std::array<std::string_view, kSources> kSourceNames = {"local", "peer", "store"};
constexpr std::array<std::string_view, kFallbacks> kFallbackNames = {
    "node_down", "node_lost", "no_answer", "corrupt", "never_came"};
constexpr std::array<std::string_view, kWaitCauses> kCauseNames = {"arena", "store", "network",
                                                                   "node"};
constexpr std::array<std::string_view, kClientKinds> kKindNames = {"trainer", "worker"};
constexpr std::array<std::string_view, kClientStates> kStateNames = {"waiting", "working", "idle"};

double Seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

double Number(std::uint64_t count) {
  return static_cast<double>(count);
}

MetricLabels Label(std::string_view name, std::string_view value) {
  return {{std::string(name), std::string(value)}};
}

MetricLabels LabelsOf(const std::string& dataset, std::size_t source) {
  return {{"source", std::string(kSourceNames[source])}, {"dataset", dataset}};
}

}  // namespace

void SampleMemory::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kGauge, "optcache_arena_capacity_bytes", {}, Number(arena_.capacity()));
  visitor(MetricKind::kGauge, "optcache_arena_used_bytes", {}, Number(arena_in_use_));
  visitor(MetricKind::kGauge, "optcache_overflow_bytes", Label("for", "asked"),
          Number(asked_in_use_));
  visitor(MetricKind::kGauge, "optcache_overflow_bytes", Label("for", "staged"),
          Number(staged_in_use_));
  visitor(MetricKind::kCounter, "optcache_overflow_samples_total", {}, Number(overflow_samples_));
  visitor(MetricKind::kCounter, "optcache_overflow_sample_bytes_total", {},
          Number(overflow_bytes_));
}

void StoreQueue::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kCounter, "optcache_store_read_failures_total", {}, Number(failures_));
  visitor(MetricKind::kCounter, "optcache_store_reads_joined_total", {}, Number(joined_));
  visitor(MetricKind::kGauge, "optcache_store_reads_running", {}, Number(running_));
  visitor(MetricKind::kGauge, "optcache_store_reads_waiting", {}, Number(waiting_.size()));
  visitor(MetricKind::kGauge, "optcache_store_reads_parked", {}, Number(parked_));
  for (const auto& [dataset, store] : stores_) {
    const MetricLabels labels = {{"dataset", dataset->name()}};
    visitor(MetricKind::kGauge, "optcache_store_bandwidth_bytes", labels,
            store.speed.BytesPerSecond());
    visitor(MetricKind::kGauge, "optcache_store_reads_always", labels, Number(store.speed.width()));
    visitor(MetricKind::kGauge, "optcache_store_reads_deferred", labels,
            Number(store.held ? store.waiting : 0));
  }
}

void Fetcher::VisitCounters(const CounterVisitor& visitor) const {
  store_.VisitCounters(visitor);
  for (const auto& [dataset, fetched] : fetched_) {
    for (std::size_t i = 0; i < kSources; ++i) {
      const MetricLabels labels = LabelsOf(dataset, i);
      visitor(MetricKind::kCounter, "optcache_fetched_samples_total", labels,
              Number(fetched.samples[i]));
      visitor(MetricKind::kCounter, "optcache_fetched_bytes_total", labels,
              Number(fetched.bytes[i]));
    }
  }
  for (std::size_t i = 0; i < kFallbacks; ++i) {
    visitor(MetricKind::kCounter, "optcache_client_fallback_total",
            Label("reason", kFallbackNames[i]), Number(fallbacks_[i]));
  }
  visitor(MetricKind::kCounter, "optcache_puts_sent_total", {}, Number(puts_));
  visitor(MetricKind::kCounter, "optcache_puts_withheld_total", {}, Number(puts_withheld_));
  visitor(MetricKind::kGauge, "optcache_puts_held_reads", {}, Number(held_.size()));
  visitor(MetricKind::kGauge, "optcache_node_connected", {}, node_.connected() ? 1 : 0);
}

void ReaderTable::VisitCounters(const CounterVisitor& visitor) const {
  std::uint64_t attached = 0;
  ByteCount staged = 0;
  for (const auto& [id, reader] : readers_) {
    if (reader.ended()) continue;
    ++attached;
    if (reader.current() != nullptr) staged += reader.current()->staged_arena_bytes();
    if (reader.next() != nullptr) staged += reader.next()->staged_arena_bytes();
  }
  visitor(MetricKind::kGauge, "optcache_loaders_attached", {}, Number(attached));
  visitor(MetricKind::kGauge, "optcache_arena_bytes", Label("state", "staged"), Number(staged));
  visitor(MetricKind::kCounter, "optcache_passes_total", {}, Number(passes_));
  visitor(MetricKind::kCounter, "optcache_unknown_orders_total", {}, Number(unknown_orders_));
}

void BatchDesk::VisitCounters(const CounterVisitor& visitor) const {
  ByteCount handed_out = 0;
  for (const auto& [id, batch] : batches_) {
    for (const BufferRef& buffer : batch.handed_out)
      handed_out += buffer->bytes().size();
  }
  visitor(MetricKind::kGauge, "optcache_arena_bytes", Label("state", "handed_out"),
          Number(handed_out));
  std::uint64_t all = 0;
  std::uint64_t hits = 0;
  for (const auto& [name, tally] : tallies_) {
    const Delivered& delivered = tally.delivered;
    for (std::size_t i = 0; i < kSources; ++i) {
      const MetricLabels labels = LabelsOf(name, i);
      visitor(MetricKind::kCounter, "optcache_client_samples_total", labels,
              Number(delivered.samples[i]));
      visitor(MetricKind::kCounter, "optcache_client_sample_bytes_total", labels,
              Number(delivered.bytes[i]));
      all += delivered.samples[i];
      if (i != static_cast<std::size_t>(Source::kStore)) hits += delivered.samples[i];
    }
    visitor(MetricKind::kCounter, "optcache_client_wait_seconds_total", Label("dataset", name),
            Seconds(delivered.wait));
    for (std::size_t i = 0; i < kWaitCauses; ++i) {
      visitor(MetricKind::kCounter, "optcache_client_wait_cause_seconds_total",
              {{"cause", std::string(kCauseNames[i])}, {"dataset", name}}, Seconds(tally.waits[i]));
    }
    const Saved saved = SavedBy(delivered.uncached, AskedOf(*tally.dataset));
    visitor(MetricKind::kGauge, "optcache_saved_requests", Label("dataset", name),
            static_cast<double>(saved.requests));
    visitor(MetricKind::kGauge, "optcache_saved_bytes", Label("dataset", name),
            static_cast<double>(saved.bytes));
    const std::optional<double> cost = dataset::CostOf(tally.dataset->price(), saved);
    if (cost) visitor(MetricKind::kGauge, "optcache_saved_cost", Label("dataset", name), *cost);
  }
  const auto spent = times_.Spent(alarms_.Now());
  for (std::size_t i = 0; i < kClientKinds; ++i) {
    for (std::size_t j = 0; j < kClientStates; ++j) {
      visitor(MetricKind::kCounter, "optcache_client_process_seconds_total",
              {{"process", std::string(kKindNames[i])}, {"state", std::string(kStateNames[j])}},
              Seconds(spent[i][j]));
    }
  }
  visitor(MetricKind::kGauge, "optcache_observed_hit_ratio", {},
          all == 0 ? 0 : Number(hits) / Number(all));
  visitor(MetricKind::kCounter, "optcache_client_batches_total", {}, Number(answered_));
  visitor(MetricKind::kGauge, "optcache_client_batches_waiting", {}, Number(waiting_));
  visitor(MetricKind::kCounter, "optcache_client_copied_samples_total", {}, Number(copied_));
  visitor(MetricKind::kCounter, "optcache_client_failed_samples_total", {}, Number(failed_));
  visitor(MetricKind::kCounter, "optcache_unpredicted_reads_total", {}, Number(unpredicted_));
}

}  // namespace optcache::sidecar
