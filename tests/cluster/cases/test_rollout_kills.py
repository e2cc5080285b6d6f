"""Who dies during a rollout changes nothing in its outcome: the operator's leader and a node, at every stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Optional

import pytest
from cluster import processes
from cluster.host import wait_until
from cluster.plan_watch import PlanWatch
from cluster.release import Release
from cluster.rollout_jobs import (
    AT_ONCE,
    JOBS,
    PASS_SECONDS,
    PODS,
    ROLLOUT_SECONDS,
    STEP_SECONDS,
    check_all_samples,
    train,
)
from cluster.rollouts import Rollout
from cluster.workspace import Workspace

Fields = dict[str, Any]

TRIES = 5  # to be there before a stage is over that nobody can hold up
STAGED: Fields = {"strategy": "Staged", "maxUnavailable": 1, "activateAt": "EpochBoundary", "paused": False}
# What judges a revision, as users have it.
STRICT: Fields = {"abort": {"whenBelowPredictedBy": "0.05", "whenWorseThanPreviousBy": "0.05"}}
# What follows is worse, and the user wants it.
LENIENT: Fields = {"abort": {"whenBelowPredictedBy": "1", "whenWorseThanPreviousBy": "1"}}
WANTED: Fields = {"acknowledge": True}
HELD: Fields = {"acknowledge": False}
COMPLETE: Fields = {"phase": "Complete", "active": PODS, "prepared": PODS}


@dataclass(frozen=True)
class Stage:
    name: str
    asks: Fields  # of the CachePlan's spec
    at: Fields  # a moment has these when they are killed
    ends: Fields  # and these at the end of the stage
    failed: str = ""  # why it was taken back
    stays: bool = False  # it goes on for an epoch of each job before `then`
    then: Optional[Fields] = None


def asks(retention: str, *rollout: Fields) -> Fields:
    merged: Fields = {}
    for fields in rollout:
        merged.update(fields)
    return {"retention": retention, "rollout": merged}


# Pin is in force at the beginning, and each stage goes on from the end of the one before.
STAGES = (
    Stage("prepare", asks("Optimal", STAGED, STRICT, HELD), {"phase": "Prepare"}, COMPLETE),
    Stage(
        "paused",
        asks("Pin", STAGED, LENIENT, WANTED, {"paused": True}),
        {"phase": "Prepare", "reason": "Paused", "prepared": PODS},
        COMPLETE,
        stays=True,
        then={"rollout": {"paused": False}},
    ),
    Stage("activate", asks("Optimal", STAGED, STRICT, WANTED), {"phase": "Activate"}, COMPLETE),
    Stage("half-way", asks("Pin", STAGED, LENIENT, WANTED), {"phase": "Activate", "active": 1}, COMPLETE),
    Stage("observe", asks("Optimal", STAGED, STRICT, WANTED), {"phase": "Observe"}, COMPLETE),
    Stage("observe what is worse", asks("Pin", STAGED, LENIENT, WANTED), {"phase": "Observe"}, COMPLETE),
    Stage(
        "observe what goes back",
        asks("None", AT_ONCE, STRICT, WANTED),
        {"phase": "Observe"},
        {"phase": "Stopped", "active": 0},
        failed="WorseThanPrevious",
    ),
    Stage("let go", asks("Pin", STRICT, HELD), {"phase": "Complete"}, COMPLETE),
    Stage(
        "held",
        asks("None", AT_ONCE, STRICT, HELD),
        {"reason": "PredictedWorse"},
        {"phase": "Prepare", "reason": "PredictedWorse", "prepared": PODS, "active": 0},
        stays=True,
    ),
    Stage(
        "go back",
        asks("None", AT_ONCE, STRICT, WANTED),
        {"phase": "GoBack"},
        {"phase": "Stopped", "active": 0},
        failed="WorseThanPrevious",
    ),
    Stage(
        "stopped",
        asks("None"),
        {"phase": "Stopped"},
        {"phase": "Stopped", "active": 0},
        failed="WorseThanPrevious",
        stays=True,
    ),
    Stage("taken back", asks("Pin"), {"phase": "Complete"}, COMPLETE),
)
SHORT = ("activate",)


@dataclass
class Killer:
    """Kills the leader and one node, another one each time: the kubelet waits longer for one that ends often."""

    release: Release
    kills: dict[str, int] = field(default_factory=dict)  # by the node's pod

    def aim(self) -> tuple[list[int], str]:
        """Their processes, and the node's pod."""
        operators = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.release.pods("operator")}
        leader = operators[self.release.leader()]
        nodes = sorted(self.release.pods("node"), key=lambda pod: self.kills.get(pod["metadata"]["name"], 0))
        victim = nodes[0]["metadata"]

        def both() -> list[int]:
            return processes.of_pod(leader, "optcache-operator") + processes.of_pod(victim["uid"], "optcache-node")

        wait_until(lambda: len(both()) == 2, "the leader and a node run", STEP_SECONDS)
        return both(), victim["name"]

    def shoot(self, aim: tuple[list[int], str]) -> None:
        victims, pod = aim
        processes.kill(victims)
        self.kills[pod] = self.kills.get(pod, 0) + 1
        wait_until(lambda: victims[0] not in processes.all_pids(), "the leader has ended", STEP_SECONDS)

    def check_restarts(self, before: dict[str, int]) -> None:
        """Of nodes those have been started again that were killed, each as often, and no others."""
        wanted = {pod: count + self.kills.get(pod, 0) for pod, count in before.items()}
        wait_until(
            lambda: restarts(self.release) == wanted,
            lambda: f"nodes have been started again: {wanted} wanted, {restarts(self.release)} seen",
            STEP_SECONDS,
        )


