"""`kubectl optcache explain` asks a real API server, with all rights and with few."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Answer, Cluster

NAMESPACE = "explained"
DATASETS = f"/apis/optcache.io/v1alpha1/namespaces/{NAMESPACE}/datasets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
ROLES = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
USER = "jane"

Object = dict[str, Any]


def condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-05T10:00:00Z",
    }  # fmt: skip


@pytest.fixture(scope="module")
def scene(cluster: Cluster) -> Cluster:
    """A Dataset whose source refuses its keys, and a Job with a pod that has a sidecar and one that has none."""
    cluster.namespace(NAMESPACE)
    cluster.create(
        DATASETS,
        {
            "apiVersion": "optcache.io/v1alpha1",
            "kind": "Dataset",
            "metadata": {"name": "imagenet"},
            "spec": {"source": {"http": {"baseURL": "http://store/"}}, "cache": {"capacity": "30%"}},
        },
    )
    conditions = [
        condition("Indexed", "False", "SourceForbidden", "403 of the store"),
        condition("Ready", "False", "SourceForbidden", "403 of the store"),
    ]
    status: Object = {"observedGeneration": 1, "conditions": conditions}
    cluster.patch(f"{DATASETS}/imagenet/status", {"status": status})
    containers = [{"name": "train", "image": "i"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    cluster.create(
        JOBS,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train"},
            "spec": {"parallelism": 3, "completions": 3, "template": template},
        },
    )
    sidecar = {"name": "optcache-sidecar", "image": "i", "env": [{"name": "OPTCACHE_OWNER", "value": "train"}]}
    for name, init in (("train-0", [sidecar]), ("train-1", [])):
        cluster.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "labels": {"job-name": "train"},
                    "annotations": {"optcache.io/dataset": "imagenet"},
                },
                "spec": {"containers": containers, "initContainers": init},
            },
        )
        cluster.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})
    return cluster


def explain(scene: Cluster, programs: Path, words: str, user: str = "") -> Answer:
    """As the administrator, who may act as `user`."""
    config = json.loads(scene.api.kubeconfig.read_text())
    if user:
        config["users"][0]["user"]["as"] = user
    file = scene.folder / f"kubeconfig-{user or 'admin'}"
    file.write_text(json.dumps(config))
    file.chmod(0o600)
    done = subprocess.run(
        [programs / "optcache", "explain", *words.split(), "--cluster", f"--kubeconfig={file}"],
        env={"PATH": f"{scene.api.programs}:{os.environ['PATH']}", "HOME": str(scene.api.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def answered(scene: Cluster, programs: Path, words: str, user: str = "") -> Answer:
    """With an answer to each question: on a busy machine, the time for all of them can be over before the last."""
    told = Answer(0, "")

    def is_whole() -> bool:
        nonlocal told
        told = explain(scene, programs, words, user)
        return told.code == 0 and "not seen" not in told.out

    scene.wait(is_whole, f"explain {words} has all answers")
    return told


def test_a_dataset_that_is_not_ready(scene: Cluster, programs: Path) -> None:
    told = answered(scene, programs, f"dataset imagenet -n {NAMESPACE}")
    lines = told.out.splitlines()
    assert lines[0] == f"Dataset {NAMESPACE}/imagenet is not Ready (SourceForbidden)."
    assert lines[1] == "fault    index: SourceForbidden: 403 of the store (since 2026-01-05T10:00:00Z)"
    assert "cannot be shown" not in told.out, "the administrator has all rights"


def test_a_job_with_a_pod_that_has_no_sidecar(scene: Cluster, programs: Path) -> None:
    told = answered(scene, programs, f"job train -n {NAMESPACE} -o json")
    found = {f"{each['severity']} {each['about']}: {each['what']}" for each in told.json()["findings"]}
    assert "fault pods: 1 of 3 are missing" in found
    assert "ok pods: 2 in all: 2 Running" in found
    assert "ok injection: 1 pods have the sidecar" in found
    assert any(line.startswith("fault injection: no sidecar in train-1. The reason: ") for line in found)
    (verdict,) = (line for line in found if line.startswith(f"fault Dataset {NAMESPACE}/imagenet: "))
    assert verdict.endswith("it is not Ready (SourceForbidden): 403 of the store")
    # It has no address.
    assert "warning metrics: the pages of 1 sidecars cannot be had, so their reads are missing here" in found
    assert not any("cannot be shown" in line for line in found)


def test_what_is_not_there(scene: Cluster, programs: Path) -> None:
    told = explain(scene, programs, f"dataset coco -n {NAMESPACE}")
    assert told.code == 1 and "there are: imagenet" in told.err
    told = explain(scene, programs, "dataset imagenet")
    assert told.code == 1 and f"add -n {NAMESPACE}" in told.err, "the context's namespace is default"
    told = explain(scene, programs, f"job web -n {NAMESPACE}")
    assert told.code == 1 and "there are pods of: train" in told.err


def test_rights_that_are_missing_are_named(scene: Cluster, programs: Path) -> None:
    told = explain(scene, programs, f"dataset imagenet -n {NAMESPACE}", USER)
    assert told.code == 1
    assert f"kubectl auth can-i get datasets.optcache.io -n {NAMESPACE}" in told.err
    rule = {"apiGroups": ["optcache.io"], "resources": ["datasets"], "verbs": ["get"]}
    scene.create(f"{ROLES}/roles", {"metadata": {"name": "reader"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}
    scene.create(f"{ROLES}/rolebindings", {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [subject]})
    told = answered(scene, programs, f"dataset imagenet -n {NAMESPACE}", USER)
    assert "fault    index: SourceForbidden" in told.out
    for right in (
        f"list cacheplans.optcache.io -n {NAMESPACE}",
        f"list warmups.optcache.io -n {NAMESPACE}",
        "list pods -A",
        f"list events -n {NAMESPACE}",
    ):
        assert f"kubectl auth can-i {right}" in told.out
    told = answered(scene, programs, f"job train -n {NAMESPACE}", USER)
    assert f"kubectl auth can-i list pods -n {NAMESPACE}" in told.out
