"""Client libraries of S3, not changed, read one dataset through a sidecar's endpoint, at c = 0.3.

Each reads whole epochs, by itself, into a cache of its own. What reaches the store is counted by
the log of a real server of S3. The bound is what no cache of that size can go below.
`OPTCACHE_BENCH_PYTHON` names an interpreter that has the libraries.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from bench.context import REPOSITORY, Context
from bench.figures import Figure, at_most
from bench.peers import venv
from harness import s3_reader
from harness.cluster import Budget, Cluster, ClusterOptions, transit_reserve
from harness.errors import HarnessError
from harness.s3_reader import BUCKET, PREFIX
from harness.s3_server import Keys, S3Server, keys_in_environment, missing_program

KEYS = Keys("AKIAOPTCACHEBENCH", "a/secret+that=is/long enough")
REGION = "us-east-1"
SHARE = 0.3
EPOCHS = 5
OBJECTS = 400
OBJECT_BYTES = 160 << 10  # boto3_transfer reads it in three ranges
SHARDS = 40
# At least, and of some objects. What is staged for an epoch after the last counts, too.
ARENA_BYTES = 4 << 20
ARENA_OBJECTS = 4
OVERFLOW_BYTES = 16 << 20
READ_SECONDS = 1800.0
GET = "s3_GetObject"
GOAL = 1.05


@dataclass(frozen=True)
class Client:
    name: str  # of s3_reader
    packages: tuple[str, ...]
    layout: str
    sampler: str = ""  # what an annotation says of its order


CLIENTS = (
    Client("boto3", ("boto3",), "objects"),
    Client(
        "boto3_in_order",
        ("boto3", "torch"),
        "objects",
        f"torch-distributed,seed={s3_reader.SEED}",
    ),
    Client("boto3_transfer", ("boto3",), "objects"),
    Client("s3fs", ("s3fs",), "objects"),
    Client("s3torchconnector", ("s3torchconnector", "torch"), "objects"),
    Client("webdataset", ("webdataset", "boto3"), "tars"),
    Client("webdataset_by_aws", ("webdataset", "boto3", "awscli"), "tars"),
    Client("streaming", ("streaming",), "mds"),
    Client("datasets", ("datasets", "s3fs"), "lines"),
)


@dataclass(frozen=True)
class Layout:
    """The same samples, in one of the forms that clients read."""

    folder: Path
    sizes: Sequence[int]  # of the objects

    @property
    def capacity(self) -> int:
        return int(SHARE * sum(self.sizes))

    def bound(self, epochs: int) -> int:
        """The fewest reads: what is in the cache when an epoch begins is not read in it."""
        kept, room = 0, self.capacity
        room += transit_reserve(room, sum(self.sizes), len(self.sizes))
        for size in sorted(self.sizes):
            room -= size
            kept += room >= 0
        return len(self.sizes) + (epochs - 1) * (len(self.sizes) - kept)


def run(context: Context) -> list[Figure]:
    if why := missing_program():
        raise HarnessError(why)
    named = os.environ.get("OPTCACHE_BENCH_PYTHON")
    context.say(f"packages of {named}" if named else f"packages of clients: {venv.VERSIONS}")
    python = Path(named or venv.python())
    epochs = 2 if context.quick else EPOCHS
    layouts = _layouts(context, python)
    figures = []
    for client in CLIENTS:
        if lacking := [package for package in client.packages if not _has(python, package)]:
            context.say(f"{client.name} is left out: {', '.join(lacking)} is not installed")
            continue
        layout = layouts[client.layout]
        gets = _gets(context.within(client.name), client, layout, python, epochs)
        bound = layout.bound(epochs)
        figures.append(
            Figure(
                f"{client.name}: GETs at the store / bound",
                gets / bound,
                "",
                f"{gets} GETs, bound {bound}; without a cache {epochs * len(layout.sizes)}",
                at_most(GOAL),
            )
        )
        context.say(f"{client.name}: {gets} GETs, bound {bound}")
    return figures


def _gets(context: Context, client: Client, layout: Layout, python: Path, epochs: int) -> int:
    with (
        keys_in_environment(KEYS, REGION) as environment,
        S3Server(context.folder / "s3", KEYS, region=REGION) as server,
    ):
        server.client().make_bucket(BUCKET)
        for path in sorted(layout.folder.iterdir()):
            server.place(BUCKET, PREFIX + path.name, path.read_bytes())
        own = context.folder / "client"
        own.mkdir()
        options = ClusterOptions(
            programs=context.programs,
            base_url="",
            listing="",
            machines=1,
            budget=Budget(
                layout.capacity,
                max(ARENA_BYTES, ARENA_OBJECTS * max(layout.sizes)),
                OVERFLOW_BYTES,
            ),
            state=context.folder / "state",
            sockets=context.folder,
            bucket=f'{{bucket: {BUCKET}, prefix: "{PREFIX}", endpoint: "{server.endpoint}"}}',
            order="Path",
            s3_endpoint=True,
            sampler=client.sampler,
        )
        with Cluster(options, "Optimal", context.folder) as cluster:
            before = server.requests(GET)
            read_epochs(
                python,
                client.name,
                own,
                epochs,
                {
                    **environment,
                    "AWS_ACCESS_KEY_ID": "any",
                    "AWS_SECRET_ACCESS_KEY": "anything",
                    "AWS_ENDPOINT_URL_S3": cluster.s3_endpoint(0),
                    "PATH": f"{python.parent}:{environment['PATH']}",  # AWS's own program
                },
            )
            return server.requests(GET) - before


def read_epochs(
    python: Path, client: str, folder: Path, epochs: int, environment: Mapping[str, str]
) -> dict[str, str]:
    """Has a client read them; each must bring the same. By name, the SHA-256 of what it read."""
    done = subprocess.run(
        s3_reader.command(python, client, folder, epochs),
        input="\n" * epochs,
        capture_output=True,
        text=True,
        check=False,
        timeout=READ_SECONDS,
        env=environment,
    )
    if done.returncode != 0:
        raise HarnessError(f"{client} ends with {done.returncode}: {done.stderr}")
    read = [dict(json.loads(line)) for line in done.stdout.splitlines()]
    if len(read) != epochs or any(one != read[0] for one in read):
        raise HarnessError(f"{client}: its epochs differ")
    return read[0]


def _layouts(context: Context, python: Path) -> dict[str, Layout]:
    count = OBJECTS // 10 if context.quick else OBJECTS
    chance = random.Random(1)
    samples = {f"{number:06}": chance.randbytes(OBJECT_BYTES) for number in range(count)}
    names = sorted(samples)
    parts = [names[begin : begin + count // SHARDS] for begin in range(0, count, count // SHARDS)]
    folders = {name: context.folder / name for name in ("objects", "tars", "lines")}
    for folder in folders.values():
        folder.mkdir()
    for name, body in samples.items():
        (folders["objects"] / f"{name}.bin").write_bytes(body)
    for number, part in enumerate(parts):
        with tarfile.open(folders["tars"] / f"{number:04}.tar", "w") as archive:
            for name in part:
                member = tarfile.TarInfo(f"{name}.bin")
                member.size = OBJECT_BYTES
                archive.addfile(member, BytesIO(samples[name]))
        lines = [json.dumps({"id": name, "bytes": samples[name].hex()}) for name in part]
        (folders["lines"] / f"{number:04}.jsonl").write_text("\n".join(lines) + "\n")
    if _has(python, "streaming"):
        folders["mds"] = context.folder / "mds"
        _write_mds(python, folders["objects"], folders["mds"], OBJECT_BYTES * (count // SHARDS))
    return {name: _layout(folder) for name, folder in folders.items()}


def _layout(folder: Path) -> Layout:
    return Layout(folder, [path.stat().st_size for path in sorted(folder.iterdir())])


MDS = """
import sys
from pathlib import Path
from streaming import MDSWriter
source, target, size = sys.argv[1:]
with MDSWriter(out=target, columns={"id": "str", "bytes": "bytes"}, size_limit=int(size)) as out:
    for path in sorted(Path(source).iterdir()):
        out.write({"id": path.stem, "bytes": path.read_bytes()})
"""


def _write_mds(python: Path, source: Path, target: Path, shard_bytes: int) -> None:
    subprocess.run(
        [python, "-W", "ignore", "-c", MDS, source, target, str(shard_bytes)],
        check=True,
        capture_output=True,
        timeout=READ_SECONDS,
        cwd=REPOSITORY,
    )


def _has(python: Path, package: str) -> bool:
    words = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", words], check=False, timeout=60).returncode == 0
