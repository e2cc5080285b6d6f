"""What theory says of a run of the demo, of numbers small enough to count by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

import theory  # noqa: E402
from accounting import Delivery  # noqa: E402
from harness.oracle import Reads  # noqa: E402
from report import Free, Setup  # noqa: E402
from theory import Theory  # noqa: E402
from timing import Times  # noqa: E402

SETUP = Setup(
    scene="sweep",
    samples=2,
    total_bytes=100,
    capacity_bytes=30,
    resident_bytes=38,
    epochs=2,
    first_epoch=0,
    jobs=2,
    ranks=1,
    nodes=1,
    cores=2,
    step_seconds=0.0,
    free=Free(Times((8.0, 8.0), 0.0, 0.0), 0.5),
)
ORDERS = [[0, 1, 1, 0], [1, 0, 0, 1]]


def of_the_sweep(policy: str) -> Theory:
    # The second job was one sample ahead.
    came = [Delivery(float(2 * at), 0, 0.0, sample) for at, sample in enumerate(ORDERS[0])]
    came += [Delivery(float(2 * at - 3), 0, 0.0, sample) for at, sample in enumerate(ORDERS[1])]
    return theory.of_several_jobs(policy, SETUP, ORDERS, came, (70, 30), Path("optcache"), Path())


def test_jobs_of_one_speed_take_turns():
    assert list(theory.in_turn([[0, 1, 2], [5, 6, 7]])) == [0, 5, 1, 6, 2, 7]


@pytest.mark.parametrize(("policy", "name"), [("Optimal", "min"), ("Pin", "pin"), ("LRU", "lru")])
def test_a_policy_reads_in_turn_and_the_bound_as_the_jobs_came(monkeypatch, policy: str, name: str):
    asked: list[tuple[str, Sequence[int], float]] = []

    def simulated(
        policy: str, program: Path, folder: Path, samples: Sequence[int], sizes, share: float
    ) -> Reads:
        asked.append((policy, samples, share))
        return Reads(6, 100 * len(asked))

    monkeypatch.setattr(theory, "simulated_reads", simulated)
    assert of_the_sweep(policy) == Theory(0.25, 100, 200, 300)
    came = [1, 0, 0, 0, 1, 1, 1, 0]
    assert asked == [(name, [0, 1, 1, 0, 1, 0, 0, 1], 0.3), ("min", came, 0.3), ("min", came, 0.38)]


def test_no_cache_reads_all(monkeypatch):
    monkeypatch.setattr(theory, "simulated_reads", lambda *_: Reads(5, 250))
    assert of_the_sweep("None") == Theory(0.0, 400, 250, 250)


NODE = {
    "optcache_plan_predicted_requests_total": 4.0,
    'optcache_plan_predicted_requests_total{result="miss"}': 3.0,
    'optcache_plan_predicted_request_bytes_total{result="miss"}': 160.0,
}


@pytest.mark.parametrize(
    ("policy", "nodes", "hit_ratio", "store_bytes"),
    [
        ("Optimal", [NODE], 0.25, 160),  # by the plan
        ("Optimal", [{}], 0.15, 170),  # by the closed form
        ("Pin", [NODE], 0.15, 170),
    ],
)
def test_of_one_job_the_plan_tells_and_else_a_closed_form(policy, nodes, hit_ratio, store_bytes):
    assert theory.of_one_job(policy, SETUP, nodes) == Theory(hit_ratio, store_bytes, 170, 162)
