"""Two jobs that read one Dataset while its CachePlan is changed: cases/test_rollout*.py."""

from __future__ import annotations

from typing import Any

from cluster.checks import check_samples
from cluster.rollouts import Rollout
from cluster.workspace import Workspace

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
START_SECONDS = 900
PASS_SECONDS = 180
STEP_SECONDS = 240  # of a rollout, when no epoch's end is awaited
ROLLOUT_SECONDS = 900
AT_ONCE = {"strategy": "AllAtOnce", "activateAt": "Now"}


def train(workspace: Workspace, rollout: Rollout, plan: dict[str, Any], **environment: str) -> None:
    """Two jobs read the Dataset by that plan, and have done so for two passes."""
    rollout.create("images", **plan)
    workspace.make_dataset(include=INCLUDE, cost={"perRequest": "0.0000004"})
    for job, seed in JOBS.items():
        variables = {**PACE, "SEED": str(seed), **environment}
        workspace.start_injected_training(job, pods=PODS, environment=variables)
    rollout.wait_for_passes(2, START_SECONDS, len(JOBS))


def check_all_samples(workspace: Workspace) -> None:
    """So far none was lost, doubled or wrong, and no container was started again."""
    for job, seed in JOBS.items():
        check_samples(workspace, job, PODS, None, seed)
        restarts = [counts for _, counts in workspace.identities(job).values()]
        assert all(count == 0 for counts in restarts for count in counts), restarts
