"""What a loader says that the cache saved, recomputed from the log of the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import optcache
import pytest
from harness.checks import Records
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.processes import wait_until
from harness.store import LISTING, Store

pytest.importorskip("torch")

from optcache.torch import SidecarStats, attach  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

EPOCHS = 2


def asked(store: Store, begin: int) -> tuple[int, int]:
    """Requests for samples since the log ended there, and bytes of their answers."""
    lines = [line.split(" ", 4) for line in store.access_log(begin).splitlines()]
    reads = [int(line[3]) for line in lines if line[1] == "GET" and not line[4].endswith(LISTING)]
    return len(reads), sum(reads)


def stats_at(socket: Path) -> Callable[[], SidecarStats]:
    """Of a process that reads nothing itself."""
    loader = attach(DataLoader(optcache.Dataset(socket=str(socket))), name="watch")

    def stats() -> SidecarStats:
        now = loader.optcache.stats()
        assert now is not None
        return now

    return stats


def test_stats_are_those_of_the_stores_log(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
) -> None:
    """Of two ranks with two workers each."""
    cluster = start_cache(share=0.5)
    stats = stats_at(cluster.socket(0))
    begin = store.log_size()
    during: list[SidecarStats] = []
    run_job(
        [cluster.socket(0)] * 2, EPOCHS, on_batch=lambda epoch, done: during.append(stats())
    )

    def agree() -> bool:
        requests, sent = asked(store, begin)
        now = stats()
        # Of two requests for one sample, the rest of the later answer is not received.
        lost = cluster.metrics_of("sidecar-0")["optcache_store_hedges_total"] * max(dataset.sizes)
        return now.store_requests == requests and sent - lost <= now.store_bytes <= sent

    # What was read ahead, or for the second time, may still be on its way.
    wait_until(agree, "the counts are those of the store's log")
    now = stats()
    requests, _ = asked(store, begin)
    assert (now.samples, now.bytes) == (EPOCHS * len(dataset.paths), EPOCHS * dataset.total_bytes)
    assert now.store_requests == requests
    assert now.saved_requests == now.samples - requests
    assert now.saved_bytes == now.bytes - now.store_bytes
    assert 0.2 < now.hit_ratio < 0.5, "the first epoch has no hits, and the second is half of all"
    assert 0 < now.hit_bytes < now.bytes
    assert now.waited_seconds > 0
    samples = [was.samples for was in during]
    assert samples == sorted(samples) and 0 < samples[0] < samples[-1] <= now.samples

    metrics = cluster.metrics_of("sidecar-0")
    assert metrics["optcache_saved_requests"] == now.saved_requests
    assert metrics["optcache_saved_bytes"] == now.saved_bytes
    assert metrics["optcache_store_requests_total"] == requests
    assert metrics["optcache_store_received_bytes_total"] == now.store_bytes
