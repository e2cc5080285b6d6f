"""One rank that reads samples as bytes and does nothing with them but check them."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

from harness import rank
from harness.job import DIGEST_BYTES, Job
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data.distributed import DistributedSampler

import optcache
from optcache.torch import attach


class CheckedSamples(TorchDataset):  # type: ignore[type-arg]
    """For each sample its id, whether its bytes are right, and when they were there."""

    def __init__(self, samples: optcache.Dataset, digests: bytes) -> None:
        self.samples = samples
        self._digests = digests

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[int, bool, float]:
        digest = hashlib.sha256(self.samples[index]).digest()
        expected = self._digests[DIGEST_BYTES * index : DIGEST_BYTES * (index + 1)]
        return int(index), digest == expected, time.time()


def make_loader(job: Job) -> DataLoader[Any]:
    dataset = CheckedSamples(optcache.Dataset(), Path(job.digests).read_bytes())
    loader = DataLoader(
        dataset,
        batch_size=job.batch,
        sampler=DistributedSampler(
            dataset, num_replicas=job.world, rank=job.rank, shuffle=True, seed=job.seed
        ),
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
    )
    return attach(loader, dataset=dataset.samples, epochs=job.passes or None)


if __name__ == "__main__":
    rank.run(make_loader)
