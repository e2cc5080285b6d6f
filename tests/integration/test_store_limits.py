"""The limit of a Dataset's store holds for all sidecars together: counted in the log of the store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pytest
from harness.checks import Records
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from harness.store import LISTING, Store

pytest.importorskip("torch")

SHARE = "optcache_store_share_requests"


def times_of_reads(store: Store, begin: int) -> list[float]:
    """When the requests for samples since the log ended there were answered."""
    lines = [line.split(" ", 4) for line in store.access_log(begin).splitlines()]
    return [float(line[0]) for line in lines if not line[4].strip().endswith(LISTING)]


def shares(cluster: Cluster) -> list[float]:
    """Requests a second that each sidecar may send."""
    return [metrics[SHARE] for metrics in cluster.sidecar_metrics()]


def are_equal(parts: list[float], whole: float) -> bool:
    return parts == pytest.approx([whole / len(parts)] * len(parts), rel=0.01)


@contextmanager
def reading(samples: CheckedSamples) -> Iterator[None]:
    """One sample after the other, until the end of the `with`."""
    ends = threading.Event()

    def read() -> None:
        for index in cycle(range(len(samples))):
            if ends.is_set():
                return
            assert samples[index][1]

    with ThreadPoolExecutor(max_workers=1) as reader:
        reads = reader.submit(read)
        try:
            yield
        finally:
            ends.set()
            reads.result()  # raises what it has met


def test_two_sidecars_together_keep_to_the_limit(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
) -> None:
    """A limit of each process would let through twice as much."""
    limit = 200
    cluster = start_cache(machines=2, share=0.02, limits=f"{{requestsPerSecond: {limit}}}")
    wait_until(lambda: are_equal(shares(cluster), limit), "each has half of the limit")
    begin = store.log_size()
    run_job([cluster.socket(0), cluster.socket(1)], epochs=1)
    times = times_of_reads(store, begin)
    assert len(times) >= len(dataset.paths)
    # What was saved up is that of a second; another, since a request is logged when it has ended.
    assert len(times) <= limit * (max(times) - min(times) + 2)


def test_a_sidecar_has_what_the_other_does_not_want(
    start_cache: Callable[..., Cluster], open_samples: Callable[[Path], CheckedSamples]
) -> None:
    limit = 10
    cluster = start_cache(machines=2, share=0.02, limits=f"{{requestsPerSecond: {limit}}}")
    wait_until(lambda: are_equal(shares(cluster), limit), "each has half of the limit")
    with reading(open_samples(cluster.socket(0))):
        wait_until(lambda: shares(cluster)[0] >= 0.9 * limit, "the one that reads has nearly all")
        assert shares(cluster)[1] > 0, "the other can begin"
        with reading(open_samples(cluster.socket(1))):
            wait_until(lambda: are_equal(shares(cluster), limit), "both read, and have half each")


def test_one_sidecar_alone_has_the_whole_limit(start_cache: Callable[..., Cluster]) -> None:
    cluster = start_cache(limits="{requestsPerSecond: 30, bytesPerSecond: 1Mi}")
    wait_until(lambda: shares(cluster) == [30], "it has all requests")
    assert cluster.sidecar_metrics()[0]["optcache_store_share_bytes"] == 1 << 20
