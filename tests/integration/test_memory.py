"""Node and sidecar stay within the limits that docs/memory.md says to give them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness import garbage, lies
from harness.checks import Records
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset, dataset_key
from harness.processes import wait_until
from harness.usage import BASE_BYTES, NODE_SHARE, SAMPLE_BYTES
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

SHARE = 0.6
ARENA = 16 << 20
OVERFLOW = 8 << 20


def peak_bytes(cluster: Cluster, process: str) -> int:
    """The most that it ever had resident, shared memory included."""
    status = Path(f"/proc/{cluster.pids()[process]}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.long
def test_peaks_stay_below_the_limits(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    dataset: Dataset,
) -> None:
    """A job, and at the same time a reader who never gives anything back."""
    cluster = start_cache(share=SHARE, arena=ARENA, overflow=OVERFLOW)
    samples = optcache.Dataset(socket=str(cluster.socket(0)))
    kept = [samples.__getitems__(range(begin, begin + 50)) for begin in range(0, len(samples), 50)]
    run_job([cluster.socket(0)], epochs=3)
    assert optcache.stats().copies > 0  # the arena was full

    sidecar, node = peak_bytes(cluster, "sidecar-0"), peak_bytes(cluster, "node-0")
    memory = int(dataset.total_bytes * SHARE)
    assert sidecar <= ARENA + OVERFLOW + SAMPLE_BYTES * len(samples) + BASE_BYTES
    assert node <= NODE_SHARE * memory + SAMPLE_BYTES * len(samples) + BASE_BYTES
    # The limits are tight: most of what they allow was taken.
    assert sidecar >= ARENA + OVERFLOW
    assert node >= 0.9 * memory
    del kept


@pytest.mark.long
def test_who_does_not_take_its_answers_holds_no_memory(programs: Path, tmp_path: Path) -> None:
    """A client asks for all that the node holds and reads nothing, and a job makes the node drop it.

    By LRU, which drops all of it in each epoch.
    """
    samples, size = 512, 512 << 10
    memory = samples * size // 2
    folder = tmp_path / "images" / "class"
    folder.mkdir(parents=True)
    contents = [random.Random(number).randbytes(size) for number in range(samples)]
    for number, content in enumerate(contents):
        (folder / f"{number:04}.png").write_bytes(content)
    options = ClusterOptions(
        programs=programs,
        base_url=str(tmp_path / "images"),
        listing="",
        machines=1,
        budget=Budget(memory, 64 << 20),
        state=tmp_path / "state",
        sockets=tmp_path,
    )
    with Cluster(options, "LRU", tmp_path) as cluster:
        data = optcache.Dataset(socket=str(cluster.socket(0)))
        sampler: DistributedSampler[Any] = DistributedSampler(data, num_replicas=1, rank=0)  # type: ignore[arg-type]
        loader = attach(DataLoader(data, batch_size=8, sampler=sampler, collate_fn=list))  # type: ignore[arg-type]

        def read(epoch: int) -> None:
            sampler.set_epoch(epoch)
            ids = iter(sampler)
            for batch in loader:
                for sample in batch:
                    assert sample == contents[next(ids)]

        read(0)
        status = cluster.status()
        known = status["datasets"][0]
        key = dataset_key(known["name"], known["manifest"])
        door = garbage.wire_door(status["members"][0]["address"])
        with garbage.connect(door.address) as client:
            client.sendall(lies.hello(lies.SIDECAR))
            for frame in lies.gets(key, range(samples)):
                client.sendall(frame)
            for epoch in range(1, 4):
                read(epoch)
            closed = "optcache_untaken_answers_closed_total"
            wait_until(lambda: cluster.metrics_of("node-0")[closed] == 1, "the client is closed")
            read(4)
        assert peak_bytes(cluster, "node-0") <= NODE_SHARE * memory + SAMPLE_BYTES * samples + BASE_BYTES
        assert cluster.metrics_of("node-0")["optcache_live_sample_bytes"] <= memory * 17 // 16 + (8 << 20)
