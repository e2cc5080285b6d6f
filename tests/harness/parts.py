"""Which tests belong to the K-th of N parts, so that all parts take about as long."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path

UNKNOWN_SECONDS = 60.0  # of a case that has no record


def part(cases: Sequence[str], seconds: Mapping[str, float], number: int, parts: int) -> list[str]:
    """The cases of part `number` (1 to `parts`), in their order.

    The longest first, each to the part that has least so far (Graham, "Bounds on Multiprocessing Timing
    Anomalies", 1969): the longest part takes at most 4/3 of what the best division takes.
    """
    took = {case: seconds.get(case, UNKNOWN_SECONDS) for case in cases}
    sums = [(0.0, each) for each in range(1, parts + 1)]
    chosen = set()
    for case in sorted(cases, key=lambda each: (-took[each], each)):
        total, least = heapq.heappop(sums)
        heapq.heappush(sums, (total + took[case], least))
        if least == number:
            chosen.add(case)
    return [case for case in cases if case in chosen]


def newest_seconds(record: Path, commit: str) -> dict[str, float]:
    """Of each case in a file of `harness.records` with the columns seconds, result and case.

    Rows of `commit` do not count: all parts of one commit are cut alike, though each appends to the file.
    """
    if not record.exists():
        return {}
    rows = [line.split("\t") for line in record.read_text().splitlines()]
    return {row[4]: float(row[2]) for row in rows if len(row) == 5 and row[1] != commit and row[3] == "passed"}
