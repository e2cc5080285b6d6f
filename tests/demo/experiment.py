"""One run from start to figures: a cluster, training jobs on it, and the accounts of both.

The store is a server on this machine, behind a relay that lets the answers of all connections
together pass at the store's bandwidth. A relay, and not the kernel's token bucket on an interface of
a network namespace: it needs neither root nor kernel modules, so every run of the demo has the same
store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import accounting
import theory
import timing
from accounting import Delivery, Read
from harness import checks
from harness.checks import Records
from harness.cluster import Cluster, ClusterOptions, Metrics
from harness.cpu import cpu_seconds_below
from harness.job import Job
from harness.slow_link import SlowLink
from harness.training import train
from jobs import Jobs
from report import Free, PolicyResult, Setup
from sources import Source
from theory import Theory

RANK_PROGRAM = Path(__file__).with_name("rank.py")

FREE_EPOCHS = 3
Progress = Callable[[str], None]  # told in a few words what is going on


@dataclass(frozen=True)
class Counts:
    """At one moment of a run."""

    time: float
    cpu_seconds: float  # of all that this program has started
    link_bytes: int

    def cores_since(self, before: Counts) -> float:
        return (self.cpu_seconds - before.cpu_seconds) / (self.time - before.time)


@dataclass(frozen=True)
class Run:
    """What the training jobs left behind."""

    records: Records
    counts: Sequence[Counts]  # at the beginning of each epoch, and at the end of the last one
    nodes: Sequence[Metrics] = ()
    sidecars: Sequence[Metrics] = ()
    reads: Sequence[Read] = ()  # as accounting.sample_reads has them
    order_equal: bool = True

    def counted(self, first: int) -> tuple[Counts, Counts]:
        """At the beginning of the epochs from that one on, and at their end."""
        return timing.counted(self.counts[:-1], first)[0], self.counts[-1]


@dataclass(frozen=True)
class Experiment(Jobs):
    source: Source
    link: SlowLink  # to it

    def setup(self, free: Free) -> Setup:
        scene, memory = self.scene, self.budget.memory
        resident = memory + self.reserve_of(memory) + self.budget.arena
        return Setup(
            scene=scene.name,
            samples=len(self.dataset.paths),
            total_bytes=self.dataset.total_bytes,
            capacity_bytes=scene.machines * memory,
            resident_bytes=scene.machines * resident,
            epochs=scene.epochs,
            first_epoch=scene.first_epoch,
            jobs=scene.jobs,
            ranks=scene.ranks,
            nodes=scene.machines,
            cores=len(os.sched_getaffinity(0)),
            step_seconds=scene.step_seconds,
            free=free,
            source=self.source.kind,
        )

    def measure_free(self, progress: Progress) -> tuple[Free, list[str]]:
        """The loop with its data in memory, where preparing has left it: in the page cache."""
        folder = self.folder / "free"
        folder.mkdir()
        progress("starting the ranks")
        jobs = [
            replace(job, epochs=FREE_EPOCHS, folder=str(self.dataset.root))
            for job in self.jobs(folder)
        ]
        run = self._train(jobs, [{}] * len(jobs), folder, progress)
        failures = [
            *checks.wrong_samples(self.dataset, run.records),
            *checks.wrong_orders(self.dataset, jobs, run.records),
        ]
        first = self.scene.first_epoch
        began, ended = run.counted(first)
        times = timing.times_of(run.records, first, self.scene.jobs)
        free = Free(times, ended.cores_since(began))
        return free, [f"data in memory: {it}" for it in failures]

    def run(
        self, policy: str, store_share: float, setup: Setup, progress: Progress
    ) -> tuple[PolicyResult, list[str]]:
        """The figures of a policy, and a sentence for everything that was not as it must be.

        The store delivers that share of what all ranks read when data is free.
        """
        folder = self.folder / f"{policy}-{100 * store_share:.0f}"
        folder.mkdir()
        options = ClusterOptions(
            programs=self.programs,
            base_url="",
            listing="",
            machines=self.scene.machines,
            budget=self.budget,
            state=self.folder / "state",
            sockets=self.folder / "sockets",
        )
        log_begin = self.source.log_size()
        progress("starting the cache")
        with Cluster(self.source.options(options, self.link.port), policy, folder) as cluster:
            progress("starting the ranks")
            jobs = self.jobs(folder)
            environments = [
                {"OPTCACHE_SOCKET": str(cluster.socket(job.rank % self.scene.machines))}
                for job in jobs
            ]
            with self.link.at_rate(store_share * setup.demand):
                run = self._train(jobs, environments, folder, progress)
            nodes, sidecars = cluster.node_metrics(), cluster.sidecar_metrics()
        disorder = [*checks.wrong_orders(self.dataset, jobs, run.records)]
        failures = [*checks.wrong_samples(self.dataset, run.records), *disorder]
        failures += [*checks.exceeded_budgets(nodes), *checks.sidecar_troubles(sidecars)]
        run = replace(
            run,
            nodes=nodes,
            sidecars=sidecars,
            reads=self.source.reads(log_begin),
            order_equal=not disorder,
        )
        result = figures(policy, store_share, setup, run, self._theory(policy, setup, run))
        return result, [f"{result.label}: {it}" for it in failures]

    def _train(
        self,
        jobs: Sequence[Job],
        environments: Sequence[dict[str, str]],
        folder: Path,
        progress: Progress,
    ) -> Run:
        batches = -(-self._length_of_rank() // self.scene.batch)
        epochs = jobs[0].epochs
        before = self.link.answered_bytes()  # what is read ahead of the first epoch is its own
        counts: list[Counts] = []

        def count(epoch: int) -> None:
            while len(counts) <= epoch:
                cpu = cpu_seconds_below(os.getpid())
                passed = self.link.answered_bytes() if counts else before
                counts.append(Counts(time.monotonic(), cpu, passed))

        def on_batch(epoch: int, done: int) -> None:
            count(epoch)
            progress(f"epoch {epoch + 1} of {epochs}, {100 * done // batches} %")
            if done == batches:
                count(epoch + 1)

        records = train(RANK_PROGRAM, jobs, environments, folder, on_batch)
        return Run(records, counts)

    def _length_of_rank(self) -> int:
        return -(-len(self.dataset.paths) // self.scene.ranks)  # padded, as DistributedSampler does

    def _theory(self, policy: str, setup: Setup, run: Run) -> Theory:
        if setup.jobs == 1:
            return theory.of_one_job(policy, setup, run.nodes)
        return theory.of_several_jobs(
            policy,
            setup,
            orders=[[it for epoch in epochs for it in epoch.samples] for epochs in run.records],
            deliveries=list(_deliveries(run.records)),
            sizes=self.dataset.sizes,
            program=self.programs / "optcache",
            folder=self.folder,
        )


def figures(
    policy: str, store_share: float, setup: Setup, run: Run, expected: Theory
) -> PolicyResult:
    deliveries = list(_deliveries(run.records))
    missed = accounting.find_misses(run.reads, deliveries)
    total = accounting.store_reads(run.reads)
    late = _sum(run.sidecars, "optcache_store_hedges_total")
    began, ended = run.counted(setup.first_epoch)
    epochs = len(timing.counted(run.records[0], setup.first_epoch))
    return PolicyResult(
        name=policy,
        store_share=store_share,
        times=timing.times_of(run.records, setup.first_epoch, setup.jobs),
        epoch_link_bytes=(ended.link_bytes - began.link_bytes) / epochs,
        cores_used=ended.cores_since(began),
        store_requests=total.requests,
        second_requests=late,
        store_bytes=total.body_bytes,
        bound_bytes=expected.bound_bytes,
        bound_all_bytes=expected.bound_all_bytes,
        planned_store_bytes=expected.store_bytes,
        hit_ratio_predicted=expected.hit_ratio,
        hit_ratio_observed=1 - (total.requests - late) / len(deliveries),
        hit_ratio_by_tenth=tuple(accounting.hit_ratio_by_tenth(deliveries, missed)),
        requests_by_progress=tuple(
            accounting.requests_by_progress(run.reads, deliveries, setup.epochs)
        ),
        moved_bytes=_sum(run.nodes, "optcache_moved_bytes_total"),
        delivered=len(deliveries),
        mismatches=sum(len(epoch.mismatches) for epochs in run.records for epoch in epochs),
        order_equal=run.order_equal,
    )


def _sum(of: Sequence[Metrics], name: str) -> int:
    return int(sum(metrics.get(name, 0) for metrics in of))


def _deliveries(records: Records) -> Iterator[Delivery]:
    for epochs in records:
        for number, epoch in enumerate(epochs):
            count = len(epoch.samples)
            for index, (sample, time) in enumerate(zip(epoch.samples, epoch.times, strict=True)):
                yield Delivery(time, number, index / count, sample)
