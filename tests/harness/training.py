"""The training job: starts the ranks, follows them, and collects what they wrote down."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from harness.errors import HarnessError
from harness.job import EpochRecord, Job
from harness.processes import last_lines, stop

# A rank that finishes no batch for so long is stuck.
STUCK_SECONDS = 300.0

Progress = Callable[[int, int], None]  # epoch, batches that every rank has read of it


def train(
    program: Path,
    jobs: Sequence[Job],
    environments: Sequence[dict[str, str]],
    folder: Path,
    progress: Progress,
) -> list[list[EpochRecord]]:
    """Runs `program JOB.json` for all ranks, with their environments, to their end.

    Returns their records by rank and epoch. Jobs and logs are in `folder`, by the ranks' numbers in
    `jobs`: ranks of several jobs may run at once.
    """
    with ExitStack() as cleanup:
        ranks = []
        for number, (job, environment) in enumerate(zip(jobs, environments, strict=True)):
            ranks.append(_start(program, job, environment, folder, number))
            cleanup.callback(stop, ranks[-1], grace_seconds=2)
        _follow(ranks, folder, progress)
    return [
        [EpochRecord(**epoch) for epoch in json.loads(Path(job.records).read_text())]
        for job in jobs
    ]


def _log(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.log"


def _start(
    program: Path, job: Job, environment: dict[str, str], folder: Path, number: int
) -> subprocess.Popen[bytes]:
    spec = folder / f"rank-{number}.json"
    spec.write_text(json.dumps(asdict(job)))
    with open(_log(folder, number), "wb") as log:
        return subprocess.Popen(
            [sys.executable, program, spec],
            # gloo picks its address by itself; the ranks are all on this machine.
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )


def _follow(ranks: Sequence[subprocess.Popen[bytes]], folder: Path, progress: Progress) -> None:
    """Returns when all ranks have ended well. HarnessError as soon as one has not, or is stuck."""
    last_sign = [time.monotonic()] * len(ranks)
    slowest = Slowest(len(ranks), progress)
    with selectors.DefaultSelector() as selector:
        for number, rank in enumerate(ranks):
            assert rank.stdout is not None
            selector.register(rank.stdout, selectors.EVENT_READ, number)
        while selector.get_map():
            for key, _ in selector.select(timeout=1):
                number = key.data
                words = os.read(key.fd, 1 << 16)
                last_sign[number] = time.monotonic()
                if not words:
                    selector.unregister(key.fileobj)
                    _check_end(ranks[number], number, folder)
                slowest.hear(number, words)
            reading = [key.data for key in selector.get_map().values()]
            for number in reading:
                if time.monotonic() - last_sign[number] > STUCK_SECONDS:
                    raise HarnessError(_failure(number, "has read nothing for long", folder))


class Slowest:
    """Tells how far the rank has come that is behind all others: each line is `epoch batch`."""

    def __init__(self, ranks: int, progress: Progress) -> None:
        self._progress = progress
        self._begun = [b""] * ranks  # of each, a line that is not complete yet
        self._read: list[tuple[int, int]] = [(-1, 0)] * ranks
        self._told = (-1, 0)

    def hear(self, rank: int, words: bytes) -> None:
        lines, _, self._begun[rank] = (self._begun[rank] + words).rpartition(b"\n")
        if lines:
            epoch, batch = lines.rpartition(b"\n")[2].split()
            self._read[rank] = int(epoch), int(batch) + 1
        if (behind := min(self._read)) > self._told:
            self._told = behind
            self._progress(*behind)


def _check_end(rank: subprocess.Popen[bytes], number: int, folder: Path) -> None:
    status = rank.wait()
    if status != 0:
        raise HarnessError(_failure(number, f"ended with status {status}", folder))


def _failure(number: int, what: str, folder: Path) -> str:
    return f"rank {number} {what}; the end of its log:\n{last_lines(_log(folder, number))}"
