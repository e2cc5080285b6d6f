"""A CachePlan is changed while jobs train: staged, held, predicted, taken back by itself and by hand."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cluster import objects, prometheus
from cluster.cluster import Cluster
from cluster.host import run, wait_until
from cluster.objects import Object
from cluster.plan_watch import PlanWatch, column, rows_of, steps_of
from cluster.release import Release
from cluster.rollout_jobs import (
    AT_ONCE,
    FOR_EVER,
    JOBS,
    PASS_SECONDS,
    PODS,
    ROLLOUT_SECONDS,
    STEP_SECONDS,
    check_all_samples,
    train,
)
from cluster.rollouts import Moment, Rollout, condition, ratio
from cluster.workspace import Workspace
from harness.prometheus import (
    PANELS_OF_DISKS,
    PANELS_OF_S3,
    PANELS_OF_WARMUPS,
    Prometheus,
    empty_panels,
)

CLOSE = 0.01  # observed to predicted, both with three digits
# Of two forecasts, from two places in an epoch: bytes, and a hit ratio of three digits.
SAME = 0.01
SAME_RATIO = 0.002
# Two passes of each job: by what one differs has also to do with who is ahead of whom.
OBSERVED = {"abort": {"after": 2}}
# These nodes have no disk, nobody reads by S3, and nothing is warmed.
ABSENT = PANELS_OF_DISKS | PANELS_OF_S3 | PANELS_OF_WARMUPS
MAY_BE_PENDING = {
    "OptcacheTrainersWait": "all machines share the processors of one, for which trainers wait, too",
}
# Of a rollout that nothing stops.
PHASES = ["Prepare", "Activate", "Observe", "Complete"]
STEPS = [
    ("Prepare", 0),
    *(("Activate", active) for active in range(PODS + 1)),
    ("Observe", PODS),
    ("Complete", PODS),
]
# Of one that is paused half-way.
REASONS = {"Preparing", "EpochAwaited", "NodesChange", "Paused", "Observing", "Complete"}


@pytest.fixture
def watched(cluster: Cluster, installed: Release, tmp_path: Path) -> Iterator[Prometheus]:
    """Scrapes the cluster."""
    with prometheus.running(cluster, tmp_path / "prometheus") as it:
        prometheus.wait_for_release(it, installed)
        yield it


def check_dashboards(watched: Prometheus, release: Release, workspace: Workspace) -> None:
    """All panels have data but those of what is not here; the pictures stay beside the logs."""
    pictures = release.cluster.paths.log / "dashboards"
    report = prometheus.render(watched, pictures, f"--last={watched.age_seconds()}s")
    assert empty_panels(report) == ABSENT
    prometheus.check_pages([release.pods("operator")[0], release.pods("node")[0], workspace.pods("first")[0]])


def check_alerts(watched: Prometheus) -> None:
    """None has fired since the beginning, and none is about to that says something is wrong."""
    assert watched.query('count_over_time(ALERTS{alertstate="firing"}[1h])') == []
    pending = {alert["alertname"] for alert in watched.alerts("pending")}
    assert pending <= set(MAY_BE_PENDING)


def is_close(status: Object) -> bool:
    return round(abs(ratio(status, "observed") - ratio(status, "predicted")), 3) <= CLOSE


def check_prediction(status: Object) -> None:
    observed, predicted = ratio(status, "observed"), ratio(status, "predicted")
    assert is_close(status), f"{observed} observed, {predicted} predicted"


def meets_jobs_forecast(status: Object) -> bool:
    forecast = status.get("rollout", {}).get("forecast", {})
    if not forecast.get("jobs") or forecast.get("awaited") or not {"observed", "predicted"} <= status.keys():
        return False
    return is_close(status)


def orders(rollout: Rollout) -> set[str]:
    return {job["order"] for job in rollout.status()["jobs"]}


def phases(story: list[Moment]) -> list[str]:
    """Each once, in the order in which it was seen."""
    return list(dict.fromkeys(moment.phase for moment in story))


def epochs_between_nodes(moments: list[Moment]) -> list[int]:
    """So many has each job begun, at least, from one more node that follows the update to the next."""
    first: dict[int, Moment] = {}
    for moment in moments:
        if moment.phase in ("Activate", "Observe"):
            first.setdefault(moment.active, moment)
    return [min(first[count].since(first[count - 1]).values()) for count in range(1, PODS + 1)]


def check_what_is_told_half_way(shell: dict[str, str], workspace: Workspace, status: Object) -> None:
    told = json.loads(optcache(shell, workspace, "plan", "show", "cacheplan/images", "--output=json"))
    assert (told["phase"], told["paused"]) == ("Activate", True)
    assert told["nodes"] == {"desired": PODS, "prepared": PODS, "active": 1}
    assert "UPDATE PREDICTED" in optcache(shell, workspace, "plan", "show", "cacheplan/images")
    words = ("plan", "diff", "current", "update", "images")
    told = json.loads(optcache(shell, workspace, *words, "--output=json"))
    assert told["differences"] == [{"field": "retention", "from": "Pin", "to": "Optimal"}]
    assert float(told["to"]["predictedHitRatio"]) == ratio(status["rollout"], "predicted")


def check_history(shell: dict[str, str], workspace: Workspace) -> None:
    told = json.loads(optcache(shell, workspace, "rollout", "history", "images", "--output=json"))
    states = [(each["spec"]["retention"], each["state"]) for each in told["revisions"]]
    assert states == [("Pin", ""), ("Optimal", "in force")]
    numbers = [str(each["revision"]) for each in told["revisions"]]
    one = optcache(shell, workspace, "rollout", "history", "images", f"--revision={numbers[0]}")
    assert f"with revision #{numbers[0]}" in one and 'retention: "Pin"' in one
    differences = optcache(shell, workspace, "plan", "diff", *numbers, "images")
    assert ["retention", "Pin", "Optimal"] in [line.split() for line in differences.splitlines()]


def check_lines(lines: PlanWatch, wide: str, status: Object) -> None:
    """What `kubectl get cacheplan -w` has printed since the first revision was in force, and `-o wide` prints now."""

    def told() -> list[tuple[str, int]]:
        return steps_of(lines.rows())

    wait_until(lambda: told()[1:][-1:] == STEPS[-1:], lambda: f"the end of the rollout: {told()}", STEP_SECONDS)
    assert told() == [("Complete", PODS), *STEPS]
    assert set(column(lines.rows(), "NODES")) == {str(PODS)}
    assert set(column(lines.rows(), "REASON")) >= REASONS
    heading, row = rows_of(wide)
    last = dict(zip(heading, row, strict=True))
    assert last["REVISION"] == last["UPDATE"] == status["currentRevision"]
    assert (last["RETENTION"], last["AVAILABLE"], last["REASON"]) == ("Optimal", "True", "Complete")
    assert float(last["PREDICTED"]) > 0 and float(last["OBSERVED"]) > 0


def test_a_patch_is_rolled_out(
    installed: Release,
    small: Workspace,
    watched: Prometheus,
    watch: Callable[[str], PlanWatch],
    shell: dict[str, str],
) -> None:
    """Node by node at ends of epochs, held half-way, and what was predicted is what is observed."""
    rollout = Rollout(small, "images")
    train(small, rollout, {"retention": "Pin", "rollout": {"maxUnavailable": 1, **OBSERVED}})
    rollout.wait("the first revision", STEP_SECONDS, phase="Complete")
    assert "restarted" in optcache(shell, small, "rollout", "restart", "images")
    before = rollout.wait("its plan is derived once more", STEP_SECONDS, phase="Complete")
    assert before.active == before.prepared == PODS
    assert "failed" not in rollout.status()["rollout"]
    first = rollout.status()["currentRevision"]
    pinned = ratio(rollout.status(), "observed")

    lines, versions = watch(""), watch("json")
    versions.wait("what is there is printed", STEP_SECONDS, phase="Complete")
    wait_until(lambda: len(lines.rows()) > 1, "what is there is printed", STEP_SECONDS)
    rollout.story.clear()
    rollout.patch(retention="Optimal")
    half = rollout.wait("one node has gone over", ROLLOUT_SECONDS, phase="Activate", active=1)
    assert half.prepared == PODS
    assert "paused" in optcache(shell, small, "rollout", "pause", "images")
    rollout.wait("it stands still", STEP_SECONDS, reason="Paused")
    rollout.wait_for_passes(2, 3 * PASS_SECONDS, len(JOBS))
    assert rollout.moment().active == 1  # type: ignore[union-attr]
    small.wait_for("cacheplan/images", "condition=Available", STEP_SECONDS)
    check_what_is_told_half_way(shell, small, rollout.status())
    assert "resumed" in optcache(shell, small, "rollout", "resume", "images")
    with ThreadPoolExecutor(1) as aside:
        words = ("rollout", "status", "images", f"--timeout={ROLLOUT_SECONDS}s")
        said = aside.submit(optcache, shell, small, *words)
        rollout.wait("it is complete", ROLLOUT_SECONDS, phase="Complete")
        assert "successfully rolled out" in said.result()

    assert phases(rollout.story) == PHASES
    status = rollout.status()
    assert status["currentRevision"] == status["updateRevision"] != first
    check_prediction(status)
    assert ratio(status, "observed") > pinned
    check_lines(lines, small.kubectl("get", "cacheplan/images", "--output=wide"), status)
    versions.wait("the end of the rollout", STEP_SECONDS, phase="Complete")
    assert min(epochs_between_nodes(versions.moments())) >= 1, "an epoch of each job lies between two nodes"
    check_history(shell, small)
    check_all_samples(small)
    check_dashboards(watched, installed, small)

    rollout.patch(rollout=AT_ONCE)
    assert "rolled back" in optcache(shell, small, "rollout", "undo", "images")
    rollout.wait("it has gone back by hand", ROLLOUT_SECONDS, phase="Prepare")
    # Less is predicted of Pin: that is what the user wants.
    rollout.wait("it is worse", STEP_SECONDS, reason="PredictedWorse")
    rollout.patch(rollout={"acknowledge": True, "abort": {"whenWorseThanPreviousBy": "1"}})
    rollout.wait("it is complete", ROLLOUT_SECONDS, phase="Complete")
    status = rollout.status()
    assert status["currentRevision"] == first, "content that was there has its old name"
    # What Pin keeps is what lay there then, so it is predicted once more. From now on each pass is
    # observed for itself, also one in which a node had no time to answer.
    meets = "a pass is as it is predicted from what lies there now"
    wait_until(lambda: meets_jobs_forecast(rollout.status()), meets, 3 * PASS_SECONDS)
    check_all_samples(small)
    check_alerts(watched)


def test_a_patch_ends_complete(installed: Release, small: Workspace) -> None:
    """As short as a rollout can be; test_a_patch_is_rolled_out looks at each of its steps."""
    rollout = Rollout(small, "images")
    train(small, rollout, {"retention": "Pin", "rollout": AT_ONCE})
    rollout.wait("the first revision", STEP_SECONDS, phase="Complete")
    first = rollout.status()["currentRevision"]
    rollout.patch(retention="Optimal")
    rollout.wait("it is complete", ROLLOUT_SECONDS, phase="Complete", active=PODS)
    status = rollout.status()
    assert status["currentRevision"] == status["updateRevision"] != first
    check_all_samples(small)


def test_a_partition_stays_behind(installed: Release, small: Workspace, shell: dict[str, str]) -> None:
    """One node follows the revision before until the user lowers `partition`; the jobs read on by both."""
    rollout = Rollout(small, "images")
    partition = {"strategy": "Staged", "maxUnavailable": PODS, "activateAt": "Now", "partition": 1}
    train(small, rollout, {"retention": "Pin", "rollout": partition})
    rollout.wait("the first revision", STEP_SECONDS, phase="Complete")
    first = rollout.status()["currentRevision"]
    rollout.patch(retention="Optimal")
    rollout.wait("all nodes but one have gone over", ROLLOUT_SECONDS, reason="Partitioned", active=PODS - 1)
    # It is not held up: this is what was asked for.
    assert "partition" in optcache(shell, small, "rollout", "status", "images", f"--timeout={STEP_SECONDS}s")
    rollout.wait_for_passes(2, 3 * PASS_SECONDS, len(JOBS))
    status = rollout.status()
    assert (rollout.moment().phase, status["nodes"]["active"]) == ("Activate", PODS - 1)  # type: ignore[union-attr]
    assert status["currentRevision"] == first != status["updateRevision"]
    rollout.patch(rollout={"partition": 0})
    rollout.wait("it is complete", ROLLOUT_SECONDS, phase="Complete", active=PODS)
    assert rollout.status()["currentRevision"] == status["updateRevision"]
    check_all_samples(small)


def edit(shell: dict[str, str], workspace: Workspace, folder: Path, expression: str) -> None:
    """`kubectl edit` of the CachePlan, by a person who is an expression of sed."""
    editor = folder / "editor"
    editor.write_text(f"#!/bin/sh\nexec sed -i '{expression}' \"$1\"\n")
    editor.chmod(0o755)
    words = ("edit", "cacheplan/images", f"--namespace={workspace.name}")
    told = run(["kubectl", *words], environment={**shell, "KUBE_EDITOR": str(editor)}).stdout
    assert "edited" in told, told


def predict(shell: dict[str, str], workspace: Workspace, file: Path, **spec: Any) -> Object:
    """What `plan predict` says of the CachePlan with these fields."""
    plan = objects.cache_plan(workspace.name, "images", "images")
    plan["spec"].update(spec)
    file.write_text(json.dumps(plan))
    words = ("plan", "predict", f"--filename={file}", f"--timeout={ROLLOUT_SECONDS}s")
    answer: Object = json.loads(optcache(shell, workspace, *words, "--output=json"))
    return answer


def check_same_numbers(one: Object, other: Object) -> None:
    assert float(one["hitRatio"]) == pytest.approx(float(other["hitRatio"]), abs=SAME_RATIO)
    for bytes_of in ("storeBytesPerEpoch", "movedBytesPerEpoch"):
        assert one[bytes_of] == pytest.approx(other[bytes_of], rel=SAME), bytes_of


def test_a_change_for_the_worse_is_taken_back(
    installed: Release, small: Workspace, shell: dict[str, str], tmp_path: Path
) -> None:
    """It is predicted before it is asked for, held when it is, and not kept when it is let go on."""
    rollout = Rollout(small, "images")
    train(small, rollout, {"retention": "Pin", "rollout": AT_ONCE})
    rollout.wait("the first revision", STEP_SECONDS, phase="Complete")
    good = rollout.status()["currentRevision"]
    answer = predict(shell, small, tmp_path / "plan.yaml", retention="None")
    assert answer["worse"] and float(answer["current"]["hitRatio"]) > float(answer["predicted"]["hitRatio"])
    assert rollout.plan()["spec"]["retention"] == "Pin" and rollout.status()["updateRevision"] == good
    edit(shell, small, tmp_path, "s/retention: Pin/retention: None/")
    rollout.wait("it is predicted to be worse", STEP_SECONDS, phase="Prepare", reason="PredictedWorse")
    check_same_numbers(answer["predicted"], rollout.status()["rollout"]["predicted"])
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
    train(small, rollout, {"retention": "Optimal", "rollout": {**AT_ONCE, **OBSERVED}}, OPAQUE="1")
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


def optcache(environment: dict[str, str], workspace: Workspace, *words: str) -> str:
    """What the program says; it succeeds."""
    command = [os.environ["OPTCACHE_CLI"], *words, f"--namespace={workspace.name}"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=ROLLOUT_SECONDS + 30, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
