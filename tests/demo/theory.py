"""What a policy must read from the store, and the least that any cache of that size can read.

For one job there are closed forms. For several jobs, `optcache simulate` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import accounting
from accounting import Delivery
from harness.cluster import Metrics
from harness.oracle import Reads, simulated_reads
from report import Setup

# As `optcache simulate` calls them. The plan of one node is Belady's MIN.
SIMULATED = {"Optimal": "min", "Pin": "pin", "LRU": "lru"}


@dataclass(frozen=True)
class Theory:
    """Of a run with one policy."""

    hit_ratio: float
    store_bytes: int
    bound_bytes: int  # for Setup.capacity_bytes
    bound_all_bytes: int  # for Setup.resident_bytes


def of_one_job(policy: str, setup: Setup, nodes: Sequence[Metrics]) -> Theory:
    """What the plan predicted of the nodes' reads, or, where there is no plan, the closed form."""
    planned = _planned(nodes) if policy == "Optimal" else None
    ratio, store_bytes = planned or _closed_form(policy, setup)
    bound, bound_all = (
        accounting.bound_bytes(setup.total_bytes, held, setup.epochs)
        for held in (setup.capacity_bytes, setup.resident_bytes)
    )
    return Theory(ratio, store_bytes, bound, bound_all)


def _closed_form(policy: str, setup: Setup) -> tuple[float, int]:
    """Hit ratio, and bytes from the store."""
    share = setup.capacity_bytes / setup.total_bytes
    ratio = accounting.predicted_hit_ratio(policy, share, setup.epochs)
    return ratio, round((1 - ratio) * setup.epochs * setup.total_bytes)


def _planned(nodes: Sequence[Metrics]) -> Optional[tuple[float, int]]:
    """The same of the nodes' plan, if they have one."""

    def misses(of: str) -> float:
        name = f"optcache_plan_predicted_{of}_total{{"
        return sum(
            value
            for node in nodes
            for series, value in node.items()
            if series.startswith(name) and 'result="miss"' in series
        )

    requests = sum(node.get("optcache_plan_predicted_requests_total", 0) for node in nodes)
    if not requests:
        return None
    return 1 - misses("requests") / requests, int(misses("request_bytes"))


def of_several_jobs(
    policy: str,
    setup: Setup,
    orders: Sequence[Sequence[int]],
    deliveries: Sequence[Delivery],
    sizes: Sequence[int],
    program: Path,
    folder: Path,
) -> Theory:
    """The policy reads the jobs' orders in turn. The bound knows how the reads came in truth."""

    def simulated(policy: str, samples: Sequence[int], held: int) -> Reads:
        return simulated_reads(policy, program, folder, samples, sizes, held / setup.total_bytes)

    turns = list(in_turn(orders))
    reads = Reads(len(turns), sum(sizes[sample] for sample in turns))
    if policy in SIMULATED:
        reads = simulated(SIMULATED[policy], turns, setup.capacity_bytes)
    came = [delivery.sample for delivery in sorted(deliveries, key=lambda it: it.time)]
    return Theory(
        hit_ratio=1 - reads.requests / len(turns),
        store_bytes=reads.body_bytes,
        bound_bytes=simulated("min", came, setup.capacity_bytes).body_bytes,
        bound_all_bytes=simulated("min", came, setup.resident_bytes).body_bytes,
    )


def in_turn(orders: Sequence[Sequence[int]]) -> Iterator[int]:
    """What jobs of one speed read: a sample of each, then the next one of each."""
    for samples in zip(*orders, strict=True):
        yield from samples
