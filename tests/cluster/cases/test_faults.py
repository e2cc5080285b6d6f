"""Machines and node pods go, and the training job does not notice."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
from cluster import objects, processes, release as releases
from cluster.checks import check_samples
from cluster.cluster import Cluster
from cluster.host import wait_until
from cluster.release import Release
from cluster.workspace import Workspace

PODS = 4
TRAINING_SECONDS = 600
DRAIN_SECONDS = 90
SILENCE_SECONDS = 120
FAST = {"EPOCHS": "1", "PASSES": "0", "PAUSE": "0", "BATCH": "32"}
SLOW = {"EPOCHS": "2", "PAUSE": "0.05"}
BRISK = {**SLOW, "BATCH": "32"}  # where the fault takes a moment
LASTING_EPOCHS = 4
LASTING = {**SLOW, "EPOCHS": str(LASTING_EPOCHS)}
HOST = "kubernetes.io/hostname"
# Of a first batch, later than without us: once the ranks have met; and from the Job's creation on, with
# the start of one more container, whose probe asks each second.
READ_LATER_SECONDS = 1.0
START_LATER_SECONDS = 5.0


def on(*machines: str) -> objects.Object:
    """Affinity of a pod to these machines."""
    expression = {"key": HOST, "operator": "In", "values": list(machines)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.fixture
def bare_machine(installed: Release) -> Iterator[str]:
    """A machine on which no node of the cache runs, as long as the case lasts."""

    def mark(label: str, nodes: int) -> None:
        installed.cluster.kubectl("label", "node", "node3", label)
        wait_until(lambda: len(installed.pods("node")) == nodes, f"{nodes} nodes of the cache", 120)

    mark(f"{releases.BARE}=", 2)
    yield "node3"
    mark(f"{releases.BARE}-", 3)
    installed.wait_ready()


def test_a_pod_without_a_node_beside_it_reads_the_store(
    bare_machine: str, workspace: Workspace
) -> None:
    """Its first batch comes hardly later than without us, from the Job's creation on."""
    workspace.make_dataset()
    environment = {"STORE_URL": workspace.store.url, "EPOCHS": "1", "PAUSE": "0"}
    pod = {"affinity": on(bare_machine)}
    read, started = {}, {}
    for name, inject in (("plain", False), ("injected", True)):
        created = time.time()
        workspace.start_training(name, pods=1, environment=environment, pod=pod, inject=inject)
        workspace.wait_for_batches(name, 1)
        (rank,) = workspace.ranks(name)
        assert rank.cached == inject
        read[name] = rank.batch_times[0] - rank.met_at
        started[name] = rank.began_at + rank.batch_times[0] - created
        if not inject:  # it would read 14,059 images as fast as it can, beside the other
            workspace.kubectl("delete", f"job/{name}", "--cascade=foreground", "--timeout=60s")
    assert read["injected"] <= read["plain"] + READ_LATER_SECONDS, read
    assert started["injected"] <= started["plain"] + START_LATER_SECONDS, started
    workspace.wait_for_job("injected", TRAINING_SECONDS)
    check_samples(workspace, "injected", pods=1, epochs=1)


def test_a_node_pod_is_killed(installed: Release, workspace: Workspace) -> None:
    workspace.make_dataset()
    workspace.start_training("train", environment=BRISK, pods=PODS)
    workspace.wait_for_batches("train", 20)
    victim = installed.pods("node")[0]["metadata"]
    (pid,) = processes.of_pod(victim["uid"], "optcache-node")
    processes.kill([pid])
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, epochs=2)
    installed.wait_ready()


def test_a_machine_is_lost(installed: Release, workspace: Workspace, cluster: Cluster) -> None:
    """The ranks are elsewhere; what the lost machine kept for them comes from the store."""
    workspace.make_dataset()
    pod = {"affinity": on("node1", "node2")}
    workspace.start_training("train", environment=BRISK, pods=PODS, pod=pod)
    workspace.wait_for_batches("train", 20)
    lost = cluster.workers[2]
    lost.lose_power()
    try:
        workspace.wait_for_job("train", TRAINING_SECONDS)
        check_samples(workspace, "train", PODS, epochs=2)
    finally:
        cluster.up()
    installed.wait_ready()


def held(workspace: Workspace) -> dict[str, int]:
    """Bytes of the Dataset by machine."""
    nodes = workspace.get("dataset/images")["status"].get("nodes", [])
    return {node["name"]: node["bytes"] for node in nodes}


def placement(workspace: Workspace) -> str:
    conditions = workspace.get("dataset/images")["status"]["conditions"]
    return next(str(each["message"]) for each in conditions if each["type"] == "Placed")


