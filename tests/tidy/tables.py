"""What tidy.py checks against: who may include what, and what not to write."""

from __future__ import annotations

import re

# What a library may include of ours, besides itself and base. DEPS in lib/CMakeLists.txt and
# lib/*/library.cmake may use less of it, never more. The picture: docs/ARCHITECTURE.md, Layers.
LAYERS: dict[str, set[str]] = {
    "base": set(),
    "dataset": set(),
    "sampler": set(),
    "wire": set(),
    "plan": {"dataset"},
    "simulation": {"dataset", "plan"},
    "opt4torch": {"dataset", "plan", "simulation"},
    "headspace": set(),
    "coordination": {"dataset", "sampler", "plan"},
    "capacity": {"dataset", "sampler", "plan", "coordination"},
    "coordinator": {"dataset", "sampler", "plan", "coordination", "capacity"},
    "storage": {"dataset"},
    "cache": {"dataset", "plan"},
    "net": {"wire"},
    "handoff": set(),
    "metrics": set(),
    "config": {"dataset", "sampler"},
    "pki": set(),
    "kube": {"net"},
    "control": {"dataset", "sampler", "plan", "coordination", "capacity", "coordinator", "net", "metrics"},
}

# The rooms of each program: its folders with C++. One includes itself and those before it; the files of
# the program's root include all. What is in a room: its README.md. Why: docs/adr/0037.
ROOMS: dict[str, tuple[str, ...]] = {
    "cache-node": ("retention", "control", "trust", "manifests", "planning", "serving"),
    "sidecar": ("ports", "manifests", "fetch", "prefetch", "computed", "clients", "s3", "programs"),
    "operator": ("pki", "api", "webhook", "reconcile", "manager"),
    "cli": (
        *("terminal", "cluster", "local"),  # what several subcommands need
        *("manifest", "order", "rollout", "status", "simulate", "explain", "up", "plan", "datasets"),
        *("doctor", "headspace", "warmup", "convert", "dashboard"),
    ),
}
PROGRAMS = tuple(ROOMS)

# Python packages, whose modules import each other in no circle.
PYTHON_PACKAGES = ("sidecar/python/src/optcache",)

# No thread, no clock, no file, no socket: same input, same output.
PURE = ("dataset", "sampler", "plan", "simulation", "opt4torch", "headspace", "coordination", "capacity", "coordinator", "wire")
IMPURE_HEADERS = re.compile(
    r"<(thread|mutex|shared_mutex|atomic|condition_variable|future|fstream|iostream|filesystem"
    r"|unistd\.h|fcntl\.h|(sys|netinet|arpa|linux)/.*)>"
    r'|"base/(mutex|files|unique_fd)\.h"'
)
IMPURE_WORDS = re.compile(r"::now\(|\bSystemClock\(|\brandom_device\b|\bgetenv\(")

# Headers of third parties, and the only paths (beginnings) that may include them. Tests of an
# owner may as well.
OWNERS: list[tuple[re.Pattern[str], tuple[str, ...]]] = [
    (re.compile(r"<boost/(asio|beast)"), ("lib/net/",)),
    (re.compile(r"<(cpprest|pplx)/"), ("lib/net/internal/rest_client.cc",)),
    (
        re.compile(r"<openssl/"),
        ("lib/net/", "lib/pki/", "lib/storage/", "tests/bench/"),
    ),
    (re.compile(r"<curl/"), ("lib/storage/internal/",)),
    (re.compile(r"<pugixml"), ("lib/storage/",)),
    (re.compile(r"<zlib"), ("lib/storage/internal/",)),
    (re.compile(r"<archive(_entry)?\.h>"), ("lib/storage/",)),
    (re.compile(r"<yaml-cpp/"), ("lib/config/", "cli/terminal/yaml_text.cc", "tests/unit/operator/")),
    (re.compile(r"<prometheus/"), ("lib/metrics/",)),
    (re.compile(r"<spdlog/"), ("lib/base/log.cc",)),
    (re.compile(r"<isa-l"), ("lib/base/",)),
    (
        re.compile(r"<nlohmann/"),
        ("lib/coordination/", "lib/control/", "lib/headspace/", "lib/kube/",
         "lib/opt4torch/safetensors.cc", "lib/storage/inventory.cc", "lib/storage/s3_temporary_keys.cc", "cache-node/", "sidecar/",
         "operator/", "cli/", "tests/"),
    ),
    (
        re.compile(r"<CLI/"),
        ("cli/", "cache-node/main.cc", "sidecar/main.cc", "operator/main.cc", "tests/"),
    ),
    (re.compile(r"<(gtest|gmock)/"), ("tests/",)),
    (re.compile(r"<benchmark/"), ("tests/bench/",)),
]

