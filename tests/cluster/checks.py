"""What must hold of every training job, whatever happens to it."""

from __future__ import annotations

from cluster import training
from cluster.workspace import Workspace


def check_samples(workspace: Workspace, job: str, pods: int, epochs: int) -> None:
    """Each rank got exactly what its sampler lists, byte for byte."""
    ranks = workspace.ranks(job)
    samples = workspace.samples
    assert list(training.wrong_bytes(ranks, samples.digests)) == []
    assert list(training.wrong_orders(ranks, len(samples), pods, epochs)) == []


def bound(total: float, kept: float, epochs: int) -> float:
    """The least that any cache of size `kept` reads of `total` in so many shuffled epochs."""
    return total + (epochs - 1) * max(total - kept, 0)
