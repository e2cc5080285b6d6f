"""What a loader says that the cache saved, recomputed from the log of the store."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import optcache
import pytest
from harness.checks import Records
from harness.cluster import DATASET, Cluster, Metrics
from harness.dataset import Dataset
from harness.processes import wait_until
from harness.store import LISTING, Store

pytest.importorskip("torch")

from optcache.torch import SidecarStats, attach  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

EPOCHS = 2
PER_REQUEST = "0.0000004"
PER_GIB = "0.09"
PER_BYTE = float(PER_GIB) / 2**30


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


def lost_bytes(metrics: Metrics, dataset: Dataset) -> float:
    """At most: of two requests for one sample, and of one that broke off, the rest of the answer is not received."""
    again = sum(metrics[f"optcache_store_{name}_total"] for name in ("hedges", "retries"))
    return again * max(dataset.sizes)


def saved_rows(cluster: Cluster) -> list[list[str]]:
    """Of the table of `optcache status`."""
    lines = cluster.status_text().splitlines()
    head = next(i for i, line in enumerate(lines) if "SAVED MONEY" in line)
    return [line.split() for line in takewhile(bool, lines[head + 1 :])]


def told(cluster: Cluster) -> dict[str, int]:
    """What sidecars have told their nodes, and these the coordinator: the status of a Dataset in a cluster is made of it."""
    saved: dict[str, int] = cluster.status()["datasets"][0]["saved"]
    return saved


def test_stats_are_those_of_the_stores_log(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
) -> None:
    """Of two ranks with two workers each."""
    cluster = start_cache(share=0.5, cost=f'{{perRequest: "{PER_REQUEST}", perGiB: "{PER_GIB}"}}')
    stats = stats_at(cluster.socket(0))
    begin = store.log_size()
    during: list[SidecarStats] = []
    run_job(
        [cluster.socket(0)] * 2, EPOCHS, on_batch=lambda epoch, done: during.append(stats())
    )

    def agree() -> bool:
        nonlocal now, metrics, requests
        now, metrics = stats(), cluster.metrics_of("sidecar-0")
        requests, sent = asked(store, begin)
        # What was read ahead, or for the second time, may still be on its way.
        reading = cluster.metrics_of("sidecar-0")['optcache_store_queue_reads{state="running"}']
        is_at_rest = stats() == now and reading == 0
        lost = lost_bytes(metrics, dataset)
        return is_at_rest and now.store_requests == requests and sent - lost <= now.store_bytes <= sent

    now, metrics, requests = stats(), cluster.metrics_of("sidecar-0"), 0
    wait_until(agree, "the counts are those of the store's log")
    assert (now.samples, now.bytes) == (EPOCHS * len(dataset.paths), EPOCHS * dataset.total_bytes)
    assert now.store_requests == requests
    assert now.saved_requests == now.samples - requests
    assert now.saved_bytes == now.bytes - now.store_bytes
    assert 0.2 < now.hit_ratio < 0.5, "the first epoch has no hits, and the second is half of all"
    assert 0 < now.hit_bytes < now.bytes
    assert now.waited_seconds > 0
    samples = [was.samples for was in during]
    assert samples == sorted(samples) and 0 < samples[0] < samples[-1] <= now.samples

    # From the log alone: without a cache, each read of a sample is a request for its bytes.
    reads = EPOCHS * len(dataset.paths) - requests
    least = EPOCHS * dataset.total_bytes - asked(store, begin)[1]
    most = least + lost_bytes(metrics, dataset)
    assert now.saved_cost is not None
    money = now.saved_cost - reads * float(PER_REQUEST)
    assert least * PER_BYTE - 1e-12 <= money <= most * PER_BYTE + 1e-12
    assert metrics["optcache_saved_cost"] == pytest.approx(now.saved_cost)
    (row,) = saved_rows(cluster)
    assert row[:2] == [f"default/{DATASET}", str(reads)]
    assert float(row[-1]) == pytest.approx(now.saved_cost, abs=1e-6)


    def is_told() -> bool:
        saved = told(cluster)
        waited = abs(saved["wait_us"] - now.waited_seconds * 1e6)
        return saved["requests"] == reads and least <= saved["bytes"] <= most and waited <= 1

    wait_until(is_told, "the coordinator has been told")

    assert metrics["optcache_saved_requests"] == now.saved_requests
    assert metrics["optcache_saved_bytes"] == now.saved_bytes
    assert metrics["optcache_store_requests_total"] == requests
    assert metrics["optcache_store_received_bytes_total"] == now.store_bytes


def test_what_was_told_stays_when_parts_begin_again(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
) -> None:
    """The coordinator has the sum of the log over two lives of the sidecar, and of the node."""
    cluster = start_cache(share=0.5)
    begin = store.log_size()

    def sum_is_that_of_the_log(passes: int) -> None:
        reads = passes * len(dataset.paths)
        wait_until(
            lambda: told(cluster)["requests"] == reads - asked(store, begin)[0],
            f"the sum of {passes} passes is that of the log",
        )

    run_job([cluster.socket(0)], EPOCHS)
    sum_is_that_of_the_log(EPOCHS)
    for part in ("node-0", "sidecar-0"):
        pid = cluster.pids()[part]
        cluster.kill(part)
        wait_until(lambda: cluster.pids().get(part, pid) != pid, f"{part} begins again")
        sum_is_that_of_the_log(EPOCHS)
    run_job([cluster.socket(0)], EPOCHS)
    sum_is_that_of_the_log(2 * EPOCHS)
