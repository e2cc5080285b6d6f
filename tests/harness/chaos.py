"""Faults at random, by a seed: which come when, and who carries them out while a job trains."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness import faulty_store
from harness.faulty_store import FaultyStore
from harness.processes import wait_until

COORDINATOR = "coordinator"  # of `optcache up`, which starts the others again, or alone
MACHINE = "machine"  # its node and its sidecar together
STORE = "store"
PARTS = ("node", "sidecar", MACHINE)
KILLED, ENDED, FROZEN = "killed", "ended", "frozen"
CUT_OFF = "cut off"  # packets are lost, and connections stay
ENDS = {KILLED: (signal.SIGKILL, "signal 9"), ENDED: (signal.SIGTERM, "exit status 0")}
STALLED = "stalled"  # of the store: reads hang
REFUSED = "refused"  # of the store: there is no process that listens
STORE_FAULTS = {
    "503": faulty_store.unavailable,
    "503, Retry-After": faulty_store.unavailable_for_a_second,
    "slow": faulty_store.slow,
    STALLED: faulty_store.stalled,
    "cut": faulty_store.truncated,
    "reset": faulty_store.reset,
    "too long": faulty_store.too_long,
    FROZEN: faulty_store.frozen,
}
LASTS_SECONDS = (0.5, 15.0)
CUT_LASTS_SECONDS = (1.0, 30.0)
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

    @property
    def sides(self) -> tuple[str, str]:
        """Of a cut: packets between the two are lost, or all of the first without a second."""
        node, sidecar = Fault(MACHINE, self.how, self.machine).processes
        return {
            "node": (node, ""),
            "sidecar": (sidecar, node),
            STORE: (sidecar, STORE),
            COORDINATOR: (COORDINATOR, ""),
        }[self.part]


def process_faults(chance: random.Random, machines: int, cuts: bool = False) -> Iterator[Fault]:
    kinds = [(part, how) for part in PARTS for how in (KILLED, ENDED, FROZEN)]
    kinds += [(COORDINATOR, KILLED), (COORDINATOR, FROZEN)]
    kinds += [(part, CUT_OFF) for part in ("node", "sidecar", COORDINATOR) if cuts]
    return _faults(chance, machines, kinds, PAUSE_SECONDS)


def store_faults(chance: random.Random, machines: int, cuts: bool = False) -> Iterator[Fault]:
    """The store is cut off from one sidecar; all that it does else, it does to every reader."""
    kinds = [(STORE, how) for how in [*STORE_FAULTS, REFUSED, *([CUT_OFF] if cuts else [])]]
    return _faults(chance, machines, kinds, STORE_PAUSE_SECONDS)


def _faults(
    chance: random.Random,
    machines: int,
    kinds: Sequence[tuple[str, str]],
    pause: tuple[float, float],
) -> Iterator[Fault]:
    """Without end. Each kind comes as often as the others."""
    while True:
        for part, how in chance.sample(kinds, len(kinds)):
            yield Fault(
                part,
                how,
                chance.randrange(machines),
                seconds=chance.uniform(*(CUT_LASTS_SECONDS if how == CUT_OFF else LASTS_SECONDS)),
                pause=chance.uniform(*pause),
                share=chance.choice([0.3, 1.0]),
            )


@dataclass
class Span:
    """A fault that was carried out; times are seconds since 1970."""

    fault: Fault
    began: float
    ended: float = float("inf")


class Scene(Protocol):
    """What fails: a Cluster or a TcpCluster."""

    @property
    def coordinator_pid(self) -> int: ...
    def pids(self) -> dict[str, int]: ...
    def deaths(self) -> Counter[tuple[str, str]]: ...
    def kill_coordinator(self) -> None: ...
    def restart_coordinator(self) -> None: ...
    def orphans_that_ended(self) -> list[str]: ...
    def log_of(self, process: str, /) -> str: ...


Cut = Callable[[str, str], AbstractContextManager[None]]  # of Fault.sides, until the `with` ends


@dataclass
class Chaos:
    """Carries faults out, from `begin` for so many seconds: of processes one after the other, and
    of the store beside them. Afterwards all is as it was.
    """

    cluster: Scene
    store: FaultyStore
    machines: int
    seed: str
    log: Path
    look: Callable[[], None]  # between two faults of processes
    cut: Cut | None = None  # without it, nothing is cut off
    spans: list[Span] = field(default_factory=list)
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter)  # process, how it ended
    troubles: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _lanes: list[Future[None]] = field(default_factory=list)

    def begin(self, seconds: float) -> None:
        """Once; another call does nothing."""
        if self._lanes:
            return
        cuts = self.cut is not None
        of_processes = process_faults(self._chance("processes"), self.machines, cuts)
        of_store = store_faults(self._chance("store"), self.machines, cuts)
        executor = ThreadPoolExecutor(2)
        self._lanes = [
            executor.submit(self._fail, of_processes, self.look),
            executor.submit(self._fail, of_store, lambda: None),
        ]
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

    def _chance(self, lane: str) -> random.Random:
        return random.Random(f"{self.seed} {lane}")

    def _fail(self, faults: Iterator[Fault], look: Callable[[], None]) -> None:
        for fault in faults:
            look()
            if self._over.wait(fault.pause):
                return
            with self._span(fault):
                self._carry_out(fault)

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

    def _carry_out(self, fault: Fault) -> None:
        if fault.how == CUT_OFF:
            assert self.cut is not None
            with self.cut(*fault.sides):
                self._over.wait(fault.seconds)
        elif fault.part == STORE:
            if fault.how == REFUSED:
                self.store.refuse()
            else:
                self.store.script_all(STORE_FAULTS[fault.how], fault.share)
            self._over.wait(fault.seconds)
            self.store.heal()
        elif fault.how == FROZEN:
            self._freeze(fault)
        elif fault.part == COORDINATOR:
            self._kill_coordinator(fault)
        else:
            self._end(fault.processes, fault.how)

    def _freeze(self, fault: Fault) -> None:
        if fault.part == COORDINATOR:
            pids = [self.cluster.coordinator_pid]
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


def wrong_deaths(chaos: Chaos) -> Iterator[str]:
    """A sentence for each process that ended otherwise than it was made to."""
    seen = chaos.cluster.deaths()
    for process, ending in sorted(seen.keys() | chaos.deaths.keys()):
        count, sent = seen[process, ending], chaos.deaths[process, ending]
        if count != sent:
            yield f"{process} ended {count} times by {ending}, and was made to {sent} times"


CRASHES = re.compile(r".*(?:CHECK failed|Sanitizer|runtime error:|terminate called).*")


def crashes(chaos: Chaos) -> Iterator[str]:
    """Lines of the logs that only a fault of our own can write."""
    machines = [Fault(MACHINE, KILLED, machine) for machine in range(chaos.machines)]
    for process in [COORDINATOR, *(name for fault in machines for name in fault.processes)]:
        for line in CRASHES.findall(chaos.cluster.log_of(process)):
            yield f"{process}: {line}"
