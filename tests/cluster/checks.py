"""What must hold of every training job, whatever happens to it."""

from __future__ import annotations

from typing import Optional

from cluster import settings, training
from cluster.training import StoreReads
from cluster.workspace import Workspace

# Of store bytes, above the least that any cache of that size reads: by how much depends on when the
# first plan comes, and so on what else the machine does.
TOLERANCE = 1.10 if settings.SMOKE else 1.005


def check_samples(
    workspace: Workspace, job: str, pods: int, epochs: Optional[int], seed: int = 0
) -> None:
    """Each rank got exactly what its sampler lists, byte for byte; `epochs` None: it still reads."""
    ranks = workspace.ranks(job)
    samples = workspace.samples
    assert list(training.wrong_bytes(ranks, samples.digests)) == []
    assert list(training.wrong_orders(ranks, len(samples), pods, epochs, seed)) == []


def check_store_reads(
    workspace: Workspace, since: str, share: float, epochs: int, tolerance: float
) -> StoreReads:
    """What was read of the store from then on: `tolerance` times the bound at most."""
    read = workspace.store.reads(since, workspace.samples)
    total = workspace.samples.dataset.total_bytes
    least = bound(total, share * total, epochs)
    assert read.body_bytes <= tolerance * least, f"{read.body_bytes / least:.4f} x the bound"
    return read


def bound(total: float, kept: float, epochs: int) -> float:
    """The least that any cache of size `kept` reads of `total` in so many shuffled epochs."""
    return total + (epochs - 1) * max(total - kept, 0)
