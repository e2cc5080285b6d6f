"""A node joins in the middle of a pass and leaves in the middle of another: its share moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.cluster import Cluster, transit_reserve
from harness.dataset import Dataset
from harness.extra_node import Extra
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from harness.store import Store
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

BATCH = 8
SHARE = 0.5  # of the dataset that two nodes hold, or three
# Beyond what is read in a pass when nothing happens: reads that are under way meanwhile.
SURPLUS = 0.03
# The epoch in whose middle a node goes. What it has read ahead for others is read again: that fills
# its transit reserve, and the sample that came last may go beyond it.
LEAVES = 5


class Job:
    """Two ranks in this process, one batch of each after the other."""

    def __init__(self, samples: list[CheckedSamples]) -> None:
        self._loaders = []
        for rank, own in enumerate(samples):
            sampler: DistributedSampler[Any] = DistributedSampler(own, num_replicas=2, rank=rank)
            loader = DataLoader(own, batch_size=BATCH, sampler=sampler)
            self._loaders.append(attach(loader, dataset=own.samples))

    def read(self, epoch: int, in_the_middle: Callable[[], None] = lambda: None) -> None:
        for loader in self._loaders:
            sampler: Any = loader.sampler
            sampler.set_epoch(epoch)
        ranks = [iter(loader) for loader in self._loaders]
        batches = len(self._loaders[0])
        for batch in range(batches):
            if batch == batches // 2:
                in_the_middle()
            for rank in ranks:
                ids, right, _ = next(rank)
                assert right.all(), f"wrong bytes among {ids.tolist()}"
        assert [next(rank, None) for rank in ranks] == [None, None]


def has_its_share(cluster: Cluster, extra: Extra) -> bool:
    """Samples have come, and nobody has any more for others."""
    if not extra.is_member():
        return False
    nodes = [*cluster.node_metrics(), cluster.metrics_of("extra")]
    waiting = sum(node.get("optcache_push_queue_bytes", 0) for node in nodes)
    return nodes[-1].get("optcache_cache_bytes", 0) > 0 and waiting == 0


@pytest.fixture
def extras() -> Iterator[list[Extra]]:
    started: list[Extra] = []
    yield started
    for extra in started:
        extra.kill()


def test_what_a_node_holds_moves_when_it_comes_and_goes(
    start_cache: Callable[..., Cluster],
    open_samples: Callable[..., CheckedSamples],
    programs: Path,
    store: Store,
    dataset: Dataset,
    tmp_path: Path,
    extras: list[Extra],
) -> None:
    cluster = start_cache(machines=2, share=SHARE, arena=512 << 10)
    job = Job([open_samples(cluster.socket(machine)) for machine in range(2)])
    memory = int(dataset.total_bytes * SHARE / 2)
    ahead = transit_reserve(memory, dataset.total_bytes, len(dataset.sizes)) + max(dataset.sizes)

    def relocated(result: str) -> float:
        series = f'optcache_relocations_total{{dataset="default/images",result="{result}"}}'
        return sum(node[series] for node in cluster.node_metrics())

    def join() -> None:
        extras.append(Extra(programs, cluster, memory, tmp_path))
        wait_until(lambda: has_its_share(cluster, extras[0]), "the node that joins has its share")

    said: list[str] = []

    def leave() -> None:
        said.append(extras[0].end())

    def is_planned() -> bool:
        return all(stream["planned"] for stream in cluster.status()["datasets"][0]["streams"])

    def plan() -> None:
        wait_until(is_planned, "the job is planned")

    happens: dict[int, Callable[[], None]] = {1: plan, 3: join, LEAVES: leave}
    for epoch in range(8):
        begin = store.log_size()
        job.read(epoch, happens.get(epoch, lambda: None))
        share = store.read_bytes(begin) / dataset.total_bytes
        if epoch > 2:
            again = ahead / dataset.total_bytes if epoch == LEAVES else 0
            assert share <= 1 - SHARE + SURPLUS + again, f"epoch {epoch}"
    assert relocated("moved") > 0
    assert relocated("lost") == 0
    assert "lost=0" in said[0] and "not_sent=0" in said[0], said
    assert "moved=0" not in said[0], said


def test_a_disk_that_goes_with_its_node_is_emptied_first(
    start_cache: Callable[..., Cluster],
    open_samples: Callable[..., CheckedSamples],
    programs: Path,
    store: Store,
    dataset: Dataset,
    tmp_path: Path,
    extras: list[Extra],
) -> None:
    """The others have room for all of it: what lay there is not read from the store again."""
    disk = 0.9  # of the dataset, of two nodes
    cluster = start_cache(
        machines=2, share=SHARE, arena=512 << 10, disk=tmp_path / "disk", disk_share=disk
    )
    job = Job([open_samples(cluster.socket(machine)) for machine in range(2)])
    # Less memory than the others: much of its share lies on its disk.
    memory, on_disk = (int(dataset.total_bytes * share / 2) for share in (0.3, disk))
    lay_there: list[float] = []
    said: list[str] = []

    def join() -> None:
        extras.append(Extra(programs, cluster, memory, tmp_path, disk=on_disk))
        wait_until(lambda: has_its_share(cluster, extras[0]), "the node that joins has its share")

    def leave() -> None:
        series = 'optcache_cache_samples{dataset="default/images",tier="disk"}'
        lay_there.append(cluster.metrics_of("extra")[series])
        said.append(extras[0].end())

    def held() -> float:
        return sum(node["optcache_cache_bytes"] for node in cluster.node_metrics()) / dataset.total_bytes

    # With room left, nothing goes to a node that has no reader. A disk that is slow needs more than
    # two passes until none is.
    first = 0
    while held() < 0.9 and first < 40:
        job.read(first)
        first += 1
    happens: dict[int, Callable[[], None]] = {first: join, first + 3: leave}
    reads = 0  # in any pass a few large samples find no room beside others
    for epoch in range(first, first + 5):
        begin = store.log_size()
        job.read(epoch, happens.get(epoch, lambda: None))
        reads += len(store.access_log(begin).splitlines()) if epoch >= first + 3 else 0
    assert lay_there[0] > 50
    assert reads < 0.8 * lay_there[0]  # a fifth of it on a quiet machine; all of it if it stays
    assert "lost=0" in said[0] and "not_sent=0" in said[0], said
