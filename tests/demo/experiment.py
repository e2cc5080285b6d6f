"""One policy from start to figures: a cluster, a training job on it, and the accounts of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import accounting
from accounting import Delivery
from harness.cluster import Budget, Cluster, ClusterOptions, Metrics
from dataset import Dataset
from job import EpochRecord, Job
from report import PolicyResult, Setup
from harness.store import LISTING, Store
from torch.utils.data.distributed import DistributedSampler
from training import train

CAPACITY_SHARE = 0.30  # of the dataset, all nodes together
BESIDE_SHARE = 0.02  # arenas and transit reserves, all together
RESERVE_SHARE = 0.02  # of a node's memory, its rule
PAGE_BYTES = 4096

Records = Sequence[Sequence[EpochRecord]]  # by rank and epoch
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

    @staticmethod
    def reserve_of(memory: int) -> int:
        return int(memory * RESERVE_SHARE)

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
            records = self._train(cluster, folder, progress)
            nodes, sidecars = cluster.node_metrics(), cluster.sidecar_metrics()
        log = self.store.access_log(log_begin)
        failures = [*self._wrong_samples(records), *self._wrong_orders(records)]
        failures += [*self._exceeded_budgets(nodes), *self._sidecar_troubles(sidecars)]
        return self._figures(policy, records, nodes, log), [f"{policy}: {it}" for it in failures]

    def _train(self, cluster: Cluster, folder: Path, progress: Progress) -> Records:
        jobs = [self._job(rank, folder) for rank in range(self.machines)]
        batches = -(-self._length_of_rank() // self.batch)

        def on_batch(epoch: int, done: int) -> None:
            progress(f"epoch {epoch + 1} of {self.epochs}, {100 * done // batches} %")

        environments = [{"OPTCACHE_SOCKET": str(cluster.socket(job.rank))} for job in jobs]
        return train(jobs, environments, folder, on_batch)

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
        )

    def _length_of_rank(self) -> int:
        return len(self._sampler(0))

    def _sampler(self, rank: int) -> DistributedSampler:  # type: ignore[type-arg]
        """Made anew and by nobody else: what each rank must have got, by PyTorch's own word."""
        return DistributedSampler(
            range(len(self.dataset.paths)),  # type: ignore[arg-type]
            num_replicas=self.machines,
            rank=rank,
            shuffle=True,
            seed=self.seed,
        )

    def _wrong_samples(self, records: Records) -> Iterator[str]:
        wrong = [sample for epochs in records for epoch in epochs for sample in epoch.mismatches]
        if wrong:
            first = self.dataset.paths[wrong[0]]
            yield f"{len(wrong)} samples had wrong bytes, the first was {first}"

    def _wrong_orders(self, records: Records) -> Iterator[str]:
        for rank, epochs in enumerate(records):
            sampler = self._sampler(rank)
            for number, epoch in enumerate(epochs):
                sampler.set_epoch(number)
                if epoch.samples != list(sampler):
                    yield f"rank {rank}, epoch {number}: not the order of DistributedSampler"

    @staticmethod
    def _exceeded_budgets(nodes: Sequence[Metrics]) -> Iterator[str]:
        for number, node in enumerate(nodes):
            peak = node.get("optcache_cache_peak_bytes", 0)
            capacity = node.get("optcache_cache_capacity_bytes", 0)
            reserve = node.get("optcache_cache_reserve_bytes", 0)
            if peak > capacity + reserve:
                yield (
                    f"node {number} held {peak:,.0f} bytes; its budget is {capacity:,.0f} "
                    f"and {reserve:,.0f} for transit"
                )

    @staticmethod
    def _sidecar_troubles(sidecars: Sequence[Metrics]) -> Iterator[str]:
        for number, sidecar in enumerate(sidecars):
            if failed := sidecar.get("optcache_client_failed_samples_total", 0):
                yield f"sidecar {number} answered {failed:.0f} samples with an error"
            if unknown := sidecar.get("optcache_unknown_orders_total", 0):
                yield f"sidecar {number} foretold the wrong order of {unknown:.0f} passes"

    def _figures(
        self, policy: str, records: Records, nodes: Sequence[Metrics], log: str
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
            order_equal=not any(self._wrong_orders(records)),
        )

    def _prediction(self, policy: str, nodes: Sequence[Metrics]) -> tuple[int, float]:
        """Store bytes and hit ratio of the run: the plan's own, which all nodes share, or, where
        there is no plan, the closed form."""
        reads = max(node.get("optcache_plan_predicted_store_reads_total", 0) for node in nodes)
        if policy == "Optimal" and reads > 0:
            name = "optcache_plan_predicted_store_bytes_total"
            planned = self.epochs * self.machines * self._length_of_rank()
            return int(max(node.get(name, 0) for node in nodes)), 1 - reads / planned
        share = self.setup.capacity_bytes / self.setup.total_bytes
        ratio = accounting.predicted_hit_ratio(policy, share, self.epochs)
        return round((1 - ratio) * self.epochs * self.setup.total_bytes), ratio


def _deliveries(records: Records) -> Iterator[Delivery]:
    for epochs in records:
        for number, epoch in enumerate(epochs):
            count = len(epoch.samples)
            for index, (sample, time) in enumerate(zip(epoch.samples, epoch.times, strict=True)):
                yield Delivery(time, number, index / count, sample)
