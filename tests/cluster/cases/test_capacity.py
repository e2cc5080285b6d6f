"""Datasets that together ask for more than nodes offer."""

from __future__ import annotations

from typing import Any

from cluster.host import wait_until
from cluster.release import VALUES, Release
from cluster.workspace import Workspace

FLOOR = 32 << 20
FOR_EVER = "1000"  # epochs: the jobs go with the namespace
# A rate is known after a second and 2 % of an epoch.
DIVIDED_SECONDS = 120
PAUSES = {"fast": "0", "slow": "1"}


def test_memory_goes_where_it_saves_most(installed: Release, workspace: Workspace) -> None:
    """The Dataset that is read fast has all that it asks for, a guarantee is kept, and status says why."""
    node = installed.pods("node")[0]["spec"]["nodeName"]
    whole = workspace.samples.dataset.total_bytes
    offered = int(VALUES["node"]["memory"].removesuffix("Mi")) << 20
    assert whole + FLOOR < offered < 3 * whole
    placement = {"nodeSelector": {"kubernetes.io/hostname": node}}
    wanted: dict[str, dict[str, int]] = {"idle": {"minCapacity": FLOOR}, "slow": {}, "fast": {}}
    for name, cache in wanted.items():
        workspace.make_dataset(name, cache={"capacity": "100%", **cache}, placement=placement)

    def capacity(name: str) -> Any:
        return workspace.get(f"dataset/{name}")["status"]["capacity"]

    about = whole // 100
    wait_until(
        lambda: abs(capacity("fast")["granted"] - offered // 3) < about,
        "Datasets that no job reads share what there is",
        30,
    )
    for name, pause in PAUSES.items():
        environment = {"EPOCHS": FOR_EVER, "PAUSE": pause}
        workspace.start_training(name, name, pods=1, environment=environment)

    def is_divided() -> bool:
        """By rates that are both known: the job that begins first has all of it for a while."""
        slow, fast = capacity("slow"), capacity("fast")
        return (
            fast["savedBytesPerSecond"] > slow["savedBytesPerSecond"] > 0
            and fast["granted"] == whole
            and abs(slow["granted"] - (offered - whole - FLOOR)) < about
            and capacity("idle")["granted"] == FLOOR
        )

    wait_until(
        is_divided,
        "all of it for what is read fast, and a guarantee for what no job reads",
        DIVIDED_SECONDS,
    )
    assert capacity("slow")["maximum"] == whole

    def said(name: str, condition: str) -> str:
        held = workspace.get(f"dataset/{name}")["status"]["conditions"]
        return str(next(item["message"] for item in held if item["type"] == condition))

    rival = f"the next byte is worth more to {workspace.name}/fast"
    assert rival in said("slow", "Placed")
    assert rival in said("slow", "Degraded")
    assert "no job reads it" in said("idle", "Placed")
