"""What the harness makes of the lines of its ranks, and of `optcache simulate`."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.oracle import Reads, fewest_reads, simulated_reads  # noqa: E402
from harness.training import Slowest  # noqa: E402


def test_progress_is_that_of_the_rank_that_is_behind():
    told: list[tuple[int, int]] = []
    slowest = Slowest(2, lambda epoch, done: told.append((epoch, done)))
    slowest.hear(0, b"0 0\n0 1\n")
    assert told == []  # the other one has read nothing yet
    slowest.hear(1, b"0 0")
    assert told == []  # a line that is not complete
    slowest.hear(1, b"\n")
    slowest.hear(0, b"0 2\n1 0\n")
    assert told == [(0, 1)]  # nothing new of the one that is behind
    slowest.hear(1, b"0 1\n0 2\n")
    slowest.hear(1, b"1 0\n")
    assert told == [(0, 1), (0, 3), (1, 1)]


# Keeps the trace that it is given, and answers as `optcache simulate` does.
SIMULATE = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    --trace) cp "$2" "$0.trace" ;;
    --policies) policy=$2 ;;
    --capacity) share=$2 ;;
  esac
  shift
done
echo "{\\"policies\\": {\\"$policy\\": {\\"storeReads\\": ${#policy}, \\"storeBytes\\": ${share#0.}}}}"
"""


def test_reads_are_simulated_by_any_policy(tmp_path: Path):
    program = tmp_path / "optcache"
    program.write_text(SIMULATE)
    program.chmod(0o755)
    reads = simulated_reads("lru-2", program, tmp_path, [1, 0, 1], [70, 30], 0.25)
    assert reads == Reads(requests=5, body_bytes=25)
    trace = (tmp_path / "optcache.trace").read_bytes()
    assert [row[1:3] for row in struct.iter_unpack("<IQIq", trace)] == [(1, 30), (0, 70), (1, 30)]
    assert fewest_reads(program, tmp_path, [0], [70], 0.5) == Reads(3, 5)
