"""Light training jobs: starts their ranks, lets them read in step or apart, and collects times."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from harness.errors import HarnessError
from harness.processes import last_lines, stop
from torch.utils.data.distributed import DistributedSampler

BATCH = 16
START_SECONDS = 120.0
STUCK_SECONDS = 60.0  # a rank that reads no batch for so long is stuck
PROGRAM = Path(__file__).with_name("reader.py")


@dataclass(frozen=True)
class Rank:
    """A rank of a job that goes on pass after pass."""

    machine: int
    rank: int
    world: int
    samples: int
    epochs: int
    first_epoch: int = 0
    stream: str = "train"
    seed: int = 0

    def sampler(self) -> DistributedSampler:  # type: ignore[type-arg]
        return DistributedSampler(
            range(self.samples),  # type: ignore[arg-type]
            num_replicas=self.world,
            rank=self.rank,
            seed=self.seed,
        )

    def batches_of_epoch(self) -> int:
        return -(-len(self.sampler()) // BATCH)

    def batches(self) -> int:
        return self.epochs * self.batches_of_epoch()


class Sockets(Protocol):
    """What has sidecars: a Cluster or a TcpMachine."""

    def socket(self, machine: int, /) -> Path: ...


class Readers:
    """All ranks, from construction until the end of its `with`."""

    def __init__(self, cluster: Sockets, ranks: Sequence[Rank], folder: Path) -> None:
        folder.mkdir()
        self._ranks = ranks
        self._folder = folder
        self._done = [-1] * len(ranks)  # batches; -1: not ready yet
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            for number in range(len(ranks)):
                self._processes.append(self._start(number, cluster))
            self._follow(until=0, lags=[0] * len(ranks), seconds=START_SECONDS)
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> Readers:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        for process in self._processes:
            stop(process, grace_seconds=0)

    def read(
        self,
        until: int | None = None,
        lags: Sequence[int] | None = None,
        paces: Sequence[int] | None = None,
        step_seconds: float = 0.0,
    ) -> None:
        """Until every rank has read `until` batches: in step, rank r always `lags[r]` behind, and
        `paces[r]` batches a step, which takes `step_seconds` at least."""
        if until is None:
            until = max(rank.batches() for rank in self._ranks)
        zeros = [0] * len(self._ranks)
        self._follow(until, lags or zeros, STUCK_SECONDS, paces, step_seconds)

    def times(self) -> list[list[list[float]]]:
        """By rank and epoch, when each sample was there. The ranks end with what they have read."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for number, process in enumerate(self._processes):
            try:
                status = process.wait(STUCK_SECONDS)
            except subprocess.TimeoutExpired:
                status = -1
            if status != 0:
                raise HarnessError(self._failure(number, f"ends with status {status}"))
        return [json.loads(self._records(number).read_text()) for number in range(len(self._ranks))]

    def _records(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _log(self, number: int) -> Path:
        return self._folder / f"{number}.log"

    def _start(self, number: int, cluster: Sockets) -> subprocess.Popen[bytes]:
        rank = self._ranks[number]
        job = asdict(rank) | {"batch": BATCH, "records": str(self._records(number))}
        with open(self._log(number), "wb") as log:
            return subprocess.Popen(
                [sys.executable, PROGRAM, json.dumps(job)],
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "OPTCACHE_SOCKET": str(cluster.socket(rank.machine)),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def _follow(
        self,
        until: int,
        lags: Sequence[int],
        seconds: float,
        paces: Sequence[int] | None = None,
        step_seconds: float = 0.0,
    ) -> None:
        paces = paces or [1] * len(lags)
        begun = time.monotonic()
        ends = [min(until, rank.batches()) for rank in self._ranks]
        reading = [False] * len(ends)
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for number, process in enumerate(self._processes):
                assert process.stdout is not None
                selector.register(process.stdout, selectors.EVENT_READ, number)
            while any(done < end for done, end in zip(self._done, ends, strict=True)):
                wait = 1.0
                if min(self._done) >= 0:
                    place, numbers = self._next(ends, lags, paces, reading)
                    early = begun + place * step_seconds - time.monotonic()
                    if numbers and early > 0:
                        wait, numbers = early, []
                    for number in numbers:
                        self._let_read(number)
                        reading[number] = True
                for key, _ in selector.select(timeout=wait):
                    words = os.read(key.fd, 1 << 12)
                    if not words:
                        raise HarnessError(self._failure(key.data, "has ended"))
                    self._done[key.data] += words.count(b"\n")
                    reading[key.data] = False
                    deadline = time.monotonic() + seconds
                if time.monotonic() > deadline:
                    late = min(range(len(ends)), key=lambda number: self._done[number])
                    raise HarnessError(self._failure(late, "has read nothing for long"))

    def _next(
        self,
        ends: Sequence[int],
        lags: Sequence[int],
        paces: Sequence[int],
        reading: Sequence[bool],
    ) -> tuple[float, list[int]]:
        """Where the hindmost are, and which of them wait to read a batch."""
        places = {
            number: self._done[number] / paces[number] + lags[number]
            for number, end in enumerate(ends)
            if self._done[number] < end
        }
        hindmost = min(places.values())
        return hindmost, [
            number
            for number, place in places.items()
            if place == hindmost and not reading[number]
        ]

    def _let_read(self, number: int) -> None:
        pipe = self._processes[number].stdin
        assert pipe is not None
        pipe.write(b"\n")
        pipe.flush()

    def _failure(self, number: int, what: str) -> str:
        return f"rank {number} {what}; the end of its log:\n{last_lines(self._log(number))}"
