"""Which runs the demo makes, and what a rank writes down of its waits."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

import demo  # noqa: E402
import experiment  # noqa: E402
from dataset import every_second, open_dataset  # noqa: E402
from experiment import Counts, Run  # noqa: E402
from harness import rank  # noqa: E402
from harness.dataset import Dataset  # noqa: E402
from harness.job import EpochRecord, Job  # noqa: E402
from jobs import Jobs  # noqa: E402
from report import Free, Setup  # noqa: E402
from timing import Times  # noqa: E402


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


def test_every_second_image_is_one_by_torchvision_too(tmp_path: Path):
    for name in ("a/1.png", "a/2.png", "b/3.png", "c/4.png", "c/5.png"):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_bytes(b"x" * int(name[2]))
    half = every_second(open_dataset(tmp_path / "all"), tmp_path / "half")
    assert (half.root, half.paths) == (tmp_path / "half", ("a/2.png", "c/4.png"))
    assert half.sizes == (2, 4)


def test_a_sample_is_right_if_its_bytes_are():
    digests = b"".join(hashlib.sha256(data).digest() for data in (b"first", b"second"))
    assert rank.checked(1, b"second", digests)[:2] == (1, True)
    assert rank.checked(1, memoryview(b"first"), digests)[:2] == (1, False)


def test_jobs_differ_by_rank_and_write_to_their_folder(tmp_path: Path):
    data = Dataset(tmp_path, ("a.png", "b.png"), (1_000_000, 1_000_000))
    given = dict(programs=tmp_path, folder=tmp_path, machines=2, epochs=3, batch=4, seed=5)
    first, second = Jobs(dataset=data, **given).jobs(tmp_path / "run")
    assert second == replace(first, rank=1, records=str(tmp_path / "run" / "records-1.json"))
    assert (first.world, first.epochs, first.batch, first.seed, first.passes) == (2, 3, 4, 5, 0)
    trial = experiment.Experiment(dataset=data, store=None, link=None, **given)
    assert trial.jobs(tmp_path / "run")[0] == replace(
        first, passes=3, step_seconds=experiment.STEP_SECONDS
    )


SETUP = Setup(
    samples=2,
    total_bytes=100,
    capacity_bytes=30,
    resident_bytes=38,
    epochs=2,
    ranks=1,
    nodes=1,
    cores=2,
    step_seconds=0.0,
    free=Free(Times((8.0, 8.0), 0.0, 0.0), 0.5),
)


def test_figures_of_a_run_are_made_of_what_it_left_behind():
    epochs = [
        EpochRecord(began=began, ended=began + 10, samples=[0, 1], times=[began + 1] * 2, waits=[2.0])
        for began in (100.0, 110.0)
    ]
    run = Run(
        records=[epochs],
        counts=[Counts(100.0, 1.0, 0), Counts(110.0, 9.0, 140), Counts(120.0, 17.0, 210)],
        nodes=[{"optcache_moved_bytes_total": 7.0}],
        sidecars=[{"optcache_store_hedges_total": 1.0}, {}],
        reads=[(100.5, 0, 60), (100.6, 1, 40), (110.5, 1, 40), (110.6, 1, 40)],
        order_equal=True,
    )
    result = experiment._figures("LRU", 0.7, SETUP, run)
    assert (result.epoch_link_bytes, result.cores_used, result.moved_bytes) == (70, 0.8, 7)
    assert (result.store_requests, result.second_requests, result.store_bytes) == (4, 1, 180)
    assert result.hit_ratio_observed == 0.25  # three misses of four
    assert result.times == Times((10.0, 10.0), 0.2, 2.0)
    assert (result.bound_bytes, result.bound_all_bytes) == (170, 162)


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
