"""Processes are killed in the middle of an epoch, and the training job does not notice."""

from __future__ import annotations

import contextlib
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import optcache
import pytest
from harness import checks
from harness.checks import Records
from harness.cluster import Cluster
from harness.processes import wait_until
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

MACHINES = 3
COORDINATOR = "coordinator"  # `optcache up`, which starts the others
ALONE_BATCHES = 20  # for how long the others go on without it


@dataclass
class Assassin:
    """Kills one after the other, each when rank 0 has read so many batches in all."""

    cluster: Cluster
    script: list[tuple[int, str]]  # batches, victim; ascending
    batches_per_epoch: int
    restart_at: int | None = None  # batches, while the coordinator is gone
    exceeded: list[str] = field(default_factory=list)

    def on_batch(self, epoch: int, done: int) -> None:
        batches = epoch * self.batches_per_epoch + done
        if self.restart_at is not None and batches >= self.restart_at:
            self.restart_coordinator()
        while self.script and batches >= self.script[0][0]:
            self._kill(batches, self.script.pop(0)[1])

    def restart_coordinator(self) -> None:
        """If it is gone."""
        if self.restart_at is not None:
            self.look_at_budgets()
            self.cluster.restart_coordinator()
            self.restart_at = None

    def _kill(self, batches: int, victim: str) -> None:
        self.restart_coordinator()  # without it nobody would start the victim again
        self.look_at_budgets()
        if victim == COORDINATOR:
            self.wait_for_all()  # nobody would start them again
            self.cluster.kill_coordinator()
            self.restart_at = batches + ALONE_BATCHES
        else:
            self.cluster.kill(victim)

    def wait_for_all(self) -> None:
        wait_until(lambda: len(self.cluster.pids()) == 2 * MACHINES, "all processes run")

    def look_at_budgets(self) -> None:
        """Before a node ends, and forgets its peak."""
        for machine in range(MACHINES):
            with contextlib.suppress(OSError):  # killed a moment ago
                node = self.cluster.metrics_of(f"node-{machine}")
                self.exceeded += checks.exceeded_budgets([node])


def make_script(chance: random.Random, kills: int, batches: int) -> list[tuple[int, str]]:
    """Each kind of victim as often as the others, in any order."""
    kinds = (["node", "sidecar", COORDINATOR] * kills)[:kills]
    chance.shuffle(kinds)
    victims = [
        kind if kind == COORDINATOR else f"{kind}-{chance.randrange(MACHINES)}" for kind in kinds
    ]
    return list(zip(sorted(chance.sample(range(1, batches), kills)), victims, strict=True))


@pytest.mark.long
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
    assassin = Assassin(cluster, list(script), batches)
    sockets = [cluster.socket(machine) for machine in range(MACHINES)]
    run_job(sockets, epochs, on_batch=assassin.on_batch)
    assert assassin.script == []
    assassin.restart_coordinator()
    assassin.wait_for_all()
    assassin.look_at_budgets()
    assert assassin.exceeded == []


def test_passes_begin_while_a_sidecar_is_restarted(start_cache: Callable[..., Cluster]) -> None:
    """Politely: from the signal to its end it takes nobody's word for what it forgets."""
    cluster = start_cache()
    samples = optcache.Dataset(socket=str(cluster.socket(0)))
    loader: DataLoader[Any] = DataLoader(
        samples,  # type: ignore[arg-type]
        sampler=DistributedSampler(samples, num_replicas=1, rank=0),  # type: ignore[arg-type]
        collate_fn=len,
    )
    attach(loader)
    first = cluster.pids()["sidecar-0"]
    cluster.kill("sidecar-0", signal.SIGTERM)
    while cluster.pids().get("sidecar-0", first) == first:
        next(iter(loader))
    assert next(iter(loader)) == 1
