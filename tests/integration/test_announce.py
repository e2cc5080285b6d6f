"""Orders that are announced without PyTorch: what the real parts make of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import optcache
import pytest
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.processes import wait_until

from optcache.grain import DataSource
from optcache.spdl import Source

BATCH = 8
EPOCHS = 3
SHARE = 0.5


def a_function(size: int) -> Callable[[int], list[int]]:
    return lambda epoch: random.Random(epoch).sample(range(size), size)


def a_shuffle(size: int) -> optcache.Shuffle:
    return optcache.Shuffle(5)


def wait_for_the_plan(cache: Cluster, epoch: int) -> None:
    """Until the node has planned this epoch: a plan that comes later finds samples already dropped."""

    def planned() -> bool:
        plans = re.findall(r"pass planned.*?plan=\S* ?\S+ (\d+)", cache.log_of("node-0"))
        return max(map(int, plans), default=-1) >= epoch

    wait_until(planned, f"epoch {epoch} is planned")


def check_reads(cache: Cluster, dataset: Dataset) -> None:
    """All reads were predicted, and the store was read hardly more than any cache of that size must.

    Without a plan it is read 1.5 times as much. On a busy machine a sample may be moved late.
    """
    (metrics,) = cache.sidecar_metrics()
    assert metrics["optcache_unpredicted_reads_total"] == 0
    assert metrics["optcache_passes_total"] == EPOCHS
    bound = (1 + (EPOCHS - 1) * (1 - SHARE)) * dataset.total_bytes
    taken = metrics["optcache_store_read_bytes_total"]
    print(f"{taken:.0f} bytes of the store; the bound is {bound:.0f}: {taken / bound:.3f}")
    assert taken <= 1.2 * bound


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("make", [a_shuffle, a_function])
def test_an_announced_order_is_planned(
    start_cache: Callable[..., Cluster],
    dataset: Dataset,
    make: Callable[[int], Any],
    threads: int,
) -> None:
    cache = start_cache(share=SHARE)
    samples = optcache.Dataset(socket=str(cache.socket(0)))
    order = make(len(samples))

    def read(batch: list[int]) -> tuple[list[int], list[bytes]]:
        return list(map(int, batch)), list(map(bytes, samples.__getitems__(batch)))

    with optcache.announce(samples, order, batch_size=BATCH, epochs=EPOCHS) as reads:
        with ThreadPoolExecutor(threads) as pool:
            for epoch in range(EPOCHS):
                batches = iter(reads)
                first = next(batches)
                wait_for_the_plan(cache, epoch)
                got = [read(first), *pool.map(read, batches)]
                for batch, contents in got:
                    assert contents == [dataset.read(index) for index in batch]
                assert sorted(i for batch, _ in got for i in batch) == list(range(len(samples)))
        assert reads.stats() is not None
    check_reads(cache, dataset)


def test_a_source_of_spdl_is_planned(start_cache: Callable[..., Cluster], dataset: Dataset) -> None:
    cache = start_cache(share=SHARE)
    samples = optcache.Dataset(socket=str(cache.socket(0)))
    source = Source(samples, a_shuffle(0), batch_size=BATCH, epochs=EPOCHS)
    for epoch in range(EPOCHS):
        source.shuffle(epoch)
        read: list[int] = []
        for indices, views in source:
            if not read:
                wait_for_the_plan(cache, epoch)
            assert list(map(bytes, views)) == [dataset.read(index) for index in indices]
            read += indices
        assert sorted(read) == list(range(len(samples)))
    check_reads(cache, dataset)


@pytest.mark.parametrize("make", [a_shuffle, a_function])
def test_a_source_of_grain_is_planned(
    start_cache: Callable[..., Cluster], dataset: Dataset, make: Callable[[int], Any]
) -> None:
    """One thread reads, as the last reads of other threads could come after the next epoch's first."""
    cache = start_cache(share=SHARE)
    samples = optcache.Dataset(socket=str(cache.socket(0)))
    order = make(len(samples))
    source = DataSource(samples, order, epochs=EPOCHS)
    for epoch in range(EPOCHS):
        indices = order(epoch) if callable(order) else order.indices(epoch, len(samples))
        for place, index in enumerate(indices):
            if place == 1:
                wait_for_the_plan(cache, epoch)
            assert bytes(source[index]) == dataset.read(index)
    check_reads(cache, dataset)
