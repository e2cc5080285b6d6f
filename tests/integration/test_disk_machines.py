"""Several nodes with a disk each: the store is read as often as was predicted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness.checks import Records
from harness.cluster import Cluster, Metrics
from harness.dataset import Dataset
from harness.store import Store

EPOCHS = 5
# An urgent read does not wait until memory has room, and on a busy machine more are urgent.
SURPLUS = 0.08  # of what was predicted,
SLACK = 0.05  # and of the dataset
MISSES = 'result="miss",source="store"'
PREDICTED = f'optcache_plan_predicted_request_bytes_total{{dataset="default/images",{MISSES}}}'
# Where samples get lost.
LOSSES = (
    "optcache_disk_errors_total",
    'optcache_drops_total{dataset="default/images",reason="transit"}',
    'optcache_drops_total{dataset="default/images",reason="disk"}',
)
EXPLAINING = ("puts_total", "drops_total", "moves", "disk_errors", "requests_total", "spare")


def summed(nodes: list[Metrics], name: str) -> float:
    return sum(node.get(name, 0.0) for node in nodes)


def said(nodes: list[Metrics]) -> str:
    """What the nodes count, one number a line, for those who look for the cause."""
    names = {name for node in nodes for name in node if any(word in name for word in EXPLAINING)}
    return "\n".join(f"{name}: {[node.get(name) for node in nodes]}" for name in sorted(names))


# Where memory has room for a few of the largest samples alone, some of these are refused and read
# again on a machine that is busy: 1.36 data sets for 1.19 have been seen.
ON_A_QUIET_MACHINE = pytest.mark.long


@pytest.mark.parametrize(
    ("machines", "memory", "on_disk"),
    [
        (2, 0.15, 0.15),
        pytest.param(3, 0.3, 0.65, marks=ON_A_QUIET_MACHINE),
        pytest.param(2, 0.2, 0.9, marks=ON_A_QUIET_MACHINE),
    ],
)
def test_as_much_is_read_as_was_predicted(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
    tmp_path: Path,
    machines: int,
    memory: float,
    on_disk: float,
) -> None:
    cluster = start_cache(
        machines=machines, share=memory, disk=tmp_path / "disk", disk_share=on_disk
    )
    begin = store.log_size()
    run_job([cluster.socket(machine) for machine in range(machines)], epochs=EPOCHS, passes=EPOCHS)
    nodes = cluster.node_metrics()
    print(said(nodes))
    read = store.read_bytes(begin) / dataset.total_bytes
    predicted = summed(nodes, PREDICTED) / dataset.total_bytes
    print(f"{read:.3f} times the dataset, {predicted:.3f} predicted")
    assert read <= predicted * (1 + SURPLUS) + SLACK
    for name in LOSSES:
        assert summed(nodes, name) == 0, name
