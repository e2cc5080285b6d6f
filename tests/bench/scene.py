"""A made dataset behind nginx and a cluster on it, for benchmarks that count store reads."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.context import REPOSITORY, Context
from bench.readers import Rank
from harness.cluster import Budget, Cluster, ClusterOptions, transit_reserve
from harness.store import LISTING, Store

sys.path.append(str(REPOSITORY / "tests" / "demo"))

import accounting  # noqa: E402
from accounting import Delivery  # noqa: E402
from dataset import unpack_default  # noqa: E402

BESIDE_SHARE = 0.02  # of the dataset: arenas and transit reserves, all together
PAGE_BYTES = 4096


@dataclass(frozen=True)
class Made:
    """A dataset of random bytes, all samples of one size."""

    samples: int
    bytes_each: int
    machines: int
    share: float  # of the dataset that all nodes together hold
    arena: int = 0  # of each sidecar; 0: what BESIDE_SHARE leaves

    @property
    def paths(self) -> list[str]:
        return [f"class/{number:06}.png" for number in range(self.samples)]

    @property
    def budget(self) -> Budget:
        total = self.samples * self.bytes_each
        memory = int(total * self.share / self.machines)
        beside = int(total * BESIDE_SHARE / self.machines)
        reserve = transit_reserve(memory, total, self.samples)
        arena = self.arena or max(beside - reserve, self.bytes_each * 32)
        return Budget(memory, -(-arena // PAGE_BYTES) * PAGE_BYTES)

    def write(self, root: Path) -> None:
        (root / "class").mkdir(parents=True)
        generator = random.Random(0)
        for path in self.paths:
            (root / path).write_bytes(generator.randbytes(self.bytes_each))


@dataclass(frozen=True)
class Scene:
    made: Made
    store: Store
    cluster: Cluster

    def reads(self, log_begin: int) -> list[tuple[float, int, int]]:
        """(time, sample, bytes) of the store reads since the log ended at `log_begin`."""
        log = self.store.access_log(log_begin)
        return accounting.sample_reads(accounting.parse_access_log(log), self.made.paths)


@contextmanager
def store_of(context: Context, made: Made) -> Iterator[Store]:
    folder = context.folder
    made.write(folder / "data")
    with Store(folder / "data", folder) as store:
        store.listing_file.write_text("".join(f"{path}\n" for path in made.paths))
        yield store


def cluster_over(context: Context, made: Made, base_url: str) -> Cluster:
    """A cluster whose dataset lies there, for a `with`."""
    sockets = context.folder / "sockets"
    sockets.mkdir()
    options = ClusterOptions(
        programs=context.programs,
        base_url=base_url,
        listing=LISTING,
        machines=made.machines,
        budget=made.budget,
        state=context.folder / "state",
        sockets=sockets,
    )
    return Cluster(options, "Optimal", context.folder)


@contextmanager
def scene(context: Context, made: Made) -> Iterator[Scene]:
    context.say(f"{made.samples} samples of {made.bytes_each} B, {made.machines} machines")
    with (
        store_of(context, made) as store,
        cluster_over(context, made, store.base_url) as cluster,
    ):
        yield Scene(made, store, cluster)


def deliveries(ranks: Sequence[Rank], times: Sequence[Sequence[Sequence[float]]]) -> list[Delivery]:
    """What was handed over, by what PyTorch says of the ranks' orders."""
    found = []
    for rank, epochs in zip(ranks, times, strict=True):
        sampler = rank.sampler()
        for number, of_epoch in enumerate(epochs, rank.first_epoch):
            sampler.set_epoch(number)
            for index, (sample, time) in enumerate(zip(sampler, of_epoch, strict=True)):
                found.append(Delivery(time, number, index / len(of_epoch), sample))
    return found


__all__ = [
    "Made",
    "Scene",
    "accounting",
    "cluster_over",
    "deliveries",
    "scene",
    "store_of",
    "unpack_default",
]
