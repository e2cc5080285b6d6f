"""What the operator does in a real API server, with the rights that the chart gives it."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import SYSTEM, Cluster, Operator, ask
from harness import prometheus

DATASETS = "/apis/optcache.io/v1alpha1/namespaces/vision/datasets"
PLANS = "/apis/optcache.io/v1alpha1/namespaces/vision/cacheplans"
WARMUPS = "/apis/optcache.io/v1alpha1/namespaces/vision/warmups"
JOBS = "/apis/batch/v1/namespaces/vision/jobs"
INJECTOR = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/optcache-injector"
DIGEST = "8b1f000000000001" + "0" * 48

Object = dict[str, Any]


def bundle(cluster: Cluster, namespace: str) -> str:
    config = cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/optcache-ca")
    return str(config.get("data", {}).get("ca.crt", ""))


def condition(item: Object, kind: str) -> str:
    for each in item.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return f"{each['status']} {each['reason']}"
    return ""


@pytest.fixture(scope="module")
def dataset(cluster: Cluster, leader: Operator) -> str:
    cluster.namespace("vision")
    cluster.namespace("speech")
    cluster.create(
        DATASETS,
        {
            "apiVersion": "optcache.io/v1alpha1",
            "kind": "Dataset",
            "metadata": {"name": "imagenet"},
            "spec": {
                "source": {"http": {"baseURL": "http://store/images/"}},
                "cache": {"capacity": "30%"},
                "access": [{"namespace": "speech"}],
            },
        },
    )
    return f"{DATASETS}/imagenet"


def test_the_leader_fills_secret_bundle_and_ca_bundle(cluster: Cluster, leader: Operator) -> None:
    secret = cluster.get(f"/api/v1/namespaces/{SYSTEM}/secrets/optcache-pki")
    trusted = base64.b64decode(secret["data"]["ca.crt"]).decode()
    assert secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    cluster.wait(lambda: bundle(cluster, SYSTEM) == trusted, "the bundle is in our namespace")
    cluster.wait(
        lambda: all(
            base64.b64decode(each["clientConfig"].get("caBundle", "")).decode() == trusted
            for each in cluster.get(INJECTOR)["webhooks"]
        ),
        "caBundle is written",
    )


def test_a_dataset_gets_its_job_its_plan_and_bundles(cluster: Cluster, dataset: str) -> None:
    cluster.wait(lambda: bool(cluster.get(JOBS).get("items")), "the index Job is made")
    job = cluster.get(JOBS)["items"][0]
    assert job["metadata"]["ownerReferences"][0]["kind"] == "Dataset"
    cluster.wait(lambda: cluster.get(f"{PLANS}/imagenet") != {}, "a CachePlan is made")
    for namespace in ("vision", "speech"):
        cluster.wait(lambda n=namespace: bundle(cluster, n) != "", "the bundle is there")  # type: ignore[misc]
    cluster.wait(
        lambda: condition(cluster.get(dataset), "Indexed") == "False Indexing", "conditions"
    )
    assert condition(cluster.get(dataset), "Ready") == "False Indexing"


def finish_job(cluster: Cluster) -> None:
    """As Kubernetes would."""
    job = cluster.get(JOBS)["items"][0]
    name = job["metadata"]["name"]
    template = job["spec"]["template"]
    pods = "/api/v1/namespaces/vision/pods"
    pod = {
        "metadata": {
            "name": f"{name}-x",
            "labels": {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": name},
        },
        # Which the plugin ServiceAccount would have set.
        "spec": {**template["spec"], "serviceAccountName": "default"},
    }
    cluster.create(pods, pod)
    message = json.dumps({"digest": DIGEST, "samples": 1000, "bytes": 100000, "largest": 500})
    cluster.finish_job("vision", name, message)


def test_what_the_job_said_goes_into_the_status(cluster: Cluster, dataset: str) -> None:
    cluster.wait(lambda: bool(cluster.get(JOBS).get("items")), "the index Job is made")
    finish_job(cluster)
    cluster.wait(
        lambda: cluster.get(dataset).get("status", {}).get("manifestDigest") == DIGEST, "indexed"
    )
    status = cluster.get(dataset)["status"]
    assert (status["samples"], status["size"]) == (1000, "97.7 KiB")
    cluster.wait(
        lambda: condition(cluster.get(dataset), "Indexed") == "True Indexed", "Indexed is true"
    )


def test_a_warmup_says_what_it_waits_for(cluster: Cluster, dataset: str) -> None:
    """There is no node here, so it goes no further."""
    for name, of in (("early", "later"), ("now", "imagenet")):
        item = {"apiVersion": "optcache.io/v1alpha1", "kind": "Warmup", "metadata": {"name": name}}
        cluster.create(WARMUPS, {**item, "spec": {"dataset": of}})
    early, now = (f"{WARMUPS}/{name}" for name in ("early", "now"))
    cluster.wait(lambda: condition(cluster.get(early), "Complete") == "False NoDataset", "it waits")
    nowhere = ("False Waiting", "False NotPlaced")
    cluster.wait(lambda: condition(cluster.get(now), "Complete") in nowhere, "it waits for nodes")
    assert condition(cluster.get(now), "Failed") == "False AsWanted"
    assert cluster.get(now)["status"]["progress"] == "0%"


def node_certificate(cluster: Cluster, leader: Operator, folder: Path) -> tuple[str, str]:
    """Chain and key of a node, by the token of its pod."""
    pods = f"/api/v1/namespaces/{SYSTEM}/pods"
    spec = {
        "serviceAccountName": "optcache-node",
        "nodeName": "machine-x",
        "containers": [{"name": "node", "image": "node"}],
    }
    labels = {"app.kubernetes.io/name": "optcache", "app.kubernetes.io/component": "node"}
    pod = cluster.create(
        pods, {"metadata": {"name": "optcache-node-x", "labels": labels}, "spec": spec}
    )
    key, request = folder / "node.key", folder / "node.csr"
    subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", request, "-subj", "/CN=x",
         "-addext", "subjectAltName=DNS:anything"],
        check=True, capture_output=True,
    )  # fmt: skip
    answer = ask(
        leader, "POST", "/v1/certificates", bundle(cluster, SYSTEM), folder,
        body=request.read_text(), token=cluster.token("optcache-node", "optcache", pod),
    )  # fmt: skip
    assert answer.code == 200, answer.out
    return answer.out, key.read_text()


def test_a_node_gets_its_certificate_and_the_dataset_its_place(
    cluster: Cluster, leader: Operator, dataset: str, tmp_path: Path
) -> None:
    chain, key = node_certificate(cluster, leader, tmp_path)
    names = subprocess.run(
        ["openssl", "x509", "-noout", "-ext", "subjectAltName"],
        input=chain, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "DNS:optcache-node" in names and "DNS:optcache-node-x" in names
    report = json.dumps(
        {
            "node": "optcache-node-x",
            "incarnation": 1,
            "address": "10.0.0.9:4100",
            "capacity": 1 << 20,
            "member": 0,
            "applied": "0.0",
            "manifest_url": "https://10.0.0.9:4102",
            "manifests": [DIGEST],
        }
    )
    trust = bundle(cluster, SYSTEM)

    def reported() -> bool:
        answer = ask(leader, "POST", "/v1/report", trust, tmp_path, chain=chain, key=key,
                     body=report)  # fmt: skip
        return answer.code == 200

    cluster.wait(reported, "the node is a member")

    def served() -> list[Object]:
        state = ask(leader, "GET", "/v1/state?after=0.0", trust, tmp_path, chain=chain, key=key)
        datasets: list[Object] = json.loads(state.out)["datasets"]
        return datasets

    assert [each["manifest"] for each in served()] == [DIGEST]
    cluster.wait(lambda: bool(served()[0]["capacities"]), "the Dataset has a place")
    assert served()[0]["capacities"][0]["bytes"] == 30000

    def ready() -> bool:
        reported()
        return condition(cluster.get(dataset), "Ready") == "True Serving"

    cluster.wait(ready, "the Dataset is ready")
    assert cluster.get(dataset)["status"]["nodes"] == [{"name": "machine-x", "bytes": 0}]


def test_strangers_get_nothing(cluster: Cluster, leader: Operator, tmp_path: Path) -> None:
    trust = bundle(cluster, SYSTEM)
    assert ask(leader, "GET", "/v1/status", trust, tmp_path).code == 403
    for token in (
        "forged",
        cluster.token("optcache-node", "optcache"),  # bound to no pod
        cluster.token("optcache-operator", "optcache"),
        cluster.token("optcache-node"),  # for the API server
    ):
        answer = ask(leader, "POST", "/v1/certificates", trust, tmp_path, body="CSR", token=token)
        assert answer.code == 403, answer.out
        assert token not in leader.words()
    assert leader.metric("optcache_control_refusals_total") >= 5


@pytest.mark.skipif(bool(prometheus.lacks()), reason=prometheus.lacks())
def test_its_page_is_as_prometheus_wants_it(leader: Operator, dataset: str) -> None:
    page = leader.page("/metrics").out
    assert "optcache_plan_condition{" in page
    prometheus.check_page(page)


def test_nothing_is_written_while_nothing_changes(cluster: Cluster, dataset: str) -> None:
    paths = [
        dataset,
        f"{PLANS}/imagenet",
        INJECTOR,
        f"/api/v1/namespaces/{SYSTEM}/secrets/optcache-pki",
        f"/api/v1/namespaces/{SYSTEM}/configmaps/optcache-ca",
        "/api/v1/namespaces/vision/configmaps/optcache-ca",
    ]

    def versions() -> list[str]:
        return [cluster.get(path)["metadata"]["resourceVersion"] for path in paths]

    def is_quiet() -> bool:
        before = versions()
        time.sleep(6)
        return versions() == before

    # What came before takes its time to settle where the machine is busy.
    assert any(is_quiet() for _ in range(20))


def test_the_users_plan_takes_the_place_of_ours(cluster: Cluster, dataset: str) -> None:
    cluster.create(
        PLANS,
        {
            "apiVersion": "optcache.io/v1alpha1",
            "kind": "CachePlan",
            "metadata": {"name": "mine"},
            "spec": {"dataset": "imagenet", "retention": "Pin"},
        },
    )
    cluster.wait(lambda: cluster.get(f"{PLANS}/imagenet") == {}, "ours is gone")
    time.sleep(1)
    assert cluster.get(f"{PLANS}/mine")["spec"]["retention"] == "Pin"
    assert cluster.get(f"{PLANS}/imagenet") == {}


def test_revisions_beyond_the_limit_are_deleted(cluster: Cluster, dataset: str) -> None:
    """Of those that nobody needs, the oldest: what is in force and what is asked for stay."""
    plan = f"{PLANS}/mine"
    kept = "/apis/apps/v1/namespaces/vision/controllerrevisions?labelSelector=optcache.io/cacheplan=mine"

    def revisions() -> dict[str, str]:
        return {each["metadata"]["name"]: each["data"]["spec"]["retention"] for each in cluster.get(kept)["items"]}

    def named(field: str) -> str:
        return str(cluster.get(plan).get("status", {}).get(field, ""))

    cluster.patch(plan, {"spec": {"revisionHistoryLimit": 1}})
    cluster.wait(lambda: revisions().get(named("updateRevision")) == "Pin", "the first revision")
    asked = [named("updateRevision")]
    for retention in ("LRU", "None", "Optimal"):
        cluster.patch(plan, {"spec": {"retention": retention}})
        cluster.wait(lambda r=retention: revisions().get(named("updateRevision")) == r, retention)  # type: ignore[misc]
        asked.append(named("updateRevision"))
    cluster.patch(plan, {"spec": {"revisionHistoryLimit": 0}})
    cluster.wait(lambda: set(revisions()) == {named("currentRevision"), named("updateRevision")}, "the others go")
    assert asked[-1] in revisions()
    assert not set(asked[1:-1]) & set(revisions())


def test_another_takes_over_when_the_leader_ends(cluster: Cluster, leader: Operator) -> None:
    second = cluster.start_operator("optcache-operator-1")
    cluster.wait(lambda: second.page("/readyz").code == 200, "the second is ready")
    assert second.metric("leader_election_master_status") == 0
    leader.process.send_signal(signal.SIGTERM)
    assert leader.process.wait(timeout=120) == 0
    cluster.wait(lambda: second.metric("leader_election_master_status") == 1, "it leads")
    lease = cluster.get(
        f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/optcache-operator"
    )
    assert lease["spec"]["holderIdentity"] == "optcache-operator-1_127.0.0.1"


def test_everything_can_go(cluster: Cluster, dataset: str) -> None:
    answer = cluster.api.request("DELETE", dataset)
    assert answer.code == 200
    cluster.wait(lambda: cluster.get(dataset) == {}, "no finalizer holds the Dataset")
    cluster.wait(lambda: bundle(cluster, "speech") == "", "the bundle of a borrower is removed")


def test_its_rights_sufficed(cluster: Cluster) -> None:
    for operator in cluster.operators:
        assert "forbidden" not in operator.words().lower(), operator.words()
