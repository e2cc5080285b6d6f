"""The demo's times, of records small enough to add up by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

import timing  # noqa: E402
from harness.job import EpochRecord  # noqa: E402


def epoch(began: float, ended: float, *waits: float) -> EpochRecord:
    return EpochRecord(began=began, ended=ended, waits=list(waits))


RECORDS = [
    [epoch(0.0, 9.0, 5.0, 1.0), epoch(10.0, 14.0, 0.5, 0.1), epoch(15.0, 19.0, 0.0, 0.0)],
    [epoch(1.0, 10.0, 1.0, 3.0), epoch(10.5, 15.0, 0.2, 0.3), epoch(15.0, 18.0, 0.4, 0.2)],
]


def test_an_epoch_lasts_from_the_first_ranks_begin_to_the_last_ranks_end():
    times = timing.times_of(RECORDS, first=1)
    assert times.epoch_seconds == (10.0, 5.0, 4.0)
    assert timing.epoch_seconds(times, first=1) == 4.5


def test_a_step_waits_as_long_as_its_slowest_rank():
    times = timing.times_of(RECORDS, first=1)
    assert times.waiting_share == pytest.approx((0.5 + 0.3 + 0.4 + 0.2) / 9.0)
    assert times.longest_wait_seconds == 0.5  # that of the first epoch does not count


def test_a_single_epoch_is_not_left_out():
    times = timing.times_of([ranks[:1] for ranks in RECORDS], first=1)
    assert (timing.epoch_seconds(times, first=1), times.longest_wait_seconds) == (10.0, 5.0)
    assert times.waiting_share == pytest.approx(0.8)


# The second job is two epochs ahead in the end: its third begins before the first job's second ends.
JOBS = [
    [epoch(0.0, 10.0, 1.0, 1.0), epoch(10.0, 20.0, 1.0, 1.0), epoch(20.0, 30.0, 2.0, 0.0)],
    [epoch(1.0, 6.0, 0.0, 0.0), epoch(6.0, 11.0, 0.5, 0.0), epoch(11.0, 16.0, 0.0, 0.0)],
]


def test_the_epochs_of_jobs_that_drift_apart_add_up_to_the_time_of_all():
    times = timing.times_of(JOBS, first=0, jobs=2)
    assert sum(times.epoch_seconds) == 30.0
    assert timing.epoch_seconds(times, first=0) == 10.0


def test_jobs_do_not_wait_for_each_other():
    times = timing.times_of(JOBS, first=0, jobs=2)
    assert times.waiting_share == pytest.approx((6.0 + 0.5) / 2 / 30.0)
    assert times.longest_wait_seconds == 2.0
    in_step = timing.times_of([ranks for job in JOBS for ranks in (job, job)], first=0, jobs=2)
    assert in_step.waiting_share == times.waiting_share  # each job has two ranks that wait alike


@pytest.mark.parametrize(
    ("epoch_bytes", "share", "factor", "limit"),
    [(100, 0.7, 1 / 0.7, 1 / 0.7), (70, 0.7, 1.0, 1.0), (70, 0.75, 0.7 / 0.75, 1.0), (0, 0.7, 0, 1)],
)
def test_the_limit_is_the_slower_of_compute_and_store(
    epoch_bytes: int, share: float, factor: float, limit: float
):
    assert timing.store_factor(epoch_bytes, 100, share) == pytest.approx(factor)
    assert timing.limit(factor) == pytest.approx(limit)
