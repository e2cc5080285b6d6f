"""All parts of a cluster but its kubelets, which the test plays: from helm install to reading on without us.

A real API server, the operator with the chart's rights, the node and the sidecar as the DaemonSet and the
injector want them, and the index Job as the operator makes it. No root, no container.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optcache
import pytest
from cluster import audit
from conftest import ROOT, SYSTEM, Cluster, Operator
from harness.dataset import Dataset, generate
from harness.kubelet import Container, Kubelet, new_address
from harness.store import LISTING, Store
from harness.webhook_door import WebhookDoor

DATASETS = "/apis/optcache.io/v1alpha1/namespaces/vision/datasets"
PLANS = "/apis/optcache.io/v1alpha1/namespaces/vision/cacheplans"
JOBS = "/apis/batch/v1/namespaces/vision/jobs"
EVENTS = "/apis/events.k8s.io/v1/namespaces/vision/events"
PODS = "/api/v1/namespaces/vision/pods"
SYSTEM_PODS = f"/api/v1/namespaces/{SYSTEM}/pods"
INJECTOR = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/optcache-injector"
NODES = f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets/optcache-node"
VALUES = ("image.prefix=registry.example.com/team/", "node.memory=64Mi", "node.samples=10000", "node.stateSize=256Mi")
SAMPLES = 300
BATCH = 32
HEDGED = 1.1
HEADSPACE = "steps=20,free-steps=20,warmup-steps=0"
# Requests of a rank, of which some 200 are enough: docs/formats/headspace.md.
HEADSPACE_BATCH, HEADSPACE_EPOCHS = 4, 4
RUN_SECONDS = 120

Object = dict[str, Any]


def values() -> list[str]:
    return [f"--set={value}" for value in VALUES]


@dataclass
class Training:
    """A pod whose sidecar runs, and what its training container is given."""

    pod: Object
    sidecar: Container
    environment: dict[str, str]


@dataclass
class Scene:
    cluster: Cluster
    kubelet: Kubelet
    store: Store
    samples: Dataset
    door: WebhookDoor
    operator: Operator

    def condition(self, kind: str) -> str:
        found = self.cluster.get(f"{DATASETS}/images").get("status", {}).get("conditions", [])
        return next((f"{each['status']} {each['reason']}" for each in found if each["type"] == kind), "")

    def start_operator(self, name: str) -> None:
        self.operator = self.cluster.start_operator(name, host=new_address())
        self.cluster.wait(lambda: self.operator.page("/readyz").code == 200, f"{name} is ready")
        self.cluster.wait(
            lambda: self.operator.metric("leader_election_master_status") == 1, f"{name} leads"
        )
        self.door.target = self.operator.host, self.operator.webhook
        self.kubelet.serve(self.operator.host, f"optcache-operator.{SYSTEM}.svc")

    def create_pod(self, path: str, name: str, template: Object, account: str, machine: str) -> Object:
        """As controllers do, and the plugin ServiceAccount and the scheduler."""
        metadata = {"name": name, **template.get("metadata", {})}
        spec = {**template["spec"], "serviceAccountName": account, "nodeName": machine}
        self.cluster.create(path, {"metadata": metadata, "spec": spec})
        address = new_address()
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
        self.cluster.patch(f"{path}/{name}/status", {"status": status})
        return self.cluster.get(f"{path}/{name}")

    def read(self, training: Training) -> None:
        """Every sample once, each with the right bytes."""
        said = training.environment
        images = optcache.Dataset(said["OPTCACHE_DATASET"], socket=said["OPTCACHE_SOCKET"], copy=True)
        assert len(images) == len(self.samples.paths)
        for first in range(0, len(images), BATCH):
            ids = list(range(first, min(first + BATCH, len(images))))
            for index, sample in zip(ids, images.__getitems__(ids), strict=True):
                assert hashlib.sha256(sample).digest() == hashlib.sha256(self.samples.read(index)).digest()


def certificate_for_localhost(cluster: Cluster, folder: Path) -> tuple[Path, Path]:
    """Of the installation's own authority, whose bundle the operator writes into the configuration."""
    secret = cluster.get(f"/api/v1/namespaces/{SYSTEM}/secrets/optcache-pki")["data"]
    for name in ("ca.crt", "ca.key"):
        (folder / name).write_bytes(base64.b64decode(secret[name]))
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    key, request, chain = folder / "door.key", folder / "door.csr", folder / "door.crt"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    commands = (
        ["openssl", "req", "-new", *curve, "-keyout", key, "-out", request, "-subj", "/CN=door"],
        ["openssl", "x509", "-req", "-in", request, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key"]
        + ["-CAcreateserial", "-days", "1", "-extfile", folder / "names", "-out", chain],
    )
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)
    return chain, key


