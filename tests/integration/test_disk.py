"""Nodes with a disk: more is kept than memory has room for, over a kill, a torn file and a full disk."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import prometheus
from harness.checks import Records
from harness.cluster import Cluster, Metrics
from harness.dataset import Dataset
from harness.errors import HarnessError
from harness.processes import wait_until
from harness.prometheus import PANELS_OF_DISKS, Prometheus, empty_panels
from harness.store import Store

SHARE = 0.2  # of the dataset, in memory
DISK_SHARE = 0.9  # and on disk: together there is room for all of it
DISK_HITS = 'optcache_tier_hits_total{dataset="default/images",tier="disk"}'
DISK_BYTES = 'optcache_cache_bytes{dataset="default/images",tier="disk"}'
MEMORY_BYTES = 'optcache_cache_bytes{dataset="default/images",tier="memory"}'
MEMORY_CAPACITY = 'optcache_cache_capacity_bytes{dataset="default/images",tier="memory"}'


def segments(disk: Path) -> list[Path]:
    return sorted(disk.glob("node-*/optcache/*/*.segment"))


def bytes_on(disk: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in segments(disk))


def look_at_budgets(node: Metrics, disk: Path) -> None:
    assert node["optcache_disk_used_bytes"] <= node["optcache_disk_capacity_bytes"]
    assert bytes_on(disk) <= node["optcache_disk_capacity_bytes"]
    assert node[MEMORY_BYTES] <= node[MEMORY_CAPACITY] + node["optcache_cache_reserve_bytes"]


def fill(cluster: Cluster, run_job: Callable[..., Records], dataset: Dataset) -> int:
    """Trains until memory and disk hold nearly all, and returns the epoch that comes next. A fast job beside
    a slow disk needs more than two epochs: what finds no room in memory meanwhile is not kept."""
    for first_epoch in range(0, 40, 2):
        run_job([cluster.socket(0)], epochs=2, first_epoch=first_epoch)
        node = cluster.metrics_of("node-0")
        if node[MEMORY_BYTES] + node[DISK_BYTES] >= 0.95 * dataset.total_bytes:
            return first_epoch + 2
    raise HarnessError("forty epochs did not fill memory and disk")


def test_what_memory_has_no_room_for_is_read_from_disk(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
    tmp_path: Path,
) -> None:
    disk = tmp_path / "disk"
    cluster = start_cache(share=SHARE, disk=disk, disk_share=DISK_SHARE)
    epoch = fill(cluster, run_job, dataset)
    begin = store.log_size()
    before = cluster.metrics_of("node-0")
    run_job([cluster.socket(0)], epochs=1, first_epoch=epoch, passes=1)
    node = cluster.metrics_of("node-0")
    assert store.read_bytes(begin) <= 0.1 * dataset.total_bytes
    assert node[DISK_HITS] - before[DISK_HITS] >= 0.6 * len(dataset.paths)
    written = node["optcache_disk_written_bytes_total"]
    assert written <= 1.05 * node["optcache_disk_written_sample_bytes_total"]
    look_at_budgets(node, disk)
    assert node["optcache_disk_errors_total"] == 0


@pytest.mark.skipif(bool(prometheus.lacks()), reason=prometheus.lacks())
def test_dashboards_show_disks(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    dataset: Dataset,
    programs: Path,
    tmp_path: Path,
) -> None:
    cluster = start_cache(share=SHARE, disk=tmp_path / "disk", disk_share=DISK_SHARE)
    with Prometheus(tmp_path / "prometheus", [prometheus.scrape_of(cluster, 1)]) as running:
        running.wait_for_targets(3)
        epoch = fill(cluster, run_job, dataset)
        run_job([cluster.socket(0)], epochs=1, first_epoch=epoch, passes=1)
        running.wait_for("sum(optcache_disk_read_bytes_total) > 0", "reads of the disk are scraped")
        words = ("--last=2m", "--step=1s", "--dashboard=optcache-nodes")
        report = running.render(programs / "optcache", tmp_path / "pictures", *words)
    assert empty_panels(report) & PANELS_OF_DISKS == set()


def test_a_killed_node_finds_what_is_whole(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
    tmp_path: Path,
) -> None:
    """One file is cut off, bytes are turned in another, a third is gone: nobody gets wrong bytes."""
    disk = tmp_path / "disk"
    cluster = start_cache(share=SHARE, disk=disk, disk_share=DISK_SHARE)
    epoch = fill(cluster, run_job, dataset)
    before = cluster.pids()["node-0"]
    cluster.kill("node-0")
    files = segments(disk)
    assert len(files) >= 4
    os.truncate(files[0], files[0].stat().st_size // 2)
    turned = bytearray(files[1].read_bytes())
    for at in range(len(turned) // 2, len(turned), 4096):
        turned[at] ^= 0x55
    files[1].write_bytes(turned)
    files[2].unlink()

    def is_back() -> bool:
        return cluster.pids().get("node-0", before) != before and all(
            member["applied"] == cluster.status()["version"]
            for member in cluster.status()["members"]
        )

    wait_until(is_back, "the node has been started again")
    begin = store.log_size()
    run_job([cluster.socket(0)], epochs=1, first_epoch=epoch, passes=1)
    node = cluster.metrics_of("node-0")
    assert node[DISK_HITS] > 0.4 * len(dataset.paths)
    assert store.read_bytes(begin) <= 0.6 * dataset.total_bytes
    look_at_budgets(node, disk)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a tenth of what its node may write."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "optcache-test", folder]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_costs_misses_only(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    small_disk: Path,
) -> None:
    cluster = start_cache(share=SHARE, disk=small_disk, disk_share=DISK_SHARE)
    run_job([cluster.socket(0)], epochs=2)
    node = cluster.metrics_of("node-0")
    full = node['optcache_disk_errors_total{kind="full"}']
    assert 0 < cluster.log_of("node-0").count("the disk is full before") <= full
    assert node["optcache_disk_out_of_use"] == 0
    assert node[MEMORY_BYTES] > 0
    look_at_budgets(node, small_disk)
