"""Tar shards for tests, and what `webdataset` would make of them, by Python's tarfile."""

from __future__ import annotations

import io
import random
import re
import tarfile
from pathlib import Path

Sample = dict[str, object]

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
LONG = "very-long-folder-name/" * 9  # beyond what a plain header holds


def write_shard(path: Path, files: list[tuple[str, bytes]], format: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=format) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1_700_000_000
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                archive.addfile(info, io.BytesIO(data))


def make_shards(root: Path, shards: int, samples: int, chance: random.Random) -> None:
    """In all formats, with what archives have besides samples: folders, files without ending, links,
    files about the archive, names that do not fit a header, and keys that come again.
    """
    for shard in range(shards):
        format = FORMATS[shard % len(FORMATS)]
        files: list[tuple[str, bytes]] = [("./train/", b""), ("README", b"no sample")]
        for number in range(samples):
            key = f"./train/{number:05}"
            if number == 3 and format != tarfile.USTAR_FORMAT:
                key = f"{LONG}{number} ü"
            files.append((f"{key}.JPG", chance.randbytes(chance.randrange(1, 20_000))))
            if chance.random() < 0.1:
                files.append(("__meta__/note", b"between two files of a sample"))
            files.append((f"{key}.cls", str(chance.randrange(1000)).encode()))
            if chance.random() < 0.3:
                files.append((f"{key}.seg.png", b""))
        write_shard(root / f"part-{shard % 2}" / f"shard-{shard:03}.tar", files, format)


def samples_of(root: Path) -> list[Sample]:
    """The samples of all shards below `root`, by path, as webdataset's documentation has it."""
    samples: list[Sample] = []
    for path in sorted(root.rglob("*.tar")):
        current: Sample = {}
        with tarfile.open(path) as archive:
            for info in archive:
                found = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", info.name)
                if not info.isreg() or not found or re.match(r"__[^/]*__($|/)", info.name):
                    continue
                key, suffix = found.groups()
                if not current or current["__key__"] != key:
                    current = {"__key__": key}
                    samples.append(current)
                file = archive.extractfile(info)
                assert file is not None
                current[suffix.lower()] = file.read()
    return samples
