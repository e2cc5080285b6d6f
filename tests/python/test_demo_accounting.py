"""The demo's arithmetic, on logs and deliveries small enough to count by hand."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

import accounting  # noqa: E402
import report  # noqa: E402
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


SETUP = report.Setup(
    samples=3, total_bytes=100, capacity_bytes=30, resident_bytes=32, epochs=2, ranks=4, nodes=4
)


def result(name: str, store_bytes: int) -> report.PolicyResult:
    return report.PolicyResult(
        name=name,
        store_requests=1234567,
        store_bytes=store_bytes,
        bound_bytes=170,
        bound_all_bytes=168,
        planned_store_bytes=171,
        hit_ratio_predicted=0.15,
        hit_ratio_observed=1 / 7,
        hit_ratio_by_tenth=(0.25, *[0.3] * 8, 0.35),
        requests_by_progress=tuple(range(21)),
        moved_bytes=5_000_000,
        epoch_seconds=(1.0, 2.0),
        delivered=8,
        mismatches=0,
        order_equal=True,
    )


def test_table_lines_up():
    text = report.table(SETUP, [result("Optimal", 170), result("LRU", 190)])
    lines = text.split("\n\n")[0].splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[2].startswith("Optimal ") and "1,234,567" in lines[2] and "1.0000" in lines[2]
    assert "1.1176" in lines[3]


def test_table_explains_a_ratio_below_one():
    assert "Below 1" in report.table(SETUP, [result("Optimal", 169)])
    assert "Below 1" not in report.table(SETUP, [result("Optimal", 170)])


def test_json_has_the_documented_fields(tmp_path: Path):
    report.write_json(SETUP, [result("Pin", 170)], tmp_path / "demo.json")
    document = json.loads((tmp_path / "demo.json").read_text())
    assert {key: document[key] for key in list(document)[:-1]} == {
        "samples": 3,
        "totalBytes": 100,
        "capacityBytes": 30,
        "residentBytes": 32,
        "epochs": 2,
        "ranks": 4,
        "nodes": 4,
    }
    assert document["policies"] == [
        {
            "name": "Pin",
            "storeRequests": 1234567,
            "storeBytes": 170,
            "boundBytes": 170,
            "boundAllBytes": 168,
            "plannedStoreBytes": 171,
            "hitRatioPredicted": 0.15,
            "hitRatioObserved": 0.142857,
            "hitRatioFirstTenth": 0.25,
            "hitRatioLastTenth": 0.35,
            "movedBytes": 5_000_000,
            "epochSeconds": [1.0, 2.0],
            "delivered": 8,
            "mismatches": 0,
            "orderEqual": True,
        }
    ]


def test_picture_is_a_png_for_any_subset_of_policies(tmp_path: Path):
    pytest.importorskip("matplotlib")
    import picture

    picture.draw(SETUP, [result("LRU", 170)], tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
