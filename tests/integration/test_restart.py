"""A training job, or one rank after the other, ends and starts again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from harness.checks import Records
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from harness.store import Store
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

MACHINES = 4
BATCH = 8
SHARE = 0.5  # of the dataset that the nodes hold


@pytest.mark.long
def test_job_goes_on_with_its_ranks_on_other_machines(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
) -> None:
    """Stopped after two epochs: what the nodes hold is found again, on whichever machine it lies."""
    cluster = start_cache(machines=MACHINES, share=SHARE, arena=512 << 10)
    sockets = [cluster.socket(machine) for machine in range(MACHINES)]
    run_job(sockets, epochs=2)
    begin = store.log_size()
    run_job([*sockets[1:], sockets[0]], epochs=1, first_epoch=2, passes=1)
    share = store.read_bytes(begin) / dataset.total_bytes
    assert share <= 1 - SHARE + 0.03


def start_rank(samples: CheckedSamples, rank: int) -> DataLoader[Any]:
    sampler: DistributedSampler[Any] = DistributedSampler(samples, num_replicas=2, rank=rank)
    return attach(
        DataLoader(samples, batch_size=BATCH, sampler=sampler), dataset=samples.samples
    )


def read(rank: DataLoader[Any], epoch: int) -> None:
    sampler: Any = rank.sampler
    sampler.set_epoch(epoch)
    ids: list[int] = []
    for batch, right, _ in rank:
        assert right.all(), f"wrong bytes among {batch.tolist()}"
        ids += batch.tolist()
    assert ids == list(sampler)


def test_ranks_start_again_one_after_the_other(
    start_cache: Callable[..., Cluster], open_samples: Callable[..., CheckedSamples]
) -> None:
    """From a checkpoint, as the same job: once all have, their stream begins anew, and is planned."""
    cluster = start_cache(machines=2, share=SHARE)
    samples = [open_samples(cluster.socket(machine)) for machine in range(2)]
    ranks = [start_rank(samples[rank], rank) for rank in range(2)]

    def stream() -> dict[str, Any]:
        streams = cluster.status()["datasets"][0]["streams"]
        return dict(streams[0]) if streams else {"planned": False, "pass": 0, "conflict": ""}

    for epoch in range(3):
        for rank in ranks:
            read(rank, epoch)
    wait_until(lambda: stream()["planned"] and stream()["pass"] >= 2, "it is planned")
    for number in (1, 0):
        ranks[number].optcache.detach()  # type: ignore[attr-defined]
        ranks[number] = start_rank(samples[number], number)
        read(ranks[number], 2)
        assert stream()["conflict"] == ""
    wait_until(lambda: stream()["planned"] and stream()["pass"] < 2, "it is planned anew")
    for rank in ranks:
        read(rank, 3)
    assert stream()["order_known"], stream()