@pytest.mark.long
def test_a_machine_is_cordoned(
    installed: Release, workspace: Workspace, cluster: Cluster
) -> None:
    """As before a reboot: what lies there goes to the others, and the next job reads it there."""
    workspace.make_dataset()
    workspace.start_training("first", environment=FAST, pods=PODS)
    workspace.wait_for_job("first", TRAINING_SECONDS)
    wait_until(lambda: sum(held(workspace).values()) > 0, "bytes in the status", DRAIN_SECONDS)
    before = held(workspace)
    machine = max(before, key=lambda name: before[name])
    cordoned = f"{machine}: cordoned"
    cluster.kubectl("cordon", machine)
    try:
        wait_until(lambda: cordoned in placement(workspace), f"nothing is placed on {machine}", DRAIN_SECONDS)
        wait_until(lambda: held(workspace).get(machine, 0) == 0, f"nothing on {machine}", DRAIN_SECONDS)
        assert sum(held(workspace).values()) > 0
        workspace.start_training("second", environment=BRISK, pods=PODS)
        workspace.wait_for_job("second", TRAINING_SECONDS)
        check_samples(workspace, "second", PODS, epochs=2)
    finally:
        cluster.kubectl("uncordon", machine)
    wait_until(lambda: cordoned not in placement(workspace), f"{machine} may hold it again", DRAIN_SECONDS)


@pytest.mark.long
def test_a_sidecar_is_killed(installed: Release, workspace: Workspace) -> None:
    """It is restarted in its pod; the training process goes on and loses no sample."""
    workspace.make_dataset()
    workspace.start_training("train", environment=SLOW, pods=PODS)
    workspace.wait_for_batches("train", 20)
    victim = workspace.pods("train")[0]["metadata"]
    (pid,) = processes.of_pod(victim["uid"], "optcache-sidecar")
    processes.kill([pid])
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, epochs=2)


@pytest.mark.long
def test_a_frozen_sidecar_holds_nobody_up(installed: Release, workspace: Workspace) -> None:
    """Its training process reads the web server itself, to the end."""
    workspace.make_dataset()
    workspace.start_training("train", environment=SLOW, pods=PODS)
    workspace.wait_for_batches("train", 20)
    victim = workspace.pods("train")[0]["metadata"]
    (pid,) = processes.of_pod(victim["uid"], "optcache-sidecar")
    processes.send(pid, signal.SIGSTOP)
    try:
        wait_until(
            lambda: f"reading samples from {workspace.store.url}" in workspace.log(victim["name"]),
            "it reads the store",
            TRAINING_SECONDS,
        )
        wait_until(
            lambda: all(rank.batch_times for rank in workspace.ranks("train"))
            and not processes.of_pod(victim["uid"], "python3"),
            "the training process ends",
            TRAINING_SECONDS,
        )
    finally:
        processes.send(pid, signal.SIGCONT)
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, epochs=2)


def test_a_namespace_goes_with_all_that_is_in_it(installed: Release, workspace: Workspace) -> None:
    workspace.make_dataset()
    workspace.start_training("train", environment=SLOW, pods=2)
    workspace.wait_for_batches("train", 3)
    workspace.delete(seconds=90)
    left = workspace.cluster.kubectl("get", "namespace", workspace.name, "--ignore-not-found").stdout
    assert left == ""


@pytest.mark.long
def test_a_frozen_node_holds_nobody_up(
    installed: Release, workspace: Workspace
) -> None:
    """A process that is there but does not answer."""
    workspace.make_dataset()
    workspace.start_training("train", environment=SLOW, pods=PODS)
    workspace.wait_for_batches("train", 20)
    victim = installed.pods("node")[0]["metadata"]
    (pid,) = processes.of_pod(victim["uid"], "optcache-node")
    processes.send(pid, signal.SIGSTOP)
    try:
        workspace.wait_for_job("train", TRAINING_SECONDS)
        check_samples(workspace, "train", PODS, epochs=2)
    finally:
        processes.send(pid, signal.SIGCONT)
    installed.wait_ready()


def source_reachable(workspace: Workspace) -> str:
    conditions = workspace.get("dataset/images")["status"]["conditions"]
    return next(str(each["reason"]) for each in conditions if each["type"] == "SourceReachable")


@pytest.mark.long
def test_a_store_that_is_away_for_a_while(
    installed: Release, workspace: Workspace, cluster: Cluster
) -> None:
    """Training waits for it, the Dataset says so, and no sample is lost."""
    workspace.make_dataset()
    workspace.start_training("train", environment=LASTING, pods=PODS)
    workspace.wait_for_batches("train", 20)
    scale = ("scale", "deployment/store", f"--namespace={workspace.store.SPACE}")
    cluster.kubectl(*scale, "--replicas=0")
    try:
        wait_until(lambda: source_reachable(workspace) == "StoreSilent", "the store is away", SILENCE_SECONDS)
    finally:
        cluster.kubectl(*scale, "--replicas=1")
        workspace.store.start()
    wait_until(lambda: source_reachable(workspace) == "StoreAnswers", "it is back", SILENCE_SECONDS)
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, epochs=LASTING_EPOCHS)
