"""Node and sidecar stay within the limits that docs/memory.md says to give them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import optcache
import pytest
from harness.checks import Records
from harness.cluster import Cluster
from harness.dataset import Dataset

SHARE = 0.6
ARENA = 16 << 20
OVERFLOW = 8 << 20
# As in docs/memory.md.
BASE = 32 << 20
NODE_SHARE = 1.12  # of its memory: 10 % for index and allocator, 2 % transit reserve
SAMPLE_BYTES = 100  # of a sample: manifest and plan


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
    assert sidecar <= ARENA + OVERFLOW + SAMPLE_BYTES * len(samples) + BASE
    assert node <= NODE_SHARE * memory + SAMPLE_BYTES * len(samples) + BASE
    # The limits are tight: most of what they allow was taken.
    assert sidecar >= ARENA + OVERFLOW
    assert node >= 0.9 * memory
    del kept
