"""One rank whose steps take a known time, and that writes down what it got and when.

As a program: paced_rank.py PACE.json [RANK]
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.job import DIGEST_BYTES
from harness.plain_rank import CheckedSamples
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data.distributed import DistributedSampler

import optcache
from optcache.torch import attach


@dataclass(frozen=True)
class Pace:
    """What a rank does, and where it writes a line a step: seconds, samples that were wrong."""

    digests: str  # as harness.job.Job's
    records: str  # of rank 0; others have their number behind it
    compute_seconds: float  # of a step
    batch: int
    epochs: int
    world: int = 1
    workers: int = 2
    files: tuple[str, ...] = ()  # samples are these, and not the cache's


class Files(TorchDataset):  # type: ignore[type-arg]
    """The samples in memory, read in vain, checked as the cache's are."""

    def __init__(self, paths: tuple[str, ...], digests: bytes) -> None:
        self._samples = [Path(path).read_bytes() for path in paths]
        self._checked = CheckedSamples(self._samples, digests)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> tuple[int, bool, float]:
        return self._checked[index]


def loader_of(pace: Pace, rank: int) -> DataLoader[Any]:
    digests = Path(pace.digests).read_bytes()
    dataset: Files | CheckedSamples
    if pace.files:
        dataset = Files(pace.files, digests)
    else:
        dataset = CheckedSamples(optcache.Dataset(), digests)
    assert len(dataset) * DIGEST_BYTES == len(digests)
    loader: DataLoader[Any] = DataLoader(
        dataset,
        batch_size=pace.batch,
        sampler=DistributedSampler(dataset, num_replicas=pace.world, rank=rank, seed=1),
        num_workers=pace.workers,
    )
    if isinstance(dataset, Files):
        return loader
    return attach(loader, dataset=dataset.samples, epochs=pace.epochs)


def main(pace: Pace, rank: int) -> None:
    loader = loader_of(pace, rank)
    with open(f"{pace.records}{rank or ''}", "w", buffering=1) as records:
        for epoch in range(pace.epochs):
            loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
            began = time.monotonic()
            for _, right, _ in loader:
                time.sleep(pace.compute_seconds)  # the step that is to be measured
                ended = time.monotonic()
                records.write(json.dumps([ended - began, int((~right).sum())]) + "\n")
                began = ended


def save(pace: Pace, path: Path) -> Path:
    path.write_text(json.dumps(dataclasses.asdict(pace)))
    return path


if __name__ == "__main__":
    said = json.loads(Path(sys.argv[1]).read_text())
    said["files"] = tuple(said["files"])
    main(Pace(**said), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
