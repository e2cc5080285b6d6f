"""What MIN would have read from the store, had it known how the reads come in truth."""

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
class Fewest:
    requests: int
    body_bytes: int


def fewest_reads(
    program: Path, folder: Path, samples: Iterable[int], sizes: Sequence[int], share: float
) -> Fewest:
    """Of `samples` in the order of their delivery, by Belady's MIN in one cache for that share."""
    trace = folder / "delivered.oracleGeneral"
    with open(trace, "wb") as file:
        for sample in samples:
            file.write(READ.pack(0, sample, sizes[sample], -1))
    command = [program, "simulate", "--trace", trace, "--trace-format", "oracleGeneral"]
    command += ["--nodes", "1", "--capacity", str(share), "--policies", "min", "--output", "json"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=SECONDS)
    found = json.loads(done.stdout)["policies"]["min"]
    trace.unlink()
    return Fewest(found["storeReads"], found["storeBytes"])
