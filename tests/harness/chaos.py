"""Faults at random, by a seed: which come when, and who carries them out while a job trains."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness import faulty_store
from harness.cluster import Cluster
from harness.errors import HarnessError
from harness.faulty_store import FaultyStore
from harness.processes import wait_until

COORDINATOR = "coordinator"  # `optcache up`, which starts the others again
MACHINE = "machine"  # its node and its sidecar together
STORE = "store"
PARTS = ("node", "sidecar", MACHINE)
KILLED, ENDED, FROZEN = "killed", "ended", "frozen"
ENDS = {KILLED: (signal.SIGKILL, "signal 9"), ENDED: (signal.SIGTERM, "exit status 0")}
STALLED = "stalled"  # of the store: reads hang
STORE_FAULTS = {
    "503": faulty_store.unavailable,
    "503, Retry-After": faulty_store.unavailable_for_a_second,
    "slow": faulty_store.slow,
    STALLED: faulty_store.stalled,
    "cut": faulty_store.truncated,
    "reset": faulty_store.reset,
    "too long": faulty_store.too_long,
}
LASTS_SECONDS = (0.5, 15.0)  # a frozen process, or an absent coordinator
STORE_LASTS_SECONDS = (1.0, 15.0)
PAUSE_SECONDS = (0.5, 8.0)
STORE_PAUSE_SECONDS = (10.0, 60.0)


@dataclass(frozen=True)
class Fault:
    part: str  # of PARTS, COORDINATOR or STORE
    how: str
    machine: int = 0
    seconds: float = 0.0  # how long it lasts; a process that has died returns by itself
    pause: float = 0.0  # before it
    share: float = 1.0  # of what the store is asked for

    @property
    def kind(self) -> str:
        return f"{self.part} {self.how}"

    @property
    def processes(self) -> list[str]:
        parts = ["node", "sidecar"] if self.part == MACHINE else [self.part]
        return [f"{part}-{self.machine}" for part in parts]


def process_faults(chance: random.Random, machines: int) -> Iterator[Fault]:
    """Without end. Each kind comes as often as the others."""
    kinds = [(part, how) for part in PARTS for how in (KILLED, ENDED, FROZEN)]
    kinds += [(COORDINATOR, KILLED), (COORDINATOR, FROZEN)]
    while True:
        for part, how in chance.sample(kinds, len(kinds)):
            yield Fault(
                part,
                how,
                chance.randrange(machines),
                seconds=chance.uniform(*LASTS_SECONDS),
                pause=chance.uniform(*PAUSE_SECONDS),
            )


def store_faults(chance: random.Random) -> Iterator[Fault]:
    """Without end. Each kind comes as often as the others."""
    while True:
        for how in chance.sample([*STORE_FAULTS], len(STORE_FAULTS)):
            yield Fault(
                STORE,
                how,
                seconds=chance.uniform(*STORE_LASTS_SECONDS),
                pause=chance.uniform(*STORE_PAUSE_SECONDS),
                share=chance.choice([0.3, 1.0]),
            )


@dataclass
class Span:
    """A fault that was carried out; times are seconds since 1970."""

    fault: Fault
    began: float
    ended: float = float("inf")


@dataclass
class Chaos:
    """Carries faults out, from `begin` for so many seconds: of processes one after the other, and
    of the store beside them. Afterwards all is as it was.
    """

    cluster: Cluster
    store: FaultyStore
    machines: int
    seed: str
    log: Path
    look: Callable[[], None]  # between two faults of processes
    spans: list[Span] = field(default_factory=list)
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter)  # process, how it ended
    troubles: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _lanes: list[Future[None]] = field(default_factory=list)

    def begin(self, seconds: float) -> None:
        """Once; another call does nothing."""
        if self._lanes:
            return
        executor = ThreadPoolExecutor(2)
        self._lanes = [executor.submit(self._fail_processes), executor.submit(self._fail_store)]
        executor.shutdown(wait=False)
        timer = threading.Timer(seconds, self._over.set)
        timer.daemon = True
        timer.start()

    def end(self) -> None:
        """Now. Raises what has kept a fault from being carried out, or from being mended."""
        self._over.set()
        for lane in self._lanes:
            lane.result()

    def check(self) -> None:
        """Raises what `end` would, as soon as that is known."""
        for lane in self._lanes:
            if lane.done():
                lane.result()

    def _fail_processes(self) -> None:
        for fault in process_faults(random.Random(f"{self.seed} processes"), self.machines):
            self.look()
            if self._over.wait(fault.pause):
                return
            with self._span(fault):
                if fault.how == FROZEN:
                    self._freeze(fault)
                elif fault.part == COORDINATOR:
                    self._kill_coordinator(fault)
                else:
                    self._end(fault.processes, fault.how)

    def _fail_store(self) -> None:
        for fault in store_faults(random.Random(f"{self.seed} store")):
            if self._over.wait(fault.pause):
                return
            with self._span(fault):
                self.store.script_all(STORE_FAULTS[fault.how], fault.share)
                self._over.wait(fault.seconds)
                self.store.heal()

    @contextmanager
    def _span(self, fault: Fault) -> Iterator[None]:
        span = Span(fault, time.time())
        self.spans.append(span)
        self._note(f"begin {fault}")
        yield
        span.ended = time.time()
        self._note(f"end {fault.kind}")

    def _note(self, what: str) -> None:
        with open(self.log, "a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {what}\n")

    def _freeze(self, fault: Fault) -> None:
        if fault.part == COORDINATOR:
            pids = [self.cluster.groups()[0]]
        else:
            pids = [self._pid_of(process) for process in fault.processes]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        self._over.wait(fault.seconds)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def _end(self, processes: list[str], how: str) -> None:
        number, ending = ENDS[how]
        pids = {process: self._pid_of(process) for process in processes}
        for process, pid in pids.items():
            os.kill(pid, number)
            self.deaths[process, ending] += 1
        for process, pid in pids.items():
            wait_until(
                lambda: self.cluster.pids().get(process, pid) != pid,  # noqa: B023
                f"{process} runs again",
            )

    def _kill_coordinator(self, fault: Fault) -> None:
        for machine in range(self.machines):
            for process in Fault(MACHINE, KILLED, machine).processes:
                self._pid_of(process)  # while it is away nothing starts another one
        self.cluster.kill_coordinator()
        self._over.wait(fault.seconds)
        gone = self.cluster.orphans_that_ended()
        self.troubles += [f"{name} ended by itself while there was no coordinator" for name in gone]
        self.cluster.restart_coordinator()

    def _pid_of(self, process: str) -> int:
        wait_until(lambda: process in self.cluster.pids(), f"{process} runs")
        return self.cluster.pids()[process]


def deaths_in(log: str) -> Counter[tuple[str, str]]:
    """What `optcache up` says in its log of the ends of what it has started."""
    return Counter(re.findall(r"(\S+) died \(([^)]+)\)", log))


def wrong_deaths(chaos: Chaos, log: str) -> Iterator[str]:
    """A sentence for each process that ended otherwise than it was made to."""
    seen = deaths_in(log)
    for process, ending in sorted(seen.keys() | chaos.deaths.keys()):
        count, sent = seen[process, ending], chaos.deaths[process, ending]
        if count != sent:
            yield f"{process} ended {count} times by {ending}, and was made to {sent} times"


CRASHES = re.compile(r".*(?:CHECK failed|Sanitizer|runtime error:|terminate called).*")


def crashes(cluster: Cluster, machines: int) -> Iterator[str]:
    """Lines of the logs that only a fault of our own can write."""
    for machine in range(machines):
        for process in Fault(MACHINE, KILLED, machine).processes:
            for line in CRASHES.findall(cluster.log_of(process)):
                yield f"{process}: {line}"
