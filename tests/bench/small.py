"""What a small sample costs: processor time of node, sidecar and trainers.

Files of 2 KB in the page cache, two ranks of two workers, epochs after the first. Beside them, in the
same run, PyTorch's DataLoader over the files, and a loop that opens and reads each file.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.context import Context
from bench.figures import Figure, at_most
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.cpu import cpu_seconds
from harness.errors import HarnessError
from harness.processes import last_lines, stop

SAMPLES, SAMPLE_BYTES, FOLDERS = 20_000, 2_000, 20
RANKS, WORKERS, EPOCHS = 2, 2, 4
BATCHES = (32, 256)
SHARES = (0.3, 1.0)  # of the data set that the node holds
ARENA_BYTES = 16 << 20
HIT_US, MISS_US = 10.0, 10.0
CLIENT_US = {32: 15.0, 256: 8.0}  # by batch
RANK_PROGRAM = Path(__file__).with_name("small_rank.py")


@dataclass(frozen=True)
class Cost:
    """Microseconds of processor time a sample, in the epochs after the first."""

    cache: float  # node, sidecar and coordinator
    ranks: float  # with their workers
    workers: float
    store_share: float = 0.0  # of the samples, those that the sidecar read

    @property
    def all(self) -> float:
        return self.cache + self.ranks


def figures_of(
    plain: dict[int, Cost], ours: dict[tuple[float, int], Cost], loop: float
) -> list[Figure]:
    """`plain` by batch, `ours` by share and batch; `loop` is the plain loop's, of a sample."""
    figures = []
    for batch, theirs in plain.items():
        part, whole = ours[0.3, batch], ours[1.0, batch]
        at = f"small samples, batch {batch}"
        hit = whole.cache
        misses = part.store_share
        miss = (part.cache - (1 - misses) * hit) / misses if misses else math.nan
        figures += [
            Figure(f"{at}: a hit, node and sidecar", hit, "us", "", at_most(HIT_US)),
            Figure(
                f"{at}: a miss above the loop, node and sidecar",
                miss - loop,
                "us",
                f"open and read in a loop {loop:.1f} us",
                at_most(MISS_US),
            ),
            Figure(
                f"{at}: a worker, c = 1",
                whole.workers,
                "us",
                f"PyTorch over files {theirs.workers:.1f} us",
                at_most(CLIENT_US[batch]),
            ),
            Figure(
                f"{at}: all processes / PyTorch's, c = 1",
                whole.all / theirs.all,
                "",
                f"PyTorch over files {theirs.all:.1f} us",
                at_most(1.0),
            ),
            Figure(
                f"{at}: all processes / PyTorch's, c = 0.3",
                part.all / theirs.all,
                "",
                f"of ours node and sidecar {part.cache:.1f} us, ranks {part.ranks:.1f} us",
            ),
        ]
    return figures


def run(context: Context) -> list[Figure]:
    samples = 400 if context.quick else SAMPLES
    bench = Bench(context, context.folder / "data", samples, 2 if context.quick else EPOCHS)
    context.say(f"{samples} files of {SAMPLE_BYTES} bytes")
    bench.write()
    plain, ours = {}, {}
    for batch in BATCHES:
        plain[batch] = bench.plain(batch)
        context.say(f"PyTorch over files, batch {batch}: {plain[batch].all:.1f} us a sample")
        for share in SHARES:
            cost = bench.ours(share, batch)
            ours[share, batch] = cost
            context.say(
                f"optcache, c = {share}, batch {batch}: node and sidecar {cost.cache:.1f} us a "
                f"sample, ranks {cost.ranks:.1f}, of it workers {cost.workers:.1f}"
            )
    return figures_of(plain, ours, bench.loop())


