"""A whole training job ends and starts again."""

from __future__ import annotations

from collections.abc import Callable

from harness.checks import Records
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.store import Store

MACHINES = 4
SHARE = 0.5  # of the dataset that the nodes hold


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
