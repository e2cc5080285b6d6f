"""The demo's two scenes: who reads what, and how fast the store is. Nothing here does I/O."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

NAMES = ("one", "sweep")
SEEDS = 4  # of the sweep, one for each job
BESIDE_SHARE = 0.08  # of one job


@dataclass(frozen=True)
class Scene:
    name: str
    title: str
    jobs: int  # at the same time, each with the next seed and in its own loop
    ranks: int  # of each job, in turn on the machines
    machines: int
    epochs: int
    first_epoch: int  # whose time counts: 1 leaves out the one that finds an empty cache
    batch: int
    # Of the dataset, in arenas and transit reserves, all together. An arena holds what the ranks read
    # ahead, and should have room for two batches of each.
    beside_share: float
    seed: int  # of the first job
    workers: int  # of each rank
    # A sleep after each batch stands for the GPU. Two cores have time left beside it: a loop that is
    # limited by decoding gains nothing by a cache.
    step_seconds: float
    decodes: bool
    parts: int  # of the default images, of which one is read
    store_share: float  # of what the jobs read when data is free: what the store delivers
    wider_share: Optional[float] = None  # for Optimal once more


def scenes(arguments: Namespace) -> list[Scene]:
    """Those that the arguments name."""
    found = {
        "one": Scene(
            name="one",
            title="one job",
            jobs=1,
            ranks=arguments.machines,
            machines=arguments.machines,
            epochs=arguments.epochs or 3,
            first_epoch=1,
            batch=arguments.batch or 32,
            beside_share=BESIDE_SHARE,
            seed=arguments.seed,
            workers=2,
            step_seconds=0.07,
            decodes=True,
            parts=2,
            store_share=0.70,
            wider_share=None if arguments.quick else 0.75,
        ),
        # Two cores are too few to decode for four jobs, so these leave that to the GPU.
        "sweep": Scene(
            name="sweep",
            title="four jobs",
            jobs=SEEDS,
            ranks=1,
            machines=1,
            epochs=arguments.epochs or 4,
            first_epoch=1,
            batch=arguments.batch or 16,
            beside_share=0.15,
            seed=arguments.seed,
            workers=1,
            step_seconds=0.0225,
            decodes=False,
            parts=4,
            store_share=0.50,
        ),
    }
    return [found[name] for name in ([arguments.scene] if arguments.scene else NAMES)]


def runs(scene: Scene, policies: Sequence[str]) -> list[tuple[str, float]]:
    """Policies, each with the store's share."""
    found = [(policy, scene.store_share) for policy in policies]
    if scene.wider_share and "Optimal" in policies:
        found.append(("Optimal", scene.wider_share))
    return found
