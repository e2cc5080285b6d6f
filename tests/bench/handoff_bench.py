#!/usr/bin/env python3
"""What a sample costs in a training process: a view through the hand-over, or open and read of a file.

    tests/bench/handoff_bench.py [--samples 4096] [--bytes 4096] [--batch 256] [--rounds 40]

Both in one process, in turns, over the same files on a memory file system; prints one line of JSON
with microseconds a sample (median over the rounds, and the least for what other programs disturb). The sidecar's end is handoff_test_server with
everything staged. Taking a view reads no byte of it, so `touch` is the same with every byte summed
up by zlib.crc32, for either way.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "sidecar" / "python" / "src"))

import optcache  # noqa: E402

Batch = list[int]


def programs() -> Path:
    return Path(os.environ.get("OPTCACHE_BIN_DIR", ROOT / "build" / "dev" / "bin"))


def timed(way: Callable[[Batch], object], batches: list[Batch]) -> float:
    """Microseconds a sample."""
    began = time.perf_counter()
    for batch in batches:
        way(batch)
    return (time.perf_counter() - began) / sum(map(len, batches)) * 1e6


def measure(folder: Path, args: argparse.Namespace) -> dict[str, float]:
    ds = optcache.Dataset()
    paths = [str(folder / ds.path(i)) for i in range(len(ds))]

    def read(index: int) -> bytes:
        with open(paths[index], "rb", buffering=0) as file:
            return file.read()

    ways: dict[str, Callable[[Batch], object]] = {
        "view_us": ds.__getitems__,
        "file_us": lambda batch: [read(i) for i in batch],
        "view_touch_us": lambda batch: [zlib.crc32(v) for v in ds.__getitems__(batch)],
        "file_touch_us": lambda batch: [zlib.crc32(read(i)) for i in batch],
        "single_view_us": lambda batch: [ds[i] for i in batch[:16]],
    }
    generator = random.Random(1)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        ids = [generator.randrange(len(ds)) for _ in range(16 * args.batch)]
        batches = [ids[i : i + args.batch] for i in range(0, len(ids), args.batch)]
        for name, way in ways.items():
            some = [batch[:16] for batch in batches] if name == "single_view_us" else batches
            times[name].append(timed(way, some))
    medians = {name: round(statistics.median(t), 3) for name, t in times.items()}
    return medians | {f"{name}_least": round(min(t), 3) for name, t in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()

    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        folder = Path(name) / "data"
        folder.mkdir()
        generator = random.Random(0)
        for i in range(args.samples):
            (folder / f"{i:06}").write_bytes(generator.randbytes(args.bytes))
        socket = f"{name}/s"
        arena = (args.bytes + 64) * args.samples + (1 << 20)
        server = subprocess.Popen(
            [programs() / "handoff_test_server", "--stage", "--quiet", "--socket", socket]
            + ["--folder", str(folder), "--arena", str(arena)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        os.environ["OPTCACHE_SOCKET"] = socket
        try:
            result = measure(folder, args)
        finally:
            server.terminate()
            server.wait()
    result["file_to_view"] = round(result["file_us"] / result["view_us"], 1)
    print(json.dumps({"bench": "handoff", **vars(args), **result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
