"""A training loop that reads a bucket through the cache, beside other ways to read a bucket.

Each way: two ranks of two workers, five epochs, from a real server of S3 by a link that is slow as
told. Requests are counted by the server's log, bytes by the link.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.context import REPOSITORY, Context
from bench.figures import Figure
from bench.peers import bucket as buckets
from bench.peers import crew, venv
from bench.peers.bucket import BUCKET, Bucket
from bench.peers.crew import Counts, Pass
from bench.peers.loaders import LOADERS, REGION, Job
from bench.peers.rows import OURS, OURS_TAR, Cold, Row, cold_figures, figures_of
from bench.scene import unpack_default
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.cpu import cpu_seconds
from harness.errors import HarnessError
from harness.s3_server import Keys, S3Server, keys_in_environment, missing_program
from harness.slow_link import SlowLink

KEYS = Keys("AKIAOPTCACHEBENCH", "a/secret+that=is/long enough")
RANKS, WORKERS, BATCH, EPOCHS = 2, 2, 16, 5
DELAY_SECONDS = 0.010
COMPUTE_SECONDS = 4.0  # of an epoch, where the link is narrow
NARROW = 0.7  # the link's rate / what the loop consumes when it need not wait
ARENA_BYTES = 16 << 20
OVERFLOW_BYTES = 8 << 20
COLD_JOBS = 4
COLD_EPOCHS = 2  # the first is the cold one, and there is another for which all is kept


@dataclass(frozen=True)
class Setting:
    name: str
    share: float
    delay: float = 0.0
    compute: float = 0.0  # seconds of an epoch; 0: as fast as it reads
    narrow: bool = False


SETTINGS = (
    Setting("c = .3", 0.3),
    Setting("c = .3, +10 ms", 0.3, delay=DELAY_SECONDS),
    Setting("c = .3, narrow", 0.3, compute=COMPUTE_SECONDS, narrow=True),
    Setting("c = 1", 1.0),
)


@dataclass(frozen=True)
class Bench:
    context: Context
    server: S3Server
    bucket: Bucket
    python: Path
    environment: Mapping[str, str]
    epochs: int

    def measure(self, way: str, setting: Setting) -> Row:
        place = "".join(filter(str.isalnum, setting.name))  # short, and good for a socket
        context = self.context.within(f"{list(LOADERS).index(way)}-{place}")
        rate = NARROW * self.bucket.bytes / setting.compute if setting.narrow else 0.0
        cache_bytes = int(setting.share * self.bucket.bytes)
        try:
            with SlowLink(self.server.port, setting.delay, rate) as link:
                jobs = self._jobs(way, setting, link, context, cache_bytes)
                hedges = 0
                if way in (OURS, OURS_TAR):
                    passes, peak, hedges = self._ours(jobs, link, context, cache_bytes)
                else:
                    passes, peak = self._run(jobs, link, context, [])
        finally:
            shutil.rmtree(context.folder / "cache", ignore_errors=True)
        self._check(passes, way)
        return Row(
            way=way,
            setting=setting.name,
            share=setting.share,
            compute=setting.compute,
            samples=self.bucket.samples,
            data_bytes=self.bucket.bytes,
            passes=passes,
            peak_cache=peak,
            hedges=hedges,
            rate=rate,
        )

    def cold(self, jobs: Sequence[Job], name: str) -> Cold:
        """All jobs together, with nothing cached before, and room for everything."""
        context = self.context.within(name)
        with SlowLink(self.server.port) as link:
            own = [replace(job, endpoint=_endpoint(link)) for job in jobs]
            passes, _, hedges = self._ours(own, link, context, self.bucket.bytes)
        gets = [one.counts.gets for one in passes]
        return Cold(gets[0], sum(gets[1:]), hedges, self.bucket.samples)

    def job(self, way: str) -> Job:
        return Job(
            way=way,
            rank=0,
            world=RANKS,
            workers=WORKERS,
            batch=BATCH,
            epochs=self.epochs,
            step_seconds=0.0,
            endpoint="",
            bucket=BUCKET,
            objects=str(self.bucket.objects),
            shards=str(self.bucket.shards),
            packed=buckets.PACKED,
            cache="",
            cache_bytes=0,
            socket="",
        )

    def _jobs(
        self, way: str, setting: Setting, link: SlowLink, context: Context, cache_bytes: int
    ) -> list[Job]:
        steps = -(-(self.bucket.samples // RANKS) // BATCH)
        job = replace(
            self.job(way),
            step_seconds=setting.compute / steps,
            endpoint=_endpoint(link),
            cache=str(context.folder / "cache"),
            # What all data needs in a peer's own form, where all of it shall fit.
            cache_bytes=cache_bytes if setting.share < 1 else int(1.1 * self.bucket.bytes),
        )
        return [replace(job, rank=rank) for rank in range(RANKS)]

    def _ours(
        self, jobs: Sequence[Job], link: SlowLink, context: Context, cache_bytes: int
    ) -> tuple[list[Pass], int, int]:
        """Also the most bytes that the node held, and the second requests for late reads."""
        folder = context.folder
        (folder / "state").mkdir(mode=0o700)
        archives = jobs[0].way == OURS_TAR
        prefix = buckets.TARS if archives else buckets.OBJECTS
        options = ClusterOptions(
            programs=context.programs,
            base_url="",
            listing="",
            machines=1,
            budget=Budget(cache_bytes, ARENA_BYTES, OVERFLOW_BYTES),
            state=folder / "state",
            sockets=folder,
            bucket=f'{{bucket: {BUCKET}, prefix: {prefix}/, endpoint: "{_endpoint(link)}"}}',
            order="Path",
            format="Tar" if archives else "Files",
        )
        with Cluster(options, "Optimal", folder) as cluster:
            socket = str(cluster.socket(0))
            # Started before the ranks, so it counts from the first epoch on alone.
            own = [replace(job, socket=socket, cache=str(folder / "none")) for job in jobs]
            passes, _ = self._run(own, link, context, cluster.groups())
            (node,) = cluster.node_metrics()
            (sidecar,) = cluster.sidecar_metrics()
        hedges = int(sidecar.get("optcache_store_hedges_total", 0))
        # Without the sidecar's arena and overflow: what is read ahead and in use is not counted for
        # the other ways either.
        return passes, int(node["optcache_cache_peak_bytes"]), hedges

    def _run(
        self, jobs: Sequence[Job], link: SlowLink, context: Context, groups: Sequence[int]
    ) -> tuple[list[Pass], int]:
        def look(mine: Sequence[int]) -> Counts:
            gets = self.server.requests("s3_GetObject")
            everything = self.server.requests("s3_")
            return Counts(link.answered_bytes(), gets, everything, cpu_seconds(mine))

        return crew.run(self.python, jobs, context.folder, self.environment, groups, look)

    def _check(self, passes: Sequence[Pass], way: str) -> None:
        """Ranks of DistributedSampler have all samples between them, since their number is even."""
        for number, one in enumerate(passes):
            got = (one.samples, one.bytes, one.touched)
            if got != (self.bucket.samples, self.bucket.bytes, self.bucket.touched):
                raise HarnessError(f"{way}, epoch {number}: wrong samples, {got}")


def _endpoint(link: SlowLink) -> str:
    return f"http://127.0.0.1:{link.port}"


def run(context: Context) -> list[Figure]:
    if why := missing_program():
        raise HarnessError(why)
    context.say(f"packages of peers: {venv.VERSIONS}")
    python = venv.python()
    images = unpack_default(REPOSITORY / "build" / "demo-data")
    every = [way for way in LOADERS if way != OURS_TAR]  # which archives.py measures
    ways = _asked(os.environ.get("OPTCACHE_BENCH_WAYS", ""), every)
    names = _asked(
        os.environ.get("OPTCACHE_BENCH_SETTINGS", ""), [setting.name for setting in SETTINGS]
    )
    with (
        keys_in_environment(KEYS, REGION) as environment,
        S3Server(context.folder / "s3", KEYS, region=REGION) as server,
    ):
        context.say("filling the bucket")
        bucket = buckets.fill(server, images, python, context.folder, few=context.quick)
        epochs = 2 if context.quick else EPOCHS
        bench = Bench(context, server, bucket, python, environment, epochs)
        context.say(f"{bucket.samples} objects, {bucket.bytes / 1e6:.1f} MB")
        rows = []
        for setting in SETTINGS:
            for way in ways:
                if setting.name not in names:
                    continue
                try:
                    rows.append(bench.measure(way, setting))
                    context.say(rows[-1].words())
                except HarnessError as error:
                    if way == OURS:
                        raise
                    context.say(f"{setting.name}: {way} is left out: {error}")
        cold = _cold(bench)
    (context.out / "stores.json").write_text(json.dumps(_document(rows), indent=2) + "\n")
    return [*figures_of(rows), *cold]


def _cold(bench: Bench) -> list[Figure]:
    bench.context.say(f"{COLD_JOBS} jobs that start together")
    job = replace(bench.job(OURS), world=1, epochs=COLD_EPOCHS, workers=1)
    together = [replace(job, seed=seed) for seed in range(COLD_JOBS)]
    jobs = bench.cold(together, "jobs")
    bench.context.say("ranks that each read everything")
    whole = [replace(job, rank=rank, announced=False) for rank in range(RANKS)]
    return cold_figures(jobs, bench.cold(whole, "whole"), COLD_JOBS, RANKS)


def _asked(names: str, every: list[str]) -> list[str]:
    return names.split(";") if names else every


def _document(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]
