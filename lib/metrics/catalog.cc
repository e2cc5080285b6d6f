#include "metrics/catalog.h"

#include <algorithm>
#include <array>

namespace optcache::metrics {
namespace {

constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;
constexpr MetricKind kHistogram = MetricKind::kHistogram;

constexpr auto kCatalog = std::to_array<Metric>({
    {"optcache_metrics_unknown", kGauge,
     "Reported numbers that are not in the catalog; anything but 0 is a bug"},
    {"process_resident_memory_bytes", kGauge, "Resident memory of the process"},
    {"process_cpu_seconds_total", kCounter, "Processor time used by the process, user and system"},
    {"process_open_fds", kGauge, "Open file descriptors"},
    {"optcache_net_accepted_connections_total", kCounter, "Connections accepted, handshake done"},
    {"optcache_net_refused_connections_total", kCounter,
     "Connections refused before their handshake was done, by reason"},
    {"optcache_net_closed_connections_total", kCounter, "Connections that ended"},
    {"optcache_net_open_connections", kGauge, "Connections that are open"},
    {"optcache_net_failed_dials_total", kCounter, "Attempts to connect that failed"},
    {"optcache_net_received_bytes_total", kCounter,
     "Bytes received in wire messages and their payloads"},
    {"optcache_net_sent_bytes_total", kCounter, "Bytes sent in wire messages and their payloads"},
    {"optcache_net_received_frames_total", kCounter, "Wire messages received"},
    {"optcache_net_sent_frames_total", kCounter, "Wire messages sent"},
    {"optcache_net_corrupt_payloads_total", kCounter, "Payloads received with a wrong checksum"},
    {"optcache_net_refused_payloads_total", kCounter, "Payloads received that nobody wanted"},
    {"optcache_http_open_connections", kGauge, "HTTP connections that are open"},
    {"optcache_http_refused_connections_total", kCounter,
     "HTTP connections closed because there were too many"},
    {"optcache_http_responses_total", kCounter, "HTTP responses"},
    {"optcache_tls_handshake_failures_total", kCounter,
     "TLS connections that did not come about, by reason"},
    {"optcache_requests_total", kCounter,
     "Reads answered to sidecars: hits from this node (local) or another (peer), misses that the "
     "sidecar reads from the store"},
    {"optcache_request_bytes_total", kCounter, "Bytes of those reads"},
    {"optcache_deferred_total", kCounter,
     "Reads told to ask again because the sample is on its way"},
    {"optcache_cache_bytes", kGauge, "Payload bytes held or reserved for what is arriving"},
    {"optcache_cache_peak_bytes", kGauge, "The most that optcache_cache_bytes ever was"},
    {"optcache_cache_capacity_bytes", kGauge, "Payload bytes that the plan may fill"},
    {"optcache_cache_reserve_bytes", kGauge,
     "Payload bytes that transit may use on top of the capacity"},
    {"optcache_cache_samples", kGauge, "Samples held"},
    {"optcache_cache_overhead_bytes", kGauge,
     "Estimated bytes of index and allocator beside the payload"},
    {"optcache_live_sample_bytes", kGauge,
     "Payload bytes in memory, those still being sent included"},
    {"optcache_relay_bytes", kGauge, "Bytes fetched from other nodes on their way to a sidecar"},
    {"optcache_outbox_bytes", kGauge,
     "Bytes waiting to be pushed to the node of their next reader"},
    {"optcache_directory_samples", kGauge,
     "Samples in this node's share of the directory, leases included"},
    {"optcache_puts_total", kCounter,
     "Samples that sidecars put back after a store read, kept or refused"},
    {"optcache_drops_total", kCounter,
     "Samples dropped: by the plan, for lack of room, in transit, or stale (their read did not "
     "come)"},
    {"optcache_bad_bytes_total", kCounter, "Samples that arrived with a wrong length or checksum"},
    {"optcache_moves_total", kCounter, "Samples pushed to the node of their next reader"},
    {"optcache_moved_bytes_total", kCounter, "Bytes of those"},
    {"optcache_moves_refused_total", kCounter,
     "Pushes that the receiver had no room for; tried again"},
    {"optcache_peer_timeouts_total", kCounter,
     "Questions to other nodes that were not answered in time"},
    {"optcache_plan_predicted_hit_ratio", kGauge,
     "Share of reads that the newest planned pass serves from memory, over all nodes, 0 to 1"},
    {"optcache_plan_predicted_store_reads_total", kCounter,
     "Store reads foretold by the plans of the passes begun so far, over all nodes"},
    {"optcache_plan_predicted_store_bytes_total", kCounter, "Bytes of those"},
    {"optcache_plan_predicted_moved_bytes_total", kCounter,
     "Bytes to be moved between nodes, foretold by the plans of the passes begun so far, over all "
     "nodes"},
    {"optcache_state_version", kGauge, "Counter of the desired state in force"},
    {"optcache_members", kGauge, "Nodes in the desired state in force"},
    {"optcache_coordinator_connected", kGauge, "1 while the coordinator answers"},
    {"optcache_client_samples_total", kCounter,
     "Samples handed to training processes, by where their bytes came from (node, peer, store)"},
    {"optcache_client_sample_bytes_total", kCounter, "Bytes of those"},
    {"optcache_client_batches_total", kCounter, "Requests of training processes answered"},
    {"optcache_client_batches_waiting", kGauge, "Requests of training processes not answered yet"},
    {"optcache_client_wait_seconds_total", kCounter,
     "Time that training processes waited for samples"},
    {"optcache_client_copied_samples_total", kCounter,
     "Samples answered by copy because the arena had no room"},
    {"optcache_client_failed_samples_total", kCounter, "Samples answered with an error"},
    {"optcache_client_fallback_total", kCounter,
     "Reads that went to the store although the node should have had a say, by reason"},
    {"optcache_observed_hit_ratio", kGauge,
     "Share of delivered samples that did not come from the store, 0 to 1"},
    {"optcache_fetched_samples_total", kCounter, "Samples fetched, delivered or not, by source"},
    {"optcache_fetched_bytes_total", kCounter, "Bytes of those"},
    {"optcache_arena_capacity_bytes", kGauge, "Size of the arena"},
    {"optcache_arena_used_bytes", kGauge, "Arena bytes in use"},
    {"optcache_arena_bytes", kGauge,
     "Arena bytes by state: staged ahead, handed_out to training processes"},
    {"optcache_overflow_bytes", kGauge, "Bytes in ordinary memory for what did not fit the arena"},
    {"optcache_overflow_samples_total", kCounter, "Samples that did not fit the arena"},
    {"optcache_overflow_sample_bytes_total", kCounter, "Bytes of those"},
    {"optcache_passes_total", kCounter, "Passes begun by training processes"},
    {"optcache_unknown_orders_total", kCounter, "Passes whose order was not the one foretold"},
    {"optcache_unforetold_reads_total", kCounter, "Reads that are in no pass's order"},
    {"optcache_loaders_attached", kGauge, "Ranks attached"},
    {"optcache_manifests_awaited", kGauge, "Datasets whose manifest no node has given yet"},
    {"optcache_node_connected", kGauge, "1 while the machine's node answers"},
    {"optcache_puts_sent_total", kCounter, "Samples sent to the node to be kept"},
    {"optcache_store_reads_total", kCounter, "Reads of the store that succeeded"},
    {"optcache_store_read_bytes_total", kCounter, "Bytes of those"},
    {"optcache_store_read_failures_total", kCounter,
     "Samples that could not be read from the store"},
    {"optcache_store_retries_total", kCounter, "Reads of the store that were tried again"},
    {"optcache_store_errors_total", kCounter, "Attempts that failed, by code"},
    {"optcache_store_reads_in_flight", kGauge,
     "Reads of the store that are not finished, retries included"},
    {"optcache_store_reads_running", kGauge, "Store reads that the sidecar has begun"},
    {"optcache_store_reads_waiting", kGauge, "Store reads that wait for a place"},
    {"optcache_store_waiting_reads", kGauge, "Reads that wait inside the store's client"},
    {"optcache_store_running_reads", kGauge, "Requests that are on the wire"},
    {"optcache_channel_clients", kGauge, "Connections of training processes"},
    {"optcache_channel_connections_total", kCounter, "Connections that training processes made"},
    {"optcache_channel_refused_total", kCounter,
     "Connections given up: too_many of them, breach of protocol, too_slow"},
    {"workqueue_depth", kGauge, "Keys that wait to be worked on"},
    {"workqueue_adds_total", kCounter, "Keys that were put into the queue"},
    {"workqueue_retries_total", kCounter, "Keys that were put back after a failure"},
    {"workqueue_queue_duration_seconds", kHistogram, "How long keys waited in the queue"},
    {"workqueue_work_duration_seconds", kHistogram, "How long the work on a key took"},
    {"workqueue_unfinished_work_seconds", kGauge,
     "Seconds that the work under way has taken so far, all keys together"},
    {"workqueue_longest_running_processor_seconds", kGauge,
     "Seconds that the longest work under way has taken so far"},
    {"optcache_reconcile_total", kCounter,
     "Reconciliations that ended: success, requeue_after, error"},
    {"optcache_reconcile_seconds", kHistogram, "How long reconciliations took"},
    {"optcache_reconcile_active", kGauge, "Reconciliations under way"},
    {"optcache_informer_objects", kGauge, "Objects of a kind in memory"},
    {"optcache_informer_synced", kGauge, "1 once the first list of a kind is complete"},
    {"optcache_informer_lists_total", kCounter,
     "Lists that were begun: the first, and one each time that the watch lost its place"},
    {"optcache_informer_watches_total", kCounter, "Watches that were begun"},
    {"optcache_informer_failures_total", kCounter, "Lists and watches that failed"},
    {"optcache_informer_events_total", kCounter, "Events of watches, bookmarks included"},
    {"rest_client_requests_total", kCounter,
     "Requests to the API server that ended; code <error> without an answer"},
    {"rest_client_request_duration_seconds", kHistogram,
     "How long requests to the API server took, waiting for a place included"},
    {"rest_client_request_retries_total", kCounter,
     "Requests sent again because the API server asked for it"},
    {"rest_client_requests_waiting", kGauge, "Requests that wait for a place"},
    {"leader_election_master_status", kGauge, "1 while this process leads"},
    {"optcache_events_total", kCounter,
     "Kubernetes Events: written, failed, suppressed because an object had too many"},
    {"optcache_injection_total", kCounter, "Pods that the injector was asked about"},
    {"optcache_webhook_request_duration_seconds", kHistogram,
     "How long the injector's answers took, without the network"},
    {"optcache_certificate_expiry_timestamp_seconds", kGauge,
     "When a certificate expires, in seconds since 1970"},
});

}  // namespace

std::span<const Metric> Catalog() {
  return kCatalog;
}

const Metric* FindMetric(std::string_view name) {
  const auto* const found =
      std::find_if(kCatalog.begin(), kCatalog.end(), [name](const Metric& metric) {
        if (metric.kind != MetricKind::kHistogram) return metric.name == name;
        if (!name.starts_with(metric.name)) return false;
        const std::string_view part = name.substr(metric.name.size());
        return part == "_bucket" || part == "_sum" || part == "_count";
      });
  return found == kCatalog.end() ? nullptr : found;
}

}  // namespace optcache::metrics
