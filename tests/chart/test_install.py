"""The chart in a real API server, where no pod ever runs: what helm and others write there."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer, Object
from harness import processes
from harness.errors import HarnessError

ROOT = Path(__file__).resolve().parents[2]
CHART = str(ROOT / "charts" / "optcache")
SYSTEM = "optcache"
INJECTOR = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/optcache-injector"
SECRET = f"/api/v1/namespaces/{SYSTEM}/secrets/optcache-pki"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GONE_SECONDS = 400.0  # the API server tries a finalizer again after up to minutes
PREFIX = "--set=image.prefix=registry.example.com/team/"
# Nobody answers there, so a pod that a webhook selects is refused.
VALUES = (PREFIX, "--set=webhook.failurePolicy=Fail", "--set=webhook.excludedNamespaces={excluded}")


def helm(api: ApiServer, *arguments: str) -> str:
    done = api.helm(*arguments, f"--namespace={SYSTEM}")
    assert done.code == 0, done.err
    return done.out


@pytest.fixture(scope="module")
def installed(bare_api: ApiServer) -> Iterator[ApiServer]:
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name, labels in ((SYSTEM, restricted), ("vision", {}), ("excluded", {})):
        metadata = {"name": name, "labels": labels}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        assert bare_api.request("POST", "/api/v1/namespaces", body).code == 201
    helm(bare_api, "install", "optcache", CHART, *VALUES)
    yield bare_api


def test_notes_name_what_there_is(installed: ApiServer) -> None:
    notes = helm(installed, "get", "notes", "optcache")
    assert "deployment/optcache-operator" in notes
    assert "daemonset/optcache-node" in notes


def test_install_yaml_is_taken(installed: ApiServer) -> None:
    file = f"--filename={ROOT / 'manifests' / 'install.yaml'}"
    options = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
    done = installed.kubectl("apply", file, *options)
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("namespace", "labels", "annotations", "asked"),
    [
        ("vision", {"optcache.io/inject": "true"}, {}, "label.optcache.io"),
        (
            "vision",
            {"optcache.io/inject": "true"},
            {"optcache.io/dataset": "images"},
            "label.optcache.io",
        ),
        ("vision", {"optcache.io/inject": "yes"}, {}, "label.optcache.io"),
        ("vision", {}, {"optcache.io/dataset": "images"}, "annotation.optcache.io"),
        ("vision", {"optcache.io/inject": "false"}, {"optcache.io/dataset": "images"}, ""),
        ("vision", {}, {}, ""),
        ("vision", {"app": "web"}, {"example.com/a": "b"}, ""),
        ("excluded", {"optcache.io/inject": "true"}, {}, ""),
        ("kube-system", {"optcache.io/inject": "true"}, {"optcache.io/dataset": "images"}, ""),
        (SYSTEM, {"optcache.io/inject": "true"}, {"optcache.io/dataset": "images"}, ""),
    ],
)
def test_which_pods_are_asked_about(
    installed: ApiServer, namespace: str, labels: Object, annotations: Object, asked: str
) -> None:
    body = pod("p", namespace, {"metadata": {"labels": labels, "annotations": annotations}})
    answer = installed.kubectl("create", "--filename=-", "--dry-run=server", stdin=body)
    if asked:
        assert f'failed calling webhook "{asked}"' in answer.err
    else:
        assert answer.code == 0, answer.err


def pod(name: str, namespace: str, template: Object) -> Object:
    """A pod of the template; by default one that PodSecurity `restricted` takes."""
    container = {
        "name": "c",
        "image": "i",
        "securityContext": {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": name, "namespace": namespace},
        "spec": template.get("spec", {"containers": [container]}),
    }


@pytest.mark.parametrize("kind", ["deployments/optcache-operator", "daemonsets/optcache-node"])
def test_pods_pass_pod_security(installed: ApiServer, kind: str) -> None:
    path = f"/apis/apps/v1/namespaces/{SYSTEM}/{kind}"
    template = installed.request("GET", path).json()["spec"]["template"]
    body = pod("from-template", SYSTEM, template)
    done = installed.kubectl("create", "--filename=-", "--dry-run=server", stdin=body)
    assert done.code == 0, done.err


def test_the_job_of_a_warmup_is_taken(installed: ApiServer) -> None:
    """As the operator writes it (tests/unit/operator/warmup_decide_test.cc); its pods pass PodSecurity, too."""
    job = json.loads((ROOT / "tests/golden/operator/warmup-job.json").read_text())
    options = ("--filename=-", "--server-side", "--dry-run=server", "--validate=strict")
    done = installed.kubectl("apply", *options, stdin=job)
    assert done.code == 0, done.err
    template = job["spec"]["template"]
    template["spec"]["serviceAccountName"] = "default"  # as a controller would get it
    body = pod("warms", SYSTEM, template)
    done = installed.kubectl("create", "--filename=-", "--dry-run=server", stdin=body)
    assert done.code == 0, done.err


def test_the_namespace_refuses_other_pods(installed: ApiServer) -> None:
    template: Object = {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = pod("root", SYSTEM, template)
    done = installed.kubectl("create", "--filename=-", "--dry-run=server", stdin=body)
    assert 'violates PodSecurity "restricted' in done.err


OPERATOR = f"system:serviceaccount:{SYSTEM}:optcache-operator"
NODE = f"system:serviceaccount:{SYSTEM}:optcache-node"


@pytest.mark.parametrize(
    ("who", "verb", "what", "namespace", "may"),
    [
        (OPERATOR, "patch", "secrets/optcache-pki", SYSTEM, True),
        (OPERATOR, "get", "secrets/another", SYSTEM, False),
        (OPERATOR, "list", "secrets", SYSTEM, False),
        (OPERATOR, "get", "secrets/optcache-pki", SYSTEM, False),
        (OPERATOR, "get", "secrets/optcache-pki", "vision", False),
        (OPERATOR, "create", "secrets", SYSTEM, False),
        (OPERATOR, "update", "leases.coordination.k8s.io/optcache-operator", SYSTEM, True),
        (OPERATOR, "update", "leases.coordination.k8s.io/another", SYSTEM, False),
        (OPERATOR, "create", "leases.coordination.k8s.io", SYSTEM, True),
        (OPERATOR, "create", "leases.coordination.k8s.io", "vision", False),
        (OPERATOR, "patch", "configmaps/optcache-ca", "vision", True),
        (OPERATOR, "patch", "configmaps/another", "vision", False),
        (OPERATOR, "get", "configmaps/another", SYSTEM, False),
        (OPERATOR, "create", "configmaps", "vision", False),
        (OPERATOR, "create", "jobs.batch", "vision", True),
        (OPERATOR, "get", "jobs.batch", "vision", False),
        (OPERATOR, "create", "pods", "vision", False),
        (OPERATOR, "list", "pods", "vision", True),
        (OPERATOR, "patch", "datasets.optcache.io/images", "vision", False),
        (OPERATOR, "patch", "datasets.optcache.io/images --subresource=status", "vision", True),
        (OPERATOR, "patch", "mutatingwebhookconfigurations/optcache-injector", "", True),
        (OPERATOR, "patch", "mutatingwebhookconfigurations/another", "", False),
        (NODE, "create", "tokenreviews", "", True),
        (NODE, "get", "secrets", SYSTEM, False),
        (NODE, "list", "pods", SYSTEM, False),
        (NODE, "list", "datasets.optcache.io", "vision", False),
    ],
)
def test_rights(
    installed: ApiServer, who: str, verb: str, what: str, namespace: str, may: bool
) -> None:
    scope = f"--namespace={namespace}" if namespace else "--all-namespaces"
    done = installed.kubectl("auth", "can-i", verb, *what.split(), f"--as={who}", scope, "--quiet")
    assert (done.code == 0) == may, done.err


@pytest.mark.parametrize(("name", "code"), [("optcache-ca", 201), ("another", 403)])
def test_the_operator_makes_config_maps_of_one_name(
    installed: ApiServer, name: str, code: int
) -> None:
    """By server-side apply, as it does; by a POST it can make none at all."""
    path = "/api/v1/namespaces/vision/configmaps"
    body: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    headers = {"Impersonate-User": OPERATOR, "Content-Type": "application/apply-patch+yaml"}
    assert installed.request("PATCH", f"{path}/{name}?dryRun=All", body, **headers).code == code
    del headers["Content-Type"]
    assert installed.request("POST", f"{path}?dryRun=All", body, **headers).code == 403


def certificate(folder: Path) -> str:
    key, cert = folder / "key", folder / "cert"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        + ["-nodes", "-subj", "/CN=ca", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return base64.b64encode(cert.read_bytes()).decode()


def apply_as(api: ApiServer, manager: str, body: Object) -> None:
    options = ("--server-side", f"--field-manager={manager}", "--filename=-")
    done = api.kubectl("apply", *options, stdin=body)
    assert done.code == 0, done.err


def bundles(api: ApiServer) -> list[Any]:
    found = api.request("GET", INJECTOR).json()["webhooks"]
    return [webhook["clientConfig"].get("caBundle") for webhook in found]


def test_an_upgrade_leaves_alone_what_the_operator_wrote(
    installed: ApiServer, tmp_path: Path
) -> None:
    ca = certificate(tmp_path)
    assert bundles(installed) == [None, None]
    names = ("label.optcache.io", "annotation.optcache.io")
    apply_as(
        installed,
        "optcache-pki",
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "optcache-injector"},
            "webhooks": [{"name": name, "clientConfig": {"caBundle": ca}} for name in names],
        },
    )
    apply_as(
        installed,
        "optcache-operator",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "optcache-pki", "namespace": SYSTEM},
            "data": {"ca.crt": ca},
        },
    )
    helm(installed, "upgrade", "optcache", CHART, *VALUES, "--set=webhook.timeoutSeconds=4")
    found = installed.request("GET", INJECTOR).json()["webhooks"]
    assert [webhook["timeoutSeconds"] for webhook in found] == [4, 4]
    assert bundles(installed) == [ca, ca]
    assert installed.request("GET", SECRET).json()["data"] == {"ca.crt": ca}


def columns(api: ApiServer) -> list[str]:
    (version,) = api.request("GET", f"{CRDS}/datasets.optcache.io").json()["spec"]["versions"]
    return [column["name"] for column in version["additionalPrinterColumns"]]


def test_an_upgrade_changes_crds_and_a_rollback_changes_them_back(
    installed: ApiServer, tmp_path: Path
) -> None:
    """Which helm does not do with a chart's folder `crds`: ours are templates."""
    before = columns(installed)
    chart = tmp_path / "optcache"
    shutil.copytree(CHART, chart)
    crd = chart / "files" / "crds" / "datasets.yaml"
    text, count = re.subn(
        r"^( *)- name: Age$", r"\1- {name: Newer, type: string, jsonPath: .kind}\n\g<0>", crd.read_text(), flags=re.M
    )
    assert count == 1
    crd.write_text(text)
    helm(installed, "upgrade", "optcache", str(chart), *VALUES, "--set=webhook.timeoutSeconds=3")
    assert columns(installed) == [*before[: before.index("Age")], "Newer", *before[before.index("Age") :]]
    helm(installed, "rollback", "optcache")
    assert columns(installed) == before
    found = installed.request("GET", INJECTOR).json()["webhooks"]
    assert 3 not in [webhook["timeoutSeconds"] for webhook in found]


