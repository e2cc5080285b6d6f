"""The demo's table, demo.json and picture, of results that are made up."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

import report  # noqa: E402
from harness.errors import HarnessError  # noqa: E402
from timing import Times  # noqa: E402

SETUP = report.Setup(
    scene="one",
    samples=3,
    total_bytes=100_000_000,
    capacity_bytes=30_000_000,
    resident_bytes=32_000_000,
    epochs=3,
    first_epoch=1,
    jobs=1,
    ranks=2,
    nodes=2,
    cores=2,
    step_seconds=0.035,
    free=report.Free(Times((9.0, 8.0, 8.0), 0.01, 0.02), cores_used=0.8),
)
RESULT = report.PolicyResult(
    name="Optimal",
    store_share=0.7,
    times=Times((11.5, 9.0, 8.6), 0.0987, 0.25),
    epoch_link_bytes=77_000_000,
    cores_used=1.04,
    store_requests=1234567,
    second_requests=0,
    store_bytes=240_000_000,
    bound_bytes=240_000_000,
    bound_all_bytes=236_000_000,
    planned_store_bytes=240_000_001,
    hit_ratio_predicted=0.15,
    hit_ratio_observed=1 / 7,
    hit_ratio_by_tenth=(0.25, *[0.3] * 8, 0.35),
    requests_by_progress=tuple(range(31)),
    moved_bytes=5_000_000,
    delivered=8,
    mismatches=0,
    order_equal=True,
)
LRU = replace(RESULT, name="LRU", store_bytes=268_224_000)
SWEEP = replace(SETUP, scene="sweep", jobs=4, ranks=1, nodes=1)


def test_times_are_those_of_the_epochs_after_the_first():
    assert SETUP.demand == 12_500_000
    assert report.time_factor(SETUP, RESULT) == pytest.approx(8.8 / 8.0)
    assert report.store_factor(SETUP, RESULT) == pytest.approx(0.77 / 0.7)


def test_table_lines_up():
    text = report.table(SETUP, [LRU, RESULT])
    heading, _, lru, optimal = text.split("\n\n")[0].splitlines()
    assert len({len(line) for line in (heading, lru, optimal)}) == 1
    assert lru.startswith("LRU, store 0.70 ") and "1.1176" in lru
    factors = ["1.10", "1.10", "1.00", "9.9%", "0.25"]
    assert optimal.split()[3:] == [*factors, "1,234,567", "240.0", "1.0000", "0.150", "0.143"]


def test_the_limit_is_never_below_the_free_loop():
    row = report.table(SETUP, [replace(RESULT, epoch_link_bytes=35_000_000)]).splitlines()[2]
    assert row.split()[3:6] == ["1.10", "0.50", "1.10"]


def test_table_explains_what_it_compares_with():
    text = report.table(SETUP, [RESULT, replace(LRU, cores_used=1.23)])
    assert "takes 8.00 s an epoch: the ranks read 12.5 MB/s" in text
    assert "use 0.80 of 2 cores (with the cache at most 1.23)" in text
    assert max(map(len, text.splitlines())) <= 130


def test_times_of_a_sweep_are_of_all_jobs():
    assert SWEEP.demand == 50_000_000
    assert report.time_factor(SWEEP, RESULT) == pytest.approx(8.8 / 8.0)
    assert report.store_factor(SWEEP, RESULT) == pytest.approx(77 / 400 / 0.7)
    assert report.limit_factor(SWEEP, RESULT) == pytest.approx(8.8 / 8.0)


def test_times_of_all_epochs_are_told_as_such():
    every = replace(SWEEP, first_epoch=0)  # as earlier versions have counted
    assert report.time_factor(every, RESULT) == pytest.approx(29.1 / 25.0)
    assert "epoch/free: an epoch, in epochs with" in report.table(every, [RESULT])
    assert "epoch/free: an epoch after the first, in" in report.table(SWEEP, [RESULT])
    assert "the time of an epoch after the first" in report.table(SETUP, [RESULT])


def test_the_table_of_a_sweep_has_theory_beside_what_was_measured():
    text = report.table(SWEEP, [replace(LRU, store_share=0.5), replace(RESULT, store_share=0.5)])
    heading, _, _, optimal = text.split("\n\n")[0].splitlines()
    assert heading.split("  ")[-5:] == ["read MB", "theory MB", "read/bound", "predicted", "hit ratio"]
    assert optimal.split() == [
        *("Optimal", "29.1", "1.10", "0.39", "1.10", "9.9%"),
        *("1,234,567", "240.0", "240.0", "1.0000", "0.150", "0.143"),
    ]
    assert "The store delivers 50% of that, 25.0 MB/s" in text
    assert "in each of 3 epochs" in text and "4 jobs run at the same time" in text
    assert max(map(len, text.splitlines())) <= 140


def test_table_tells_of_second_requests():
    late = [replace(RESULT, second_requests=1000), replace(LRU, second_requests=2)]
    assert "1,002 requests were second ones" in report.table(SETUP, late)
    assert "second" not in report.table(SETUP, [RESULT])


def test_table_explains_a_ratio_below_one():
    assert "Below 1" in report.table(SETUP, [replace(RESULT, store_bytes=239_000_000)])
    assert "Below 1" not in report.table(SETUP, [RESULT])


def test_json_has_the_documented_fields(tmp_path: Path):
    report.write_json(SETUP, [RESULT], tmp_path / "demo.json")
    document = json.loads((tmp_path / "demo.json").read_text())
    (policy,) = document.pop("policies")
    assert document == {
        "scene": "one",
        "samples": 3,
        "totalBytes": 100_000_000,
        "capacityBytes": 30_000_000,
        "residentBytes": 32_000_000,
        "epochs": 3,
        "firstEpoch": 1,
        "jobs": 1,
        "ranks": 2,
        "nodes": 2,
        "cores": 2,
        "stepSeconds": 0.035,
        "free": {
            "times": {
                "epochSeconds": [9.0, 8.0, 8.0],
                "waitingShare": 0.01,
                "longestWaitSeconds": 0.02,
            },
            "coresUsed": 0.8,
        },
        "source": "http",
    }
    assert policy == {
        "name": "Optimal",
        "storeShare": 0.7,
        "times": {
            "epochSeconds": [11.5, 9.0, 8.6],
            "waitingShare": 0.0987,
            "longestWaitSeconds": 0.25,
        },
        "epochLinkBytes": 77_000_000,
        "coresUsed": 1.04,
        "storeRequests": 1234567,
        "secondRequests": 0,
        "storeBytes": 240_000_000,
        "boundBytes": 240_000_000,
        "boundAllBytes": 236_000_000,
        "plannedStoreBytes": 240_000_001,
        "hitRatioPredicted": 0.15,
        "hitRatioObserved": 0.142857,
        "hitRatioByTenth": [0.25, *[0.3] * 8, 0.35],
        "requestsByProgress": list(range(31)),
        "movedBytes": 5_000_000,
        "delivered": 8,
        "mismatches": 0,
        "orderEqual": True,
    }


def test_what_is_read_back_is_what_was_written(tmp_path: Path):
    results = [replace(RESULT, hit_ratio_observed=0.125), replace(LRU, hit_ratio_observed=0.25)]
    report.write_json(SETUP, results, tmp_path / "demo.json")
    assert report.read_json(tmp_path / "demo.json") == (SETUP, results)


def test_the_table_names_a_bucket(tmp_path: Path):
    bucket = replace(SETUP, source="s3")
    assert "The store is versitygw" in report.table(bucket, [RESULT])
    assert "versitygw" not in report.table(SETUP, [RESULT])
    written = tmp_path / "demo.json"
    report.write_json(bucket, [RESULT], written)
    assert report.read_json(written)[0] == bucket
    document = json.loads(written.read_text())
    del document["source"]  # as earlier versions have written it
    written.write_text(json.dumps(document))
    assert report.read_json(written)[0] == SETUP


@pytest.mark.parametrize("lacks", ["free", "policies", "stepSeconds"])
def test_results_of_another_version_are_refused_by_name(tmp_path: Path, lacks: str):
    written = tmp_path / "demo.json"
    report.write_json(SETUP, [RESULT], written)
    document = json.loads(written.read_text())
    del document[lacks]
    written.write_text(json.dumps(document))
    with pytest.raises(HarnessError, match=r"demo\.json is of another version of the demo .*run \./dev demo again"):
        report.read_json(written)


def test_the_picture_names_the_epochs_whose_time_it_shows():
    pytest.importorskip("matplotlib")
    import picture

    assert picture.epochs_counted(SWEEP) == " (epochs 2 on)"
    assert picture.epochs_counted(replace(SWEEP, first_epoch=0)) == ""


def test_picture_is_a_png_for_any_subset_of_policies(tmp_path: Path):
    pytest.importorskip("matplotlib")
    import picture

    wider = replace(RESULT, store_share=0.75)
    for setup, results in (
        (SETUP, [LRU]),
        (SETUP, [LRU, RESULT, wider]),
        (SWEEP, [LRU]),
        (SWEEP, [LRU, RESULT]),
    ):
        picture.draw(setup, results, tmp_path / "demo.png")
        assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
