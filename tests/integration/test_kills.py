"""Processes are killed in the middle of an epoch, and the training job does not notice."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from harness import checks
from harness.checks import Records
from harness.cluster import Cluster
from harness.processes import wait_until

MACHINES = 3
WHOLE_CACHE = "up"  # the coordinator lives in it, and the others end with it


@dataclass
class Assassin:
    """Kills one after the other, each when rank 0 has read so many batches in all."""

    cluster: Cluster
    script: list[tuple[int, str]]  # batches, victim; ascending
    batches_per_epoch: int
    exceeded: list[str] = field(default_factory=list)

    def on_batch(self, epoch: int, done: int) -> None:
        while self.script and epoch * self.batches_per_epoch + done >= self.script[0][0]:
            self._kill(self.script.pop(0)[1])

    def _kill(self, victim: str) -> None:
        self._look_at_budgets()  # a node that is started again forgets its peak
        if victim == WHOLE_CACHE:
            self.cluster.kill_all()
        else:
            self.cluster.kill(victim)

    def _look_at_budgets(self) -> None:
        for machine in range(MACHINES):
            with contextlib.suppress(OSError):  # killed a moment ago
                node = self.cluster.metrics_of(f"node-{machine}")
                self.exceeded += checks.exceeded_budgets([node])


def make_script(chance: random.Random, kills: int, batches: int) -> list[tuple[int, str]]:
    """Each kind of victim as often as the others, in any order."""
    kinds = (["node", "sidecar", WHOLE_CACHE] * kills)[:kills]
    chance.shuffle(kinds)
    victims = [
        kind if kind == WHOLE_CACHE else f"{kind}-{chance.randrange(MACHINES)}" for kind in kinds
    ]
    return list(zip(sorted(chance.sample(range(1, batches), kills)), victims, strict=True))


def test_job_ends_whoever_is_killed(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    batches_per_epoch: Callable[[int], int],
    chance: random.Random,
    long: bool,
) -> None:
    epochs, kills = (8, 10) if long else (3, 4)
    batches = batches_per_epoch(MACHINES)
    cluster = start_cache(machines=MACHINES)
    script = make_script(chance, kills, epochs * batches)
    print(script)
    assassin = Assassin(cluster, list(script), batches)
    sockets = [cluster.socket(machine) for machine in range(MACHINES)]
    run_job(sockets, epochs, on_batch=assassin.on_batch)
    assert assassin.script == []
    assert assassin.exceeded == []
    wait_until(lambda: len(cluster.pids()) == 2 * MACHINES, "all processes run again")
    assert [*checks.exceeded_budgets(cluster.node_metrics())] == []
