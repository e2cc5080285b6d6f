"""From what the ranks wrote down to times. Nothing here does I/O.

The *free* loop is the same training loop with its data in memory: it never waits for a store. The
store delivers a share of what the ranks read in the free loop. So a loop that reads all bytes from
it takes 1 / share times the time of the free loop, and no loop takes less than that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from harness.job import EpochRecord

Records = Sequence[Sequence[EpochRecord]]  # by rank and epoch
Epoch = TypeVar("Epoch")


@dataclass(frozen=True)
class Times:
    """Of the epochs after the first, but for `epoch_seconds`."""

    epoch_seconds: tuple[float, ...]  # of all epochs
    waiting_share: float  # of the time, that in which the GPUs wait for a batch
    longest_wait_seconds: float


def warm(epochs: Sequence[Epoch]) -> Sequence[Epoch]:
    """Those after the first, which finds an empty cache. With a single epoch, that one."""
    return epochs[1:] or epochs


def times_of(records: Records) -> Times:
    epochs = list(zip(*records, strict=True))
    seconds = tuple(
        max(record.ended for record in ranks) - min(record.began for record in ranks)
        for ranks in epochs
    )
    waits = [wait for ranks in warm(epochs) for wait in _waits(ranks)]
    return Times(seconds, sum(waits) / sum(warm(seconds)), max(waits))


def _waits(ranks: Sequence[EpochRecord]) -> Iterator[float]:
    """Of each step, the longest wait of any rank: the others wait for that rank."""
    return map(max, zip(*(record.waits for record in ranks), strict=True))


def epoch_seconds(times: Times) -> float:
    return fmean(warm(times.epoch_seconds))


def store_factor(epoch_bytes: float, total_bytes: int, store_share: float) -> float:
    """The time that the store needs for an epoch's bytes, in epochs of the free loop.

    That is bytes / (bandwidth * free time), and the bandwidth is share * total bytes / free time.
    """
    return epoch_bytes / (store_share * total_bytes)


def limit(store_factor: float) -> float:
    """The least time of an epoch, in epochs of the free loop: both compute and store bound it."""
    return max(1.0, store_factor)
