"""The arithmetic of the benchmarks' table: verdicts, intervals, and the figures of a demo.json."""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import demo  # noqa: E402
from bench.context import Context  # noqa: E402
from bench.figures import Figure, at_least, at_most, ratio_interval, table  # noqa: E402
from harness.errors import HarnessError  # noqa: E402
from report import Free, PolicyResult, Setup, write_json  # noqa: E402
from timing import Times  # noqa: E402


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (Figure("no goal", 5.0), ""),
        (Figure("equal is enough", 1.0, goal=at_most(1.0)), "met"),
        (Figure("equal is enough", 1.0, goal=at_least(1.0)), "met"),
        (Figure("above", 1.01, goal=at_most(1.0)), "not met"),
        (Figure("below", 0.98, goal=at_least(0.99)), "not met"),
        (Figure("all below", 0.9, goal=at_most(1.0), interval=(0.8, 0.99)), "met"),
        (Figure("reaches over", 0.9, goal=at_most(1.0), interval=(0.8, 1.01)), "not resolved"),
        (Figure("all above", 1.2, goal=at_most(1.0), interval=(1.1, 1.3)), "not met"),
        (Figure("all above", 1.0, goal=at_least(0.99), interval=(0.99, 1.1)), "met"),
        (Figure("reaches under", 1.0, goal=at_least(0.99), interval=(0.98, 1.1)), "not resolved"),
        (Figure("all under", 0.9, goal=at_least(0.99), interval=(0.8, 0.98)), "not met"),
        (Figure("no value", math.nan, goal=at_most(1.0)), "not resolved"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(figure, verdict):
    assert figure.verdict == verdict


def test_a_ratio_is_that_of_the_pairs_whatever_both_drift_by():
    speed = [1.0, 10.0, 0.1, 3.0]
    ratio, (low, high) = ratio_interval([0.98 * s for s in speed], speed)
    assert (ratio, low, high) == pytest.approx((0.98, 0.98, 0.98))


def test_the_interval_is_students_for_the_logarithms():
    # 20 pairs whose logarithms have mean 0 and standard deviation 1: half is 2.0930 / sqrt(20).
    logs = [1.0, -1.0] * 10
    spread = statistics.stdev(logs)
    _, (low, high) = ratio_interval([math.exp(x / spread) for x in logs], [1.0] * 20)
    assert math.log(high) == pytest.approx(2.0930 / math.sqrt(20), abs=1e-4)
    assert math.log(low) == pytest.approx(-math.log(high))


def test_nineteen_of_twenty_intervals_hold_the_truth():
    generator = random.Random(7)
    held = 0
    for _ in range(2000):
        ours = [math.exp(generator.gauss(0.1, 0.3)) for _ in range(6)]
        _, (low, high) = ratio_interval(ours, [1.0] * 6)
        held += low <= math.exp(0.1) <= high
    assert 0.93 < held / 2000 < 0.97


def test_the_table_has_aligned_columns_and_says_what_became_of_each_goal():
    lines = table(
        [
            Figure("a", 12.345, "ns", "other 40 ns", at_most(37)),
            Figure("longer name", 0.97, "", "", at_least(0.99), (0.95, 0.995)),
        ]
    ).splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["a", "12.3", "ns", "<=", "37", "met", "other", "40", "ns"],
        ["longer", "name", "0.9700", "0.9500", "to", "0.9950", ">=", "0.99", "not", "resolved"],
    ]
    assert lines[0].index("goal") == lines[2].index("<=") == lines[3].index(">=")


def test_what_has_no_value_is_null_in_json():
    document = Figure("x", math.nan, goal=at_most(1)).document()
    assert json.loads(json.dumps(document))["value"] is None


FREE = Free(Times((9.0, 8.0), 0.01, 0.02), cores_used=1.3)
SETUP = Setup(
    scene="one",
    samples=1000,
    total_bytes=1000,
    capacity_bytes=300,
    resident_bytes=310,
    epochs=2,
    first_epoch=1,
    jobs=1,
    ranks=2,
    nodes=2,
    cores=2,
    step_seconds=0.03,
    free=FREE,
)
OPTIMAL = PolicyResult(
    name="Optimal",
    store_share=0.7,
    times=Times((11.0, 8.5), 0.05, 0.6),
    epoch_link_bytes=714,
    cores_used=1.5,
    store_requests=705,
    second_requests=5,
    store_bytes=1004,
    bound_bytes=1000,
    bound_all_bytes=1010,
    planned_store_bytes=1003,
    hit_ratio_predicted=0.306,
    hit_ratio_observed=0.3,
    hit_ratio_by_tenth=(0.30, *[0.32] * 8, 0.34),
    requests_by_progress=(0, 700),
    moved_bytes=0,
    delivered=1000,
    mismatches=2,
    order_equal=False,
)


