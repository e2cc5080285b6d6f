"""One rank that reads small samples, a process of its own: `small_rank.py JOB`, JSON by small.py.

It joins the bytes of each batch and does nothing else. It reads an epoch for each line on its
standard input, and writes a line after it: samples, bytes, and the seconds of processor time that its
workers have taken in all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data.distributed import DistributedSampler

import optcache
from optcache.torch import attach


class Files(TorchDataset):  # type: ignore[type-arg]
    def __init__(self, folder: str) -> None:
        self._paths = [str(path) for path in sorted(Path(folder).rglob("*.bin"))]

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> bytes:
        with open(self._paths[index], "rb", buffering=0) as file:
            return file.read()


def joined(samples: list[Any]) -> tuple[int, int]:
    """How many there are, and how many bytes."""
    return len(samples), len(b"".join(samples))


def loader_of(job: dict[str, Any]) -> DataLoader[Any]:
    dataset: Any = Files(job["folder"]) if job["folder"] else optcache.Dataset()
    sampler: DistributedSampler[Any] = DistributedSampler(
        dataset, num_replicas=job["world"], rank=job["rank"], seed=0
    )
    loader: DataLoader[Any] = DataLoader(
        dataset,
        job["batch"],
        sampler=sampler,
        num_workers=job["workers"],
        collate_fn=joined,
        persistent_workers=True,
    )
    return loader if job["folder"] else attach(loader, epochs=job["epochs"])


def main() -> None:
    job: dict[str, Any] = json.loads(sys.argv[1])
    loader = loader_of(job)
    for epoch in range(job["epochs"]):
        if not sys.stdin.readline():
            return
        loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        samples, size = map(sum, zip(*loader))
        workers: Any = loader._iterator._workers  # type: ignore[union-attr]
        cpu = sum(_cpu_seconds_of(worker.pid) for worker in workers)
        sys.stdout.write(json.dumps([samples, size, cpu]) + "\n")
        sys.stdout.flush()


def _cpu_seconds_of(pid: int) -> float:
    """Of all its threads."""
    stats = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(stat.read_text().split()[0]) for stat in stats) / 1e9


if __name__ == "__main__":
    main()
