"""The operator's leader, the API server and etcd fail, each in its own way."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator

import pytest
from cluster import audit, objects, processes, release as releases
from cluster.checks import check_samples
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.host import utc, wait_until
from cluster.release import Release
from cluster.workspace import Workspace

PROGRAM = "optcache-operator"
OPERATOR = f"system:serviceaccount:{releases.SPACE}:optcache-operator"
TAKEOVER_SECONDS = 40.0
RECOVERY_SECONDS = 30.0
SLOW = {"EPOCHS": "2", "PAUSE": "0.05"}
TRAINING_SECONDS = 600


def process_of(pod: objects.Object) -> int:
    """Its container may just be restarted."""
    uid = pod["metadata"]["uid"]
    wait_until(lambda: processes.of_pod(uid, PROGRAM), f"{PROGRAM} runs in its pod", 60)
    (pid,) = processes.of_pod(uid, PROGRAM)
    return pid


@contextlib.contextmanager
def frozen(release: Release) -> Iterator[None]:
    """All replicas are there and do nothing: shorter than their liveness probes wait."""
    before = restarts(release)
    pids = [process_of(pod) for pod in release.pods("operator")]
    for pid in pids:
        processes.send(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            processes.send(pid, signal.SIGCONT)
    assert restarts(release) == before


def leader_pod(release: Release) -> objects.Object:
    name = release.leader()
    return next(pod for pod in release.pods("operator") if pod["metadata"]["name"] == name)


def restarts(release: Release) -> int:
    return sum(
        state["restartCount"]
        for pod in release.pods("operator")
        for state in pod["status"]["containerStatuses"]
    )


def test_the_leader_is_killed(installed: Release, workspace: Workspace) -> None:
    """Another leads, or it does again once it is restarted; a Dataset that is made now becomes Ready."""
    workspace.make_dataset("before")
    term = installed.term()
    processes.kill([process_of(leader_pod(installed))])
    wait_until(lambda: installed.term() > term, "the lease is taken again", TAKEOVER_SECONDS)
    workspace.make_dataset("after")
    ready = workspace.kubectl("get", "datasets", "-o=jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
    assert ready.split() == ["True", "True"]
    installed.wait_ready()


def test_a_frozen_leader_writes_nothing_when_it_thaws(
    installed: Release, workspace: Workspace, cluster: Cluster
) -> None:
    workspace.make_dataset()
    leader = installed.leader()
    pid = process_of(leader_pod(installed))
    processes.send(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: installed.leader() not in ("", leader), "another leader", TAKEOVER_SECONDS)
        workspace.make_dataset("second")
    finally:
        thawed = utc()
        processes.send(pid, signal.SIGCONT)
    wait_until(lambda: pid not in processes.all_pids(), "the frozen leader has ended", RECOVERY_SECONDS)
    with open(cluster.paths.audit_log, encoding="utf-8") as log:
        written = [
            request
            for request in audit.read_requests(log, OPERATOR)
            if request.pod == leader and request.time >= thawed and request.writes
        ]
    assert [request for request in written if request.code < 400] == []
    installed.wait_ready()


def test_the_api_server_is_away(
    installed: Release, workspace: Workspace, cluster: Cluster, long: bool
) -> None:
    """Training goes on, no pod of ours restarts, and afterwards all is as it was within seconds."""
    workspace.make_dataset()
    epochs = 6 if long else 2
    workspace.start_training("train", environment={**SLOW, "EPOCHS": str(epochs)}, pods=4)
    workspace.wait_for_batches("train", 20)
    before = restarts(installed)
    cluster.control.stop_api_server()
    time.sleep(180 if long else 30)
    cluster.control.start_api_server()
    workspace.make_dataset("after")
    assert restarts(installed) == before
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", pods=4, epochs=epochs)


def test_what_happened_before_a_compaction_is_not_missed(
    installed: Release, workspace: Workspace, cluster: Cluster
) -> None:
    """Both replicas are frozen while objects come and go and etcd forgets: their watches are too old."""
    workspace.make_dataset("gone")
    with frozen(installed):
        cluster.control.stop_api_server()
        cluster.control.start_api_server()
        workspace.kubectl("delete", "dataset/gone", "--wait=false")
        workspace.apply(objects.dataset(workspace.name, "new", workspace.store.url))
        cluster.control.compact_etcd()
    workspace.wait_for("dataset/new", "condition=Ready", 120)
    workspace.kubectl("wait", "--for=delete", "dataset/gone", "--timeout=60s")
    installed.wait_ready()


@pytest.fixture
def no_operator(installed: Release) -> Iterator[Release]:
    def scale(replicas: int) -> None:
        words = ("scale", f"--namespace={releases.SPACE}", "deployment/optcache-operator")
        installed.cluster.kubectl(*words, f"--replicas={replicas}")

    scale(0)
    wait_until(lambda: installed.pods("operator", ending=True) == [], "no operator", 90)
    yield installed
    scale(2)
    installed.wait_ready()


def pod(space: str, name: str, inject: bool = True) -> objects.Object:
    labels, annotations = objects.injected("images") if inject else ({}, {})
    return objects.sleeping_pod(space, name, labels, annotations)


def test_without_an_injector_pods_start_and_are_told_of(
    no_operator: Release, workspace: Workspace
) -> None:
    """failurePolicy Ignore. Once the operator is back, an event says which pod had no sidecar."""
    workspace.apply(pod(workspace.name, "labelled"))
    stored = workspace.get("pod/labelled")
    assert "initContainers" not in stored["spec"]
    words = ("scale", f"--namespace={releases.SPACE}", "deployment/optcache-operator", "--replicas=2")
    workspace.cluster.kubectl(*words)
    no_operator.wait_ready()

    def told() -> bool:
        events = workspace.get("events")["items"]
        return any(
            event["involvedObject"]["name"] == "labelled" and event["type"] == "Warning"
            for event in events
        )

    wait_until(told, "a warning about the pod without a sidecar", 60)


def test_with_policy_fail_only_labelled_pods_wait(
    installed: Release, workspace: Workspace
) -> None:
    installed.install({"webhook": {"failurePolicy": "Fail"}})
    workspace.make_dataset()
    with frozen(installed):
        workspace.apply(pod(workspace.name, "plain", inject=False))
        with pytest.raises(ClusterError, match="failed calling webhook"):
            workspace.apply(pod(workspace.name, "labelled"))
    workspace.apply(pod(workspace.name, "labelled"))
    assert workspace.get("pod/labelled")["spec"]["initContainers"][0]["name"] == "optcache-sidecar"
