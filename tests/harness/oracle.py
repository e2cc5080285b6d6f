"""What a cache of one node would have read from the store: MIN, which knows how the reads come in
truth, and policies that do not."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 300
READ = struct.Struct("<IQIq")  # libCacheSim's oracleGeneral: time, id, bytes, next read


@dataclass(frozen=True)
class Reads:
    requests: int
    body_bytes: int


def fewest_reads(
    program: Path, folder: Path, samples: Iterable[int], sizes: Sequence[int], share: float
) -> Reads:
    """Of `samples` in the order of their delivery, by Belady's MIN in one cache for that share."""
    return simulated_reads("min", program, folder, samples, sizes, share)


def simulated_reads(
    policy: str,
    program: Path,
    folder: Path,
    samples: Iterable[int],
    sizes: Sequence[int],
    share: float,
) -> Reads:
    """The same by a policy that `optcache simulate` knows."""
    trace = folder / "delivered.oracleGeneral"
    with open(trace, "wb") as file:
        for sample in samples:
            file.write(READ.pack(0, sample, sizes[sample], -1))
    command: list[str | Path] = [program, "simulate", "--trace", trace, "--trace-format", "oracleGeneral"]
    command += ["--nodes", "1", "--capacity", str(share), "--policies", policy, "--output", "json"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=SECONDS)
    found = json.loads(done.stdout)["policies"][policy]
    trace.unlink()
    return Reads(found["storeReads"], found["storeBytes"])
