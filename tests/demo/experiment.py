"""One policy from start to figures: a cluster, a training job on it, and the accounts of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import accounting
from accounting import Delivery
from harness import checks
from harness.checks import Records
from harness.cluster import Budget, Cluster, ClusterOptions, Metrics, transit_reserve
from harness.dataset import Dataset
from harness.job import Job
from harness.store import LISTING, Store
from harness.training import train
from report import PolicyResult, Setup

CAPACITY_SHARE = 0.30  # of the dataset, all nodes together
BESIDE_SHARE = 0.02  # arenas and transit reserves, all together
PAGE_BYTES = 4096
RANK_PROGRAM = Path(__file__).with_name("rank.py")

Progress = Callable[[str], None]  # told in a few words what is going on


@dataclass(frozen=True)
class Experiment:
    dataset: Dataset
    store: Store
    programs: Path
    folder: Path  # for logs and what the processes say to each other; its path is short
    machines: int
    epochs: int
    batch: int
    seed: int

    @property
    def budget(self) -> Budget:
        total = self.dataset.total_bytes
        memory = int(total * CAPACITY_SHARE / self.machines)
        beside = int(total * BESIDE_SHARE / self.machines)
        arena = beside - self.reserve_of(memory)
        return Budget(memory, max(arena // PAGE_BYTES, 1) * PAGE_BYTES)

    def reserve_of(self, memory: int) -> int:
        return transit_reserve(memory, self.dataset.total_bytes, len(self.dataset.paths))

    @property
    def setup(self) -> Setup:
        memory, arena = self.budget.memory, self.budget.arena
        return Setup(
            samples=len(self.dataset.paths),
            total_bytes=self.dataset.total_bytes,
            capacity_bytes=self.machines * memory,
            resident_bytes=self.machines * (memory + self.reserve_of(memory) + arena),
            epochs=self.epochs,
            ranks=self.machines,
            nodes=self.machines,
        )

    @property
    def digests(self) -> Path:
        return self.folder / "sha256.bin"

    def prepare(self) -> None:
        """Before the first policy: what the ranks compare with, and what the store says it has."""
        self.dataset.write_digests(self.digests)
        self.dataset.write_listing(self.store.listing_file)
        (self.folder / "sockets").mkdir()

    def run(self, policy: str, progress: Progress) -> tuple[PolicyResult, list[str]]:
        """The figures of a policy, and a sentence for everything that was not as it must be."""
        folder = self.folder / policy
        folder.mkdir()
        options = ClusterOptions(
            programs=self.programs,
            base_url=self.store.base_url,
            listing=LISTING,
            machines=self.machines,
            budget=self.budget,
            state=self.folder / "state",
            sockets=self.folder / "sockets",
        )
        log_begin = self.store.log_size()
        progress("starting the cache")
        with Cluster(options, policy, folder) as cluster:
            progress("starting the ranks")
            jobs = [self._job(rank, folder) for rank in range(self.machines)]
            records = self._train(jobs, cluster, folder, progress)
            nodes, sidecars = cluster.node_metrics(), cluster.sidecar_metrics()
        log = self.store.access_log(log_begin)
        disorder = [*checks.wrong_orders(self.dataset, jobs, records)]
        failures = [*checks.wrong_samples(self.dataset, records), *disorder]
        failures += [*checks.exceeded_budgets(nodes), *checks.sidecar_troubles(sidecars)]
        result = self._figures(policy, records, nodes, log, order_equal=not disorder)
        return result, [f"{policy}: {it}" for it in failures]

    def _train(
        self, jobs: Sequence[Job], cluster: Cluster, folder: Path, progress: Progress
    ) -> Records:
        batches = -(-self._length_of_rank() // self.batch)

        def on_batch(epoch: int, done: int) -> None:
            progress(f"epoch {epoch + 1} of {self.epochs}, {100 * done // batches} %")

        environments = [{"OPTCACHE_SOCKET": str(cluster.socket(job.rank))} for job in jobs]
        return train(RANK_PROGRAM, jobs, environments, folder, on_batch)

    def _job(self, rank: int, folder: Path) -> Job:
        return Job(
            rank=rank,
            world=self.machines,
            epochs=self.epochs,
            batch=self.batch,
            seed=self.seed,
            digests=str(self.digests),
            rendezvous=str(folder / "rendezvous"),
            records=str(folder / f"records-{rank}.json"),
            passes=self.epochs,
        )

    def _length_of_rank(self) -> int:
        return -(-len(self.dataset.paths) // self.machines)  # padded, as DistributedSampler does

    def _figures(
        self,
        policy: str,
        records: Records,
        nodes: Sequence[Metrics],
        log: str,
        order_equal: bool,
    ) -> PolicyResult:
        setup = self.setup
        requests = accounting.parse_access_log(log)
        reads = accounting.sample_reads(requests, self.dataset.paths)
        deliveries = list(_deliveries(records))
        missed = accounting.find_misses(reads, deliveries)
        total = accounting.store_reads(reads)
        planned_bytes, predicted = self._prediction(policy, nodes)
        by_epoch = list(zip(*records, strict=True))
        return PolicyResult(
            name=policy,
            store_requests=total.requests,
            store_bytes=total.body_bytes,
            bound_bytes=accounting.bound_bytes(
                setup.total_bytes, setup.capacity_bytes, self.epochs
            ),
            bound_all_bytes=accounting.bound_bytes(
                setup.total_bytes, setup.resident_bytes, self.epochs
            ),
            planned_store_bytes=planned_bytes,
            hit_ratio_predicted=predicted,
            hit_ratio_observed=1 - total.requests / len(deliveries),
            hit_ratio_by_tenth=tuple(accounting.hit_ratio_by_tenth(deliveries, missed)),
            requests_by_progress=tuple(
                accounting.requests_by_progress(reads, deliveries, self.epochs)
            ),
            moved_bytes=int(sum(node.get("optcache_moved_bytes_total", 0) for node in nodes)),
            epoch_seconds=tuple(
                max(epoch.ended for epoch in ranks) - min(epoch.began for epoch in ranks)
                for ranks in by_epoch
            ),
            delivered=len(deliveries),
            mismatches=sum(len(epoch.mismatches) for epochs in records for epoch in epochs),
            order_equal=order_equal,
        )

    def _prediction(self, policy: str, nodes: Sequence[Metrics]) -> tuple[int, float]:
        """Store bytes and hit ratio of the run: what the plan had foretold of the nodes' reads,
        or, where there is no plan, the closed form."""

        def foretold_misses(of: str) -> float:
            name = f"optcache_plan_predicted_{of}_total{{"
            return sum(
                value
                for node in nodes
                for series, value in node.items()
                if series.startswith(name) and 'result="miss"' in series
            )

        planned = sum(node.get("optcache_plan_predicted_requests_total", 0) for node in nodes)
        if policy == "Optimal" and planned > 0:
            return int(foretold_misses("request_bytes")), 1 - foretold_misses("requests") / planned
        share = self.setup.capacity_bytes / self.setup.total_bytes
        ratio = accounting.predicted_hit_ratio(policy, share, self.epochs)
        return round((1 - ratio) * self.epochs * self.setup.total_bytes), ratio


def _deliveries(records: Records) -> Iterator[Delivery]:
    for epochs in records:
        for number, epoch in enumerate(epochs):
            count = len(epoch.samples)
            for index, (sample, time) in enumerate(zip(epoch.samples, epoch.times, strict=True)):
                yield Delivery(time, number, index / count, sample)
