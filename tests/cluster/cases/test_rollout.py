"""A CachePlan is changed while jobs train: staged, held, taken back, and whoever dies meanwhile."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cluster import processes, prometheus
from cluster.checks import check_samples
from cluster.cluster import Cluster
from cluster.host import wait_until
from cluster.objects import Object
from cluster.release import Release
from cluster.rollouts import Moment, Rollout, condition, ratio
from cluster.workspace import FewSamples, Samples, Workspace
from harness.prometheus import Prometheus, empty_panels

# Some 5,790 small images, so that epochs take seconds and many fit what may be on its way between
# nodes (2 % of their memory); a few of each class.
PREFIXES = (
    "doc/wesnoth-1.16-data/images/orb-",
    "games/wesnoth/1.16/data/core/images/units/",
    "icons/hicolor/64x64/",
)
INCLUDE = [prefix + ("**" if prefix.endswith("/") else "*") for prefix in PREFIXES]
PODS = 3
JOBS = {"first": 0, "second": 1}  # with their seeds
FOR_EVER = "1000"  # epochs: the jobs go with the namespace
PACE = {"EPOCHS": FOR_EVER, "PAUSE": "0.06", "BATCH": "16"}
START_SECONDS = 240
PASS_SECONDS = 60
STEP_SECONDS = 90  # of a rollout, when no epoch's end is awaited
ROLLOUT_SECONDS = 300
CLOSE = 0.01  # observed to predicted, both with three digits
# Two passes of each job: by what one differs has also to do with who is ahead of whom.
OBSERVED = {"abort": {"after": 2}}
OF_DISKS = ("Disk use by node", "Out of use", "Read and written", "Write amplification")
# Nobody reads by S3, and nothing was warmed.
OF_OTHERS = (
    "Requests by operation",
    "Ranges joined",
    "Refused",
    "Warmed",
    "Warm-ups by state",
    "Warm-ups",
)
# Of a rollout that nothing stops.
PHASES = ["Prepare", "Activate", "Observe", "Complete"]


@pytest.fixture
def small(workspace: Workspace, samples: Samples) -> Workspace:
    workspace.samples = FewSamples(samples, prefixes=PREFIXES)
    return workspace


@pytest.fixture
def watched(cluster: Cluster, installed: Release, tmp_path: Path) -> Iterator[Prometheus]:
    """Scrapes the cluster."""
    with prometheus.running(cluster, tmp_path / "prometheus") as it:
        prometheus.wait_for_release(it, installed)
        yield it


def check_dashboards(watched: Prometheus, cluster: Cluster, release: Release) -> None:
    """All panels have data but those of disks, which these nodes have not, of S3 and of warm-ups, and
    no alert has anything to say; the pictures stay beside the logs."""
    pictures = cluster.paths.log / "dashboards"
    report = prometheus.render(watched, pictures, f"--last={watched.age_seconds()}s")
    empty = {f"optcache-nodes: {panel}" for panel in OF_DISKS}
    assert empty_panels(report) == empty | {f"optcache-overview: {panel}" for panel in OF_OTHERS}
    assert watched.alerts() == []
    prometheus.check_pages(release)


def train(workspace: Workspace, rollout: Rollout, plan: dict[str, Any], **environment: str) -> None:
    """Two jobs read the Dataset by that plan, and have done so for two passes."""
    rollout.create("images", **plan)
    workspace.make_dataset(include=INCLUDE)
    for job, seed in JOBS.items():
        variables = {**PACE, "SEED": str(seed), **environment}
        workspace.start_training(job, pods=PODS, environment=variables)
    rollout.wait_for_passes(2, START_SECONDS, len(JOBS))


def check_all_samples(workspace: Workspace) -> None:
    """So far none was lost, doubled or wrong, and no container was started again."""
    for job, seed in JOBS.items():
        check_samples(workspace, job, PODS, None, seed)
        restarts = [counts for _, counts in workspace.identities(job).values()]
        assert all(count == 0 for counts in restarts for count in counts), restarts


def is_close(status: Object) -> bool:
    return round(abs(ratio(status, "observed") - ratio(status, "predicted")), 3) <= CLOSE


def check_prediction(status: Object) -> None:
    observed, predicted = ratio(status, "observed"), ratio(status, "predicted")
    assert is_close(status), f"{observed} observed, {predicted} predicted"


def meets_jobs_forecast(status: Object) -> bool:
    forecast = status.get("rollout", {}).get("forecast", {})
    if not forecast.get("jobs") or forecast.get("awaited") or "observed" not in status:
        return False
    return is_close(status)


def orders(rollout: Rollout) -> set[str]:
    return {job["order"] for job in rollout.status()["jobs"]}


def phases(story: list[Moment]) -> list[str]:
    """Each once, in the order in which it was seen."""
    return list(dict.fromkeys(moment.phase for moment in story))


def test_a_patch_is_rolled_out(
    cluster: Cluster,
    installed: Release,
    small: Workspace,
    watched: Prometheus,
    shell: dict[str, str],
) -> None:
    """Node by node at ends of epochs, held half-way, and what was predicted is what is observed."""
    rollout = Rollout(small, "images")
    train(small, rollout, {"retention": "Pin", "rollout": {"maxUnavailable": 1, **OBSERVED}})
    before = rollout.wait("the first revision", STEP_SECONDS, phase="Complete")
    first = rollout.status()["currentRevision"]
    pinned = ratio(rollout.status(), "observed")
    assert before.active == before.prepared == PODS

    rollout.story.clear()
    rollout.patch(retention="Optimal")
    half = rollout.wait("one node has gone over", ROLLOUT_SECONDS, phase="Activate", active=1)
    assert half.prepared == PODS
    rollout.patch(rollout={"paused": True})
    rollout.wait("it stands still", STEP_SECONDS, reason="Paused")
    rollout.wait_for_passes(2, 3 * PASS_SECONDS, len(JOBS))
    assert rollout.moment().active == 1  # type: ignore[union-attr]
    small.wait_for("cacheplan/images", "condition=Available", STEP_SECONDS)
    rollout.patch(rollout={"paused": False})
    with ThreadPoolExecutor(1) as aside:
        words = ("rollout", "status", "images", f"--timeout={ROLLOUT_SECONDS}s")
        said = aside.submit(optcache, shell, small, *words)
        rollout.wait("it is complete", ROLLOUT_SECONDS, phase="Complete")
        assert "successfully rolled out" in said.result()

    assert phases(rollout.story) == PHASES
    steps = [moment for moment in rollout.story if moment.phase == "Activate"]
    assert sorted({moment.active for moment in steps}) in ([0, 1, 2], [0, 1, 2, 3])
    assert [moment.active for moment in steps] == sorted(moment.active for moment in steps)
    begun = [next(moment for moment in steps if moment.active == count) for count in (1, 2)]
    assert min(begun[1].since(begun[0]).values()) >= 1, "an epoch of each job lies between two nodes"
    status = rollout.status()
    assert status["currentRevision"] == status["updateRevision"] != first
    check_prediction(status)
    assert ratio(status, "observed") > pinned
    check_all_samples(small)
    check_dashboards(watched, cluster, installed)

    rollout.patch(rollout={"strategy": "AllAtOnce", "activateAt": "Now"})
    assert "rolled back" in optcache(shell, small, "rollout", "undo", "images")
    rollout.wait("it has gone back by hand", ROLLOUT_SECONDS, phase="Prepare")
    # Less is predicted of Pin: that is what the user wants.
    rollout.wait("it is worse", STEP_SECONDS, reason="PredictedWorse")
    rollout.patch(rollout={"acknowledge": True, "abort": {"whenWorseThanPreviousBy": "1"}})
    rollout.wait("it is complete", ROLLOUT_SECONDS, phase="Complete")
    status = rollout.status()
    assert status["currentRevision"] == first, "content that was there has its old name"
    # What Pin keeps is what lay there then, so it is foretold once more. From now on each pass is
    # observed for itself, also one in which a node had no time to answer.
    meets = "a pass is as it is foretold from what lies there now"
    wait_until(lambda: meets_jobs_forecast(rollout.status()), meets, 3 * PASS_SECONDS)
    check_all_samples(small)


def test_a_patch_ends_complete(installed: Release, small: Workspace) -> None:
    """As short as a rollout can be; test_a_patch_is_rolled_out looks at each of its steps."""
    rollout = Rollout(small, "images")
    train(small, rollout, {"retention": "Pin", "rollout": {"strategy": "AllAtOnce", "activateAt": "Now"}})
    rollout.wait("the first revision", STEP_SECONDS, phase="Complete")
    first = rollout.status()["currentRevision"]
    rollout.patch(retention="Optimal")
    rollout.wait("it is complete", ROLLOUT_SECONDS, phase="Complete", active=PODS)
    status = rollout.status()
    assert status["currentRevision"] == status["updateRevision"] != first
    check_all_samples(small)


def test_a_change_for_the_worse_is_taken_back(installed: Release, small: Workspace) -> None:
    rollout = Rollout(small, "images")
    at_once = {"strategy": "AllAtOnce", "activateAt": "Now"}
    train(small, rollout, {"retention": "Optimal", "rollout": at_once})
    good = rollout.status()["currentRevision"]
    rollout.patch(retention="None")
    rollout.wait("it is predicted to be worse", STEP_SECONDS, phase="Prepare", reason="PredictedWorse")
    rollout.wait_for_passes(1, PASS_SECONDS, len(JOBS))
    assert rollout.moment().active == 0  # type: ignore[union-attr]
    rollout.patch(rollout={"acknowledge": True})
    rollout.wait("it is taken back", ROLLOUT_SECONDS, phase="Stopped", active=0)
    status = rollout.status()
    assert status["rollout"]["failed"]["reason"] == "WorseThanPrevious"
    assert status["currentRevision"] == good != status["updateRevision"]
    assert condition(status, "Degraded")["status"] == "True"
    assert phases(rollout.story)[-3:] == ["Observe", "GoBack", "Stopped"]
    check_all_samples(small)


def test_a_wrong_sampler_is_taken_back(installed: Release, small: Workspace) -> None:
    """Orders that jobs do not announce are what the CachePlan says, until it turns out that they are not."""
    rollout = Rollout(small, "images")
    at_once = {"strategy": "AllAtOnce", "activateAt": "Now", **OBSERVED}
    train(small, rollout, {"retention": "Optimal", "rollout": at_once}, OPAQUE="1")
    assert orders(rollout) == {"Unknown"}

    def samplers(offset: int) -> list[dict[str, Any]]:
        common = {"kind": "TorchDistributed", "worldSize": PODS, "epochs": int(FOR_EVER)}
        return [{"name": job, "sampler": {**common, "seed": seed + offset}} for job, seed in JOBS.items()]

    rollout.patch(jobs=samplers(7))
    rollout.wait("wrong ones are taken back", ROLLOUT_SECONDS, phase="Stopped")
    assert rollout.status()["rollout"]["failed"]["reason"] == "BelowPredicted"
    rollout.patch(jobs=samplers(0))
    rollout.wait("right ones are kept", ROLLOUT_SECONDS, phase="Complete")
    # Orders are by the revision in force, of which nodes report a moment later.
    wait_until(lambda: orders(rollout) == {"Known"}, "orders of jobs are known", STEP_SECONDS)
    check_prediction(rollout.status())
    check_all_samples(small)


def test_who_dies_during_a_rollout_changes_nothing(
    installed: Release, small: Workspace, long: bool
) -> None:
    """The operator's leader and a node are killed in each phase; in short in one."""
    rollout = Rollout(small, "images")
    lenient = {"whenBelowPredictedBy": "1", "whenWorseThanPreviousBy": "1"}  # a node has lost its share
    staged = {"maxUnavailable": 1, "activateAt": "EpochBoundary", "acknowledge": True, "abort": lenient}
    train(small, rollout, {"retention": "Pin", "rollout": staged})
    for number, phase in enumerate(PHASES[:3] if long else ["Activate"]):
        retention = ("Optimal", "Pin")[number % 2]
        rollout.patch(retention=retention)
        rollout.wait(f"it is in {phase}", ROLLOUT_SECONDS, phase=phase)
        kill_leader_and_node(installed)
        done = rollout.wait("it is complete all the same", ROLLOUT_SECONDS, phase="Complete", active=PODS)
        assert done.prepared == PODS
        status = rollout.status()
        assert status["currentRevision"] == status["updateRevision"]
        installed.wait_ready()
    for job, seed in JOBS.items():
        check_samples(small, job, PODS, None, seed)


def kill_leader_and_node(release: Release) -> None:
    leader = release.leader()
    pods = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in release.pods("operator")}
    victim = release.pods("node")[-1]["metadata"]
    (operator,) = processes.of_pod(pods[leader], "optcache-operator")
    (node,) = processes.of_pod(victim["uid"], "optcache-node")
    processes.kill([operator, node])
    wait_until(lambda: operator not in processes.all_pids(), "the leader has ended", STEP_SECONDS)


def optcache(environment: dict[str, str], workspace: Workspace, *words: str) -> str:
    """What the program says; it succeeds."""
    command = [os.environ["OPTCACHE_CLI"], *words, f"--namespace={workspace.name}"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=ROLLOUT_SECONDS + 30, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
