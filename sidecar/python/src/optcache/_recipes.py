"""Recipes as text; docs/formats/recipe.md is the specification."""

from __future__ import annotations

import array
import sys
import zlib
from collections.abc import Sequence
from typing import Any, Optional

RANGES_MAX = 128
BASE_SEEDS = ("every-pass", "first-pass", "never")  # by the numbers of the hand-over protocol

Ranges = list[tuple[int, int]]  # (first, count)


def recipe_text(kind: str, **fields: Any) -> str:
    """A recipe; fields that are None are left out."""
    words = [kind]
    for name, value in fields.items():
        if value is not None:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            words.append(f"{name}={shown}")
    return " ".join(words)


def signed(seed: int) -> int:
    """The same seed modulo 2^64, as it is written."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)


def ranges_of(ids: Sequence[int]) -> Optional[Ranges]:
    """The runs of consecutive ids; None: there are none, or too many to be written."""
    if isinstance(ids, range) and ids.step == 1:
        return [(ids.start, len(ids))] if len(ids) > 0 else None
    ranges: Ranges = []
    for index in ids:
        if ranges and ranges[-1][0] + ranges[-1][1] == index:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + 1)
        elif len(ranges) == RANGES_MAX:
            return None
        else:
            ranges.append((int(index), 1))
    return ranges or None


def ranges_text(ranges: Ranges) -> str:
    return ",".join(f"{first}+{count}" for first, count in ranges)


def order_crc(ids: Sequence[int]) -> int:
    """CRC-32 of the ids as little-endian uint32."""
    words = array.array("I", ids)
    if sys.byteorder == "big":
        words.byteswap()
    return zlib.crc32(words)
