"""A sample of several members, as docs/formats/members.md lays it out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Union

from .errors import OptcacheError

_HEAD = struct.Struct("<4sIII")
_MAGIC = b"OMB1"

Bytes = Union[bytes, memoryview]


def _padding(size: int) -> int:
    return -size % 8


def pack(key: bytes, members: Sequence[tuple[bytes, Bytes]]) -> bytes:
    """Joins members, each with its name, to one sample."""
    count = len(members)
    names = b"".join(name for name, _ in members)
    length = _HEAD.size + 12 * count + len(key) + len(names)
    parts: list[Bytes] = [
        _HEAD.pack(_MAGIC, count, len(key), length + _padding(length)),
        struct.pack(f"<{count}Q", *(len(data) for _, data in members)),
        struct.pack(f"<{count}I", *(len(name) for name, _ in members)),
        key,
        names,
        bytes(_padding(length)),
    ]
    for _, data in members:
        parts += [data, bytes(_padding(len(data)))]
    return b"".join(parts)


def unpack(sample: Bytes) -> tuple[bytes, list[tuple[bytes, memoryview]]]:
    """The key, and each member's name and data: views of the sample.

    Raises OptcacheError if it is no such sample.
    """
    view = memoryview(sample)
    try:
        magic, count, key_length, head = _HEAD.unpack_from(view)
        sizes = struct.unpack_from(f"<{count}Q", view, _HEAD.size)
        lengths = struct.unpack_from(f"<{count}I", view, _HEAD.size + 8 * count)
    except struct.error:
        magic = b""
    if magic != _MAGIC:
        raise OptcacheError(
            "the sample is not one of several members: the dataset was not indexed with format Tar",
            "invalid_argument",
        )
    at = _HEAD.size + 12 * count
    key = bytes(view[at : at + key_length])
    at += key_length
    members = []
    begin = head
    for size, length in zip(sizes, lengths):
        members.append((bytes(view[at : at + length]), view[begin : begin + size]))
        at += length
        begin += size + _padding(size)
    if at > head or begin != len(view):
        raise OptcacheError("a sample of several members is damaged", "data_loss")
    return key, members
