"""What it costs to make an order, beside the same algorithm written plainly and beside who else
makes it: PyTorch, numpy and Accelerate, where this interpreter has them.
"""

from __future__ import annotations

import time
from typing import Any, Callable

from bench.context import Context
from bench.figures import Figure

SAMPLES = 1_281_167  # ImageNet's
WORLD = 8

# By the name of the benchmark: what the figure is called, and whose it is otherwise.
RECIPES = {
    "distributed": ("DistributedSampler", "list() of a rank's sampler"),
    "accelerate": ("Accelerate, batches of 32", "list() of a rank's sampler"),
    "random": ("RandomSampler(generator)", "torch.randperm"),
    "replacement": ("RandomSampler(replacement)", "list() of the sampler"),
    "megatron": ("Megatron, cyclic", ""),
    "spdl": ("SPDL's DistributedRandomSampler", "numpy's choice"),
    "subset": ("DistributedSampler over two ranges", ""),
}


def run(context: Context) -> list[Figure]:
    flags = ["--benchmark_format=json"]
    flags.append(f"--benchmark_filter=BM_(Plain)?Randperm/.*{SAMPLES}|BM_Recipe")
    if context.quick:
        flags.append("--benchmark_min_time=0.05")
    measured = context.ask("bench_sampler", *flags)["benchmarks"]
    nanoseconds = {
        result["name"].removeprefix("BM_Recipe/").partition("/")[0]: 1e9
        / result["items_per_second"]
        for result in reversed(measured)  # the first of a name counts: the 32-bit variant
    }
    figures = [
        Figure(
            "order: randperm, a sample",
            nanoseconds["BM_Randperm"],
            "ns",
            f"plain loop {nanoseconds['BM_PlainRandperm']:.1f} ns",
        )
    ]
    peers = peer_nanoseconds()
    for name, (title, whose) in RECIPES.items():
        remark = f"{whose} {peers[name]:.0f} ns" if name in peers else ""
        figures.append(Figure(f"order: {title}, a sample", nanoseconds[name], "ns", remark))
    return figures


def peer_nanoseconds() -> dict[str, float]:
    """What others take for each sample of a pass of all ranks, by the name of our benchmark."""
    peers: dict[str, Callable[[], Any]] = {}
    try:
        import numpy

        peers["spdl"] = lambda: numpy.random.default_rng(1).choice(SAMPLES, SAMPLES, replace=False)
        import torch
        from torch.utils.data import BatchSampler, RandomSampler
        from torch.utils.data.distributed import DistributedSampler

        generator = torch.Generator()
        numbers = range(SAMPLES)
        distributed = DistributedSampler(numbers, num_replicas=WORLD, rank=0)
        replacing = RandomSampler(numbers, replacement=True, generator=generator)
        peers["distributed"] = lambda: list(distributed)
        peers["random"] = lambda: torch.randperm(SAMPLES, generator=generator)
        peers["replacement"] = lambda: list(replacing)
        from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler

        batches = BatchSampler(SeedableRandomSampler(numbers, data_seed=1), 32, False)
        shard = BatchSamplerShard(batches, WORLD, 0)
        peers["accelerate"] = lambda: list(shard)
    except ImportError:
        pass  # what was found until here is compared
    return {name: 1e9 * min(map(cpu_seconds, [peer] * 3)) / SAMPLES for name, peer in peers.items()}


def cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
