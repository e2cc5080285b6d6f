"""Trainers of frameworks, with two ranks: what they read is what was predicted. Each is skipped
where its package is not installed; `./dev test frameworks` installs them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness import framework_rank
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.framework_rank import BATCH, EPOCHS, FRAMEWORKS
from harness.ports import free_port
from harness.processes import last_lines, stop, wait_until

RANKS = 2
SHARE = 0.5
PATIENCE_SECONDS = 400.0


def start(framework: str, rank: int, port: int, cache: Cluster, folder: Path) -> subprocess.Popen[bytes]:
    environment = {
        "OPTCACHE_SOCKET": cache.socket(0),
        "RANK": rank,
        "LOCAL_RANK": rank,
        "NODE_RANK": 0,
        "WORLD_SIZE": RANKS,
        "LOCAL_WORLD_SIZE": RANKS,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": 1,
        "CUDA_VISIBLE_DEVICES": "",
        "ACCELERATE_USE_CPU": "true",
    }
    with open(folder / f"rank-{rank}.log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, framework_rank.__file__, framework, folder],
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_trainer_reads_what_was_predicted(
    start_cache: Callable[..., Cluster], dataset: Dataset, tmp_path: Path, framework: str
) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    cache = start_cache(share=SHARE)
    folder = tmp_path / "job"
    folder.mkdir()
    port = free_port()

    def check(ranks: list[subprocess.Popen[bytes]]) -> bool:
        for number, rank in enumerate(ranks):
            words = last_lines(folder / f"rank-{number}.log")
            assert rank.poll() in (None, 0), f"rank {number}:\n{words}"
        return all(rank.poll() == 0 for rank in ranks)

    def planned(ranks: list[subprocess.Popen[bytes]]) -> bool:
        check(ranks)
        streams = cache.status()["datasets"][0]["streams"]
        return any(stream["planned"] for stream in streams)

    with ExitStack() as cleanup:
        ranks = [start(framework, rank, port, cache, folder) for rank in range(RANKS)]
        for rank in ranks:
            cleanup.callback(stop, rank, grace_seconds=2)
        # An epoch takes minutes elsewhere, in which it and what comes next is planned.
        wait_until(lambda: planned(ranks), "it is planned", PATIENCE_SECONDS)
        (folder / "go").touch()
        wait_until(lambda: check(ranks), "the ranks end", PATIENCE_SECONDS)

    size = len(dataset.paths)
    read = [json.loads((folder / f"ids-{rank}.json").read_text()) for rank in range(RANKS)]
    for epoch in range(EPOCHS):
        ids = [i for rank in read for i in rank[epoch]]
        assert set(ids) == set(range(size)) and size <= len(ids) < size + RANKS * BATCH
    assert read[0][0] != read[0][1], "each epoch has another order"
    (metrics,) = cache.sidecar_metrics()
    assert metrics["optcache_unknown_orders_total"] == 0
    assert metrics["optcache_unpredicted_reads_total"] == 0
    assert metrics["optcache_passes_total"] == RANKS * EPOCHS
    bound = (1 + (EPOCHS - 1) * (1 - SHARE)) * dataset.total_bytes
    taken = metrics["optcache_store_read_bytes_total"]
    print(f"{framework}: {taken:.0f} bytes of the store; the bound is {bound:.0f}")
    # On a busy machine plans come late in these short epochs. LRU would read 1.4 times the bound.
    assert taken <= 1.15 * bound
