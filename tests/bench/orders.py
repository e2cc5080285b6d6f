"""What it costs to make an order, beside the same algorithm written plainly."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure

SAMPLES = 1_281_167  # ImageNet's


def run(context: Context) -> list[Figure]:
    flags = ["--benchmark_format=json", f"--benchmark_filter=BM_(Plain)?Randperm/.*{SAMPLES}"]
    if context.quick:
        flags.append("--benchmark_min_time=0.05")
    measured = context.ask("bench_sampler", *flags)["benchmarks"]
    nanoseconds = {
        result["name"].partition("/")[0]: 1e9 / result["items_per_second"]
        for result in reversed(measured)  # the first of a name counts: the 32-bit variant
    }
    return [
        Figure(
            "order: randperm, a sample",
            nanoseconds["BM_Randperm"],
            "ns",
            f"plain loop {nanoseconds['BM_PlainRandperm']:.1f} ns",
        )
    ]
