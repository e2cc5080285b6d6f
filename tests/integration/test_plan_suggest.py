"""`optcache plan suggest` for a job that reads, beside `optcache simulate --until` by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness import commands
from harness.cluster import DATASET, Cluster
from harness.dataset import Dataset
from harness.processes import wait_until

pytest.importorskip("torch")

from optcache.torch import attach  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

MACHINES = 2
SHARE = 0.5
RATES = ["--store-rate", "700Ki", "--job-rate", "1000Ki"]
PRICE = ["--price-per-gib", "1"]
Run = Callable[..., commands.Ended]


def sampler_over(samples: Any) -> Any:
    return DistributedSampler(samples, num_replicas=1, rank=0, seed=3)


@pytest.fixture
def run(programs: Path, manifests: Path) -> Run:
    def run(*words: str) -> commands.Ended:
        return commands.run([programs / "optcache", *words], manifests, seconds=300)

    return run


@pytest.fixture
def cache(start_cache: Callable[..., Cluster]) -> Cluster:
    return start_cache(machines=MACHINES, share=SHARE)


@pytest.fixture
def job(cache: Cluster) -> Iterator[None]:
    """A rank in the middle of its first epoch. It stays there."""
    samples = optcache.Dataset(socket=str(cache.socket(0)))
    loader = attach(DataLoader(samples, batch_size=8, sampler=sampler_over(samples)), name="train")
    batches = iter(loader)
    for _ in range(20):
        next(batches)

    def is_known() -> bool:
        streams = cache.status()["datasets"][0]["streams"]
        return bool(streams) and bool(streams[0]["recipe"]) and streams[0]["position"] > 0

    wait_until(is_known, "the coordinator knows what the job reads")
    yield
    del batches, loader


def suggested(run: Run, manifests: Path, *words: str) -> dict[str, Any]:
    ended = run("plan", "suggest", DATASET, "--state", str(manifests), "--output", "json", *words)
    assert ended.code == 0, ended.err
    answer: dict[str, Any] = json.loads(ended.out)
    return answer


def simulated(run: Run, *words: str) -> float:
    """The least capacity."""
    ended = run("simulate", "--nodes", str(MACHINES), "--ranks", "1", "--output", "json", *words)
    assert ended.code == 0, ended.err
    return float(json.loads(ended.out)["policies"]["optimal"]["capacity"])


@pytest.mark.usefixtures("job")
def test_a_goal_of_waiting(run: Run, manifests: Path, dataset: Dataset, tmp_path: Path) -> None:
    plot = tmp_path / "curve.svg"
    goal = ["--until", "waiting=2%"]
    answer = suggested(run, manifests, *goal, *RATES, "--plot", str(plot))
    (manifest,) = (manifests / "manifests").glob(f"*{DATASET}*.manifest")
    by_hand = simulated(
        run, *goal, "--store-bandwidth", "0.7", "--epochs", "6", "--manifest", str(manifest)
    )
    # Of another seed: it decides when the largest samples come.
    assert answer["policies"]["optimal"]["capacity"] == pytest.approx(by_hand, abs=0.1)
    assert answer["suggested"] == f"{100 * answer['policies']['optimal']['capacity']:.1f}%"
    assert answer["datasetBytes"] == dataset.total_bytes, "by the sizes of the manifest"
    assert answer["now"]["capacity"] == pytest.approx(SHARE, abs=0.01)
    assert answer["now"]["waiting"] == pytest.approx(0, abs=0.02), "half of all is more than enough"
    assert len(answer["jobs"]) == 1
    assert answer["nodes"] == MACHINES
    assert "<svg" in plot.read_text()


@pytest.mark.usefixtures("job")
def test_a_goal_of_cost(run: Run, manifests: Path, cache: Cluster, dataset: Dataset) -> None:
    """Of four epochs, in which three in ten of the later bytes come from the nodes."""
    later = 3 * (1 - 0.3)
    goal = ["--until", f"cost={dataset.total_bytes / 2**30 * (1 + later):.6f}", "--epochs", "4"]
    answer: dict[str, Any] = {}
    position = 0

    def position_now() -> int:
        return int(cache.status()["datasets"][0]["streams"][0]["position"])

    def asked_at_a_known_position() -> bool:
        nonlocal answer, position
        position = position_now()
        answer = suggested(run, manifests, *goal, *PRICE)
        return position_now() == position

    wait_until(asked_at_a_known_position, "the job is where it was")
    found = answer["policies"]["optimal"]["capacity"]
    # A shuffling job hits as much as is kept, evenly, once it has read each sample: for as many
    # reads as are left of the four epochs.
    begun_again = 3 + position / len(dataset.sizes)
    assert found == pytest.approx(3 * 0.3 / begun_again, abs=0.015)
    (manifest,) = (manifests / "manifests").glob(f"*{DATASET}*.manifest")
    by_hand = simulated(run, *goal, *PRICE, "--manifest", str(manifest))
    assert found == pytest.approx(by_hand * 3 / begun_again, abs=0.015), "it begins at an epoch"
    assert answer["rates"] == "", "they do not count"


@pytest.mark.usefixtures("job")
def test_what_is_not_known_is_said(run: Run, manifests: Path) -> None:
    words = ["plan", "suggest", "--state", str(manifests)]
    paused = run(*words, "--until", "waiting=2%", "--store-rate", "1Mi", "--measure", "100ms")
    assert paused.code == 1
    assert "none of them has read meanwhile. Set --job-rate" in paused.err
    assert "no price is known" in run(*words, "--until", "cost=1", "--epochs", "2").err
    assert "set --epochs" in run(*words, "--until", "cost=1", *PRICE).err
    assert "set --until waiting=2%" in run(*words).err
    assert "start it again" in run(*words, "--until", "waiting=2%", *RATES, "--apply", "--yes").err
    told = run(*words, "--until", "waiting=2%", *RATES)
    assert told.code == 0, told.err
    assert "The store delivers 700 KiB/s (as given)" in told.out
    assert "\nTo apply it, write cache: {capacity: " in told.out


def test_no_job_reads(run: Run, manifests: Path, cache: Cluster) -> None:
    ended = run("plan", "suggest", "--state", str(manifests), "--until", "waiting=2%", *RATES)
    assert ended.code == 1
    assert "no training job reads" in ended.err


PLAN = {
    "kind": "CachePlan",
    "metadata": {"namespace": "vision", "name": "images"},
    "spec": {"dataset": "images", "retention": "Optimal", "goal": {"waiting": "5%"}},
    "status": {
        "jobs": [
            {
                "name": "vision/resnet/images/train",
                "ranks": 2,
                "recipe": "torch-distributed size=400 seed=3 world=2",
                "epoch": 7,
                "epochStep": 1,
            }
        ]
    },
}
IN_CLUSTER: dict[str, Any] = {
    "kind": "Dataset",
    "metadata": {"namespace": "vision", "name": "images"},
    "spec": {"cache": {"capacity": "80%"}},
    "status": {
        "samples": 400,
        "bytes": 40_000,
        "capacity": {"granted": 32_000},
        "nodes": [{"name": "m1"}, {"name": "m2"}],
    },
}
KUBECTL = """\
#!/bin/sh
case "$*" in
*"get cacheplans.optcache.io/images"*) cat {folder}/plan.json ;;
*"get datasets.optcache.io/images"*) cat {folder}/dataset.json ;;
*"patch "*) echo "$*" >> {folder}/patches && echo patched ;;
*) echo "Error from server (Forbidden): $*" >&2 && exit 1 ;;
esac
"""


ASK = ["plan", "suggest", "images", "--cluster", "--namespace", "vision", *RATES]


@pytest.fixture
def in_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a kubectl answers as a cluster does, and writes patches down."""
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    (tmp_path / "dataset.json").write_text(json.dumps(IN_CLUSTER))
    (tmp_path / "kubectl").write_text(KUBECTL.format(folder=tmp_path))
    (tmp_path / "kubectl").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_the_goal_of_a_cacheplan(run: Run, in_cluster: Path) -> None:
    only = run(*ASK, "--output", "json")
    assert only.code == 0, only.err
    answer = json.loads(only.out)
    assert answer["goal"]["waiting"] == 0.05
    assert answer["policies"]["optimal"]["capacity"] == pytest.approx(0.27, abs=0.05)
    assert answer["sizes"].startswith("equal, of the mean of all samples.")
    assert "--apply asks on a terminal" in run(*ASK, "--apply").err
    assert not (in_cluster / "patches").exists(), "nothing is changed unasked"
    applied = run(*ASK, "--apply", "--yes")
    assert applied.code == 0, applied.err
    assert f"vision/images: 80% -> {answer['suggested']}" in applied.err
    (patch,) = (in_cluster / "patches").read_text().splitlines()
    assert f'"value":"{answer["suggested"]}"' in patch


def test_no_capacity_is_written_that_the_nodes_do_not_grant(run: Run, in_cluster: Path) -> None:
    """The Dataset asks for enough, and gets a tenth of its bytes."""
    status = {**IN_CLUSTER["status"], "capacity": {"granted": 4_000, "maximum": 32_000}}
    (in_cluster / "dataset.json").write_text(json.dumps({**IN_CLUSTER, "status": status}))
    why = "the nodes' memory is the limit: vision/images asks for 31.2 KiB, and they grant 3.91 KiB"
    told = run(*ASK)
    assert told.code == 0, told.err
    assert f"Not to be applied: {why}" in told.out
    assert "To apply it" not in told.out
    refused = run(*ASK, "--apply", "--yes")
    assert refused.code == 1
    assert f"--apply: {why}" in refused.err
    assert not (in_cluster / "patches").exists()


def test_no_capacity_is_written_where_none_reaches_the_goal(run: Run, in_cluster: Path) -> None:
    cost = ["--until", "cost=0.001", "--epochs", "2", "--price-per-request", "1"]
    refused = run(*ASK, *cost, "--apply", "--yes")
    assert refused.code == 1
    assert "--apply: there is no capacity to write" in refused.err
    assert not (in_cluster / "patches").exists()
