"""Nodes with a disk below their memory."""

from __future__ import annotations

from cluster.checks import check_samples
from cluster.host import utc, wait_until
from cluster.release import Release
from cluster.workspace import Workspace

PODS = 4
EPOCHS = 3
TRAINING_SECONDS = 600
DIVIDED_SECONDS = 60
# Of three nodes: memory for a third of the images, which are 133 MB, and disks for the rest.
NODE = {"memory": "16Mi", "disk": {"enabled": True, "capacity": "128Mi", "volume": "emptyDir"}}
NODES = 3
MEMORY = NODES * (16 << 20)
DATASETS = {"images": ["Memory", "Disk"], "memory-only": ["Memory"]}


def test_what_memory_has_no_room_for_lies_on_disk(installed: Release, workspace: Workspace) -> None:
    """What the plan keeps is kept, and status says how much lies where."""
    installed.install({"node": NODE})
    for name, tiers in DATASETS.items():
        workspace.make_dataset(name, cache={"capacity": "100%", "tiers": tiers})
    total = workspace.samples.dataset.total_bytes
    assert total > 2 * MEMORY

    def offered(name: str, **which: str) -> float:
        dataset = f"{workspace.name}/{name}"
        return installed.metric("node", "optcache_cache_capacity_bytes", dataset=dataset, **which)

    def is_divided() -> bool:
        """As nodes know it, in whole bytes: half of the memory each, and disks for what it lacks."""
        has_all = offered("images") + NODES >= total and offered("images", tier="disk") > total - MEMORY
        return has_all and 0 < offered("memory-only") < MEMORY

    wait_until(is_divided, "Datasets that no job reads share the memory", DIVIDED_SECONDS)
    since = utc()
    workspace.start_training("train", environment={"EPOCHS": str(EPOCHS)}, pods=PODS)
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, EPOCHS)
    # As the plan has it: what a third of all has no room for is not kept, for images of several MB.
    name = f"{workspace.name}/images"
    asked = installed.metric("node", "optcache_request_bytes_total", dataset=name)
    planned, missed = (
        installed.metric("node", "optcache_plan_predicted_request_bytes_total", dataset=name, **which)
        for which in ({}, {"result": "miss"})
    )
    read = workspace.store.reads(since, workspace.samples)
    assert missed <= 0.7 * planned
    assert read.body_bytes <= 1.1 * (missed + asked - planned)

    capacity = workspace.get("dataset/images")["status"]["capacity"]
    assert total - NODES <= capacity["granted"] <= total  # divided by nodes, in whole bytes
    assert total - MEMORY <= capacity["onDisk"] < total
    status = workspace.get("dataset/memory-only")["status"]
    assert "onDisk" not in status["capacity"]
    assert status["capacity"]["granted"] <= MEMORY
    conditions = {each["type"]: each["message"] for each in status["conditions"]}
    assert "on disk" not in conditions["Placed"]

    assert installed.metric("node", "optcache_tier_hits_total", dataset=name, tier="disk") > 0
    assert installed.metric("node", "optcache_disk_used_bytes") > 0
    assert installed.metric("node", "optcache_disk_out_of_use") == 0
    assert installed.metric("node", "optcache_disk_errors_total") == 0
