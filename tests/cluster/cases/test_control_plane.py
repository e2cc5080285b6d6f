"""The operator's leader, the API server and etcd fail, each in its own way."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from cluster import admissions, audit, objects, processes, release as releases
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
# Until a Dataset is Ready that is made once the API server is back. Watches try again after at most 30 s
# and by chance as much again, as client-go's do: ours, and those of the Job controller, which makes the
# index's pod. That may find no way to the store for half a minute, while Services find their endpoints
# again: then there is a second one.
RETURN_SECONDS = 150.0
ADMISSION_SECONDS = 4.0
KILL_SECONDS = 0.2
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


def restarts(release: Release, *components: str) -> dict[str, int]:
    """By pod."""
    return {
        pod["metadata"]["name"]: sum(state["restartCount"] for state in pod["status"]["containerStatuses"])
        for component in components or ("operator",)
        for pod in release.pods(component)
    }


@contextlib.contextmanager
def kept_dead(pod: objects.Object) -> Iterator[None]:
    """Its program is killed, and again whenever the kubelet has started it."""
    over = threading.Event()

    def kill() -> None:
        while not over.wait(KILL_SECONDS):
            processes.kill(processes.of_pod(pod["metadata"]["uid"], PROGRAM))

    processes.kill([process_of(pod)])
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


def injectors(release: Release) -> set[str]:
    """Addresses that the API server may ask."""
    words = (f"--namespace={releases.SPACE}", f"--selector=kubernetes.io/service-name={PROGRAM}")
    slices = release.cluster.get("endpointslices", *words)["items"]
    endpoints = [each for one in slices for each in one.get("endpoints") or []]
    return {each["addresses"][0] for each in endpoints if each["conditions"].get("ready")}


def test_the_leader_is_killed(installed: Release, workspace: Workspace) -> None:
    """The other replica injects meanwhile; one leads again, and a Dataset that is made then becomes Ready."""
    workspace.make_dataset()
    term, dead = installed.term(), leader_pod(installed)
    address = dead["status"]["podIP"]
    with kept_dead(dead):
        wait_until(
            lambda: address not in injectors(installed), "the dead one is asked no more", RECOVERY_SECONDS
        )
        (other,) = injectors(installed)
        time.sleep(1)  # API servers follow that by a watch
        asked = admissions.admit(
            workspace.cluster.paths, pod(workspace.name, "tried"), other, ADMISSION_SECONDS, rate=4
        )
        assert asked.asked >= 4
        assert (asked.injected, asked.failures) == (asked.asked, [])
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
    """Training goes on, nothing of ours restarts; a Dataset made afterwards is Ready in RETURN_SECONDS."""
    workspace.make_dataset()
    epochs = 6 if long else 2
    # A kubelet that is late in coming back costs no rank its pod.
    taints = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    stays = {"tolerations": [{"key": taint, "operator": "Exists"} for taint in taints]}
    workspace.start_training("train", environment={**SLOW, "EPOCHS": str(epochs)}, pods=4, pod=stays)
    workspace.wait_for_batches("train", 20)
    ours = ("operator", "node")
    before, ranks = restarts(installed, *ours), workspace.identities("train")
    cluster.control.stop_api_server()
    time.sleep(180 if long else 30)
    cluster.control.start_api_server()
    assert workspace.make_dataset("after") <= RETURN_SECONDS
    workspace.wait_for_job("train", TRAINING_SECONDS)
    # Kubernetes itself moves an operator away from a node whose kubelet is late in coming back.
    after = restarts(installed, *ours)
    assert after == {pod: before.get(pod, 0) for pod in after}
    assert workspace.identities("train") == ranks  # with their sidecars
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
    """failurePolicy Ignore. Once the operator is back, an event of the Job tells of its pod."""
    sleeping = {**objects.training_container({}), "command": ["sleep", "infinity"]}
    of_pod = {"containers": [sleeping], "terminationGracePeriodSeconds": 1}
    workspace.start_training("labelled", pods=1, pod=of_pod)
    wait_until(lambda: workspace.pods("labelled"), "the Job's pod", 60)
    (stored,) = workspace.pods("labelled")
    assert "initContainers" not in stored["spec"]
    words = ("scale", f"--namespace={releases.SPACE}", "deployment/optcache-operator", "--replicas=2")
    workspace.cluster.kubectl(*words)
    no_operator.wait_ready()

    def told() -> bool:
        found = [event for event in workspace.get("events")["items"] if event["reason"] == "NotInjected"]
        about = {(event["involvedObject"]["kind"], event["involvedObject"]["name"]) for event in found}
        assert about <= {("Job", "labelled")}
        assert {event["type"] for event in found} <= {"Warning"}
        return bool(found)

    wait_until(told, "a warning about the pod without a sidecar", 300)


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
