"""Computed samples: how often they are computed, beside the bound and `functools.lru_cache`.

Two ranks with two workers each decode and resize JPEGs. What is kept is a share of the values: by
us, once for all; by lru_cache, in each worker, of as many values together, or of as many in each.
"""

from __future__ import annotations

import functools
import io
import multiprocessing
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from bench.context import Context
from bench.figures import Figure, at_most
from harness.cluster import Budget, Cluster, ClusterOptions
from PIL import Image
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import optcache
from optcache._values import encode
from optcache.torch import attach

SHARES = (0.3, 1.0)
RANKS = 2
WORKERS = 2
EPOCHS = 5
BATCH = 8
SIDE = 224  # pixels of a value
SECONDS = 600.0  # for one run


class Pictures:
    """Sample i is picture i, decoded and resized. Each computation adds a byte to `count`."""

    def __init__(self, folder: Path, count: Path, size: int) -> None:
        self.folder = folder
        self.count = count
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> torch.Tensor:
        count = os.open(self.count, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(count, b".")
        os.close(count)
        with Image.open(self.folder / f"{index}.jpg") as picture:
            small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        return torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8)


class RecentlyUsed:
    """The values that each process used last."""

    def __init__(self, pictures: Pictures, values: int) -> None:
        self.pictures = pictures
        self.values = values
        self.get: Callable[[int], torch.Tensor] | None = None  # made in each worker

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self.get is None:
            self.get = functools.lru_cache(self.values)(self.pictures.__getitem__)
        return self.get(index)


@dataclass(frozen=True)
class Way:
    """How values are kept."""

    pictures: Pictures
    socket: str = ""  # of the sidecar that keeps them
    max_bytes: int = 0  # there
    of_each_worker: int = 0  # values that lru_cache may hold

    def dataset(self) -> Any:
        if self.socket:
            return optcache.cached(
                self.pictures,
                name=f"pictures-{self.max_bytes}",  # what had another limit is kept for a minute
                max_bytes=self.max_bytes,
                socket=self.socket,
            )
        return RecentlyUsed(self.pictures, self.of_each_worker)


@dataclass(frozen=True)
class Outcome:
    computations: int
    most_bytes: int  # of memory, ranks and workers and sidecar together


def run(context: Context) -> list[Figure]:
    size = 64 if context.quick else 800
    folder = context.folder / "files" / "pictures"
    _write_pictures(folder, size)
    pictures = Pictures(folder, context.folder / "count", size)
    value_bytes = len(encode(pictures[0]))
    room = int(sum(SHARES) * size * value_bytes) + (1 << 20)  # what is not used any more stays a minute
    options = ClusterOptions(
        programs=context.programs,
        base_url=str(folder.parent),
        listing="",
        machines=1,
        budget=Budget(1 << 20, 4 << 20, 1 << 20, computed=room),
        state=context.folder / "state",
        sockets=context.folder,
    )
    options.state.mkdir(mode=0o700)
    with Cluster(options, "Optimal", context.folder) as cluster:
        sidecar = cluster.pids()["sidecar-0"]

        def measure(way: Way) -> Outcome:
            pictures.count.unlink(missing_ok=True)
            return _train(way, sidecar if way.socket else 0)

        none = measure(Way(pictures))
        context.say(f"no cache: {none}")
        figures = []
        for share in SHARES:
            kept = int(share * size)
            socket = str(cluster.socket(0))
            ours = measure(Way(pictures, socket=socket, max_bytes=kept * value_bytes))
            context.say(f"{share}, ours: {ours}")
            together = measure(Way(pictures, of_each_worker=kept // (RANKS * WORKERS)))
            context.say(f"{share}, lru_cache of as much memory: {together}")
            each = measure(Way(pictures, of_each_worker=kept))
            context.say(f"{share}, lru_cache of as many values: {each}")
            figures += _figures(share, size, value_bytes, none, ours, together, each)
    return figures


def _figures(
    share: float,
    size: int,
    value_bytes: int,
    none: Outcome,
    ours: Outcome,
    together: Outcome,
    each: Outcome,
) -> list[Figure]:
    kept = int(share * size)
    bound = size + (EPOCHS - 1) * (size - kept)

    def memory(outcome: Outcome) -> float:
        return (outcome.most_bytes - none.most_bytes) / (kept * value_bytes)

    return [
        Figure(
            f"c = {share}: computations / bound, 2 ranks of 2 workers, {EPOCHS} epochs",
            ours.computations / bound,
            "",
            f"{ours.computations} of {bound}; lru_cache in each worker {together.computations / bound:.2f}, "
            f"with as many values in each {each.computations / bound:.2f}, "
            f"no cache {none.computations / bound:.2f}",
            at_most(1),
        ),
        Figure(
            f"c = {share}: memory more than without a cache / that of the values",
            memory(ours),
            "",
            f"lru_cache {memory(together):.2f}, with as many values in each {memory(each):.2f}",
        ),
    ]


def _write_pictures(folder: Path, count: int) -> None:
    """Soft noise, so that there is something to decode."""
    folder.mkdir(parents=True)
    choose = random.Random(0)
    for number in range(count):
        noise = Image.frombytes("RGB", (48, 36), choose.randbytes(48 * 36 * 3))
        noise.resize((480, 360), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg")


def _train(way: Way, sidecar: int) -> Outcome:
    processes = multiprocessing.get_context("spawn")
    barrier = processes.Barrier(RANKS + 1)
    ranks = [processes.Process(target=_rank, args=(way, rank, barrier)) for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    most = 0
    try:
        for _ in range(EPOCHS):
            barrier.wait(SECONDS)  # an epoch is over, its workers are there
            pids = [int(rank.pid or 0) for rank in ranks]
            pids += [child for pid in pids for child in _children(pid)]
            most = max(most, sum(map(_memory, [*pids, sidecar] if sidecar else pids)))
            barrier.wait(SECONDS)
    finally:
        for rank in ranks:
            rank.join(SECONDS if barrier.broken is False else 0)
            rank.kill()
    return Outcome(way.pictures.count.stat().st_size, most)


def _rank(way: Way, rank: int, barrier: Any) -> None:
    torch.set_num_threads(1)
    dataset = way.dataset()
    sampler: DistributedSampler[Any] = DistributedSampler(dataset, RANKS, rank, seed=3)
    loader: DataLoader[Any] = DataLoader(
        dataset, BATCH, sampler=sampler, num_workers=WORKERS, persistent_workers=True
    )
    if way.socket:
        attach(loader)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for _ in loader:
            pass
        barrier.wait(SECONDS)
        barrier.wait(SECONDS)


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _memory(pid: int) -> int:
    """What a process has alone, and its part of what it shares."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
