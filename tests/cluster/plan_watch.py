"""What `kubectl get cacheplan NAME -w` prints: a line, or an object, for each version of it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from harness.errors import HarnessError
from harness.processes import last_lines, stop

from cluster.errors import ClusterError
from cluster.objects import Object
from cluster.rollouts import Moment
from cluster.workspace import Workspace

POLL_SECONDS = 0.05


class PlanWatch:
    """Runs from construction to the end of its `with`; it misses no version, however slow the machine is."""

    def __init__(self, workspace: Workspace, name: str, output: str, file: Path) -> None:
        self._file = file
        words = ("get", f"cacheplan/{name}", "--watch", *([f"--output={output}"] if output else []))
        command = workspace.cluster.tool("kubectl", [f"--namespace={workspace.name}", *words])
        with open(file, "wb") as out:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> PlanWatch:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._process)

    def rows(self) -> list[list[str]]:
        """As a table: the words of each whole line, the heading first."""
        return rows_of(self._text())

    def moments(self) -> list[Moment]:
        """With --output=json: what each whole object says; those of specs that nobody has seen are left out."""
        return [moment for plan in objects_of(self._text()) if (moment := Moment.of(plan)) is not None]

    def wait(self, what: str, seconds: float, **wanted: object) -> Moment:
        """Until the newest moment has these values, and soon after it; ClusterError otherwise."""
        deadline = time.monotonic() + seconds
        while True:
            seen = self.moments()
            if seen and all(getattr(seen[-1], name) == value for name, value in wanted.items()):
                return seen[-1]
            if time.monotonic() > deadline:
                told = "\n".join(map(str, seen[-20:]))
                raise ClusterError(f"{what}: not within {seconds:.0f} s\n{told}")
            time.sleep(POLL_SECONDS)

    def _text(self) -> str:
        if self._process.poll() is not None:
            raise HarnessError(f"kubectl get -w has ended:\n{last_lines(self._file)}")
        return self._file.read_text()


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]


def column(rows: list[list[str]], name: str) -> list[str]:
    """What stands below that heading. The columns before it are never empty; some behind it are at times."""
    heading, *lines = rows
    return [line[heading.index(name)] for line in lines]


def steps_of(rows: list[list[str]]) -> list[tuple[str, int]]:
    """Phase and Active of each row, those that follow one another and are alike once."""
    both = zip(column(rows, "PHASE"), map(int, column(rows, "ACTIVE")), strict=True)
    return [step for step, _ in groupby(both)]


def objects_of(text: str) -> Iterator[Object]:
    """Those that are whole of several that follow one another."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return
        yield found
