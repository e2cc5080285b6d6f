"""`./dev demo --no-code-change`: the same ranks of boto3 read a bucket, first without optcache, then
through the S3 endpoints of its sidecars. What they read is counted by the log of the store."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import accounting
from harness import checks
from harness.checks import Records
from harness.cluster import Cluster, ClusterOptions, Metrics
from harness.dataset import Dataset
from harness.training import train
from jobs import Jobs
from scenes import Scene, scenes
from sources import Bucket, bucket

RANK_PROGRAM = Path(__file__).with_name("boto3_rank.py")
MEGABYTE = 1_000_000
# Of the bound: reads that are asked for twice, and those before the first plan.
ALLOWED = 1.02

Progress = Callable[[str, str], None]  # told which run it is, and in a few words what is going on


@dataclass(frozen=True)
class Reads:
    """What reached the store in one run."""

    name: str
    delivered: int  # objects that the ranks got
    gets: int
    store_bytes: int
    bound_bytes: int  # the least for any cache of that size


def table(runs: Sequence[Reads]) -> str:
    rows = [["run", "reads", "GETs", "GETs/reads", "read MB", "bound MB", "read/bound"]]
    rows += [
        [
            run.name,
            f"{run.delivered:,}",
            f"{run.gets:,}",
            f"{run.gets / run.delivered:.3f}",
            f"{run.store_bytes / MEGABYTE:,.1f}",
            f"{run.bound_bytes / MEGABYTE:,.1f}",
            f"{run.store_bytes / run.bound_bytes:.4f}",
        ]
        for run in runs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(
        [
            *lines,
            "",
            "Both runs are of the same program (tests/demo/boto3_rank.py), which does not import "
            "optcache. Only AWS_ENDPOINT_URL_S3",
            "and the keys differ. reads: objects that the ranks got. GETs and bytes: by the log of "
            "the store. bound: the least that any",
            "cache of the nodes' size can read. The sidecars do not know which epoch is the last, so "
            "they read ahead for another one,",
            "as much as their arenas hold. A read that is late is asked for twice. The demo fails if "
            "more is read with optcache",
            f"than {ALLOWED} times the bound and what the arenas hold.",
        ]
    )


def unknown_reads(sidecars: Sequence[Metrics]) -> Iterator[str]:
    for number, sidecar in enumerate(sidecars):
        if unknown := sidecar.get("optcache_unpredicted_reads_total", 0):
            yield f"sidecar {number} did not know {unknown:.0f} reads in advance"


def too_much(reads: Reads, ahead_bytes: int) -> Iterator[str]:
    """What is read ahead for an epoch that does not come is no more than the arenas hold."""
    limit = ALLOWED * reads.bound_bytes + ahead_bytes
    if reads.store_bytes > limit:
        yield (
            f"{reads.store_bytes / MEGABYTE:,.1f} MB were read of the store; {ALLOWED} times the bound, "
            f"and the arenas, are {limit / MEGABYTE:,.1f} MB"
        )


def write_json(runs: Sequence[Reads], path: Path) -> None:
    path.write_text(json.dumps([asdict(run) for run in runs], indent=2) + "\n")


def by_key(dataset: Dataset) -> Dataset:
    """In the order of the bucket's keys."""
    pairs = sorted(zip(dataset.paths, dataset.sizes, strict=True))
    return Dataset(
        dataset.root, tuple(path for path, _ in pairs), tuple(size for _, size in pairs)
    )


def scene(arguments: Namespace) -> Scene:
    """The demo's first one, with a loop that only reads."""
    return replace(scenes(arguments)[0], step_seconds=0.0, decodes=False)


@dataclass(frozen=True)
class Comparison(Jobs):
    """The dataset is in the order of by_key."""

    def run(self, progress: Progress) -> tuple[list[Reads], list[str]]:
        """Both runs, and a sentence for everything that was not as it must be."""
        self.prepare()
        progress("bucket", "putting the images into it")
        with bucket(self.dataset, self.folder) as source:
            runs = [self._without(source, progress), self._with(source, progress)]
        return [reads for reads, _ in runs], [it for _, failures in runs for it in failures]

    def _without(self, source: Bucket, progress: Progress) -> tuple[Reads, list[str]]:
        endpoints = [{"AWS_ENDPOINT_URL_S3": source.server.endpoint}] * self.scene.machines
        return self._train("boto3", source, endpoints, progress)

    def _with(self, source: Bucket, progress: Progress) -> tuple[Reads, list[str]]:
        name = "boto3, optcache"
        progress(name, "starting the cache")
        options = ClusterOptions(
            programs=self.programs,
            base_url="",
            listing="",
            machines=self.scene.machines,
            budget=self.budget,
            state=self.folder / "state",
            sockets=self.folder / "sockets",
            order="Path",
            s3_endpoint=True,
            sampler=f"torch-distributed,seed={self.scene.seed},world={self.scene.machines},ranks=1",
        )
        options = source.options(options, source.port)
        with Cluster(options, "Optimal", self.folder) as cluster:
            endpoints = [
                {
                    "AWS_ENDPOINT_URL_S3": cluster.s3_endpoint(machine),
                    "AWS_ACCESS_KEY_ID": "any",
                    "AWS_SECRET_ACCESS_KEY": "any",
                }
                for machine in range(self.scene.machines)
            ]
            reads, failures = self._train(name, source, endpoints, progress)
            nodes, sidecars = cluster.node_metrics(), cluster.sidecar_metrics()
        troubles = [
            *checks.exceeded_budgets(nodes),
            *checks.sidecar_troubles(sidecars),
            *unknown_reads(sidecars),
            *too_much(reads, self.scene.machines * self.budget.arena),
        ]
        return reads, failures + [f"{name}: {it}" for it in troubles]

    def _train(
        self,
        name: str,
        source: Bucket,
        environments: Sequence[dict[str, str]],
        progress: Progress,
    ) -> tuple[Reads, list[str]]:
        progress(name, "starting the ranks")
        folder = self.folder / name.replace(", ", "-")
        folder.mkdir()
        jobs = self.jobs(folder)
        log_begin = source.log_size()
        records = train(
            RANK_PROGRAM,
            jobs,
            environments,
            folder,
            lambda epoch, batches: progress(name, f"epoch {epoch + 1}, batch {batches}"),
        )
        memory = self.scene.machines * self.budget.memory
        bound = accounting.bound_bytes(self.dataset.total_bytes, memory, self.scene.epochs)
        read = accounting.store_reads(source.reads(log_begin))
        reads = Reads(name, _delivered(records), read.requests, read.body_bytes, bound)
        failures = [
            *checks.wrong_samples(self.dataset, records),
            *checks.wrong_orders(self.dataset, jobs, records),
        ]
        return reads, [f"{name}: {it}" for it in failures]


def _delivered(records: Records) -> int:
    return sum(len(epoch.samples) for epochs in records for epoch in epochs)
