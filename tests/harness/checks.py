"""What must hold of every run: a sentence for each thing that does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.cluster import Metrics
from harness.dataset import Dataset
from harness.job import EpochRecord, Job
from torch.utils.data.distributed import DistributedSampler

Records = Sequence[Sequence[EpochRecord]]  # by rank and epoch


def sampler_of(job: Job, samples: int) -> DistributedSampler:  # type: ignore[type-arg]
    """Made anew and by nobody else: what a rank must have got, by PyTorch's own word."""
    return DistributedSampler(
        range(samples),  # type: ignore[arg-type]
        num_replicas=job.world,
        rank=job.rank,
        shuffle=True,
        seed=job.seed,
    )


def wrong_samples(dataset: Dataset, records: Records) -> Iterator[str]:
    wrong = [sample for epochs in records for epoch in epochs for sample in epoch.mismatches]
    if wrong:
        yield f"{len(wrong)} samples had wrong bytes, the first was {dataset.paths[wrong[0]]}"


def wrong_orders(dataset: Dataset, jobs: Sequence[Job], records: Records) -> Iterator[str]:
    for job, epochs in zip(jobs, records, strict=True):
        sampler = sampler_of(job, len(dataset.paths))
        for number, epoch in enumerate(epochs, job.first_epoch):
            sampler.set_epoch(number)
            if epoch.samples != list(sampler):
                yield f"rank {job.rank}, epoch {number}: not the order of DistributedSampler"


def exceeded_budgets(nodes: Sequence[Metrics]) -> Iterator[str]:
    for number, node in enumerate(nodes):
        peak = node.get("optcache_cache_peak_bytes", 0)
        capacity = node.get("optcache_cache_capacity_bytes", 0)
        reserve = node.get("optcache_cache_reserve_bytes", 0)
        if peak > capacity + reserve:
            yield (
                f"node {number} held {peak:,.0f} bytes; its budget is {capacity:,.0f} "
                f"and {reserve:,.0f} for transit"
            )


def sidecar_troubles(sidecars: Sequence[Metrics]) -> Iterator[str]:
    for number, sidecar in enumerate(sidecars):
        if failed := sidecar.get("optcache_client_failed_samples_total", 0):
            yield f"sidecar {number} answered {failed:.0f} samples with an error"
        if unknown := sidecar.get("optcache_unknown_orders_total", 0):
            yield f"sidecar {number} predicted the wrong order of {unknown:.0f} passes"
