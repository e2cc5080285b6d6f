"""The buckets that all ways read: real images, one object each, and once more in shards."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from bench.context import REPOSITORY
from bench.peers.loaders import touch
from harness.errors import HarnessError
from harness.s3_server import S3Server

BUCKET = "data"
OBJECTS = "objects"
TARS = "tars"
PACKED = "packed"
# Of the demo's images those of usual sizes for training, 112 kB in the mean; each some times.
SMALLEST, LARGEST = 16 << 10, 512 << 10
COPIES = 2
FEW = 96
ARCHIVES = 4  # of fill_archives: one for each worker of each rank
ARCHIVE_BYTES = 256_000_000  # about, as shards of archives usually are
SHARDS = 64  # about; so that a few of them are little of what may be kept
PACK_SECONDS = 300.0


@dataclass(frozen=True)
class Bucket:
    samples: int
    bytes: int
    touched: int  # what all samples' touch() say together
    objects: Path  # JSON: their keys
    shards: Path  # JSON: the keys of the tar shards


def fill(server: S3Server, images: Path, python: Path, folder: Path, few: bool) -> Bucket:
    """Puts everything there by requests, so that objects have the server's ETags."""
    files = _files(images)
    files = files[:FEW] if few else files * COPIES
    total = sum(path.stat().st_size for path in files)
    client = server.client()
    client.make_bucket(BUCKET)
    keys, touched = [], 0
    for number, path in enumerate(files):
        keys.append(f"{OBJECTS}/{number:06}{path.suffix}")
        data = path.read_bytes()
        touched += touch(data).touched
        client.put(BUCKET, keys[-1], data)
    shards = _tars(files, total // SHARDS)
    for number, data in enumerate(shards):
        client.put(BUCKET, _tar_key(number), data)
    for path in _packed(files, total // SHARDS, python, folder):
        client.put(BUCKET, f"{PACKED}/{path.name}", path.read_bytes())
    objects = folder / "objects.json"
    objects.write_text(json.dumps(keys))
    tars = folder / "tars.json"
    tars.write_text(json.dumps([_tar_key(number) for number in range(len(shards))]))
    return Bucket(len(files), total, touched, objects, tars)


def fill_archives(server: S3Server, images: Path, folder: Path, few: bool) -> Bucket:
    """Tar shards alone, of ARCHIVE_BYTES each."""
    files = _files(images)
    total = sum(path.stat().st_size for path in files)
    files = files[:FEW] if few else files * (ARCHIVES * ARCHIVE_BYTES // total)
    files = files[: len(files) // 2 * 2]  # as many for either rank
    total = sum(path.stat().st_size for path in files)
    server.client().make_bucket(BUCKET)
    keys, begin = [], 0
    for number in range(ARCHIVES):
        end = len(files) * (number + 1) // ARCHIVES
        keys.append(_tar_key(number))
        server.place(BUCKET, keys[-1], _tar(files[begin:end], begin))
        begin = end
    tars = folder / "tars.json"
    tars.write_text(json.dumps(keys))
    touched = sum(touch(path.read_bytes()).touched for path in files)
    return Bucket(len(files), total, touched, objects=folder / "none.json", shards=tars)


def _files(images: Path) -> list[Path]:
    """Of usual sizes."""
    files = [path for path in sorted(images.rglob("*")) if path.is_file()]
    return [path for path in files if SMALLEST <= path.stat().st_size <= LARGEST]


def _tar(files: list[Path], first: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for number, path in enumerate(files, first):
            info = tarfile.TarInfo(f"{number:06}.png")
            info.size = path.stat().st_size
            with path.open("rb") as data:
                archive.addfile(info, data)
    return buffer.getvalue()


def _tar_key(number: int) -> str:
    return f"{TARS}/{number:06}.tar"


def _tars(files: list[Path], shard_bytes: int) -> list[bytes]:
    shards, begin = [], 0
    while begin < len(files):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            while begin < len(files) and buffer.tell() < shard_bytes:
                data = files[begin].read_bytes()
                info = tarfile.TarInfo(f"{begin:06}.png")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
                begin += 1
        shards.append(buffer.getvalue())
    return shards


def _packed(files: list[Path], shard_bytes: int, python: Path, folder: Path) -> list[Path]:
    names, target = folder / "files.json", folder / "packed"
    names.write_text(json.dumps([str(path) for path in files]))
    done = subprocess.run(
        [python, "-W", "ignore", "-m", "bench.peers.pack", names, target, str(shard_bytes)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PACK_SECONDS,
        cwd=REPOSITORY,
        env=os.environ,
    )
    if done.returncode != 0:
        raise HarnessError(f"MosaicML's shards could not be made: {done.stderr[-2000:]}")
    return sorted(path for path in target.iterdir() if path.is_file())
