"""One rank that reads samples as bytes and does nothing with them but check them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import rank
from harness.job import Job
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

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
        return rank.checked(index, self.samples[index], self._digests)


def make_loader(job: Job) -> DataLoader[Any]:
    dataset = CheckedSamples(optcache.Dataset(), Path(job.digests).read_bytes())
    loader = rank.loader_of(job, dataset)
    return attach(loader, dataset=dataset.samples, epochs=job.passes or None)


if __name__ == "__main__":
    rank.run(make_loader)
