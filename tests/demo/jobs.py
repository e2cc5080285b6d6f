"""The training jobs of a demo, and the memory of the machines that they run on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.cluster import Budget, transit_reserve
from harness.dataset import Dataset
from harness.job import Job

CAPACITY_SHARE = 0.30  # of the dataset, all nodes together
# Arenas and transit reserves, all together. An arena holds what the ranks read ahead, 1.2 MB of the
# default images, and more than as much beside.
BESIDE_SHARE = 0.08
PAGE_BYTES = 4096
WORKERS = 2  # of each rank


@dataclass(frozen=True)
class Jobs:
    dataset: Dataset
    programs: Path
    folder: Path  # for logs and what the processes say to each other; its path is short
    machines: int  # each has a rank
    epochs: int
    batch: int
    seed: int

    @property
    def budget(self) -> Budget:
        """Of each machine."""
        memory = int(self.dataset.total_bytes * CAPACITY_SHARE / self.machines)
        beside = int(self.dataset.total_bytes * BESIDE_SHARE / self.machines)
        arena = beside - self.reserve_of(memory)
        return Budget(memory, max(arena // PAGE_BYTES, 1) * PAGE_BYTES)

    def reserve_of(self, memory: int) -> int:
        return transit_reserve(memory, self.dataset.total_bytes, len(self.dataset.paths))

    def prepare(self) -> None:
        """Once, before the first job."""
        self.dataset.write_digests(self._digests)
        (self.folder / "sockets").mkdir()

    def jobs(self, folder: Path) -> list[Job]:
        """One for each rank; they write to `folder`."""
        return [
            Job(
                rank=rank,
                world=self.machines,
                epochs=self.epochs,
                batch=self.batch,
                seed=self.seed,
                digests=str(self._digests),
                rendezvous=str(folder / "rendezvous"),
                records=str(folder / f"records-{rank}.json"),
                workers=WORKERS,
            )
            for rank in range(self.machines)
        ]

    @property
    def _digests(self) -> Path:
        return self.folder / "sha256.bin"
