"""A real API server asks the injector, and takes what it makes of the corpus of pods."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adder import Adder
from api_server import ApiServer
from conftest import CASES, ROOT
from harness import processes
from injector import Injector

PROGRAMS = Path(os.environ.get("OPTCACHE_CLUSTER_BIN") or ROOT / "build/cluster/bin")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
WAIT_SECONDS = 120.0
NAMESPACES = ("vision", "speech", "audio", "robots")
# What this API server refuses or changes whoever is asked.
NOT_FOR_API_SERVERS = {"mirror-pod"}

ADDED = {"example.com/add": "true"}

Object = dict[str, Any]


def injector_configuration(injector: Injector) -> Object:
    """As in the chart, but for the address."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "injector"},
        "webhooks": [
            {
                "name": "all.optcache.io",
                "clientConfig": {"url": injector.url, "caBundle": injector.ca_bundle},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "reinvocationPolicy": "IfNeeded",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 30,
            }
        ],
    }


@pytest.fixture(scope="module")
def api(
    tmp_path_factory: pytest.TempPathFactory, injectors: Callable[[Any], Injector]
) -> Iterator[ApiServer]:
    for name in ("etcd", "kube-apiserver", "kubectl"):
        if not (PROGRAMS / name).is_file():
            pytest.skip(f"no {name} in {PROGRAMS}: set OPTCACHE_CLUSTER_BIN")
    server = ApiServer(PROGRAMS, tmp_path_factory.mktemp("api-server"))
    try:
        server.start()
        for name in NAMESPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            if name == "speech":
                body["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
            assert server.request("POST", "/api/v1/namespaces", body).code == 201
        body = injector_configuration(injectors({}))
        assert server.request("POST", CONFIGURATIONS, body).code == 201
        wait_until_asked(server, True)
        yield server
    finally:
        server.stop()


def wait_until_asked(api: ApiServer, asked: bool) -> None:
    """API servers hear of a configuration a moment after it was written."""
    pod = CASES["unknown-dataset"]["pod"]
    processes.wait_until(
        lambda: (create(api, pod)["kind"] == "Status") == asked,
        "the injector is asked" if asked else "the injector is not asked any more",
        WAIT_SECONDS,
    )


def create(api: ApiServer, pod: Object) -> Any:
    """As a dry run: the object as it would be, or the Status.

    With the ServiceAccount that API servers add where their controllers make it.
    """
    pod = {**pod, "spec": {"serviceAccountName": "default", **pod["spec"]}}
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods?dryRun=All"
    return api.request("POST", path, pod).json()


NATIVE = [
    name
    for name, case in CASES.items()
    if not case.get("legacy") and name not in NOT_FOR_API_SERVERS
]


@pytest.mark.parametrize("name", NATIVE)
def test_the_api_server_agrees(api: ApiServer, name: str) -> None:
    case = CASES[name]
    answer = create(api, as_allowed_in(case["pod"]))
    if case["outcome"] == "denied":
        assert case["message"] in answer["message"]
        assert answer["code"] == 403
        return
    assert answer["kind"] == "Pod", answer
    containers = answer["spec"].get("initContainers", [])
    if case["outcome"] == "injected":
        assert containers[0]["name"] == "optcache-sidecar"
        assert containers[0]["restartPolicy"] == "Always"
    elif case["reason"] not in ("unchanged", "brought_its_own"):
        assert [each for each in containers if each["name"] == "optcache-sidecar"] == []


def as_allowed_in(pod: Object) -> Object:
    """In namespace speech, which enforces `restricted`: as the pod's owner must write it there."""
    if pod["metadata"]["namespace"] != "speech":
        return pod
    return restricted(pod)


def restricted(pod: Object) -> Object:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    containers = [{**each, "securityContext": context} for each in pod["spec"]["containers"]]
    of_pod = {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {**pod, "spec": {**pod["spec"], "securityContext": of_pod, "containers": containers}}


def test_restricted_pods_stay_restricted(api: ApiServer) -> None:
    pod = CASES["other-namespace"]["pod"]
    assert "violates PodSecurity" in create(api, pod)["message"]
    answer = create(api, restricted(pod))
    assert answer["spec"]["initContainers"][0]["name"] == "optcache-sidecar"


def test_the_pod_of_the_check_is_injected(api: ApiServer) -> None:
    """As `helm test` makes it: of a Dataset that only dry runs have, in a namespace without any."""
    annotations = {"optcache.io/dataset": "optcache-check-injection"}
    pod = CASES["other-namespace"]["pod"]
    pod = restricted({**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
    answer = create(api, pod)
    assert answer["spec"]["initContainers"][0]["name"] == "optcache-sidecar"


def test_a_pod_without_a_wish_is_not_changed(api: ApiServer) -> None:
    """Byte by byte what the API server makes of it without us, times and names apart."""
    pod = CASES["not-selected"]["pod"]
    asked = create(api, pod)["spec"]
    path = f"{CONFIGURATIONS}/injector"
    configuration = api.request("GET", path).json()
    configuration["metadata"] = {"name": "injector"}
    assert api.request("DELETE", path).code == 200
    try:
        wait_until_asked(api, False)
        assert create(api, pod)["spec"] == asked
    finally:
        assert api.request("POST", CONFIGURATIONS, configuration).code == 201
        wait_until_asked(api, True)


@pytest.fixture
def adder(api: ApiServer, injectors: Callable[[Any], Injector]) -> Iterator[Adder]:
    """Asked after the injector, as configurations are asked by name, about pods with its label alone."""
    injector = injectors({})
    with Adder({"name": "added", "image": "added"}, injector.folder) as running:
        body = injector_configuration(injector)
        body["metadata"]["name"] = "later-than-injector"
        (webhook,) = body["webhooks"]
        webhook.update(name="adder.example.com", reinvocationPolicy="Never")
        webhook["clientConfig"]["url"] = running.url
        webhook["objectSelector"] = {"matchLabels": ADDED}
        assert api.request("POST", CONFIGURATIONS, body).code == 201
        processes.wait_until(
            lambda: create(api, labelled(CASES["not-selected"]["pod"])) and running.asked > 0,
            "the other webhook is asked",
            WAIT_SECONDS,
        )
        yield running
        assert api.request("DELETE", f"{CONFIGURATIONS}/later-than-injector").code == 200


def labelled(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {**pod, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **ADDED}}}


def test_a_container_that_another_webhook_adds_is_a_client(api: ApiServer, adder: Adder) -> None:
    """The API server asks the injector again; it gives socket and environment to the new one, too."""
    before = adder.asked
    pod = labelled(CASES["bare-pod"]["pod"])
    answer = create(api, pod)
    assert adder.asked == before + 1
    added = answer["spec"]["containers"][-1]
    assert added["name"] == "added"
    assert "optcache-run" in [mount["name"] for mount in added["volumeMounts"]]
    assert {"OPTCACHE_SOCKET", "OPTCACHE_DATASET"} <= {variable["name"] for variable in added["env"]}
    everything = [*answer["spec"]["initContainers"], *answer["spec"]["containers"]]
    assert [each["name"] for each in everything].count("optcache-sidecar") == 1
    alone = create(api, CASES["bare-pod"]["pod"])["spec"]
    assert answer["spec"]["initContainers"] == alone["initContainers"]
    assert answer["spec"]["containers"][:-1] == alone["containers"]
    assert answer["spec"]["volumes"] == alone["volumes"]
