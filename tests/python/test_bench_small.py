"""The benchmark of small samples: how a hit and a miss are told apart."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.small import Cost, _Look, figures_of  # noqa: E402

PLAIN = {32: Cost(cache=0, ranks=34, workers=28)}
WHOLE = Cost(cache=8, ranks=26, workers=14)
PART = Cost(cache=17.03, ranks=30, workers=16, store_share=0.7)  # 0.3 * 8 + 0.7 * 20.9


def test_each_cost_is_held_against_its_goal():
    figures = figures_of(PLAIN, {(1.0, 32): WHOLE, (0.3, 32): PART}, loop=11.0)
    assert [(figure.value, figure.verdict) for figure in figures] == [
        (8, "met"),
        (pytest.approx(9.9), "met"),
        (14, "met"),
        (1.0, "met"),
        (pytest.approx(47.03 / 34), ""),
    ]


def test_a_miss_costs_what_the_hits_do_not():
    dear = Cost(cache=17.5, ranks=30, workers=16, store_share=0.7)
    figures = figures_of(PLAIN, {(1.0, 32): WHOLE, (0.3, 32): dear}, loop=11.0)
    assert [figure.verdict for figure in figures[:2]] == ["met", "not met"]


def test_costs_are_those_of_the_epochs_after_the_first():
    first = _Look(cache=5.0, ranks=9.0, workers=7.0, delivered=100, from_store=100)
    last = _Look(cache=5.1, ranks=9.4, workers=7.2, delivered=10_100, from_store=7_100)
    cost = first.cost_until(last, samples=10_000)
    assert cost.cache == pytest.approx(10)
    assert (cost.ranks, cost.workers) == (pytest.approx(40), pytest.approx(20))
    assert cost.store_share == pytest.approx(0.7)