@pytest.fixture(scope="module")
def scene(cluster: Cluster, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("whole")
    samples = generate(tmp_path_factory.mktemp("samples"), SAMPLES, seed=7)
    for name in ("store", "door"):
        (folder / name).mkdir()
    done = cluster.api.helm("upgrade", "optcache", str(ROOT / "charts/optcache"), f"--namespace={SYSTEM}", *values())
    assert done.code == 0, done.err
    operator = cluster.start_operator("optcache-operator-0", host=new_address())
    cluster.wait(lambda: operator.page("/readyz").code == 200, "the operator is ready")

    def ask(method: str, path: str, body: Object | None) -> Object:
        answer = cluster.api.request(method, path, body)
        return answer.json() if answer.code in (200, 201) else {}

    kubelet = Kubelet(ask, programs, folder)
    secret = f"/api/v1/namespaces/{SYSTEM}/secrets/optcache-pki"
    cluster.wait(lambda: "ca.key" in cluster.get(secret).get("data", {}), "there is an authority")
    chain, key = certificate_for_localhost(cluster, folder / "door")
    with Store(samples.root, folder / "store") as store, WebhookDoor(chain, key, (operator.host, operator.webhook)) as door:
        samples.write_listing(store.listing_file)
        hooks = cluster.get(INJECTOR)["webhooks"]
        for hook in hooks:
            hook["clientConfig"].pop("service")
            hook["clientConfig"]["url"] = f"{door.url}/mutate"
        cluster.patch(INJECTOR, {"webhooks": hooks})
        made = Scene(cluster, kubelet, store, samples, door, operator)
        kubelet.serve(operator.host, f"optcache-operator.{SYSTEM}.svc")
        for space in ("vision", "speech"):
            cluster.namespace(space)
            cluster.create(f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "default"}})
        try:
            yield made
        finally:
            kubelet.stop_all()


@pytest.fixture(scope="module")
def node(scene: Scene) -> Container:
    """As the DaemonSet wants it, on one machine."""
    template = scene.cluster.get(NODES)["spec"]["template"]
    pod = scene.create_pod(SYSTEM_PODS, "optcache-node-x", template, "optcache-node", "machine-x")
    # What the plugin ServiceAccount mounts into each pod.
    token = scene.cluster.folder / "node-token"
    token.write_text(scene.cluster.token("optcache-node", pod=pod))
    api = scene.cluster.api
    access = ("--api-server", f"https://127.0.0.1:{api.port}", "--api-token-file", str(token))
    access += ("--api-ca", str(api.folder / "certificates" / "apiserver.crt"))
    started = scene.kubelet.start(pod, template["spec"]["containers"][0], "optcache-node", *access)
    scene.kubelet.serve(started.address, *(f"optcache-{name}.{SYSTEM}.svc" for name in ("node", "nodes")))
    scene.cluster.wait(lambda: started.answers(4101, "readyz"), f"the node is ready: {started.log}")
    return started


@pytest.fixture(scope="module")
def images(scene: Scene, node: Container) -> str:
    """A Dataset that is indexed by the operator's Job, and served."""
    cluster = scene.cluster
    source = {"http": {"baseURL": scene.store.base_url, "listing": LISTING}}
    spec = {"source": source, "cache": {"capacity": "100%"}, "order": "ImageFolder"}
    kind = {"apiVersion": "optcache.io/v1alpha1", "kind": "Dataset", "metadata": {"name": "images"}}
    cluster.create(DATASETS, {**kind, "spec": spec})
    cluster.wait(lambda: bool(cluster.get(JOBS).get("items")), "the index Job is made")
    cluster.wait(lambda: "ca.crt" in bundle(cluster), "the bundle is in the namespace")
    (job,) = cluster.get(JOBS)["items"]
    name, template = job["metadata"]["name"], job["spec"]["template"]
    template["metadata"]["labels"]["batch.kubernetes.io/job-name"] = name
    pod = scene.create_pod(PODS, f"{name}-x", template, "default", "machine-x")
    (container,) = template["spec"]["containers"]
    cluster.finish_job("vision", name, scene.kubelet.run(pod, container, "optcache-sidecar"))
    cluster.wait(lambda: scene.condition("Ready").startswith("True"), "the Dataset is ready")
    return "vision/images"


