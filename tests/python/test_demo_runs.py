"""Which runs the demo makes, and what a rank writes down of its waits."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import demo  # noqa: E402
from experiment import Counts, Run  # noqa: E402
from harness import rank  # noqa: E402
from harness.job import Job  # noqa: E402


@pytest.mark.parametrize(
    ("policies", "quick", "runs"),
    [
        (["None", "Optimal"], False, [("None", 0.70), ("Optimal", 0.70), ("Optimal", 0.75)]),
        (["Optimal"], True, [("Optimal", 0.70)]),
        (["LRU"], False, [("LRU", 0.70)]),
    ],
)
def test_optimal_runs_once_more_with_a_wider_store(policies, quick: bool, runs):
    assert demo.runs(argparse.Namespace(policies=policies, quick=quick)) == runs


def test_what_is_counted_begins_after_the_first_epoch():
    counts = [Counts(10.0, 5.0, 0), Counts(20.0, 9.0, 100), Counts(30.0, 21.0, 170)]
    began, ended = Run([], counts).warm
    assert (began, ended) == (counts[1], counts[2])
    assert ended.cores_since(began) == 1.2
    assert Run([], counts[:2]).warm == (counts[0], counts[1])  # there is no second epoch


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Loader:
    """Two batches, which take 3 s and 1 s to come."""

    sampler = SimpleNamespace(set_epoch=lambda epoch: None)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def __iter__(self) -> Iterator[list[torch.Tensor]]:
        for seconds, sample in ((3.0, 7), (1.0, 8)):
            self._clock.sleep(seconds)
            right, time = torch.tensor([sample == 7]), torch.tensor([self._clock.now])
            yield [torch.zeros(1), torch.tensor([sample]), right, time]


def test_a_rank_waits_for_its_batches_and_not_for_its_own_work(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(rank, "time", clock)
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda mean: clock.sleep(0.5))
    job = Job(0, 1, 1, 1, 0, digests="", rendezvous="", records="", step_seconds=10.0)
    record = rank._read_epoch(job, Loader(clock), 0)
    assert record.waits == [3.0, 1.0]
    assert (record.began, record.ended) == (100.0, 125.0)
    assert (record.samples, record.mismatches) == ([7, 8], [8])
    assert capsys.readouterr().out == "0 0\n0 1\n"
