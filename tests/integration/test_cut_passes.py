"""Jobs that leave each pass after the same part of it: they say so, or it is learned."""

from __future__ import annotations

import collections
import copy
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.oracle import fewest_reads
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

BATCH = 8
SEED = 5
SHARE = 0.3

StartCache = Callable[..., Cluster]
OpenSamples = Callable[..., CheckedSamples]


class Ranks:
    """The ranks of one job, each at a machine of its own, read batch by batch in turn."""

    def __init__(
        self,
        cluster: Cluster,
        samples: list[CheckedSamples],
        workers: int = 0,
        lists: Callable[[DistributedSampler[Any]], Any] = lambda sampler: None,
        **attached: Any,
    ) -> None:
        self.cluster = cluster
        self.samplers = [
            DistributedSampler(it, num_replicas=len(samples), rank=rank, seed=SEED)
            for rank, it in enumerate(samples)
        ]
        self.loaders = [
            attach(
                DataLoader(it, BATCH, sampler=sampler, num_workers=workers),
                dataset=it.samples,
                trace=lists(sampler),
                **attached,
            )
            for it, sampler in zip(samples, self.samplers, strict=True)
        ]

    def read(self, epoch: int, batches: int | None) -> Iterator[list[int]]:
        """The first batches of each rank, one of each at a time; their order is checked."""
        for sampler in self.samplers:
            sampler.set_epoch(epoch)
        lists = [list(sampler) for sampler in self.samplers]
        iterations = [itertools.islice(loader, batches) for loader in self.loaders]
        for number, step in enumerate(zip(*iterations, strict=True)):
            ids: list[int] = []
            for (batch, right, _), expected in zip(step, lists, strict=True):
                assert right.all(), f"wrong bytes among {batch.tolist()}"
                assert batch.tolist() == expected[number * BATCH : (number + 1) * BATCH]
                ids += batch.tolist()
            yield ids

    def planned_length(self) -> int:
        """How many reads a pass has, as it is planned; 0: it is not."""
        streams = self.cluster.status()["datasets"][0]["streams"]
        return int(streams[0]["length"]) if streams and streams[0]["planned"] else 0


def newest_plan(cluster: Cluster, begun: int, length: int) -> int:
    """The latest pass of so many reads that node 0 has planned to its end by its present plan, since
    its log, in which caches before it wrote, was so long.
    """
    planned = r'pass planned.*?plan="?(\S+) \S+ (\d+).*? reads=(\d+)'
    found = re.findall(planned, cluster.log_of("node-0")[begun:])
    reads = collections.Counter[int]()
    for version, number, count in found:
        if version == found[-1][0]:
            reads[int(number)] += int(count)
    return max((number for number, count in reads.items() if count == length), default=-1)


def store_reads(cluster: Cluster) -> int:
    return int(sum(it["optcache_store_reads_total"] for it in cluster.sidecar_metrics()))


def orders_unknown(cluster: Cluster) -> int:
    return int(sum(it["optcache_unknown_orders_total"] for it in cluster.sidecar_metrics()))


@pytest.mark.long
@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("machines", [1, 2])
def test_quarters_of_passes_are_read_as_min_would(
    start_cache: StartCache,
    open_samples: OpenSamples,
    programs: Path,
    dataset: Dataset,
    tmp_path: Path,
    machines: int,
    announced: bool,
) -> None:
    """A plan of whole passes would keep what is not read."""
    cluster = start_cache(machines=machines, share=SHARE)
    begun = len(cluster.log_of("node-0"))
    samples = [open_samples(cluster.socket(machine)) for machine in range(machines)]
    batches = len(samples[0]) // machines // BATCH // 4
    last = 24
    ranks = Ranks(
        cluster, samples, epochs=last + 1, limit_batches=batches if announced else None
    )
    part, whole = batches * BATCH * machines, len(samples[0])
    known_from = 0 if announced else 2  # the pass in which it is known
    reads: list[int] = []
    before = 0  # what was read of the store before the first that counts
    for epoch in range(last + 1):
        length = part if epoch >= known_from else whole
        if epoch <= known_from:
            reads, before = [], store_reads(cluster)
        for number, ids in enumerate(ranks.read(epoch, batches)):
            # A pass takes minutes elsewhere, in which it and what comes next is planned.
            if number == 0 and epoch <= known_from:
                wait_until(lambda: abs(ranks.planned_length() - length) < BATCH, "it is planned")
                wait_until(lambda: newest_plan(cluster, begun, length) > epoch, "plans are here")
            reads += ids
        ahead = min(epoch + 2, last) if length == part else 0
        wait_until(lambda: newest_plan(cluster, begun, length) >= ahead, f"pass {ahead} is planned")
    found = store_reads(cluster) - before
    fewest = fewest_reads(programs / "optcache", tmp_path, reads, dataset.sizes, SHARE).requests
    print(f"{machines} machines: {len(reads)} reads, {found} of the store, MIN {fewest}")
    assert found <= fewest * 1.05
    assert orders_unknown(cluster) == 0


