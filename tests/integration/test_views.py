"""What a sidecar hands out stays as it is, whoever dies, and comes back when its reader does."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import optcache
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.job import digest_at
from harness.processes import stop, wait_until

from optcache._batches import Sample

StartCache = Callable[..., Cluster]
Views = list[Sample]

# Reads samples, says so, and holds them until it is killed.
HOLDER = """\
import sys
import optcache
views = optcache.Dataset().__getitems__(range(100))
print("holding", flush=True)
sys.stdin.read()
"""


def wrong(views: Views, digests: Path) -> list[int]:
    """The samples whose bytes are not theirs, of views of the samples from 0 on."""
    table = digests.read_bytes()
    return [
        sample
        for sample, view in enumerate(views)
        if hashlib.sha256(view).digest() != digest_at(table, sample)
    ]


def arena_in_use(cluster: Cluster) -> float:
    return cluster.metrics_of("sidecar-0")["optcache_arena_used_bytes"]


def test_reader_that_is_killed_gives_its_slots_back(start_cache: StartCache) -> None:
    cluster = start_cache()
    reader = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "OPTCACHE_SOCKET": str(cluster.socket(0))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"holding\n"
        assert arena_in_use(cluster) > 0
        reader.kill()
        wait_until(lambda: arena_in_use(cluster) == 0, "the arena is free again")
    finally:
        stop(reader)


def test_reader_keeps_every_view_of_an_epoch(
    start_cache: StartCache, dataset: Dataset, digests: Path
) -> None:
    """Several times what the arena holds: the rest is answered by copy, with one warning."""
    cluster = start_cache()
    log_before = cluster.log_of("sidecar-0")
    samples = optcache.Dataset(socket=str(cluster.socket(0)))
    copies = optcache.stats().copies
    views: Views = []
    for begin in range(0, len(samples), 50):
        views += samples.__getitems__(range(begin, min(begin + 50, len(samples))))
    assert optcache.stats().copies > copies
    assert arena_in_use(cluster) > 0
    assert wrong(views, digests) == []
    warnings = cluster.log_of("sidecar-0")[len(log_before) :].count("the arena is too small")
    assert warnings == 1
    views.clear()
    wait_until(lambda: arena_in_use(cluster) == 0, "the arena is free again")


def test_views_outlive_the_sidecar(start_cache: StartCache, digests: Path) -> None:
    cluster = start_cache()
    samples = optcache.Dataset(socket=str(cluster.socket(0)))
    before = samples.__getitems__(range(200))
    cluster.kill("sidecar-0")
    assert wrong(before, digests) == []
    after = samples.__getitems__(range(200))
    assert wrong(after, digests) == []
    assert wrong(before, digests) == []
