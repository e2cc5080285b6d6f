"""Samplers beyond PyTorch's DistributedSampler: what the real parts make of what they are told."""

from __future__ import annotations

import json
import random
import re
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from torch.utils.data import DataLoader, RandomSampler, Sampler, Subset, WeightedRandomSampler

from optcache.torch import attach

BATCH = 8
PASSES = 4


class Unforeseen(Sampler[int]):
    """Draws each index when it is asked for it."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        for _ in range(self.size):
            yield random.randrange(self.size)


def seeded() -> Any:
    return torch.Generator().manual_seed(5)


def whole(samples: CheckedSamples) -> Any:
    return RandomSampler(samples, replacement=True, generator=seeded())  # type: ignore[arg-type]


def weighted(samples: CheckedSamples) -> Any:
    weights = [1.0 + (i % 10) ** 2 for i in range(len(samples))]
    return WeightedRandomSampler(weights, len(samples), generator=seeded())


def unforeseen(samples: CheckedSamples) -> Any:
    return Unforeseen(len(samples))


@pytest.mark.parametrize("make, planned", [(whole, True), (weighted, True), (unforeseen, False)])
@pytest.mark.parametrize("workers", [0, 2])
def test_reads_what_its_sampler_draws(
    start_cache: Callable[..., Cluster],
    open_samples: Callable[..., CheckedSamples],
    make: Callable[[CheckedSamples], Any],
    planned: bool,
    workers: int,
) -> None:
    def passes(loader: DataLoader[Any]) -> Iterator[list[int]]:
        random.seed(1)
        for _ in range(PASSES):
            ids: list[int] = []
            for batch, right, _ in loader:
                assert right.all(), f"wrong bytes among {batch.tolist()}"
                ids += batch.tolist()
            yield ids

    cluster = start_cache(share=0.5)
    samples = open_samples(cluster.socket(0))
    expected = list(passes(DataLoader(Plain(samples), BATCH, sampler=make(samples))))
    loader = DataLoader(samples, BATCH, sampler=make(samples), num_workers=workers)
    attach(loader, dataset=samples.samples)
    assert list(passes(loader)) == expected
    assert sum(it["optcache_unknown_orders_total"] for it in cluster.sidecar_metrics()) == 0

    def stream() -> dict[str, Any]:
        streams = cluster.status()["datasets"][0]["streams"]
        return dict(streams[0]) if streams else {"planned": False, "order_known": None}

    if planned:
        wait_until(lambda: stream()["planned"], "it is planned")
    assert stream()["order_known"] == planned


def newest_plan(cluster: Cluster, since: int) -> int:
    """The latest pass that node 0 has planned since its log was so long."""
    plans = re.findall(r"pass planned.*?plan=\S* ?\S+ (\d+)", cluster.log_of("node-0")[since:])
    return max(map(int, plans), default=-1)


def predicted_reads(
    cluster: Cluster, programs: Path, reads: list[int], sizes: list[int], capacity: int, to: Path
) -> dict[str, int]:
    """How often each policy would read the store, that knows all of `reads`."""
    to.write_bytes(b"".join(struct.pack("<IQIq", 0, i, sizes[i], -1) for i in reads))
    whole = sum(sizes[i] for i in set(reads))
    command = [programs / "optcache", "simulate", "--trace", to, "--trace-format", "oracleGeneral"]
    command += ["--nodes", "1", "--capacity", str(capacity / whole)]
    command += ["--policies", "min,pin,lru", "--output", "json"]
    shown = subprocess.run(list(map(str, command)), check=True, capture_output=True).stdout
    return {name: of["storeReads"] for name, of in json.loads(shown)["policies"].items()}


@pytest.mark.long
@pytest.mark.parametrize("machines", [1, 2])
def test_weights_are_planned_as_well_as_their_future_is_known(
    start_cache: Callable[..., Cluster],
    open_samples: Callable[..., CheckedSamples],
    programs: Path,
    dataset: Dataset,
    tmp_path: Path,
    machines: int,
) -> None:
    """On two machines the memory of the one that nobody reads through is used as well. Only what is
    small moves there, so that fewer reads, though not fewer bytes, can come from the store.
    """
    share = 0.3
    cluster = start_cache(machines=machines, share=share)
    begun = len(cluster.log_of("node-0"))
    samples = open_samples(cluster.socket(0))
    loader = DataLoader(samples, BATCH, sampler=weighted(samples), num_workers=2)
    attach(loader, dataset=samples.samples, epochs=6)
    reads: list[int] = []
    for number in range(6):
        for batch, right, _ in loader:
            assert right.all()
            # A pass takes minutes elsewhere, in which it and what comes next is planned.
            if not reads:
                wait_until(lambda: newest_plan(cluster, begun) >= 1, "the stream is planned")
            reads += batch.tolist()
        ahead = min(number + 2, 5)
        wait_until(lambda: newest_plan(cluster, begun) >= ahead, f"pass {ahead} is planned")
    store_reads = sum(it["optcache_store_reads_total"] for it in cluster.sidecar_metrics())
    capacity = int(dataset.total_bytes * share / machines) * machines
    sizes = dataset.sizes
    predicted = predicted_reads(cluster, programs, reads, sizes, capacity, tmp_path / "reads")
    print(f"{machines} machines: {len(reads)} reads, {store_reads:.0f} of the store; {predicted}")
    assert store_reads <= predicted["min"] * 1.05
    assert machines > 1 or store_reads >= predicted["min"] * 0.99


class Plain(torch.utils.data.Dataset[Any]):
    """The same numbers without the cache."""

    def __init__(self, samples: CheckedSamples) -> None:
        self.size = len(samples)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, bool, float]:
        return index, True, 0.0


def test_a_subset_is_planned(
    start_cache: Callable[..., Cluster], open_samples: Callable[..., CheckedSamples]
) -> None:
    cluster = start_cache(share=0.5)
    samples = open_samples(cluster.socket(0)).samples
    part = Subset(samples, range(300, 900))  # type: ignore[arg-type]
    loader = attach(DataLoader(part, BATCH, shuffle=True, generator=seeded(), collate_fn=list))
    for _ in range(PASSES):
        assert sum(len(batch) for batch in loader) == 600
    (stream,) = cluster.status()["datasets"][0]["streams"]
    wait_until(lambda: cluster.status()["datasets"][0]["streams"][0]["planned"], "it is planned")
    assert stream["order_known"] and stream["length"] == 600
    assert sum(it["optcache_unknown_orders_total"] for it in cluster.sidecar_metrics()) == 0


class Pairs(torch.utils.data.Dataset[Any]):
    """Items of two samples, one from each end of the dataset."""

    def __init__(self, samples: CheckedSamples) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples) // 2

    def made_of(self, index: int) -> tuple[int, int]:
        return index, len(self.samples) - 1 - index

    def __getitem__(self, index: int) -> tuple[int, bool]:
        return index, all(self.samples[number][1] for number in self.made_of(index))


@pytest.mark.parametrize("workers", [0, 2])
def test_items_of_two_samples_are_planned(
    start_cache: Callable[..., Cluster],
    open_samples: Callable[..., CheckedSamples],
    workers: int,
) -> None:
    cluster = start_cache(share=0.5)
    samples = open_samples(cluster.socket(0))
    pairs = Pairs(samples)
    loader = attach(
        DataLoader(pairs, BATCH, shuffle=True, generator=seeded(), num_workers=workers),
        dataset=samples.samples,
        samples=pairs.made_of,
    )
    for _ in range(PASSES):
        ids: list[int] = []
        for batch, right in loader:
            assert right.all()
            ids += batch.tolist()
        assert sorted(ids) == list(range(len(pairs)))
    (stream,) = cluster.status()["datasets"][0]["streams"]
    wait_until(lambda: cluster.status()["datasets"][0]["streams"][0]["planned"], "it is planned")
    assert stream["order_known"] and stream["length"] == 2 * len(pairs)
    assert sum(it["optcache_unknown_orders_total"] for it in cluster.sidecar_metrics()) == 0