@dataclass(frozen=True)
class Bench:
    context: Context
    data: Path
    samples: int
    epochs: int

    @property
    def paths(self) -> list[Path]:
        return [
            self.data / f"{number % FOLDERS:02}" / f"{number:06}.bin"
            for number in range(self.samples)
        ]

    def write(self) -> None:
        generator = random.Random(0)
        for folder in range(FOLDERS):
            (self.data / f"{folder:02}").mkdir(parents=True)
        for path in self.paths:
            path.write_bytes(generator.randbytes(SAMPLE_BYTES))

    def loop(self) -> float:
        """Microseconds a sample, in another order each time as a shuffled epoch has it."""
        paths = list(map(str, self.paths))
        random.Random(1).shuffle(paths)
        for began in (0.0, time.process_time()):  # the first time is not measured
            for path in paths:
                descriptor = os.open(path, os.O_RDONLY)
                os.pread(descriptor, 2 * SAMPLE_BYTES, 0)
                os.close(descriptor)
        return (time.process_time() - began) / self.samples * 1e6

    def plain(self, batch: int) -> Cost:
        folder = self.context.folder / f"plain-{batch}"
        folder.mkdir()
        return self._measure(batch, folder, str(self.data), {}, None)

    def ours(self, share: float, batch: int) -> Cost:
        context = self.context.within(f"{share}-{batch}")
        (context.folder / "sockets").mkdir()
        options = ClusterOptions(
            programs=context.programs,
            base_url=str(self.data),
            listing="",
            machines=1,
            budget=Budget(int(share * self.samples * SAMPLE_BYTES), ARENA_BYTES),
            state=context.folder / "state",
            sockets=context.folder / "sockets",
            order="Path",
        )
        with Cluster(options, "Optimal", context.folder) as cluster:
            environment = {"OPTCACHE_SOCKET": str(cluster.socket(0))}
            cost = self._measure(batch, context.folder, "", environment, cluster)
        shutil.rmtree(context.folder)
        return cost

    def _measure(
        self,
        batch: int,
        folder: Path,
        files: str,
        environment: dict[str, str],
        cluster: Cluster | None,
    ) -> Cost:
        jobs = [
            {
                "folder": files,
                "rank": rank,
                "world": RANKS,
                "workers": WORKERS,
                "batch": batch,
                "epochs": self.epochs,
            }
            for rank in range(RANKS)
        ]
        with _started(jobs, folder, environment) as ranks:
            looks = []
            for epoch in range(self.epochs):
                workers = self._read_epoch(ranks, folder)
                if epoch in (0, self.epochs - 1):
                    looks.append(_Look.now(ranks, cluster, workers))
        first, last = looks
        return first.cost_until(last, (self.epochs - 1) * self.samples)

    def _read_epoch(self, ranks: Sequence[subprocess.Popen[bytes]], folder: Path) -> float:
        """All ranks, one epoch. Returns the seconds of their workers in all."""
        for rank in ranks:
            assert rank.stdin is not None
            rank.stdin.write(b"\n")
            rank.stdin.flush()
        workers, samples, size = 0.0, 0, 0
        for number, rank in enumerate(ranks):
            assert rank.stdout is not None
            line = rank.stdout.readline()
            if not line:
                log = last_lines(folder / f"rank-{number}.log")
                raise HarnessError(f"rank {number} has ended; the end of its log:\n{log}")
            more = json.loads(line)
            samples, size, workers = samples + more[0], size + more[1], workers + more[2]
        if (samples, size) != (self.samples, self.samples * SAMPLE_BYTES):
            raise HarnessError(f"an epoch of {samples} samples and {size} bytes")
        return workers


@dataclass(frozen=True)
class _Look:
    cache: float  # seconds
    ranks: float
    workers: float
    delivered: float = 0.0  # by the sidecar, in samples
    from_store: float = 0.0

    @staticmethod
    def now(
        ranks: Sequence[subprocess.Popen[bytes]], cluster: Cluster | None, workers: float
    ) -> _Look:
        of_ranks = cpu_seconds([rank.pid for rank in ranks])
        if cluster is None:
            return _Look(0.0, of_ranks, workers)
        of_cache = cpu_seconds(cluster.groups())
        (sidecar,) = cluster.sidecar_metrics()
        name = "optcache_client_samples_total"
        stored = [
            value
            for series, value in sidecar.items()
            if series.startswith(f"{name}{{") and 'source="store"' in series
        ]
        return _Look(of_cache, of_ranks, workers, sidecar.get(name, 0.0), sum(stored))

    def cost_until(self, last: _Look, samples: int) -> Cost:
        def each(before: float, after: float) -> float:
            return (after - before) / samples * 1e6

        delivered = last.delivered - self.delivered
        return Cost(
            cache=each(self.cache, last.cache),
            ranks=each(self.ranks, last.ranks),
            workers=each(self.workers, last.workers),
            store_share=(last.from_store - self.from_store) / delivered if delivered else 0.0,
        )


@contextmanager
def _started(
    jobs: Sequence[dict[str, object]], folder: Path, environment: dict[str, str]
) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as cleanup:
        ranks = []
        for number, job in enumerate(jobs):
            with open(folder / f"rank-{number}.log", "wb") as log:
                rank = subprocess.Popen(
                    [sys.executable, RANK_PROGRAM, json.dumps(job)],
                    env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
            cleanup.callback(stop, rank, grace_seconds=0)
            ranks.append(rank)
        yield ranks
