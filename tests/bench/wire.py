"""Node to sidecar: processor time of both sides, beside memcached's; and what a hostile source takes."""

from __future__ import annotations

import statistics
from typing import Any

from bench.context import Context
from bench.figures import Figure, at_most, ratio_interval

# How it is called, our case, its peer, and what we do that the peer does not.
COMPARISONS = [
    ("wire: CPU / memcached's", "optcache", "memcached", "with CRC"),
    ("wire, sealed after TLS: CPU / memcached's", "optcache_bulk", "memcached", "with CRC and tags"),
    ("wire in TLS: CPU / memcached's in TLS", "optcache_tls", "memcached_tls", "with CRC"),
]


def run(context: Context) -> list[Figure]:
    sizes = ["--gigabytes", "0.2", "--rounds", "4", "--attacks", "3"]
    if not context.quick:
        sizes = ["--gigabytes", "1", "--rounds", "20", "--attacks", "10"]
    rounds: list[dict[str, Any]] = context.ask("bench_wire", *sizes)
    figures = []
    for name, our_case, peer, extra in COMPARISONS:
        for batch in sorted({one["batch"] for one in rounds}):
            ours, theirs = _costs(rounds, our_case, batch), _costs(rounds, peer, batch)
            ratio, interval = ratio_interval(ours, theirs)
            figures.append(
                Figure(
                    f"{name}, {batch} samples a request",
                    ratio,
                    "",
                    f"optcache {statistics.median(ours):.3f} s/GB {extra}, "
                    f"memcached {statistics.median(theirs):.3f} without",
                    at_most(1.0),
                    interval,
                )
            )
    return [*figures, _attacked(rounds)]


def _attacked(rounds: list[dict[str, Any]]) -> Figure:
    """What a reader loses to another source's TLS handshakes."""
    alone, attacked, without = (
        [one for one in rounds if one["name"] == name]
        for name in ("alone", "attacked", "attacked_without_pace")
    )

    def lost(to: list[dict[str, Any]]) -> tuple[float, tuple[float, float]]:
        left, (low, high) = ratio_interval(_of(to, "gb_s"), _of(alone, "gb_s"))
        return 1 - left, (1 - high, 1 - low)

    share, interval = lost(attacked)
    return Figure(
        "wire: reader's rate lost while one source does TLS handshakes as fast as it can",
        share,
        "",
        f"{statistics.median(_of(attacked, 'handshakes_s')):.0f} handshakes/s; without their pace "
        f"{lost(without)[0]:.2f} by {statistics.median(_of(without, 'handshakes_s')):.0f}",
        at_most(0.2),
        interval,
    )


def _of(rounds: list[dict[str, Any]], name: str) -> list[float]:
    return [one[name] for one in rounds]


def _costs(rounds: list[dict[str, Any]], name: str, batch: int) -> list[float]:
    """CPU seconds a gigabyte of both sides, by round."""
    return [
        one["client_cpu_s_gb"] + one["server_cpu_s_gb"]
        for one in rounds
        if (one["name"], one["batch"]) == (name, batch)
    ]
