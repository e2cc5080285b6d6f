"""From what the ranks wrote down to times. Nothing here does I/O.

The *free* loop is the same training loop with its data in memory: it never waits for a store. The
store delivers a share of what the ranks read in the free loop. So a loop that reads all bytes from
it takes 1 / share times the time of the free loop, and no loop takes less than that one. Times are
of the epochs that a scene counts, which are those after the first.
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
    """Of the epochs that count, but for `epoch_seconds`."""

    epoch_seconds: tuple[float, ...]  # of all epochs
    waiting_share: float  # of the time, that in which the GPUs wait for a batch
    longest_wait_seconds: float


def counted(epochs: Sequence[Epoch], first: int) -> Sequence[Epoch]:
    """Those from the first one that counts. With fewer epochs than that, all of them."""
    return epochs[first:] or epochs


def times_of(records: Records, first: int, jobs: int = 1) -> Times:
    """Of jobs with equally many ranks, whose records follow each other.

    An epoch lasts from the end of the one before, in all ranks, to its own end in all ranks. So the
    epochs of jobs that drift apart add up to the time of all jobs together.
    """
    epochs = list(zip(*records, strict=True))
    ends = [max(record.ended for record in ranks) for ranks in epochs]
    begins = [min(record.began for record in epochs[0]), *ends[:-1]]
    seconds = tuple(end - begin for begin, end in zip(begins, ends, strict=True))
    waits = [wait for ranks in counted(epochs, first) for wait in _waits(ranks, jobs)]
    return Times(seconds, sum(waits) / jobs / sum(counted(seconds, first)), max(waits))


def _waits(ranks: Sequence[EpochRecord], jobs: int) -> Iterator[float]:
    """Of each step of each job, the longest wait of any rank: the others wait for that rank."""
    of_job = len(ranks) // jobs
    for begin in range(0, len(ranks), of_job):
        waits = (record.waits for record in ranks[begin : begin + of_job])
        yield from map(max, zip(*waits, strict=True))


def epoch_seconds(times: Times, first: int) -> float:
    """The mean of the epochs that count."""
    return fmean(counted(times.epoch_seconds, first))


def store_factor(epoch_bytes: float, total_bytes: int, store_share: float) -> float:
    """The time that the store needs for an epoch's bytes, in epochs of the free loop.

    That is bytes / (bandwidth * free time), and the bandwidth is share * total bytes / free time.
    """
    return epoch_bytes / (store_share * total_bytes)


def limit(store_factor: float) -> float:
    """The least time of an epoch, in epochs of the free loop: both compute and store bound it."""
    return max(1.0, store_factor)