def test_the_demos_figures_are_those_of_its_policy_optimal():
    lru = replace(OPTIMAL, name="LRU", store_bytes=1300)
    figures = demo.figures_of(SETUP, [lru, OPTIMAL])[-6:]
    assert [(round(figure.value, 6), figure.verdict) for figure in figures] == [
        (1.004, "met"),
        (round(1004 / 1003, 6), "met"),
        (round(1004 / 1010, 6), "not met"),  # less than is possible
        (0.006, "not met"),
        (0.04, "not met"),
        (3, "not met"),
    ]
    assert figures[0].peer == "LRU 1.3000"


def test_the_demos_times_are_held_against_the_slower_of_compute_and_store():
    none = replace(OPTIMAL, name="None", epoch_link_bytes=1000, times=Times((9.0, 12.0), 0.3, 0.7))
    pin = replace(OPTIMAL, name="Pin")
    wide = replace(OPTIMAL, store_share=0.75, times=Times((11.0, 8.2), 0.02, 0.6))
    figures = demo.figures_of(SETUP, [none, pin, OPTIMAL, wide])[:-6]
    assert [(round(figure.value, 4), figure.verdict) for figure in figures] == [
        (0.65, "not met"),
        (1.05, "met"),  # 12 s beside 8 s / 0.7
        (1.0417, ""),
        (1.0417, "not met"),  # 8.5 s beside 8 s * 0.714 / 0.7
        (0.6, ""),
        (1.025, "met"),  # 8.2 s beside the 8 s of compute
        (0.6, "not met"),
    ]
    assert figures[1].name == "demo: epoch / max(compute, store), None, store 0.70"
    assert figures[1].peer.startswith("epoch 1.500, store 1.429 of")


def test_a_sweeps_figures_are_held_against_theory_and_min():
    setup = replace(SETUP, scene="sweep", jobs=4, ranks=1, nodes=1)
    pin = replace(OPTIMAL, name="Pin", store_bytes=1800)
    # The first epoch takes 11 s: it finds an empty cache, and the limit is that of the others.
    optimal = replace(OPTIMAL, epoch_link_bytes=2000, times=Times((11.0, 8.2), 0.05, 0.6))
    figures = demo.figures_of(setup, [pin, optimal])
    assert [(round(figure.value, 4), figure.verdict) for figure in figures] == [
        (0.65, "not met"),
        (1.0625, ""),  # Pin: 8.5 s beside 8 s of compute
        (1.025, "met"),
        (1.004, "met"),
        (0.006, "met"),
        (3, "not met"),
    ]
    assert figures[3].peer == "Pin 1.8000"
    assert "Pin 0.300 and 0.306" in figures[4].peer


# What it does of the demo: it takes the arguments, and may write what the demo writes.
STAND_IN = """
import pathlib, shutil, sys
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
print("rank 0 is stuck", file=sys.stderr)
for file in sorted(pathlib.Path(__file__).with_name("made").glob("*.json")):
    shutil.copy(file, out)
sys.exit({status})
"""


def figures_of_a_run(tmp_path: Path, monkeypatch, status: int, *made: str) -> tuple[list[Figure], str]:
    """Of a demo that writes these files and ends with this status, after an earlier run; what is said."""
    (tmp_path / "made").mkdir()
    for name in made:
        write_json(SETUP, [OPTIMAL], tmp_path / "made" / f"{name}.json")
    program = tmp_path / "demo.py"
    program.write_text(STAND_IN.format(status=status))
    monkeypatch.setattr(demo, "PROGRAM", program)
    out, folder, said = tmp_path / "out", tmp_path / "folder", []
    out.mkdir()
    folder.mkdir()
    for name in ("demo", "sweep"):
        write_json(SETUP, [OPTIMAL], out / f"{name}.json")
        (out / f"{name}.png").touch()
    figures = demo.run(Context(tmp_path, folder, out, quick=False, say=said.append))
    assert not list(out.glob("*.png"))
    return figures, "".join(said)


@pytest.mark.parametrize("made", [(), ("demo",), ("demo", "sweep")])
def test_of_a_demo_that_failed_only_the_failure_is_told(tmp_path: Path, monkeypatch, made):
    figures, said = figures_of_a_run(tmp_path, monkeypatch, 1, *made)
    assert [(figure.name, figure.verdict) for figure in figures] == [("demo: failed checks", "not met")]
    assert "status 1" in said and "rank 0 is stuck" in said


def test_of_a_demo_that_ended_well_both_scenes_are_told(tmp_path: Path, monkeypatch):
    figures, said = figures_of_a_run(tmp_path, monkeypatch, 0, "demo", "sweep")
    names = [figure.name for figure in figures]
    assert names.count("demo: store bytes / bound") == 2  # the stand-in's scenes are of one job
    assert names[-2:] == ["demo: failed checks", "demo: whole time"]
    assert figures[-2].verdict == figures[-1].verdict == "met" and said == ""


def test_output_that_is_no_json_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "bench_talkative"
    program.write_text("#!/bin/sh\necho 2026-11-27 warning source refused\necho '[]'\n")
    program.chmod(0o755)
    context = Context(tmp_path, tmp_path, tmp_path, quick=True, say=lambda words: None)
    with pytest.raises(HarnessError, match=r"bench_talkative .*JSON.*: 2026-11-27 warning source"):
        context.ask("bench_talkative")
