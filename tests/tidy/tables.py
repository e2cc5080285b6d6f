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
    "api": {"dataset", "sampler", "plan"},
    "simulation": {"dataset", "plan"},
    "opt4torch": {"dataset", "plan", "simulation"},
    "headspace": set(),
    "coordination": {"dataset", "sampler", "plan", "api"},
    "capacity": {"dataset", "sampler", "plan", "api", "coordination"},
    "coordinator": {"dataset", "sampler", "plan", "api", "coordination", "capacity"},
    "storage": {"dataset"},
    "cache": {"dataset", "plan"},
    "net": {"wire"},
    "handoff": set(),
    "metrics": set(),
    "config": {"api"},
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
PURE = ("dataset", "sampler", "plan", "api", "simulation", "opt4torch", "headspace", "coordination", "capacity", "coordinator", "wire")
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
    (re.compile(r"<yaml-cpp/"), ("lib/config/", "cli/terminal/yaml_text.cc", "tests/unit/api/", "tests/unit/operator/")),
    (re.compile(r"<prometheus/"), ("lib/metrics/",)),
    (re.compile(r"<spdlog/"), ("lib/base/log.cc",)),
    (re.compile(r"<isa-l"), ("lib/base/",)),
    (
        re.compile(r"<nlohmann/"),
        ("lib/api/", "lib/config/", "lib/coordination/", "lib/control/", "lib/headspace/", "lib/kube/",
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
    "lib/config/internal/yaml_document.cc": "configuration_test.cc reads whole files through it",
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
