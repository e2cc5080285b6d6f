"""Node to sidecar: processor time of both sides, beside memcached's."""

from __future__ import annotations

import statistics
from typing import Any

from bench.context import Context
from bench.figures import Figure, at_most, ratio_interval


def run(context: Context) -> list[Figure]:
    sizes = ["--gigabytes", "0.2", "--rounds", "4"]
    if not context.quick:
        sizes = ["--gigabytes", "1", "--rounds", "20"]
    rounds: list[dict[str, Any]] = context.ask("bench_wire", *sizes)
    figures = []
    for batch in sorted({one["batch"] for one in rounds}):
        ours, theirs = _costs(rounds, "optcache", batch), _costs(rounds, "memcached", batch)
        ratio, interval = ratio_interval(ours, theirs)
        figures.append(
            Figure(
                f"wire: CPU / memcached's, {batch} samples a request",
                ratio,
                "",
                f"optcache {statistics.median(ours):.3f} s/GB with CRC, "
                f"memcached {statistics.median(theirs):.3f} without",
                at_most(1.0),
                interval,
            )
        )
    return figures


def _costs(rounds: list[dict[str, Any]], name: str, batch: int) -> list[float]:
    """CPU seconds a gigabyte of both sides, by round."""
    return [
        one["client_cpu_s_gb"] + one["server_cpu_s_gb"]
        for one in rounds
        if (one["name"], one["batch"]) == (name, batch)
    ]
