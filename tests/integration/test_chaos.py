"""Whatever fails, and for how long: training goes on, with the right bytes in the right order.

Four ranks on two machines read epochs while processes are killed, ended and frozen, and the store
falters, at random. With parts that speak by TCP, nodes, sidecars, coordinator and store are cut off
from each other, too. The table at the end says how long ranks waited meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import network, waits
from harness.chaos import Chaos, Cut, crashes, wrong_deaths
from harness.checks import Records
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset
from harness.faulty_store import FaultyStore
from harness.processes import wait_until
from harness.store import LISTING
from harness.tcp_cluster import TcpCluster
from harness.usage import BASE_BYTES, NODE_SHARE, SAMPLE_BYTES, Usage, processes_with, usage_of

SECONDS = int(os.environ.get("OPTCACHE_CHAOS_SECONDS", "3600"))  # of each test
CALM_SECONDS = 20  # of training afterwards
BESIDE_SECONDS = 900  # for starts, the last epoch and the checks
MACHINES = 2
RANKS = 4
SHARE = 0.5
ARENA = 8 << 20
OVERFLOW = 8 << 20
# Of a process that trains, from the first batch to the last.
GROWTH_BYTES = 200 << 20
GROWTH_DESCRIPTORS = 16  # connections: to two sidecars, with their memory, and to the store while they are away
# Of two connections, each to this sidecar and to the one before. A question whether a sidecar is
# back has one more for a moment, so that one look may find it.
ARENAS = 4
# What a sanitizer keeps beside a program's memory has no limit here.
SANITIZED = "ASAN_OPTIONS" in os.environ


@pytest.fixture
def deadline_seconds() -> int:
    return SECONDS + CALM_SECONDS + BESIDE_SECONDS


class Watch:
    """What the processes of cache and training hold: the most, and how it began."""

    def __init__(self, cluster: Cluster | TcpCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self.peaks: dict[str, int] = {}  # by process of the cache
        self.first: dict[int, Usage] = {}  # by id of a process that trains
        self.last: dict[int, Usage] = {}
        self.before: dict[int, Usage] = {}  # at the look before the last

    def look(self) -> None:
        for name, pid in self._cluster.pids().items():
            with contextlib.suppress(OSError):
                self.peaks[name] = max(self.peaks.get(name, 0), usage_of(pid).peak_bytes)
        for pid in processes_with(f"{self._folder}/job-"):
            with contextlib.suppress(OSError):
                usage = usage_of(pid)
                self.first.setdefault(pid, usage)
                self.before[pid] = self.last.get(pid, usage)
                self.last[pid] = usage

    def excess(self, dataset: Dataset) -> Iterator[str]:
        beside = SAMPLE_BYTES * len(dataset.paths) + BASE_BYTES
        limits = {
            "node": int(NODE_SHARE * node_memory(dataset)) + beside,
            "sidecar": ARENA + OVERFLOW + beside,
        }
        for name, peak in self.peaks.items():
            if not SANITIZED and peak > (limit := limits[name.partition("-")[0]]):
                yield f"{name} had {peak:,} bytes resident, and may have {limit:,}"
        for pid, last in self.last.items():
            first = self.first[pid]
            if (
                last.own_bytes - first.own_bytes > GROWTH_BYTES
                or last.descriptors - first.descriptors > GROWTH_DESCRIPTORS
                or min(self.before[pid].arenas, last.arenas) > ARENAS
            ):
                yield f"a process that trains held {first} at first, {last} in the end"


def node_memory(dataset: Dataset) -> int:
    return int(dataset.total_bytes * SHARE / MACHINES)


def budget(dataset: Dataset) -> Budget:
    return Budget(node_memory(dataset), ARENA, OVERFLOW)


def left_behind(folder: Path) -> Iterator[str]:
    """Processes and sockets that nothing has cleaned up."""
    for pid in processes_with(str(folder)):
        yield f"process {pid} still runs"
    for path in folder.rglob("*"):
        if stat.S_ISSOCK(path.lstat().st_mode):
            yield f"{path} is still there"


@pytest.fixture
def soak(
    dataset: Dataset,
    run_job: Callable[..., Records],
    seed: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., list[str]]:
    """soak(cluster, store, cut): trains on it while it fails. A sentence for each thing that is wrong."""

    def run(cluster: Cluster | TcpCluster, store: FaultyStore, cut: Cut | None = None) -> list[str]:
        watch = Watch(cluster, tmp_path)
        log = tmp_path / "chaos.log"
        chaos = Chaos(cluster, store, MACHINES, str(seed), log, look=watch.look, cut=cut)

        def on_batch(epoch: int, done: int) -> None:
            chaos.begin(SECONDS)
            chaos.check()

        sockets = [cluster.socket(rank * MACHINES // RANKS) for rank in range(RANKS)]
        until = time.time() + SECONDS + CALM_SECONDS
        try:
            records = run_job(sockets, epochs=0, until=until, on_batch=on_batch)
        finally:
            chaos.end()
        with capsys.disabled():
            print(f"\n{waits.table(chaos.spans, records)}")
            for name, peak in sorted(watch.peaks.items()):
                print(f"{name}: {peak >> 20} MiB resident at most")
            for pid, last in watch.last.items():
                print(f"process that trains: {watch.first[pid]} at first, {last} in the end")
        wait_until(lambda: len(cluster.pids()) == 2 * MACHINES, "all processes run")
        return [
            *chaos.troubles,
            *wrong_deaths(chaos),
            *crashes(chaos),
            *waits.too_long(chaos.spans, records, waits.limit_seconds()),
            *watch.excess(dataset),
        ]

    return run


@pytest.mark.long
def test_chaos(
    programs: Path, dataset: Dataset, soak: Callable[..., list[str]], tmp_path: Path
) -> None:
    with FaultyStore(dataset) as store:
        options = ClusterOptions(
            programs=programs,
            base_url=store.base_url,
            listing=LISTING,
            machines=MACHINES,
            budget=budget(dataset),
            state=tmp_path / "state",
            sockets=tmp_path,
        )
        with Cluster(options, "Optimal", tmp_path) as cluster:
            troubles = soak(cluster, store)
    assert [*troubles, *left_behind(tmp_path)] == []


@pytest.mark.long
def test_chaos_by_tcp(
    programs: Path, dataset: Dataset, soak: Callable[..., list[str]], tmp_path: Path
) -> None:
    if why := network.missing():
        pytest.skip(f"there is no network to cut: {why}")
    with (
        network.own_network(),
        FaultyStore(dataset, host=network.HUB) as store,
        TcpCluster(programs, store.base_url, MACHINES, budget(dataset), tmp_path) as cluster,
    ):
        troubles = soak(cluster, store, cluster.cut)
    assert [*troubles, *left_behind(tmp_path)] == []
