"""The longest wait of a trainer when something fails.

Killed: a job reads as fast as it can, in step. In the middle of an epoch one of two nodes is killed; the wait
that counts is the longest between two batches of one rank from then on, over the epochs that follow.
`optcache up` starts the node again meanwhile.

Frozen: a job on each of two machines reads the same dataset. In the middle of an epoch the second machine's
node and sidecar are stopped, as if it had lost its power, and its connections stay: the wait that counts is the
first job's. All of its waits over 0.1 s are added up, too.

Cut: the same with two nodes that speak by TCP, one of which holds half of what is kept and loses its packets from
then on; in a network namespace of its own.

Other parts, and the store: part_faults.py.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise

from bench import part_faults
from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, Scene, scene, store_of
from harness.extra_node import Extra
from harness.network import missing, own_network, without_packets_of
from harness.processes import wait_until
from harness.tcp_machine import TcpMachine

MACHINES = 2
SHARE = 0.5
EPOCHS = 8
KILL_IN_EPOCH = 2
FREEZE_IN_EPOCH = 2
LONGEST_SECONDS = 0.3
VICTIM = "node-1"
FROZEN = ("node-1", "sidecar-1")
FROZEN_LONGEST_SECONDS, FROZEN_TOTAL_SECONDS = 2.0, 5.0
LEAST_WAIT_SECONDS = 0.1
NOBODY = 65534  # whose packets are lost


def run(context: Context) -> list[Figure]:
    runs, samples = (2, 800) if context.quick else (20, 4000)
    made = Made(samples, bytes_each=16_384, machines=MACHINES, share=SHARE)
    chance = random.Random(1)
    longest, before = [], []
    with scene(context, made) as it:
        for number in range(runs):
            waits = _kill_a_node(context, it, chance, number)
            context.say(f"run {number + 1}: longest wait {waits[1]:.3f} s, before {waits[0]:.3f} s")
            before.append(waits[0])
            longest.append(waits[1])
        frozen = [_freeze_a_machine(context, it, chance, number) for number in range(max(runs // 4, 1))]
    figures = [
        Figure(
            f"a node is killed, {runs} runs: longest wait",
            max(longest),
            "s",
            f"median of the runs {statistics.median(longest):.3f} s; before the kill {max(before):.3f} s",
            at_most(LONGEST_SECONDS),
        ),
        Figure(
            f"a machine is frozen, {len(frozen)} runs: longest wait",
            max(max(waits) for waits in frozen),
            "s",
            "connections stay; a read waits for a lookup 0.5 s, for a sample 2 s",
            at_most(FROZEN_LONGEST_SECONDS),
        ),
        Figure(
            "all waits over 0.1 s of such a run together",
            max(sum(waits) for waits in frozen),
            "s",
            goal=at_most(FROZEN_TOTAL_SECONDS),
        ),
        *part_faults.run(context.within("parts"), samples, 1 if context.quick else 3),
    ]
    if why := missing():
        context.say(f"no machine is cut off: {why}")
        return figures
    return [*figures, *_cut_off(context.within("cut"), samples, chance, max(runs // 4, 1))]


def _cut_off(context: Context, samples: int, chance: random.Random, runs: int) -> list[Figure]:
    made = Made(samples, bytes_each=16_384, machines=1, share=SHARE / 2)
    memory = made.budget.memory
    context.folder.chmod(0o711)
    home = context.folder / "extra"
    home.mkdir()
    os.chown(home, NOBODY, -1)
    with own_network(), store_of(context, made) as store, ExitStack() as running:
        machine = TcpMachine(context.programs, store, context.folder, memory)
        running.callback(machine.close)
        manifest = machine.index()
        machine.publish(manifest)
        machine.start_sidecar("sidecar-0", manifest)
        extra = Extra(context.programs, machine, memory, home, user=NOBODY)
        running.callback(extra.kill)
        cut = [_cut_off_once(context, samples, machine, extra, chance, run) for run in range(runs)]
    return [
        Figure(
            f"a machine is cut off, {runs} runs: longest wait",
            max(max(waits) for waits in cut),
            "s",
            goal=at_most(FROZEN_LONGEST_SECONDS),
        ),
        Figure(
            "all waits over 0.1 s of such a run together",
            max(sum(waits) for waits in cut),
            "s",
            goal=at_most(FROZEN_TOTAL_SECONDS),
        ),
    ]


def _cut_off_once(
    context: Context,
    samples: int,
    machine: TcpMachine,
    extra: Extra,
    chance: random.Random,
    number: int,
) -> list[float]:
    wait_until(extra.is_member, "the second node is a member", 120)
    rank = Rank(0, 0, 1, samples, EPOCHS, stream=f"cut-{number}", seed=number)
    of_epoch = rank.batches_of_epoch()
    with Readers(machine, [rank], context.folder / f"ranks-{number}") as reader:
        reader.read(until=FREEZE_IN_EPOCH * of_epoch + chance.randrange(of_epoch))
        cut = time.time()
        with without_packets_of(NOBODY):
            reader.read()
        times = reader.times()[0]
    waits = _waits(times, since=cut)
    context.say(f"cut off, run {number + 1}: longest wait {max(waits):.3f} s")
    return [wait for wait in waits if wait >= min(LEAST_WAIT_SECONDS, max(waits))]


def _kill_a_node(
    context: Context, it: Scene, chance: random.Random, number: int
) -> tuple[float, float]:
    """The longest waits before the kill, from the second epoch on, and after it."""
    ranks = [
        Rank(rank, rank, MACHINES, it.made.samples, EPOCHS, stream=f"train-{number}", seed=number)
        for rank in range(MACHINES)
    ]
    of_epoch = ranks[0].batches_of_epoch()
    kill_at = KILL_IN_EPOCH * of_epoch + chance.randrange(of_epoch)
    wait_until(lambda: len(it.cluster.pids()) == 2 * MACHINES, "all processes run", 60)
    with Readers(it.cluster, ranks, context.folder / f"ranks-{number}") as readers:
        readers.read(until=kill_at)
        killed = time.time()
        it.cluster.kill(VICTIM)
        readers.read()
        times = readers.times()
    before = [_longest(of_rank[1:], until=killed) for of_rank in times]
    after = [_longest(of_rank, since=killed) for of_rank in times]
    return max(before), max(after)


def _freeze_a_machine(context: Context, it: Scene, chance: random.Random, number: int) -> list[float]:
    """The first job's waits of LEAST_WAIT_SECONDS or more from then on; at least its longest."""
    first, second = (
        Rank(machine, 0, 1, it.made.samples, EPOCHS, stream=f"alone-{number}-{machine}", seed=machine)
        for machine in range(MACHINES)
    )
    of_epoch = first.batches_of_epoch()
    freeze_at = FREEZE_IN_EPOCH * of_epoch + chance.randrange(of_epoch)
    wait_until(lambda: len(it.cluster.pids()) == 2 * MACHINES, "all processes run", 60)
    with (
        Readers(it.cluster, [first], context.folder / f"first-{number}") as reader,
        Readers(it.cluster, [second], context.folder / f"second-{number}") as other,
    ):
        for batches in range(0, freeze_at, of_epoch // 8):  # side by side
            reader.read(until=batches)
            other.read(until=batches)
        frozen = time.time()
        for process in FROZEN:
            it.cluster.kill(process, signal.SIGSTOP)
        try:
            reader.read()
        finally:
            for process in FROZEN:
                it.cluster.kill(process, signal.SIGCONT)
        times = reader.times()[0]
        other.kill()
    waits = _waits(times, since=frozen)
    context.say(f"frozen, run {number + 1}: longest wait {max(waits):.3f} s")
    return [wait for wait in waits if wait >= min(LEAST_WAIT_SECONDS, max(waits))]


def _longest(
    epochs: Sequence[Sequence[float]], since: float = 0.0, until: float = float("inf")
) -> float:
    return max(_waits(epochs, since, until), default=0.0)


def _waits(
    epochs: Sequence[Sequence[float]], since: float = 0.0, until: float = float("inf")
) -> list[float]:
    times = [moment for of_epoch in epochs for moment in of_epoch]
    return [
        later - earlier for earlier, later in pairwise(times) if since <= later and later <= until
    ]
