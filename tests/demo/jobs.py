"""The training jobs of a scene, and the memory of the machines that they run on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.cluster import Budget, transit_reserve
from harness.dataset import Dataset
from harness.job import Job
from scenes import Scene

CAPACITY_SHARE = 0.30  # of the dataset, all nodes together
PAGE_BYTES = 4096


@dataclass(frozen=True)
class Jobs:
    dataset: Dataset
    programs: Path
    folder: Path  # for logs and what the processes say to each other; its path is short
    scene: Scene

    @property
    def budget(self) -> Budget:
        """Of each machine."""
        scene = self.scene
        memory = int(self.dataset.total_bytes * CAPACITY_SHARE / scene.machines)
        beside = int(self.dataset.total_bytes * scene.beside_share / scene.machines)
        arena = beside - self.reserve_of(memory)
        return Budget(memory, max(arena // PAGE_BYTES, 1) * PAGE_BYTES)

    def reserve_of(self, memory: int) -> int:
        return transit_reserve(memory, self.dataset.total_bytes, len(self.dataset.paths))

    def prepare(self) -> None:
        """Once, before the first job."""
        self.dataset.write_digests(self._digests)
        (self.folder / "sockets").mkdir()

    def jobs(self, folder: Path) -> list[Job]:
        """One for each rank of each job; they write to `folder`."""
        scene = self.scene
        return [
            Job(
                rank=rank,
                world=scene.ranks,
                epochs=scene.epochs,
                batch=scene.batch,
                seed=scene.seed + job,
                digests=str(self._digests),
                rendezvous=str(folder / f"rendezvous-{job}"),
                records=str(folder / f"records-{job}-{rank}.json"),
                passes=scene.epochs,
                workers=scene.workers,
                step_seconds=scene.step_seconds,
                decodes=scene.decodes,
            )
            for job in range(scene.jobs)
            for rank in range(scene.ranks)
        ]

    @property
    def _digests(self) -> Path:
        return self.folder / "sha256.bin"