def test_an_upgrade_leaves_alone_how_nodes_are_replaced(installed: ApiServer) -> None:
    """As the command of the page says it."""
    page = (ROOT / "docs/user/install.md").read_text()
    (patch,) = re.findall(r"`kubectl patch daemonset/optcache-node [^`]+ --patch '([^`']+)'`", page)
    nodes = f"/apis/apps/v1/namespaces/{SYSTEM}/daemonsets/optcache-node"
    done = installed.kubectl(
        "patch", "daemonset/optcache-node", f"--namespace={SYSTEM}", f"--patch={patch}"
    )
    assert done.code == 0, done.err
    helm(installed, "upgrade", "optcache", CHART, *VALUES, "--set=node.maxUnavailable=2")
    strategy = installed.request("GET", nodes).json()["spec"]["updateStrategy"]
    assert (strategy["type"], strategy["rollingUpdate"]["maxUnavailable"]) == ("OnDelete", 2)


def test_an_upgrade_makes_a_secret_that_was_deleted(installed: ApiServer) -> None:
    """The operator may not; it fills what is there."""
    assert installed.request("DELETE", SECRET).code == 200
    helm(installed, "upgrade", "optcache", CHART, *VALUES)
    assert "data" not in installed.request("GET", SECRET).json()


def test_what_an_uninstall_leaves_goes_by_the_command_of_the_page(installed: ApiServer) -> None:
    page = (ROOT / "docs/user/install.md").read_text()
    commands = re.findall(r"`kubectl (delete configmap --all-namespaces [^`]+)`", page)
    assert len(commands) == 1
    ours, foreign = {"app.kubernetes.io/managed-by": "optcache"}, {"app": "x"}
    made = [("vision", "optcache-ca", ours), ("excluded", "optcache-ca", ours)]
    others = [(SYSTEM, "optcache-ca", foreign), ("vision", "settings", ours)]
    for namespace, name, labels in made + others:
        body: Object = {"apiVersion": "v1", "kind": "ConfigMap"}
        body["metadata"] = {"name": name, "labels": labels}
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        assert installed.request("POST", path, body).code == 201
    done = installed.kubectl(*commands[0].split())
    assert done.code == 0, done.err

    def is_there(namespace: str, name: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        return installed.request("GET", path).code == 200

    assert [is_there(namespace, name) for namespace, name, _ in made] == [False, False]
    assert [is_there(namespace, name) for namespace, name, _ in others] == [True, True]


@pytest.mark.parametrize(
    ("option", "what"),
    [("--set=crds.install=true", "optcache.io"), ("--set=crds.install=false", "optcache-injector")],
)
def test_a_second_release_is_refused(installed: ApiServer, option: str, what: str) -> None:
    """By helm, as the first one owns what has the same name in it: nothing is made."""
    options = ("--namespace=vision", "--set=fullnameOverride=other", PREFIX, option)
    done = installed.helm("install", "other", CHART, *options)
    assert done.code != 0
    assert what in done.err and 'must equal "other": current value is "optcache"' in done.err, done.err
    path = "/apis/apps/v1/namespaces/vision/deployments/other-operator"
    assert installed.request("GET", path).code == 404
    assert installed.request("GET", INJECTOR).code == 200


def test_an_uninstall_keeps_crds_and_a_new_install_takes_them_over(installed: ApiServer) -> None:
    spec = {"source": {"http": {"baseURL": "http://a"}}, "cache": {"capacity": "30%"}}
    path = "/apis/optcache.io/v1alpha1/namespaces/vision/datasets"
    body = {
        "apiVersion": "optcache.io/v1alpha1",
        "kind": "Dataset",
        "metadata": {"name": "kept"},
        "spec": spec,
    }
    assert installed.request("POST", path, body).code == 201
    helm(installed, "uninstall", "optcache")
    assert installed.request("GET", INJECTOR).code == 404
    assert installed.request("GET", SECRET).code == 404
    assert installed.request("GET", f"{path}/kept").code == 200
    helm(installed, "install", "optcache", CHART, *VALUES)
    assert installed.request("GET", f"{path}/kept").code == 200


def crds_left(api: ApiServer) -> list[str]:
    """Each with what the API server says of its end."""
    left = []
    for name in ("datasets.optcache.io", "cacheplans.optcache.io", "warmups.optcache.io"):
        answer = api.request("GET", f"{CRDS}/{name}")
        if answer.code == 404:
            continue
        conditions = answer.json()["status"].get("conditions", []) if answer.code == 200 else []
        left.append(f"{name}: {answer.code} {[each for each in conditions if each['type'] == 'Terminating']}")
    return left


def test_an_uninstall_takes_crds_where_the_values_say_so(installed: ApiServer) -> None:
    """With all Datasets that there are."""
    helm(installed, "upgrade", "optcache", CHART, *VALUES, "--set=crds.keep=false")
    helm(installed, "uninstall", "optcache")
    try:
        processes.wait_until(lambda: not crds_left(installed), "all CRDs are gone", GONE_SECONDS)
    except HarnessError as error:
        raise AssertionError(f"{error}: {crds_left(installed)}") from error
    helm(installed, "install", "optcache", CHART, *VALUES)
    path = "/apis/optcache.io/v1alpha1/namespaces/vision/datasets"
    processes.wait_until(
        lambda: installed.request("GET", path).code == 200, "Datasets are known again", GONE_SECONDS
    )
    assert installed.request("GET", path).json()["items"] == []
