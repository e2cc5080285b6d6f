"""The benchmark of files that do not fit into memory: its arithmetic, and how it finds its group."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

pytest.importorskip("torch")

from bench.page_cache import Outcome, figures_of, outcome_of  # noqa: E402
from harness.cgroup import own_group  # noqa: E402
from harness.errors import HarnessError  # noqa: E402


def epoch(first: float, last: float) -> list[float]:
    """Of 100 samples: seconds between those of the first and of the last tenth, and 1 s else."""
    times = [0.0]
    for number in range(1, 100):
        times.append(times[-1] + (first if number <= 10 else last if number >= 90 else 1.0))
    return times


def test_the_pace_is_that_of_the_worst_warm_epoch():
    epochs = [epoch(1, 9), epoch(1, 2), epoch(1, 4), epoch(1, 1)]
    outcome = outcome_of(epochs, reads=100 + 3 * 25, cached_bytes=10, data_bytes=40)
    assert outcome == Outcome(pace=0.25, hits=0.75, cached=0.25)


@pytest.mark.parametrize(
    ("ours", "verdicts"),
    [
        (Outcome(pace=0.96, hits=0.745, cached=0.1), ["met", "met", ""]),
        (Outcome(pace=0.94, hits=0.735, cached=0.1), ["not met", "not met", ""]),
    ],
)
def test_figures_are_held_against_their_goals(ours: Outcome, verdicts: list[str]):
    figures = figures_of(ours, Outcome(pace=0.5, hits=0.75, cached=0.9))
    assert [figure.verdict for figure in figures] == verdicts
    assert [figure.peer.split()[0] for figure in figures] == ["0.500", "0.750", "0.900"]


def test_the_group_of_a_process_is_found_in_either_version():
    hybrid = "9:name=systemd:/\n4:cpu,memory:/a/b:c\n0::/d\n"
    assert own_group(hybrid, "memory") == "a/b:c"
    assert own_group(hybrid, "") == "d"
    assert own_group("0::/\n", "") == ""
    with pytest.raises(HarnessError, match="no control group 'memory'"):
        own_group("0::/d\n", "memory")
