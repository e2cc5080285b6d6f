"""The demo's arithmetic, on logs and deliveries small enough to count by hand."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

import accounting  # noqa: E402
from accounting import Delivery  # noqa: E402

PATHS = ["a/1.png", "a/two words.png", "b/ü.png"]
LOG = """\
10.000 HEAD 200 0 /a/1.png
10.500 GET 200 999 /listing.txt
12.000 GET 200 20 /a/two words.png
11.000 GET 206 10 /a/1.png
13.000 GET 404 5 /b/\\xC3\\xBC.png
"""


def delivery(time: float, sample: int, epoch: int = 0, place: float = 0.0) -> Delivery:
    return Delivery(time, epoch, place, sample)


def test_log_lines_are_parsed_with_blanks_and_escapes_in_paths():
    requests = accounting.parse_access_log(LOG)
    assert requests[2] == accounting.Request(12.0, "GET", 200, 20, "a/two words.png")
    assert requests[4].path == "b/ü.png"
    assert requests[0].method == "HEAD"


def test_only_gets_of_samples_count_and_failed_ones_too():
    reads = accounting.sample_reads(accounting.parse_access_log(LOG), PATHS)
    assert reads == [(11.0, 0, 10), (12.0, 1, 20), (13.0, 2, 5)]
    assert accounting.store_reads(reads) == accounting.StoreReads(requests=3, body_bytes=35)


def test_a_get_belongs_to_the_first_delivery_after_it():
    deliveries = [delivery(5, 0), delivery(15, 0), delivery(25, 0), delivery(15, 1)]
    missed = accounting.find_misses([(10.0, 0, 1)], deliveries)
    assert missed == [False, True, False, False]


def test_a_second_get_before_a_delivery_is_for_the_next_one():
    reads = [(10.0, 0, 1), (11.0, 0, 1)]
    deliveries = [delivery(15, 0), delivery(25, 0), delivery(35, 0)]
    assert accounting.find_misses(reads, deliveries) == [True, True, False]


def test_a_get_that_no_delivery_follows_makes_no_miss():
    assert accounting.find_misses([(16.0, 0, 1)], [delivery(15, 0)]) == [False]


def test_deliveries_need_not_be_in_order_of_time():
    missed = accounting.find_misses([(1.0, 7, 1)], [delivery(30, 7), delivery(20, 7)])
    assert missed == [False, True]


def test_hit_ratio_by_tenth_leaves_out_the_first_epoch():
    deliveries = [
        delivery(1, 0, epoch=0, place=0.0),
        delivery(2, 1, epoch=1, place=0.05),
        delivery(3, 2, epoch=1, place=0.09),
        delivery(4, 3, epoch=1, place=0.95),
        delivery(5, 4, epoch=1, place=1.0),
    ]
    tenths = accounting.hit_ratio_by_tenth(deliveries, [False, True, False, False, False])
    assert tenths == [0.5] + [0.0] * 8 + [1.0]


def test_hit_ratio_of_a_single_epoch_is_of_that_epoch():
    tenths = accounting.hit_ratio_by_tenth([delivery(1, 0, place=0.0)], [False])
    assert tenths[0] == 1.0


def test_requests_by_progress_end_with_all_requests():
    deliveries = [delivery(float(time), time) for time in range(1, 21)]
    reads = [(0.5 + step, step, 1) for step in range(20)] + [(99.0, 0, 1)]
    counts = accounting.requests_by_progress(reads, deliveries, epochs=1)
    assert counts == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 21]


@pytest.mark.parametrize(
    ("cached", "epochs", "expected"),
    [(30, 5, 100 + 4 * 70), (0, 3, 300), (100, 9, 100), (130, 9, 100)],
)
def test_bound(cached: int, epochs: int, expected: int):
    assert accounting.bound_bytes(100, cached, epochs) == expected


def test_predicted_hit_ratios():
    assert accounting.predicted_hit_ratio("Pin", 0.3, 5) == pytest.approx(0.24)
    lru = 0.3 + 0.7 * math.log(0.7)
    assert accounting.predicted_hit_ratio("LRU", 0.3, 5) == pytest.approx(0.8 * lru)
    assert accounting.predicted_hit_ratio("LRU", 1.0, 2) == 0.5
    assert accounting.predicted_hit_ratio("None", 0.3, 5) == 0