def restarts(release: Release) -> dict[str, int]:
    """Of each node's pod."""
    return {
        pod["metadata"]["name"]: sum(each["restartCount"] for each in pod["status"]["containerStatuses"])
        for pod in release.pods("node")
    }


def kill_at(stage: Stage, rollout: Rollout, killer: Killer, watch: Callable[[str], PlanWatch]) -> None:
    """Of a stage that ends by itself within a second or so, it may take several rollouts to be there in time.

    From the second one on, it is the revision in force that is derived again: Prepare without a comparison.
    """
    for _ in range(TRIES):
        with watch("json") as versions:
            aim = killer.aim()
            versions.wait(f"the stage {stage.name}", ROLLOUT_SECONDS, **stage.at)
            killer.shoot(aim)
            seen = versions.moments()[-1]
        if all(getattr(seen, name) == value for name, value in stage.at.items()):
            return
        rollout.wait("the end of the stage", ROLLOUT_SECONDS, **stage.ends)
        killer.release.wait_ready()
        rollout.patch(rollout={"restartedAt": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")})
    pytest.fail(f"{stage.name} was over each time before a process was killed")


def check_who_dies(
    names: tuple[str, ...], release: Release, workspace: Workspace, watch: Callable[[str], PlanWatch]
) -> None:
    rollout = Rollout(workspace, "images")
    train(workspace, rollout, {"retention": "Pin", "rollout": STAGED})
    rollout.wait("the first revision", STEP_SECONDS, phase="Complete")
    killer, before = Killer(release), restarts(release)
    for stage in STAGES:
        if stage.name not in names:
            continue
        in_force = rollout.status()["currentRevision"]
        rollout.patch(**stage.asks)
        kill_at(stage, rollout, killer, watch)
        if stage.stays:
            rollout.wait(f"{stage.name} all the same", ROLLOUT_SECONDS, **(stage.at if stage.then else stage.ends))
            rollout.wait_for_passes(1, PASS_SECONDS + STEP_SECONDS, len(JOBS))
        if stage.then is not None:
            rollout.patch(**stage.then)
        rollout.wait(f"the end of {stage.name}", ROLLOUT_SECONDS, **stage.ends)
        status = rollout.status()
        assert status["rollout"].get("failed", {}).get("reason", "") == stage.failed, stage.name
        if stage.ends["phase"] == "Complete":
            assert status["currentRevision"] == status["updateRevision"], stage.name
        else:
            assert status["currentRevision"] == in_force != status["updateRevision"], stage.name
        release.wait_ready()
    killer.check_restarts(before)
    check_all_samples(workspace)


def test_who_dies_during_a_rollout_changes_nothing(
    installed: Release, small: Workspace, watch: Callable[[str], PlanWatch]
) -> None:
    check_who_dies(SHORT, installed, small, watch)


@pytest.mark.long
def test_who_dies_at_any_stage_changes_nothing(
    installed: Release, small: Workspace, watch: Callable[[str], PlanWatch]
) -> None:
    check_who_dies(tuple(stage.name for stage in STAGES), installed, small, watch)