@pytest.mark.parametrize("announced", [True, False])
def test_a_pass_that_goes_on_is_read_to_its_end(
    start_cache: StartCache, open_samples: OpenSamples, announced: bool
) -> None:
    cluster = start_cache(share=SHARE)
    samples = [open_samples(cluster.socket(0))]
    batches = 40
    ranks = Ranks(cluster, samples, workers=2, limit_batches=batches if announced else None)
    epochs = itertools.count()

    def read_until(planned: Callable[[], bool], batches: int | None) -> None:
        for epoch in itertools.islice(epochs, 60):
            read = sum(map(len, ranks.read(epoch, batches)))
            assert read == (len(samples[0]) if batches is None else batches * BATCH)
            if planned():
                return
        raise AssertionError(f"60 passes, and {ranks.planned_length()} reads of each are planned")

    # Workers are ahead of the trainer, and how far is chance.
    part = range(batches * BATCH, (batches + 6) * BATCH)
    read_until(lambda: ranks.planned_length() in part, batches)
    read_until(lambda: ranks.planned_length() == len(samples[0]), None)
    read_until(lambda: ranks.planned_length() in part, batches)
    assert orders_unknown(cluster) == 0


def test_a_generator_that_is_left_early_is_predicted_if_that_is_said(
    start_cache: StartCache, open_samples: OpenSamples
) -> None:
    cluster = start_cache(share=SHARE)
    samples = open_samples(cluster.socket(0))
    generator = torch.Generator().manual_seed(SEED)
    alone = torch.Generator().manual_seed(SEED)
    sampler = RandomSampler(samples, generator=generator)
    loader = DataLoader(samples, BATCH, sampler=sampler, generator=generator, num_workers=1)
    attach(loader, dataset=samples.samples, limit_batches=20)
    for _ in range(4):
        torch.empty((), dtype=torch.int64).random_(generator=alone)  # as a loader seeds workers
        expected = torch.randperm(len(samples), generator=alone).tolist()[: 20 * BATCH]
        read = [it for ids, right, _ in itertools.islice(loader, 20) if right.all() for it in ids]
        assert list(map(int, read)) == expected
    assert orders_unknown(cluster) == 0
    assert cluster.status()["datasets"][0]["streams"][0]["order_known"]


@pytest.mark.parametrize("machines", [1, 2])
def test_a_list_is_planned_as_far_as_it_is_read(
    start_cache: StartCache, open_samples: OpenSamples, machines: int
) -> None:
    """Lists are whole. Passes are short here: what is known of them is staged at once, and only the
    first plan is sure to come before that.
    """
    cluster = start_cache(machines=machines, share=SHARE)
    begun = len(cluster.log_of("node-0"))
    samples = [open_samples(cluster.socket(machine)) for machine in range(machines)]
    batches, last = 10, 5

    def lists(sampler: DistributedSampler[Any]) -> Callable[[int], list[int] | None]:
        def of(number: int) -> list[int] | None:
            asked = copy.copy(sampler)
            asked.set_epoch(number)
            return list(asked) if number <= last else None

        return of

    ranks = Ranks(cluster, samples, epochs=last + 1, limit_batches=batches, lists=lists)
    part = batches * BATCH * machines
    for epoch in range(last + 1):
        for number, _ in enumerate(ranks.read(epoch, batches)):
            if epoch == number == 0:
                wait_until(lambda: ranks.planned_length() == part, "it is planned")
                wait_until(lambda: newest_plan(cluster, begun, part) >= 1, "plans are here")
        assert number + 1 == batches
    assert cluster.status()["datasets"][0]["streams"][0]["order_known"]
    assert orders_unknown(cluster) == 0
