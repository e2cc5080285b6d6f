"""What a plan costs, at ImageNet's size: time a read and memory a sample."""

from __future__ import annotations

from typing import Any

from bench.context import Context
from bench.figures import Figure, at_most

SLOT_NS = 37.0
MOST_BYTES = 16.0
STOP_MS = 10
START_SECONDS = 10.0
START_JOBS = 8
START_SAMPLES = 10_000_000
START_NODES = 1000
NODES_FOR_MEMORY = 4  # it hardly depends on them


def run(context: Context) -> list[Figure]:
    sizes = ["--samples", "100000", "--epochs", "4"] if context.quick else []
    results: list[dict[str, Any]] = context.ask("bench_plan", *sizes)
    *plans, queue = results
    theirs = next(plan for plan in plans if plan["engine"] == "OPT4Torch")
    figures = []
    for result in plans:
        slots = result["engine"] == "slot plan"
        name = "{engine}, streams {streams}, nodes {nodes}".format(**result)
        order = result["order_ns"]
        figures.append(
            Figure(
                f"{name}: a read",
                order + result["plan_ns"],
                "ns",
                f"randperm of it {order:.1f}, an inverse alone {result['inverse_ns']:.1f}, "
                f"MIN by std::priority_queue {queue['order_ns'] + queue['plan_ns']:.0f}, "
                f"as OPT4TorchDataset {theirs['order_ns'] + theirs['plan_ns']:.0f}",
                at_most(SLOT_NS) if slots else None,
            )
        )
        if result["nodes"] == NODES_FOR_MEMORY:
            figures.append(
                Figure(
                    f"{name}: memory a sample and stream, orders apart",
                    _beside_orders(result),
                    "B",
                    f"the orders of two passes {result['order_bytes_a_sample']:.1f} B beside it; "
                    f"std::priority_queue {_beside_orders(queue):.1f}, "
                    f"as OPT4TorchDataset {_beside_orders(theirs):.1f}",
                    at_most(MOST_BYTES) if slots else None,
                )
            )
    return figures + _start(context)


def _beside_orders(result: dict[str, Any]) -> float:
    return float(result["bytes_a_sample"] - result["order_bytes_a_sample"])


def _start(context: Context) -> list[Figure]:
    """The first plan of many jobs in a large cluster, as each node derives it on one core."""
    samples = START_SAMPLES // 100 if context.quick else START_SAMPLES
    sizes = ["--samples", str(samples), "--nodes", str(START_NODES), "--start", str(START_JOBS)]
    result: dict[str, Any] = context.ask("bench_plan", *sizes)
    name = f"{START_JOBS} jobs, {samples:,} samples, {START_NODES} nodes"
    return [
        Figure(
            f"{name}: the first plan",
            result["order_s"] + result["plan_s"],
            "CPU s",
            f"randperm of it {result['order_s']:.1f}",
            at_most(START_SECONDS),
        ),
        Figure(
            f"{name}: memory a sample and job, orders apart",
            _beside_orders(result),
            "B",
            f"the orders of two passes {result['order_bytes_a_sample']:.1f} B beside it",
            at_most(MOST_BYTES),
        ),
        Figure(
            f"{name}: the longest time between two looks whether it is to stop, orders included",
            1000 * result["look_s"],
            "CPU ms",
            f"the plan {result['plan_s']:.1f} s",
            at_most(STOP_MS),
        ),
        Figure(
            f"{name}: from the look that stops it until it has freed its memory",
            1000 * result["stop_s"],
            "CPU ms",
            "",
        ),
    ]
