"""Runs a training loop's ranks epoch by epoch; measures what each took of machine and link."""

from __future__ import annotations

import dataclasses
import json
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.context import REPOSITORY
from bench.peers.loaders import Job
from harness.errors import HarnessError
from harness.ports import free_port
from harness.processes import last_lines, stop

START_SECONDS = 120.0
EPOCH_SECONDS = 180.0
LOOK_SECONDS = 0.2  # between two looks at a folder's size


@dataclass(frozen=True)
class Counts:
    """So far: of the link, of the server's log, and of the clients' processes."""

    bytes: int
    gets: int
    requests: int
    cpu_seconds: float

    def minus(self, other: Counts) -> Counts:
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Counts(*(mine - its for mine, its in pairs))


@dataclass(frozen=True)
class Pass:
    """An epoch of all ranks."""

    seconds: float
    samples: int
    bytes: int
    touched: int
    counts: Counts


def run(
    python: Path,
    jobs: Sequence[Job],
    folder: Path,
    environment: Mapping[str, str],
    groups: Sequence[int],
    look: Callable[[Sequence[int]], Counts],
) -> tuple[list[Pass], int]:
    """All epochs of all ranks, and the most bytes of files that their cache's folder ever had.

    `look` counts, given the process groups whose CPU is to be counted: the ranks' and `groups`.
    """
    with _Crew(python, jobs, folder, environment) as crew, _Watched(Path(jobs[0].cache)) as cache:
        mine = [*groups, *crew.groups]
        crew.answers(START_SECONDS)
        passes, before = [], look(mine)
        for _ in range(jobs[0].epochs):
            crew.go()
            epochs = [json.loads(line) for line in crew.answers(EPOCH_SECONDS)]
            now = look(mine)
            passes.append(_pass(epochs, now.minus(before)))
            before = now
        crew.go()
    return passes, cache.peak


def _pass(epochs: Sequence[dict[str, Any]], counts: Counts) -> Pass:
    began = min(epoch["began"] for epoch in epochs)
    sums = {key: sum(epoch[key] for epoch in epochs) for key in ("samples", "bytes", "touched")}
    return Pass(max(epoch["ended"] for epoch in epochs) - began, counts=counts, **sums)


class _Crew:
    def __init__(
        self, python: Path, jobs: Sequence[Job], folder: Path, environment: Mapping[str, str]
    ) -> None:
        own = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
        self._logs = [folder / f"rank-{number}.log" for number in range(len(jobs))]
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for job, log in zip(jobs, self._logs, strict=True):
                with open(log, "wb") as words:
                    self._processes.append(
                        subprocess.Popen(
                            [python, "-W", "ignore", "-m", "bench.peers.rank", _json(job)],
                            env={**environment, **own},
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE,
                            stderr=words,
                            cwd=REPOSITORY,
                            start_new_session=True,
                        )
                    )
        except BaseException:
            self._stop(0)
            raise
        self.groups = [process.pid for process in self._processes]

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(0)

    def go(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()

    def answers(self, seconds: float) -> list[bytes]:
        """A line of each rank."""
        lines = [b""] * len(self._processes)
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for number, process in enumerate(self._processes):
                assert process.stdout is not None
                selector.register(process.stdout, selectors.EVENT_READ, number)
            while any(not line.endswith(b"\n") for line in lines):
                for key, _ in selector.select(max(0.0, deadline - time.monotonic())):
                    words = os.read(key.fd, 1 << 16)
                    if not words:
                        raise HarnessError(self._failure(key.data, "has ended"))
                    lines[key.data] += words
                if time.monotonic() > deadline:
                    late = min(range(len(lines)), key=lambda number: len(lines[number]))
                    raise HarnessError(self._failure(late, f"says nothing for {seconds:.0f} s"))
        return lines

    def _stop(self, grace_seconds: float) -> None:
        for process in self._processes:
            stop(process, grace_seconds)

    def _failure(self, number: int, what: str) -> str:
        return f"rank {number} {what}; the end of its log:\n{last_lines(self._logs[number])}"


class _Watched:
    """Looks at a folder's size, again and again, until the end of its `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> _Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.peak = max(self.peak, _bytes_below(self._folder))


def _bytes_below(folder: Path) -> int:
    total, folders = 0, [folder]
    while folders:
        try:
            for entry in os.scandir(folders.pop()):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            pass  # evicted meanwhile
    return total


def _json(job: Job) -> str:
    return json.dumps(dataclasses.asdict(job))
