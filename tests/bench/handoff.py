"""What a sample costs in a training process: a view through the hand-over, or a file read.

Both in one process, in turns, over the same files on a memory file system. The sidecar's end is
handoff_test_server with everything staged. Taking a view reads no byte of it.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import optcache
from bench.context import Context
from bench.figures import Figure, at_most

Batch = list[int]

VIEW_US = 1.0
BATCH = 256
SIZES = {4096: 4096, 110_000: 1024}  # of a sample in bytes: so many samples


def run(context: Context) -> list[Figure]:
    rounds = 4 if context.quick else 40
    figures = []
    for size, samples in SIZES.items():
        context.say(f"samples of {size} bytes")
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.TemporaryDirectory(dir=memory) as folder:
            view_us, file_us = _measure(context.programs, Path(folder), samples, size, rounds)
        figures.append(
            Figure(
                f"hand-over: a sample of {size:,} B in batches of {BATCH}",
                view_us,
                "us",
                f"open and read on tmpfs {file_us:.2f} us",
                at_most(VIEW_US),
            )
        )
    return figures


def _measure(
    programs: Path, folder: Path, samples: int, size: int, rounds: int
) -> tuple[float, float]:
    """Microseconds a sample: a view, a file."""
    data = folder / "data"
    data.mkdir()
    generator = random.Random(0)
    for i in range(samples):
        (data / f"{i:06}").write_bytes(generator.randbytes(size))
    arena = (size + 64) * samples + (1 << 20)
    server = subprocess.Popen(
        [
            *(programs / "handoff_test_server", "--stage", "--quiet", "--socket", folder / "s"),
            *("--folder", data, "--arena", str(arena)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        return _alternate(optcache.Dataset(socket=str(folder / "s")), data, rounds)
    finally:
        server.terminate()
        server.wait()


def _alternate(dataset: optcache.Dataset, data: Path, rounds: int) -> tuple[float, float]:
    paths = [str(data / dataset.path(i)) for i in range(len(dataset))]

    def read(index: int) -> bytes:
        with open(paths[index], "rb", buffering=0) as file:
            return file.read()

    def view_all(batch: Batch) -> object:
        return dataset.__getitems__(batch)

    def read_all(batch: Batch) -> object:
        return [read(i) for i in batch]

    generator = random.Random(1)
    views, files = [], []
    for _ in range(rounds):
        batches = [
            [generator.randrange(len(dataset)) for _ in range(BATCH)] for _ in range(16)
        ]
        views.append(_timed(view_all, batches))
        files.append(_timed(read_all, batches))
    return statistics.median(views), statistics.median(files)


def _timed(way: Callable[[Batch], object], batches: list[Batch]) -> float:
    """Microseconds a sample."""
    began = time.perf_counter()
    for batch in batches:
        way(batch)
    return (time.perf_counter() - began) / sum(map(len, batches)) * 1e6
