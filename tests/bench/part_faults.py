"""Of ./dev bench faults: a part of the cache near a trainer fails, or its store.

One job reads as fast as it can on one of two machines, through a dataset of which half is kept. From the middle of
its second epoch on something is gone for some seconds. The job reads meanwhile, and for some epochs more. The wait that
counts is the longest between two batches from the fault on.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, cluster_over
from harness import faulty_store
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.errors import HarnessError
from harness.faulty_store import FaultyStore
from harness.processes import wait_until

MACHINES = 2
SHARE = 0.5
BATCHES_MAX = 25_000  # of a job: more than it reads in the longest fault
FAIL_IN_EPOCH = 1
EPOCHS_AFTER = 6
FROZEN_SECONDS = 15.0
AWAY_SECONDS = 5.0
# By what the user pages say: a silent sidecar costs 5 s, a store that is back is asked within 10 s, and a
# body that has stalled is given up after 20 s.
SIDECAR_SECONDS, NODE_SECONDS, STORE_RETURN_SECONDS, STALL_SECONDS = 6.0, 6.0, 10.0, 20.0


@dataclass(frozen=True)
class Parts:
    cluster: Cluster
    store: FaultyStore


@dataclass(frozen=True)
class Fault:
    name: str
    fail: Callable[[Parts], None]
    goal_seconds: float
    lasts_seconds: float = 0.0
    mend: Callable[[Parts], None] = lambda parts: None


def _signal(process: str, number: signal.Signals) -> Callable[[Parts], None]:
    return lambda parts: parts.cluster.kill(process, number)


def _store(name: str, fault: faulty_store.Fault, seconds: float, goal_seconds: float) -> Fault:
    return Fault(
        name,
        lambda parts: parts.store.script_all(fault),
        goal_seconds,
        seconds,
        lambda parts: parts.store.heal(),
    )


def _frozen(name: str, process: str, goal_seconds: float) -> Fault:
    return Fault(
        name,
        _signal(process, signal.SIGSTOP),
        goal_seconds,
        FROZEN_SECONDS,
        _signal(process, signal.SIGCONT),
    )


FAULTS: Sequence[Fault] = (
    Fault("the trainer's sidecar is killed", _signal("sidecar-0", signal.SIGKILL), SIDECAR_SECONDS),
    _frozen("the trainer's sidecar is frozen for 15 s", "sidecar-0", SIDECAR_SECONDS),
    Fault("the trainer's node is killed", _signal("node-0", signal.SIGKILL), NODE_SECONDS),
    _frozen("the trainer's node is frozen for 15 s", "node-0", NODE_SECONDS),
    Fault(
        "the coordinator is killed, and started again after 5 s",
        lambda parts: parts.cluster.kill_coordinator(),
        SIDECAR_SECONDS,
        AWAY_SECONDS,
        lambda parts: parts.cluster.restart_coordinator(),
    ),
    *(
        _store(
            f"the store answers 503 for {seconds} s",
            faulty_store.unavailable,
            seconds,
            seconds + STORE_RETURN_SECONDS,
        )
        for seconds in (1, 2, 4, 10)
    ),
    _store(
        "bodies of the store stall for 1 s",
        faulty_store.stalled,
        1,
        1 + STALL_SECONDS + STORE_RETURN_SECONDS,
    ),
)


def run(context: Context, samples: int, runs: int) -> list[Figure]:
    chance = random.Random(2)
    with _parts(context, Made(samples, 16_384, MACHINES, SHARE)) as parts:
        return [_measure(context, parts, fault, samples, runs, chance) for fault in FAULTS]


@contextmanager
def _parts(context: Context, made: Made) -> Iterator[Parts]:
    made.write(context.folder / "data")
    sizes = (made.bytes_each,) * made.samples
    with (
        FaultyStore(Dataset(context.folder / "data", tuple(made.paths), sizes)) as store,
        cluster_over(context, made, store.base_url) as cluster,
    ):
        yield Parts(cluster, store)


def _measure(
    context: Context, parts: Parts, fault: Fault, samples: int, runs: int, chance: random.Random
) -> Figure:
    waits = []
    for number in range(runs):
        waits.append(_longest_wait(context, parts, fault, samples, chance))
        context.say(f"{fault.name}, run {number + 1}: longest wait {waits[-1]:.3f} s")
    return Figure(
        f"{fault.name}, {runs} runs: longest wait", max(waits), "s", goal=at_most(fault.goal_seconds)
    )


def _longest_wait(
    context: Context, parts: Parts, fault: Fault, samples: int, chance: random.Random
) -> float:
    run = sum(path.name.startswith("ranks-") for path in context.folder.iterdir())
    of_epoch = Rank(0, 0, 1, samples, 1).batches_of_epoch()
    epochs = BATCHES_MAX // of_epoch
    rank = Rank(0, 0, 1, samples, epochs, stream=f"alone-{run}", seed=run)
    wait_until(lambda: len(parts.cluster.pids()) == 2 * MACHINES, "all processes run", 60)
    with Readers(parts.cluster, [rank], context.folder / f"ranks-{run}") as reader:
        done = FAIL_IN_EPOCH * of_epoch + chance.randrange(of_epoch)
        reader.read(until=done)
        failed = time.time()
        with failing(fault, parts) as mended:
            while not mended.done() and done < rank.batches():
                done += of_epoch
                reader.read(until=done)
        reader.read(until=done + EPOCHS_AFTER * of_epoch)
        moments = [moment for epoch in reader.times()[0] for moment in epoch]
    return longest_wait(fault.name, moments, failed, mended.result())


@contextmanager
def failing(fault: Fault, parts: Parts) -> Iterator[Future[float]]:
    """From here on, until it is mended when its time is over; the end of the `with` waits for that, and raises what
    kept it from being mended. The result is when it was mended."""

    def mend() -> float:
        time.sleep(fault.lasts_seconds)
        fault.mend(parts)
        return time.time()

    fault.fail(parts)
    with ThreadPoolExecutor(1) as executor:
        mended = executor.submit(mend)
        yield mended
    mended.result()


def longest_wait(fault: str, moments: Sequence[float], failed: float, mended: float) -> float:
    """Of a job that had its batches at these moments; of its waits that ended after the fault had begun."""
    if not moments or moments[-1] <= mended:
        raise HarnessError(f"{fault}: the job ended before the fault did; read more batches")
    return max(later - earlier for earlier, later in pairwise(moments) if later >= failed)
