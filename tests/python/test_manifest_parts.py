"""How a manifest cuts samples into parts that fit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from optcache._manifest import Manifest

COUNT_MAX = 3
BYTES_MAX = 4


class Sized(Manifest):
    """Knows the sizes of its samples, and nothing else."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = memoryview(b"".join(size.to_bytes(8, "little") for size in sizes)).cast("Q")


def longest_parts(sizes: Sequence[int]) -> list[int]:
    """How many samples each part has: as many as fit from its begin on, and one at least."""
    if not sizes:
        return []
    fitting = [n for n in range(2, COUNT_MAX + 1) if n <= len(sizes) and sum(sizes[:n]) <= BYTES_MAX]
    length = max(fitting, default=1)
    return [length, *longest_parts(sizes[length:])]


def test_each_part_is_the_longest_that_fits() -> None:
    for count in range(1, 7):
        for sizes in itertools.product((0, 1, 3, 5), repeat=count):
            indices = list(reversed(range(count)))
            parts = list(Sized(sizes[::-1]).parts(indices, COUNT_MAX, BYTES_MAX))
            assert [index for part in parts for index in indices[part]] == indices
            assert [len(indices[part]) for part in parts] == longest_parts(sizes), sizes


def test_nothing_is_one_part() -> None:
    assert list(Sized([]).parts([], COUNT_MAX, BYTES_MAX)) == [slice(0, 0)]
