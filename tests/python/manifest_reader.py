"""Reads a manifest by docs/formats/manifest.md alone, as a second opinion on the C++ side."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

HEADER = struct.Struct("<8sHHIQIIQQ12xI")
SECTION = struct.Struct("<IIQQ")


@dataclass(frozen=True)
class Manifest:
    order: int
    paths: list[bytes]
    sizes: list[int]
    class_of: list[int]
    class_names: list[bytes]
    modified_ns: list[int]
    etags: list[bytes]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    low = data[at]
    if low < 0x80:
        return low, at + 1
    return (low & 0x7F) | data[at + 1] << 7, at + 2


def _strings(section: bytes) -> list[bytes]:
    count, per_block = struct.unpack_from("<II", section)
    blocks = -(-count // per_block)
    at = 8 + 8 * (blocks + 1)
    strings: list[bytes] = []
    for _ in range(count):
        shared, at = _varint(section, at)
        rest, at = _varint(section, at)
        previous = strings[-1] if strings else b""
        strings.append(previous[:shared] + section[at : at + rest])
        at += rest
    return strings


def read(path: Path) -> Manifest:
    data = path.read_bytes()
    magic, major, _, order, samples, classes, count, total, length, _ = HEADER.unpack_from(data)
    assert (magic, major, length) == (b"OPTCMANI", 1, len(data))
    sections = {}
    for i in range(count):
        kind, _, offset, size = SECTION.unpack_from(data, HEADER.size + i * SECTION.size)
        sections[kind] = data[offset : offset + size]

    def numbers(kind: int, code: str) -> list[int]:
        return list(struct.unpack(f"<{samples}{code}", sections[kind])) if kind in sections else []

    def strings(kind: int) -> list[bytes]:
        return _strings(sections[kind]) if kind in sections else []

    manifest = Manifest(
        order=order,
        paths=strings(1),
        sizes=numbers(2, "Q"),
        class_of=numbers(3, "I"),
        class_names=strings(4),
        modified_ns=numbers(5, "q"),
        etags=strings(6),
    )
    assert len(manifest.paths) == samples
    assert len(manifest.class_names) == classes
    assert sum(manifest.sizes) == total
    return manifest
