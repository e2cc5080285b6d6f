"""A dataset as the harness knows it: files in class folders. And one that is made up."""

from __future__ import annotations

import hashlib
import math
import os
import random
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Dataset:
    root: Path
    paths: tuple[str, ...]  # relative to root, with slashes; numbered by torchvision.ImageFolder
    sizes: tuple[int, ...]  # bytes

    @property
    def total_bytes(self) -> int:
        return sum(self.sizes)

    def read(self, index: int) -> bytes:
        return (self.root / self.paths[index]).read_bytes()

    def write_listing(self, path: Path) -> None:
        """One path a line: how a plain web server says what it has."""
        path.write_bytes(b"".join(os.fsencode(name) + b"\n" for name in self.paths))

    def write_digests(self, path: Path) -> None:
        """The SHA-256 of all samples, one after the other."""
        with open(path, "wb") as table:
            for name in self.paths:
                table.write(hashlib.sha256((self.root / name).read_bytes()).digest())


CLASSES = 4
SIZE_MAX = 200_000
LARGE_SIZE = 1_500_000  # bytes: one sample in MANY has this
MANY = 500


def dataset_key(name: str, digest: str) -> int:
    """What the wire calls a dataset of that name and manifest (docs/formats/wire.md)."""
    return int.from_bytes(hashlib.sha256(f"{name}\n{digest}".encode()).digest()[:8], "little")


def generate(root: Path, count: int, seed: int) -> Dataset:
    """`count` files of random bytes: most have a few KB, some 100 B or 200 KB, few are large.

    Their names end as images' do, since only those count in the order of ImageFolder.
    """
    chance = random.Random(seed)
    paths, sizes = [], []
    for number in range(count):
        path = f"class-{number * CLASSES // count}/{number:06}.png"
        size = LARGE_SIZE if number % MANY == MANY - 1 else _size(chance)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(chance.randbytes(size))
        paths.append(path)
        sizes.append(size)
    return Dataset(root, tuple(paths), tuple(sizes))


def _size(chance: random.Random) -> int:
    """From 100 B to 200 KB, every order of magnitude as often as the others."""
    return round(100.0 * math.pow(SIZE_MAX / 100, chance.random()))