def bundle(cluster: Cluster) -> Object:
    found: Object = cluster.get("/api/v1/namespaces/vision/configmaps/optcache-ca").get("data", {})
    return found


def training_pod(dataset: str, **annotations: str) -> Object:
    return {
        "metadata": {
            "labels": {"optcache.io/inject": "true"},
            # There is no image here that would bring the Python package.
            "annotations": {
                "optcache.io/dataset": dataset,
                "optcache.io/arena": "16Mi",
                "optcache.io/python": "false",
                **{f"optcache.io/{name}": text for name, text in annotations.items()},
            },
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "train", "image": "pytorch:2"}]},
    }


def start_training_pod(scene: Scene, name: str, template: Object) -> Training:
    pod = scene.create_pod(PODS, name, template, "default", "machine-x")
    (sidecar,) = pod["spec"]["initContainers"]
    assert (sidecar["name"], sidecar["command"]) == ("optcache-sidecar", ["optcache-sidecar"])
    started = scene.kubelet.start(pod, sidecar, "optcache-sidecar")
    (train,) = pod["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in train["env"]}
    socket = scene.kubelet.file(pod, train, environment["OPTCACHE_SOCKET"])
    scene.cluster.wait(lambda: started.runs() and socket.exists(), "the sidecar listens")
    return Training(pod, started, {**environment, "OPTCACHE_SOCKET": str(socket)})


def test_a_pod_reads_and_the_next_one_finds_it_in_the_cache(scene: Scene, images: str) -> None:
    begin = scene.store.log_size()
    scene.read(start_training_pod(scene, "first", training_pod("images")))
    reads = [line.split(" ", 4)[4] for line in scene.store.access_log(begin).splitlines()]
    assert len(set(reads)) == SAMPLES
    assert len(reads) <= HEDGED * SAMPLES, "each sample once, but for reads that are late and asked for once more"
    begin = scene.store.log_size()
    scene.read(start_training_pod(scene, "second", training_pod("images")))
    assert scene.store.read_bytes(begin) == 0


def test_who_leads_is_killed_and_pods_are_injected_by_the_next(scene: Scene, images: str) -> None:
    scene.operator.process.send_signal(signal.SIGKILL)
    scene.operator.process.wait()
    scene.start_operator("optcache-operator-1")
    scene.cluster.wait(lambda: scene.condition("Ready").startswith("True"), "the Dataset is ready")
    begin = scene.store.log_size()
    scene.read(start_training_pod(scene, "third", training_pod("images")))
    assert scene.store.read_bytes(begin) == 0


def run_rank(scene: Scene, training: Training, folder: Path) -> list[int]:
    """A rank trains to its end; how many samples of each step were others than it had asked for."""
    from harness import paced_rank

    scene.samples.write_digests(folder / "digests")
    pace = paced_rank.Pace(
        digests=str(folder / "digests"),
        records=str(folder / "records"),
        compute_seconds=0.002,
        batch=HEADSPACE_BATCH,
        epochs=HEADSPACE_EPOCHS,
        workers=1,
    )
    command = [sys.executable, paced_rank.__file__, paced_rank.save(pace, folder / "pace.json")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **training.environment}
    subprocess.run(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, timeout=RUN_SECONDS, check=True)
    return [wrong for _, wrong in map(json.loads, (folder / "records").read_text().splitlines())]


def end_pod(scene: Scene, training: Training) -> str:
    """Its sidecar ends, and the API server is told so; the termination message."""
    (container,) = training.pod["spec"]["initContainers"]
    scene.kubelet.stop(training.sidecar)
    message = scene.kubelet.termination_file(training.pod, container).read_text()
    scene.cluster.end_pod("vision", training.pod["metadata"]["name"], container["name"], message, init=True)
    return message


def test_headspace_is_measured_where_an_annotation_asks_for_it(scene: Scene, images: str, tmp_path: Path) -> None:
    """The job that owns the pod has an Event of it, and what was trained is marked as not for use."""
    pytest.importorskip("torch")
    template = training_pod("images", headspace=HEADSPACE)
    job = scene.cluster.create(
        JOBS, {"metadata": {"name": "measured"}, "spec": {"suspend": True, "template": template}}
    )["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job["name"], "uid": job["uid"], "controller": True}
    template["metadata"]["ownerReferences"] = [owner]
    training = start_training_pod(scene, "measured-0", template)
    assert training.pod["metadata"]["annotations"]["optcache.io/results"] == "not-for-use"

    others = run_rank(scene, training, tmp_path)
    assert len(others) == HEADSPACE_EPOCHS * SAMPLES / HEADSPACE_BATCH
    assert any(others) and not others[0] and not others[-1]
    with urllib.request.urlopen(f"http://{training.sidecar.address}:4103/headspace", timeout=30) as page:
        report = json.load(page)
    assert (report["state"], report["results"], report["ranks"]) == ("done", "not-for-use", 1)

    said = json.loads(end_pod(scene, training))["headspace"]
    assert said == {"state": "done", "message": report["message"]}

    def told() -> list[Object]:
        events = scene.cluster.get(EVENTS)["items"]
        return [each for each in events if each["reason"] == "HeadspaceMeasured" and each["regarding"]["uid"] == job["uid"]]

    scene.cluster.wait(lambda: bool(told()), "the job has an Event")
    (event,) = told()
    assert event["note"] == f"pod measured-0: {report['message']} What it trained is not for use"


def test_a_pod_of_another_namespace_is_refused(scene: Scene, images: str) -> None:
    pod = training_pod(images)
    pod["metadata"]["name"] = "stranger"
    answer = scene.cluster.api.request("POST", "/api/v1/namespaces/speech/pods", pod)
    assert answer.code == 400 or answer.code == 403, answer.out
    assert images in json.loads(answer.out)["message"]


@pytest.mark.long
def test_a_node_that_is_silent_is_missed(scene: Scene, images: str, node: Container, programs: Path) -> None:
    """Who looks with kubectl, or asks how the plan stands, hears of it, until it reports again."""

    def told(what: str) -> str:
        (plan,) = scene.cluster.get(PLANS)["items"]
        if what == "degraded":
            found = plan.get("status", {}).get("conditions", [])
            return next((f"{each['status']} {each['reason']}" for each in found if each["type"] == "Degraded"), "")
        api = scene.cluster.api
        done = subprocess.run(
            [programs / "optcache", *what.split(), plan["metadata"]["name"], "--namespace=vision"],
            env={
                "PATH": f"{api.programs}:{os.environ['PATH']}",
                "KUBECONFIG": str(api.kubeconfig),
                "HOME": str(api.folder),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout + done.stderr

    scene.cluster.wait(lambda: told("degraded").startswith("False"), "all is as wanted")
    os.killpg(node.process.pid, signal.SIGSTOP)
    try:
        scene.cluster.wait(lambda: told("degraded") == "True NodesMissing", "it is missed")
        assert "NodesMissing" in told("plan show") and "machine-x" in told("plan show")
        assert "NodesMissing" in told("rollout status --watch=false")
        rows = scene.cluster.api.kubectl("get", "cacheplan", "--namespace=vision", "--output=wide").out.splitlines()
        assert rows[0].split()[-1] == "DEGRADED" and rows[1].split()[-1] == "True"
    finally:
        os.killpg(node.process.pid, signal.SIGCONT)
    scene.cluster.wait(lambda: told("degraded").startswith("False"), "it reports again")


def test_nothing_was_refused_to_us(scene: Scene, images: str) -> None:
    with open(scene.cluster.api.audit_log, encoding="utf-8") as log:
        requests = list(audit.read_requests(log, f"system:serviceaccount:{SYSTEM}:optcache-"))
    assert requests
    assert {(r.user, r.verb, r.resource, r.namespace, r.message) for r in audit.refused(requests)} == set()


def test_a_pod_reads_on_when_all_of_us_is_gone(scene: Scene, images: str, node: Container) -> None:
    last = start_training_pod(scene, "last", training_pod("images"))
    scene.read(last)
    assert scene.cluster.api.helm("uninstall", "optcache", f"--namespace={SYSTEM}").code == 0
    scene.cluster.stop()
    scene.kubelet.stop(node)
    scene.read(last)
