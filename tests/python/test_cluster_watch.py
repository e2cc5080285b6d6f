"""What the cluster's cases read from `kubectl get cacheplan -w`, while it still writes."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")

from cluster.plan_watch import column, objects_of, rows_of, steps_of  # noqa: E402
from cluster.rollouts import Moment  # noqa: E402

LINES = """\
NAME     DATASET   RETENTION   AVAILABLE   PHASE      ACTIVE   NODES   REASON      AGE
images   images    Pin         True        Complete   3        3       Complete    1m
images   images    Optimal     True        Prepare    0        3       Preparing   1m
images   images    Optimal     True        Prepare    0        3       Paused
images   images    Optimal     True        Act"""


def test_alike_rows_are_one_step_and_half_a_line_is_none() -> None:
    assert steps_of(rows_of(LINES)) == [("Complete", 3), ("Prepare", 0)]
    assert column(rows_of(LINES), "REASON") == ["Complete", "Preparing", "Paused"]


def plan(generation: int, phase: str) -> str:
    nodes = {"prepared": 3, "active": 1}
    jobs = [{"name": "a/b/c/train", "pass": 7}]
    status = {"observedGeneration": 2, "rollout": {"phase": phase}, "nodes": nodes, "jobs": jobs}
    return json.dumps({"metadata": {"generation": generation}, "status": status}, indent=2)


def test_objects_follow_one_another_and_the_last_may_be_half() -> None:
    text = f"{plan(2, 'Prepare')}\n{plan(3, 'Prepare')}\n{plan(2, 'Activate')[:-10]}"
    first, unseen = map(Moment.of, objects_of(text))
    assert first == Moment("Prepare", 3, 1, "", (("a/b/c/train", 7),))
    assert unseen is None
