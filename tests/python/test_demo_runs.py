"""Which runs the demo makes, what its jobs are, and what a rank writes down of its waits."""

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
import no_code_change  # noqa: E402
import scenes  # noqa: E402
from dataset import open_dataset, part_of  # noqa: E402
from experiment import Counts, Run  # noqa: E402
from harness import rank  # noqa: E402
from harness.dataset import Dataset  # noqa: E402
from harness.job import EpochRecord, Job  # noqa: E402
from jobs import Jobs  # noqa: E402
from report import Free, Setup  # noqa: E402
from theory import Theory  # noqa: E402
from timing import Times  # noqa: E402


def chosen(monkeypatch, *words: str) -> argparse.Namespace:
    monkeypatch.setattr(sys, "argv", ["demo", *words])
    return demo.parse_arguments()


def scene(monkeypatch, *words: str) -> scenes.Scene:
    (found,) = scenes.scenes(chosen(monkeypatch, "--scene", *words))
    return found


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (["one"], [("None", 0.70), ("Optimal", 0.70), ("Optimal", 0.75)]),
        (["one", "--quick"], [("Optimal", 0.70)]),
        (["one", "--policies", "LRU"], [("LRU", 0.70)]),
        (["sweep"], [("None", 0.50), ("Optimal", 0.50)]),
        (["sweep", "--quick"], [("Optimal", 0.50)]),
    ],
)
def test_optimal_runs_once_more_with_a_wider_store(monkeypatch, words: list[str], runs):
    arguments = chosen(monkeypatch, "--policies", "None,Optimal", "--scene", *words)
    (found,) = scenes.scenes(arguments)
    assert scenes.runs(found, arguments.policies) == runs


def test_both_scenes_run_unless_one_is_named(monkeypatch):
    assert [it.name for it in scenes.scenes(chosen(monkeypatch))] == ["one", "sweep"]
    assert [(it.epochs, it.batch) for it in scenes.scenes(chosen(monkeypatch))] == [(3, 32), (4, 16)]
    assert [it.epochs for it in scenes.scenes(chosen(monkeypatch, "--quick"))] == [2, 2]


def test_the_jobs_of_a_sweep_are_four_of_one_rank(monkeypatch):
    of = Jobs(None, Path(), Path("x"), scene(monkeypatch, "sweep", "--seed", "7"))
    jobs = of.jobs(Path("x"))
    assert [(job.rank, job.world, job.seed) for job in jobs] == [(0, 1, 7 + it) for it in range(4)]
    assert len({job.records for job in jobs}) == len({job.rendezvous for job in jobs}) == 4
    assert all(job.passes == job.epochs == 4 and not job.decodes for job in jobs)


def test_the_ranks_of_scene_one_are_one_job(monkeypatch):
    of = Jobs(None, Path(), Path("x"), scene(monkeypatch, "one", "--machines", "3"))
    jobs = of.jobs(Path("x"))
    assert [(job.rank, job.world, job.seed) for job in jobs] == [(it, 3, 0) for it in range(3)]
    assert len({job.records for job in jobs}) == 3 and len({job.rendezvous for job in jobs}) == 1


def test_no_scene_counts_the_time_of_the_epoch_that_finds_an_empty_cache(monkeypatch):
    assert [it.first_epoch for it in scenes.scenes(chosen(monkeypatch))] == [1, 1]


def test_what_is_counted_begins_after_the_first_epoch():
    counts = [Counts(10.0, 5.0, 0), Counts(20.0, 9.0, 100), Counts(30.0, 21.0, 170)]
    began, ended = Run([], counts).counted(1)
    assert (began, ended) == (counts[1], counts[2])
    assert ended.cores_since(began) == 1.2
    assert Run([], counts[:2]).counted(1) == (counts[0], counts[1])  # there is no second epoch
    assert Run([], counts).counted(0) == (counts[0], counts[2])


def test_a_part_of_the_images_is_one_by_torchvision_too(tmp_path: Path):
    for name in ("a/1.png", "a/2.png", "b/3.png", "c/4.png", "c/5.png"):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_bytes(b"x" * int(name[2]))
    half = part_of(open_dataset(tmp_path / "all"), 2, tmp_path / "half")
    assert (half.root, half.paths) == (tmp_path / "half", ("a/2.png", "c/4.png"))
    assert half.sizes == (2, 4)
    assert part_of(open_dataset(tmp_path / "all"), 4, tmp_path / "quarter").paths == ("c/4.png",)


def test_a_sample_is_right_if_its_bytes_are():
    digests = b"".join(hashlib.sha256(data).digest() for data in (b"first", b"second"))
    assert rank.checked(1, b"second", digests)[:2] == (1, True)
    assert rank.checked(1, memoryview(b"first"), digests)[:2] == (1, False)


def test_ranks_differ_by_their_number_and_their_records(monkeypatch):
    first, second = Jobs(None, Path(), Path("x"), scene(monkeypatch, "one")).jobs(Path("run"))
    assert second == replace(first, rank=1, records="run/records-0-1.json")


def test_boto3_reads_as_scene_one_does_but_for_its_sleep(monkeypatch):
    one = scene(monkeypatch, "one")
    found = no_code_change.scene(chosen(monkeypatch, "--no-code-change"))
    assert found == replace(one, step_seconds=0.0, decodes=False)


SETUP = Setup(
    scene="one",
    samples=2,
    total_bytes=100,
    capacity_bytes=30,
    resident_bytes=38,
    epochs=2,
    first_epoch=1,
    jobs=1,
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
    expected = Theory(hit_ratio=0.2, store_bytes=160, bound_bytes=170, bound_all_bytes=162)
    result = experiment.figures("LRU", 0.7, SETUP, run, expected)
    assert (result.epoch_link_bytes, result.cores_used, result.moved_bytes) == (70, 0.8, 7)
    assert (result.store_requests, result.second_requests, result.store_bytes) == (4, 1, 180)
    assert result.hit_ratio_observed == 0.25  # three misses of four
    assert result.times == Times((10.0, 10.0), 0.2, 2.0)
    assert (result.bound_bytes, result.bound_all_bytes) == (170, 162)
    assert (result.hit_ratio_predicted, result.planned_store_bytes) == (0.2, 160)
    both = experiment.figures("LRU", 0.7, replace(SETUP, first_epoch=0), run, expected)
    assert (both.epoch_link_bytes, both.times.waiting_share) == (105, 0.2)


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
