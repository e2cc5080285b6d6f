"""Kubernetes objects that tests make, as Python values. Pods pass PodSecurity `restricted`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from cluster import recipes, settings

Object = dict[str, Any]
STORE_PORT = 8080
MASTER_PORT = 29500
SCRIPTS = settings.HERE / "scripts"
SCRIPTS_VOLUME: Object = {"name": "scripts", "configMap": {"name": "scripts"}}

POD_SECURITY: Object = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "fsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


def namespace(name: str) -> Object:
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "optcache.test/case": "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def object_store(space: str) -> list[Object]:
    """nginx with the demo's images, and its Service `store`."""
    labels = {"app": "store"}
    container = {
        "name": "nginx",
        "image": recipes.STORE,
        "imagePullPolicy": "Never",
        "ports": [{"containerPort": STORE_PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": STORE_PORT}, "periodSeconds": 1},
        "securityContext": {**CONTAINER_SECURITY, "readOnlyRootFilesystem": True},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod: Object = {"securityContext": POD_SECURITY, "containers": [container]}
    pod["nodeSelector"] = {"kubernetes.io/hostname": "node1"}  # another is the one that cases switch off
    pod["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "store", "namespace": space},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    return [deployment, service(space, "store", labels, 80, STORE_PORT)]


def service(space: str, name: str, labels: Object, port: int, target: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space},
        "spec": {"selector": labels, "ports": [{"port": port, "targetPort": target}]},
    }


def dataset(space: str, name: str, url: str, capacity: str = "30%", **spec: Any) -> Object:
    return {
        "apiVersion": "optcache.io/v1alpha1",
        "kind": "Dataset",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "source": {"http": {"baseURL": url}},
            "order": "ImageFolder",
            "cache": {"capacity": capacity},
            **spec,
        },
    }


def cache_plan(space: str, name: str, dataset_name: str) -> Object:
    return {
        "apiVersion": "optcache.io/v1alpha1",
        "kind": "CachePlan",
        "metadata": {"name": name, "namespace": space},
        "spec": {"dataset": dataset_name},
    }


def injected(dataset_name: str, arena: str = "32Mi") -> tuple[Object, Object]:
    """Labels and annotations by which a pod is injected."""
    return {"optcache.io/inject": "true"}, {
        "optcache.io/dataset": dataset_name,
        "optcache.io/arena": arena,
        # Three workers share the CPUs of one machine.
        "optcache.io/resources": "cpu=50m",
    }


def scripts(space: str) -> Object:
    """The ConfigMap with train.py."""
    data = {path.name: path.read_text() for path in SCRIPTS.glob("*.py")}
    metadata = {"name": "scripts", "namespace": space}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def training_container(environment: dict[str, str]) -> Object:
    return {
        "name": "train",
        "image": recipes.TRAINING,
        "imagePullPolicy": "Never",
        "args": ["/scripts/train.py"],
        "volumeMounts": [{"name": "scripts", "mountPath": "/scripts"}],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}},
        "securityContext": CONTAINER_SECURITY,
    }


def training_job(
    space: str,
    name: str,
    *,
    labels: Optional[Object] = None,
    annotations: Optional[Object] = None,
    pods: int = 4,
    environment: Optional[dict[str, str]] = None,
    pod: Optional[Object] = None,
    retries: int = 0,
) -> list[Object]:
    """An Indexed Job of `pods` ranks, and the headless Service by which they find each other."""
    variables = {
        "WORLD_SIZE": str(pods),
        "MASTER_ADDR": f"{name}-0.{name}",
        "MASTER_PORT": str(MASTER_PORT),
        "OMP_NUM_THREADS": "1",
        **(environment or {}),
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"batch.kubernetes.io/job-name": name}},
    }
    spec: Object = {
        "subdomain": name,
        "restartPolicy": "Never",
        "securityContext": POD_SECURITY,
        "topologySpreadConstraints": [spread],
        "containers": [training_container(variables)],
        "volumes": [SCRIPTS_VOLUME],
        **(pod or {}),
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "completionMode": "Indexed",
            "backoffLimit": retries,
            "template": {
                "metadata": {"labels": labels or {}, "annotations": annotations or {}},
                "spec": spec,
            },
        },
    }
    headless: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": name},
        },
    }
    return [headless, job]


def sleeping_pod(space: str, name: str, labels: Object, annotations: Object) -> Object:
    """A pod that does nothing, for what happens to pods when they are made."""
    container = {**training_container({}), "command": ["sleep", "infinity"]}
    metadata = {"name": name, "namespace": space, "labels": labels, "annotations": annotations}
    spec = {
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "securityContext": POD_SECURITY,
        "containers": [container],
        "volumes": [SCRIPTS_VOLUME],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def names(items: Sequence[Object]) -> list[str]:
    return [str(item["metadata"]["name"]) for item in items]


def has_sidecar(pod: Object) -> bool:
    spec = pod.get("spec", {})
    containers = [*spec.get("initContainers", []), *spec.get("containers", [])]
    return any(container["name"] == "optcache-sidecar" for container in containers)
