"""Many fake machines and pods, by kwok, on the real API server: what the operator costs there."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster import audit, objects, processes, programs, settings
from cluster import release as releases
from cluster.cluster import Cluster
from cluster.host import wait_until
from cluster.network import inside
from cluster.objects import Object
from cluster.processes import Daemon
from cluster.release import Release

FAKE = "kwok.x-k8s.io/node"
SPACE = "scale"
PROGRAM = "optcache-operator"
OPERATOR = f"system:serviceaccount:{releases.SPACE}:optcache-operator"
CHUNK = 500  # objects that are applied at once
# Where real pods go: not to machines that are not there.
REAL = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": FAKE, "operator": "DoesNotExist"}]}]
}}}}
READY_SECONDS = 1800.0


@dataclass(frozen=True)
class Size:
    machines: int
    pods: int
    datasets: int


@dataclass(frozen=True)
class Steady:
    """The leader while nothing changes."""

    resident_bytes: int
    requests_a_minute: float
    writes: list[audit.Request]  # but for the Lease


class Scale:
    def __init__(self, cluster: Cluster, release: Release, store_url: str) -> None:
        self._cluster = cluster
        self._release = release
        self._url = store_url
        paths = cluster.paths
        self._kwok = Daemon("kwok", paths.run / "control", paths.log / "kwok.log")

    def fill(self, size: Size) -> None:
        """Returns when every pod runs, as far as kwok goes, and every Dataset is Ready."""
        programs.ensure(self._cluster.paths, ["kwok"])
        self._kwok.start(
            inside(
                settings.CONTROL_NAMESPACE,
                self._cluster.paths.program("kwok"),
                f"--kubeconfig={self._cluster.paths.kubeconfig()}",
                f"--config={settings.HERE / 'addons' / 'kwok-stages.yaml'}",
                "--manage-all-nodes=false",
                f"--manage-nodes-with-annotation-selector={FAKE}=fake",
                "--node-lease-duration-seconds=40",
            )
        )
        self._cluster.apply(objects.namespace(SPACE), objects.scripts(SPACE))
        self._apply(_machine(number) for number in range(size.machines))
        self._apply(_dataset(number, self._url) for number in range(size.datasets))
        wait_until(lambda: self._count_ready() >= size.datasets, "every Dataset is Ready", READY_SECONDS)
        self._apply(_pod(number, size.machines, size.datasets) for number in range(size.pods))
        wait_until(lambda: self._count_running() >= size.pods, "every pod runs", READY_SECONDS)

    def empty(self) -> None:
        self._cluster.kubectl("delete", "namespace", SPACE, "--ignore-not-found", seconds=READY_SECONDS)
        words = ("delete", "nodes", f"--selector={FAKE}=fake", "--wait=false")  # or each is asked for
        self._cluster.kubectl(*words, seconds=READY_SECONDS)
        self._kwok.stop()

    def steady(self, seconds: float) -> Steady:
        """What the leader does in that time in which nothing else changes."""
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        time.sleep(seconds)
        with open(self._cluster.paths.audit_log, encoding="utf-8") as log:
            requests = [r for r in audit.read_requests(log, OPERATOR) if r.time >= since]
        writes = [r for r in requests if r.writes and r.resource not in ("leases", "tokenreviews")]
        return Steady(_resident(self._leader_pid()), 60 * len(requests) / seconds, writes)

    def restart(self, datasets: int) -> float:
        """Seconds from the end of both replicas until every Dataset has been reconciled again."""
        began = time.monotonic()
        for pod in self._release.pods("operator"):
            processes.kill(processes.of_pod(pod["metadata"]["uid"], PROGRAM))
        wait_until(lambda: self._reconciled() >= datasets, "every Dataset is reconciled", READY_SECONDS)
        return time.monotonic() - began

    def _reconciled(self) -> float:
        """By the leader, while nothing waits to be reconciled."""
        leader = self._release.leader()
        if not leader:
            return 0

        def sums(name: str, /, **labels: str) -> float:
            return self._release.metric("operator", name, check=False, of_pod=leader, **labels)

        if sums("workqueue_depth", name="dataset") > 0:
            return 0
        return sums("optcache_reconcile_total", controller="dataset", result="success|requeue_after")

    def _leader_pid(self) -> int:
        name = self._release.leader()
        for pod in self._release.pods("operator"):
            if pod["metadata"]["name"] == name:
                (pid,) = processes.of_pod(pod["metadata"]["uid"], PROGRAM)
                return pid
        return 0

    def _apply(self, items: Iterator[Object]) -> None:
        chunk: list[Object] = []
        for item in items:
            chunk.append(item)
            if len(chunk) == CHUNK:
                self._create(chunk)
                chunk = []
        self._create(chunk)

    def _create(self, items: Sequence[Object]) -> None:
        if items:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
            self._cluster.kubectl("create", "--filename=-", stdin=text, seconds=READY_SECONDS)

    def _count_ready(self) -> int:
        path = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        words = ("datasets", f"--namespace={SPACE}", f"--output={path}")
        return self._cluster.kubectl("get", *words).stdout.split().count("True")

    def _count_running(self) -> int:
        words = ("pods", f"--namespace={SPACE}", "--field-selector=status.phase=Running")
        return len(self._cluster.kubectl("get", *words, "--output=name").stdout.split())


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _machine(number: int) -> Object:
    name = f"fake{number:04}"
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", FAKE: "fake"}
    capacity = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {FAKE: "fake"}},
        # Our pods tolerate NoSchedule.
        "spec": {"taints": [{"key": FAKE, "value": "fake", "effect": "NoExecute"}]},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def _dataset(number: int, url: str) -> Object:
    """A few images of the store, other ones each time."""
    return objects.dataset(SPACE, f"images-{number:03}", url, order="Path", include=[f"**/*{number % 10}.png"])


def _pod(number: int, machines: int, datasets: int) -> Object:
    labels, annotations = objects.injected(f"images-{number % datasets:03}")
    pod = objects.sleeping_pod(SPACE, f"reader-{number:05}", labels, annotations)
    pod["spec"]["nodeName"] = f"fake{number % machines:04}"
    pod["spec"]["tolerations"] = [{"key": FAKE, "operator": "Exists"}]
    return pod
