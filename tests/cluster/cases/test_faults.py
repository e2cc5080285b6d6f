"""Machines and node pods go, and the training job does not notice."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from cluster import objects, processes
from cluster.checks import check_samples
from cluster.cluster import Cluster
from cluster.host import wait_until
from cluster.release import Release
from cluster.workspace import Workspace

PODS = 4
TRAINING_SECONDS = 600
SLOW = {"EPOCHS": "2", "PAUSE": "0.05"}
HOST = "kubernetes.io/hostname"


def on(*machines: str) -> objects.Object:
    """Affinity of a pod to these machines."""
    expression = {"key": HOST, "operator": "In", "values": list(machines)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.fixture
def bare_machine(installed: Release) -> Iterator[str]:
    """A machine on which no node of the cache runs, as long as the case lasts."""
    installed.install({"node": {"affinity": on("node1", "node2")}})
    wait_until(lambda: len(installed.pods("node")) == 2, "two nodes of the cache", 120)
    yield "node3"
    installed.install()


def test_a_pod_without_a_node_beside_it_reads_the_store(
    bare_machine: str, workspace: Workspace
) -> None:
    """Its first batch comes at most a second later than without us."""
    workspace.make_dataset()
    environment = {"STORE_URL": workspace.store.url, "EPOCHS": "1", "PAUSE": "0"}
    pod = {"affinity": on(bare_machine)}
    seconds = {}
    for name, inject in (("plain", False), ("injected", True)):
        workspace.start_training(name, pods=1, environment=environment, pod=pod, inject=inject)
        workspace.wait_for_batches(name, 1)
        (rank,) = workspace.ranks(name)
        assert rank.cached == inject
        seconds[name] = rank.batch_times[0] - rank.imported_at
    assert seconds["injected"] <= seconds["plain"] + 1, seconds
    workspace.wait_for_job("injected", TRAINING_SECONDS)
    check_samples(workspace, "injected", pods=1, epochs=1)


def test_a_node_pod_is_killed(installed: Release, workspace: Workspace) -> None:
    workspace.make_dataset()
    workspace.start_training("train", environment=SLOW, pods=PODS)
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
    workspace.start_training("train", environment=SLOW, pods=PODS, pod=pod)
    workspace.wait_for_batches("train", 20)
    lost = cluster.workers[2]
    lost.lose_power()
    try:
        workspace.wait_for_job("train", TRAINING_SECONDS)
        check_samples(workspace, "train", PODS, epochs=2)
    finally:
        cluster.up()
    installed.wait_ready()


def test_a_sidecar_is_killed(at_length: None, installed: Release, workspace: Workspace) -> None:
    """It is restarted in its pod; the training process goes on and loses no sample."""
    workspace.make_dataset()
    workspace.start_training("train", environment=SLOW, pods=PODS)
    workspace.wait_for_batches("train", 20)
    victim = workspace.pods("train")[0]["metadata"]
    (pid,) = processes.of_pod(victim["uid"], "optcache-sidecar")
    processes.kill([pid])
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, epochs=2)


def test_a_namespace_goes_with_all_that_is_in_it(installed: Release, workspace: Workspace) -> None:
    workspace.make_dataset()
    workspace.start_training("train", environment=SLOW, pods=2)
    workspace.wait_for_batches("train", 3)
    workspace.delete(seconds=90)
    left = workspace.cluster.kubectl("get", "namespace", workspace.name, "--ignore-not-found").stdout
    assert left == ""


def test_a_frozen_node_holds_nobody_up(
    at_length: None, installed: Release, workspace: Workspace
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
