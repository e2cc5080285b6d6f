"""The longest wait of a trainer when something fails. Today: one of two nodes is killed.

A job reads as fast as it can, in step. In the middle of an epoch a node is killed; the wait that counts is
the longest between two batches of one rank from then on, over the epochs that follow. `optcache up` starts
the node again meanwhile.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from itertools import pairwise

from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, Scene, scene
from harness.processes import wait_until

MACHINES = 2
SHARE = 0.5
EPOCHS = 8
KILL_IN_EPOCH = 2
LONGEST_SECONDS = 0.3
VICTIM = "node-1"


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
    return [
        Figure(
            f"a node is killed, {runs} runs: longest wait",
            max(longest),
            "s",
            f"median of the runs {statistics.median(longest):.3f} s; before the kill {max(before):.3f} s",
            at_most(LONGEST_SECONDS),
        )
    ]


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


def _longest(
    epochs: Sequence[Sequence[float]], since: float = 0.0, until: float = float("inf")
) -> float:
    times = [moment for of_epoch in epochs for moment in of_epoch]
    return max(
        (later - earlier for earlier, later in pairwise(times) if since <= later and later <= until),
        default=0.0,
    )
