"""How much processor time the processes of a run take, by /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    group: int
    ticks: int  # its own, and those of its children that have ended


def cpu_seconds(groups: Sequence[int]) -> float:
    """Of all processes of these groups, and of their children that have ended."""
    return sum(process.ticks for process in _processes() if process.group in groups) / TICKS


def cpu_seconds_below(ancestor: int) -> float:
    """Of all processes that descend from `ancestor`; its own time does not count."""
    processes = list(_processes())
    found, ticks = {ancestor}, 0
    while more := [one for one in processes if one.parent in found and one.pid not in found]:
        found.update(one.pid for one in more)
        ticks += sum(one.ticks for one in more)
    return ticks / TICKS


def _processes() -> Iterator[_Process]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        ticks = sum(map(int, fields[11:15]))
        yield _Process(int(path.parent.name), int(fields[1]), int(fields[2]), ticks)