# (what, where it is banned, where it is allowed all the same, what to use instead)
BANNED: list[tuple[re.Pattern[str], tuple[str, ...], tuple[str, ...], str]] = [
    (
        re.compile(r"\bsleep_(for|until)\b|\busleep\("),
        ("tests/",),
        (),
        "ManualClock, or wait for the condition",
    ),
    (
        re.compile(r"\b(system_clock|steady_clock|high_resolution_clock)::now\b"),
        ("lib/", "tests/unit/", "tests/sim/", *(f"{program}/" for program in PROGRAMS)),
        ("lib/base/clock.cc",),
        "a Clock& (base/clock.h)",
    ),
    (re.compile(r"\bstd::(ranges::)?views::"), ("",), (), "a loop"),
    (re.compile(r"\bstd::c(out|err)\b"), ("lib/",), (), "Log (base/log.h), or return the text"),
    (re.compile(r"(?<!static_)\bassert\("), ("",), (), "CHECK or DCHECK (base/check.h)"),
    (re.compile(r"\bstd::rand\(|\bsrand\("), ("",), (), "Random with a seed (base/random.h)"),
]

# A .cc of lib/ without its own _test.cc, and why.
UNTESTED: dict[str, str] = {
    "lib/config/cache_plan.cc": "configuration_test.cc reads whole files through it",
    "lib/config/dataset.cc": "configuration_test.cc reads whole files through it",
    "lib/config/internal/yaml_document.cc": "configuration_test.cc reads whole files through it",
    "lib/config/internal/yaml_fields.cc": "configuration_test.cc reads whole files through it",
    "lib/coordination/internal/json_fields.cc": "codec_test.cc reads every message through it",
    "lib/coordination/internal/json_values.cc": "codec_test.cc writes every message through it",
    "lib/coordination/version.cc": "codec_test.cc formats and parses versions",
    "lib/kube/internal/rest_requests.cc": "api_client_test.cc tests it over real sockets",
    "lib/metrics/process.cc": "metrics_page_test.cc finds its numbers on the page",
    "lib/net/internal/http_exchange.cc": "http_server_test.cc tests it over real sockets",
    "lib/net/internal/http_session.cc": "http_server_test.cc tests it over real sockets",
    "lib/net/internal/rest_client.cc": "http_client_test.cc tests it over real sockets",
    "lib/net/internal/listener.cc": "server_test.cc tests it over real sockets",
    "lib/net/internal/stream.cc": "http_server_test.cc tests it over real sockets",
    "lib/pki/internal/openssl.cc": "requests_test.cc and certificates_test.cc read and name through it",
    "lib/net/internal/socket_connection.cc": "connection_test.cc and server_test.cc do",
    "lib/storage/internal/http_exchange.cc": "http_store_test.cc and s3_store_test.cc read through it",
    "lib/storage/internal/range_index.cc": "index_ranges_test.cc reads every index through it",
    "lib/storage/internal/shards.cc": "index_tar_test.cc and index_ranges_test.cc index by it",
    "lib/storage/internal/key_files.cc": "http_keys_test.cc and s3_credentials_test.cc read through it",
    "lib/simulation/homed_cluster.cc": "cluster_test.cc follows it by hand",
    "lib/simulation/nopfs_cluster.cc": "cluster_test.cc follows it by hand",
    "lib/simulation/planned_cluster.cc": "cluster_test.cc follows it by hand",
}

