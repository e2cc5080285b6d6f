"""A dataset is indexed again while a job reads it: the job goes on with the manifest that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness.dataset import Dataset
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from harness.store import Store
from harness.tcp_machine import NAME, TcpMachine
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

BATCH = 8
SHARE = 0.5  # of the dataset that the node holds
FEWER = ("class-0/*", "class-1/*", "class-2/*")  # the last class is left out: others keep their numbers
SLACK = 0.04  # of the dataset: samples have their sizes, and plans have their cuts


@pytest.fixture
def machine(programs: Path, store: Store, dataset: Dataset, tmp_path: Path) -> Iterator[TcpMachine]:
    running = TcpMachine(programs, store, tmp_path, int(dataset.total_bytes * SHARE))
    try:
        yield running
    finally:
        running.close()


class Reader:
    """A job of one rank in this process."""

    def __init__(self, samples: CheckedSamples, store: Store) -> None:
        self._store = store
        sampler: DistributedSampler[Any] = DistributedSampler(samples, num_replicas=1, rank=0)
        self._sampler = sampler
        self._loader = attach(
            DataLoader(samples, batch_size=BATCH, sampler=sampler), dataset=samples.samples
        )

    def read(self, epoch: int) -> int:
        """All samples, each with the right bytes. Bytes that the store gave meanwhile."""
        self._sampler.set_epoch(epoch)
        begin = self._store.log_size()
        ids: list[int] = []
        for batch, right, _ in self._loader:
            assert right.all(), f"wrong bytes among {batch.tolist()}"
            ids += batch.tolist()
        assert ids == list(self._sampler)
        return self._store.read_bytes(begin)

    def end(self) -> None:
        self._loader.optcache.detach()


def settles(reader: Reader, epochs: range, total: int, most: float) -> bool:
    """In one of these epochs it reads at most this share: a plan begins at a cut that lies ahead."""
    return any(reader.read(epoch) / total <= most for epoch in epochs)


def only_stream(dataset: dict[str, Any]) -> dict[str, Any]:
    assert len(dataset["streams"]) == 1, dataset
    return dict(dataset["streams"][0])


@pytest.mark.long
def test_a_job_goes_on_by_its_plan_and_the_next_one_begins_with_the_new_manifest(
    machine: TcpMachine,
    store: Store,
    dataset: Dataset,
    open_samples: Callable[[Path], CheckedSamples],
) -> None:
    first = machine.index()
    first_digest = machine.publish(first)
    job = Reader(open_samples(machine.start_sidecar("first", first, owner="first")), store)
    job.read(0)
    wait_until(lambda: only_stream(machine.status()["datasets"][0])["planned"], "it is planned")
    job.read(1)

    second = machine.index(*FEWER)
    second_digest = machine.publish(second)
    assert second_digest != first_digest
    for epoch in (2, 3):
        share = job.read(epoch) / dataset.total_bytes
        assert share <= 1 - SHARE + SLACK, f"epoch {epoch}"
    status = machine.status()
    assert status["datasets"][0]["manifest"] == second_digest
    assert status["datasets"][0]["streams"] == []
    assert status["retiring"][0]["manifest"] == first_digest
    assert only_stream(status["retiring"][0])["order_known"]

    samples = open_samples(machine.start_sidecar("second", second, owner="second"))
    later_bytes = sum(dataset.sizes[: len(samples)])
    assert later_bytes < dataset.total_bytes
    later = Reader(samples, store)
    later.read(0)
    wait_until(lambda: only_stream(machine.status()["datasets"][0])["planned"], "so is the second")
    capacity = int(dataset.total_bytes * SHARE)
    wait_until(
        lambda: machine.status()["datasets"][0]["capacity"] == capacity // 2,
        "they share by their ranks",
    )
    assert machine.status()["retiring"][0]["capacity"] <= capacity - capacity // 2
    assert settles(later, range(1, 5), later_bytes, 1 - capacity / 2 / later_bytes + SLACK)
    job.read(4)
    share = job.read(5) / dataset.total_bytes
    assert share <= 1 - SHARE / 2 + SLACK
    held = machine.node.count("optcache_cache_bytes")
    assert held <= capacity * 1.02

    job.end()
    wait_until(
        lambda: machine.status()["datasets"][0]["capacity"] == capacity, "the second has it all"
    )
    retired = f"{NAME}@{first_digest[:12]}"
    wait_until(
        lambda: machine.node.count("optcache_cache_bytes", dataset=retired) == 0,
        "the first one's bytes have gone",
    )
    assert settles(later, range(5, 10), later_bytes, 1 - capacity / later_bytes + SLACK)


def test_what_retires_outlives_its_node(
    machine: TcpMachine,
    store: Store,
    open_samples: Callable[[Path], CheckedSamples],
) -> None:
    first = machine.index()
    digest = machine.publish(first)
    job = Reader(open_samples(machine.start_sidecar("first", first, owner="first")), store)
    job.read(0)
    machine.publish(machine.index(*FEWER))
    job.read(1)
    machine.restart_node()

    def planned() -> bool:
        retiring = machine.status()["retiring"]
        return bool(retiring and retiring[0]["streams"] and retiring[0]["streams"][0]["planned"])

    job.read(2)
    wait_until(planned, "its plan goes on")
    assert machine.status()["retiring"][0]["manifest"] == digest
    held = machine.node.count("optcache_cache_bytes", dataset=f"{NAME}@{digest[:12]}")
    assert held > 0