# Metrics of docs/metrics.md that are in no dashboard and no alert, by the reason.
NOT_SHOWN: dict[str, str] = {
    "details of numbers that are shown": """
        optcache_tier_hit_bytes_total optcache_plan_covered_request_bytes_total optcache_plan_predicted_request_bytes_total optcache_moves_total
        optcache_request_bytes_total
        optcache_disk_segments_total optcache_disk_reads_total optcache_arena_used_bytes optcache_passes_total
        optcache_puts_sent_total optcache_puts_withheld_total optcache_puts_held_reads optcache_store_read_bytes_total
        optcache_store_reads_joined_total optcache_overflow_bytes optcache_overflow_samples_total
        optcache_overflow_sample_bytes_total optcache_client_batches_waiting optcache_client_failed_samples_total
        optcache_computed_capacity_bytes optcache_computed_bytes optcache_directory_samples""",
    "tests compare them with a budget": """
        optcache_cache_peak_bytes optcache_cache_reserve_bytes optcache_live_sample_bytes""",
    "a panel computes the same from counters": """
        optcache_observed_hit_ratio""",
    "of a single sidecar: `loader.optcache.stats()` shows them, and panels compute them from counters": """
        optcache_saved_requests optcache_saved_bytes""",
    "`optcache doctor` and `explain job` tell what they mean": """
        optcache_client_wait_cause_seconds_total""",
    "details of how a sidecar protects a slow store": """
        optcache_store_retries_delayed_total optcache_store_retries_left optcache_store_concurrency_limit
        optcache_store_concurrency_decreases_total optcache_store_reads_held_back
        optcache_store_share_requests optcache_store_share_bytes
        optcache_store_breaker_opened_total optcache_store_reads_in_flight
        optcache_store_queue_reads optcache_store_client_requests
        optcache_store_bandwidth_bytes optcache_store_reads_always optcache_store_reads_deferred""",
    "details of connections": """
        optcache_peer_losses_total optcache_leases_ended_total optcache_peer_silences_total
        optcache_payloads_without_room_total optcache_untaken_answers_closed_total
        process_open_fds optcache_net_accepted_connections_total optcache_net_refused_connections_total
        optcache_net_closed_connections_total optcache_net_received_frames_total optcache_net_sent_frames_total
        optcache_net_corrupt_payloads_total optcache_net_refused_payloads_total
        optcache_http_open_connections
        optcache_http_refused_connections_total optcache_http_responses_total
        optcache_tls_handshake_failures_total optcache_tls_delayed_handshakes_total optcache_channel_clients
        optcache_channel_connections_total
        optcache_channel_refused_total""",
    "of a single run: the headspace report has them": """
        optcache_headspace_samples_total optcache_headspace_steps optcache_headspace_step_seconds
        optcache_headspace_speedup_ratio""",
    "they change at a start only; an alert or a condition reports a failure": """
        optcache_certificate_requests_total optcache_node_certificates_total optcache_manifests_awaited
        optcache_manifests_held optcache_manifests_held_bytes optcache_manifest_fetches_total
        optcache_informer_synced optcache_machines_without_native_sidecars""",
    "usual of Kubernetes controllers: ready-made dashboards show such numbers": """
        workqueue_adds_total workqueue_retries_total workqueue_work_duration_seconds
        workqueue_unfinished_work_seconds workqueue_longest_running_processor_seconds
        rest_client_request_duration_seconds rest_client_request_retries_total rest_client_requests_waiting
        optcache_reconcile_active optcache_informer_objects optcache_informer_watches_total
        optcache_informer_events_total optcache_events_total optcache_coordinator_polls""",
}

# Files that may pass MAX_LINES, and why.
LONG: dict[str, str] = {}

MAX_LINES = 500
MAX_LINES_WITHOUT_OPENING = 150
MAX_BYTES = 1 << 20

# What docs/STYLE.md, "Language", bans in comments, messages and documents, and what to write instead.
IN_COMMENTS: dict[str, str] = {
    r"\banew\b": "again",
    r"\bwhoever\b": "a noun: the caller, the user, the process",
    r"\bforetold\b": "predicted",
    r"\bforetell\b": "predict",
    r"\bso long\b": "this long, how long, until or while",
    r"\bso many\b": "this many, how many, or the number",
}
IN_MESSAGES = IN_COMMENTS | {
    r"\bnobody\b": "a noun: no node, no user; or 'no one'",
    r"\b(?:some|every|any)body\b": "a noun: a user, every process, another command",
}
IN_DOCUMENTS = IN_MESSAGES | {
    r"(?<![\w./)\]$])\.\d+": "a zero before the point",
    r"\bsay ``": "set",  # of a value, whose code is left out here
    r"\bif you do not say\b": "by default",
}
# What users read beside documents: what these print, and each line of these.
SHOW_MESSAGES = ("tests/bench/", "tests/cluster/", "tests/demo/")
SHOW_LINES = (
    "dev",
    "sidecar/python/src/",
    "scripts/dev.d/",
    "charts/optcache/files/crds/",
    "charts/optcache/templates/NOTES.txt",
    "charts/optcache/values.yaml",
)
# Subjects of this commit and of those before it stay as they are.
SUBJECTS_AFTER = "0b7cd8dfb0f493e9bb592213d0d1581b844e5944"
# Documents that may: decisions are written once, and the page on style shows what it bans.
SHOW_HARD_WORDS = ("docs/adr/", "docs/STYLE.md")
