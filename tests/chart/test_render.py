"""The chart as text: golden, refused values, and what is written twice."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CHART = ROOT / "charts" / "optcache"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
Object = dict[str, Any]
sys.path.insert(0, str(ROOT / "scripts"))

from generate import INSTALL_HEADER, template, without_crds


def render(
    helm: Path, *arguments: str, release: str = "optcache", chart: Path = CHART
) -> str:
    done = template(helm, *arguments, release=release, chart=chart)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[Object]:
    return [each for each in yaml.safe_load_all(text) if each]


def find(found: list[Object], kind: str, name: str = "") -> Object:
    matches = [o for o in found if o["kind"] == kind and name in o["metadata"]["name"]]
    assert len(matches) == 1, [(o["kind"], o["metadata"]["name"]) for o in found]
    return matches[0]


def compare(made: Path, text: str) -> None:
    where = made.relative_to(ROOT)
    assert made.exists(), f"{where} is missing: run ./dev generate"
    assert text == made.read_text(), f"{where} is out of date: run ./dev generate, then read the diff"


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.name)
def test_golden(helm: Path, values: Path) -> None:
    text = without_crds(render(helm, f"--values={values}"))
    compare(HERE / "golden" / values.name.replace("-values", ""), text)


def test_install_yaml(helm: Path) -> None:
    text = render(helm, "--skip-tests")
    compare(ROOT / "manifests" / "install.yaml", INSTALL_HEADER + text)


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.name)
def test_every_object_is_in_its_place(helm: Path, values: Path) -> None:
    """No two objects of one name; a namespace where there is one; our labels."""
    seen = set()
    for each in objects(render(helm, f"--values={values}")):
        metadata = each["metadata"]
        key = (each["kind"], metadata.get("namespace"), metadata["name"])
        assert key not in seen
        seen.add(key)
        assert metadata["labels"]["app.kubernetes.io/name"] == "optcache", key
        cluster_wide = each["kind"].startswith("Cluster") or each["kind"] in (
            "CustomResourceDefinition",
            "MutatingWebhookConfiguration",
        )
        assert ("namespace" in metadata) != cluster_wide, key


def test_names_follow_the_release(helm: Path) -> None:
    assert find(objects(render(helm)), "DaemonSet")["metadata"]["name"] == "optcache-node"
    other = objects(render(helm, release="ml"))
    assert find(other, "DaemonSet")["metadata"]["name"] == "ml-optcache-node"
    control = find(other, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--coordinator=https://ml-optcache-operator.optcache.svc:8443" in control


def test_an_image_may_have_a_tag_or_digest_of_its_own(helm: Path) -> None:
    """As while one component is held back."""
    digest = f"example/node@sha256:{'0' * 64}"
    values = ("image.prefix=r:5000/", "image.tag=v2", "sidecar.image=optcache/sidecar:v1", f"node.image={digest}")
    found = objects(render(helm, *(f"--set={value}" for value in values)))
    node = find(found, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
    operator = find(found, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert node["image"] == f"r:5000/{digest}"
    assert operator["image"] == "r:5000/optcache/operator:v2"
    assert "--sidecar-image=r:5000/optcache/sidecar:v1" in operator["args"]


@pytest.mark.parametrize("name", ["datasets", "cacheplans", "warmups"])
def test_crds_are_those_of_the_repository(helm: Path, name: str) -> None:
    source = ROOT / "manifests" / "crds" / f"{name}.yaml"
    compare(CHART / "files" / "crds" / source.name, source.read_text())
    crd = find(objects(render(helm)), "CustomResourceDefinition", name)
    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == yaml.safe_load(source.read_text())


def test_what_proves_itself_may_come_from_anywhere(helm: Path) -> None:
    """Pods with hostNetwork have their machine's address, which no selector matches."""
    found = objects(render(helm, "--set=networkPolicy.enabled=true"))
    rules = [rule for each in found if each["kind"] == "NetworkPolicy" for rule in each["spec"]["ingress"]]
    narrowed = {port["port"] for rule in rules if "from" in rule for port in rule["ports"]}
    everybody = {port["port"] for rule in rules if "from" not in rule for port in rule["ports"]}
    assert narrowed == {"control"}
    assert everybody == {"webhook", "wire", "manifests", "pages"}


def test_crds_can_go_with_the_release(helm: Path) -> None:
    crd = find(objects(render(helm, "--set=crds.keep=false")), "CustomResourceDefinition", "data")
    assert "annotations" not in crd["metadata"]


def test_nothing_of_the_operator_is_written_by_the_chart(helm: Path) -> None:
    """What helm renders it would write again at each upgrade."""
    found = objects(render(helm))
    assert not {"data", "stringData"} & set(find(found, "Secret"))
    for webhook in find(found, "MutatingWebhookConfiguration")["webhooks"]:
        assert "caBundle" not in webhook["clientConfig"]


def test_no_match_conditions_before_1_28(helm: Path) -> None:
    """An older API server would drop them, and ask about every pod."""
    old = find(objects(render(helm, "--kube-version=1.27.9")), "MutatingWebhookConfiguration")
    assert [webhook["name"] for webhook in old["webhooks"]] == ["label.optcache.io"]
    vendor = render(helm, "--kube-version=v1.28.2-eks-1234")
    new = find(objects(vendor), "MutatingWebhookConfiguration")
    assert [webhook["name"] for webhook in new["webhooks"]] == [
        "label.optcache.io",
        "annotation.optcache.io",
    ]


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        # 1.17 x 8192 MiB + 190.7 + 32, up to the next MiB: docs/memory.md.
        ({}, "9808Mi"),
        ({"node.memory": "1Gi", "node.samples": "1"}, "1231Mi"),
        ({"node.memory": "1.5Gi", "node.samples": "1"}, "1830Mi"),
        ({"node.memory": "1000M", "node.samples": "1048576"}, "1248Mi"),
        ({"node.memoryLimit": "3Gi"}, "3Gi"),
    ],
)
def test_memory_of_a_node(helm: Path, values: dict[str, str], limit: str) -> None:
    arguments = [f"--set={name}={value}" for name, value in values.items()]
    daemon_set = find(objects(render(helm, *arguments)), "DaemonSet")
    resources = daemon_set["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"] == resources["requests"]
    assert resources["limits"]["memory"] == limit


@pytest.mark.parametrize("size", ["", "20Gi"])
def test_nodes_know_how_much_their_state_volume_takes(helm: Path, size: str) -> None:
    """The kubelet ends a pod whose emptyDir outgrows its limit."""
    arguments = [f"--set=node.stateSize={size}"] if size else []
    pod = find(objects(render(helm, *arguments)), "DaemonSet")["spec"]["template"]["spec"]
    (state,) = [volume for volume in pod["volumes"] if volume["name"] == "state"]
    limit = state["emptyDir"]["sizeLimit"]
    assert limit == (size or "8Gi")
    assert f"--state-size={limit}" in pod["containers"][0]["args"]
    resources = pod["containers"][0]["resources"]
    disk = {"8Gi": "9216Mi", "20Gi": "21504Mi"}[limit]  # and a GiB for logs
    assert {resources[kind]["ephemeral-storage"] for kind in ("limits", "requests")} == {disk}


@pytest.mark.parametrize(
    ("values", "volume", "ephemeral"),
    [
        ([], {"emptyDir": {"sizeLimit": "21568Mi"}}, "30784Mi"),
        (
            ["volume=hostPath", "hostPath=/mnt/nvme0"],
            {"hostPath": {"path": "/mnt/nvme0", "type": "Directory"}},
            "9216Mi",
        ),
        (["volume=ephemeral", "storageClass=local"], {"storageClassName": "local"}, "9216Mi"),
        (["volume=ephemeral"], {}, "9216Mi"),
    ],
)
def test_a_disk_below_memory(
    helm: Path, values: list[str], volume: Object, ephemeral: str
) -> None:
    """Its volume is larger than its files: the kubelet ends a pod whose emptyDir outgrows its limit."""
    settings = ["enabled=true", "capacity=20Gi", *values]
    arguments = [f"--set=node.disk.{setting}" for setting in settings]
    pod = find(objects(render(helm, *arguments)), "DaemonSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (disk,) = [each for each in pod["volumes"] if each["name"] == "disk"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == "disk"]
    assert f"--disk={mount['mountPath']}" in container["args"]
    assert "--disk-capacity=20Gi" in container["args"]
    assert ("--disk-goes" in container["args"]) == ("hostPath" not in disk)
    if "ephemeral" in disk:
        claim = disk["ephemeral"]["volumeClaimTemplate"]["spec"]
        assert claim.pop("resources") == {"requests": {"storage": "21568Mi"}}
        assert claim == {"accessModes": ["ReadWriteOnce"], **volume}
    else:
        assert disk == {"name": "disk", **volume}
    resources = container["resources"]["limits"]
    assert resources["ephemeral-storage"] == ephemeral
    # 1.17 x 8 GiB, 380 B x 2 million samples, 52 MiB.
    assert resources["memory"] == "10362Mi"


def test_without_a_disk_nothing_is_mounted(helm: Path) -> None:
    pod = find(objects(render(helm)), "DaemonSet")["spec"]["template"]["spec"]
    assert "disk" not in {volume["name"] for volume in pod["volumes"]}
    assert not any(arg.startswith("--disk") for arg in pod["containers"][0]["args"])


def test_nodes_take_no_more_samples_than_they_have_memory_for(helm: Path) -> None:
    pod = find(objects(render(helm, "--set=node.samples=30000000")), "DaemonSet")
    assert "--max-manifest-samples=30000000" in pod["spec"]["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("cpu", ["2", "0.5", "500m"])
def test_a_cpu_is_a_number_or_a_text(helm: Path, cpu: str) -> None:
    for option in ("--set", "--set-string"):
        daemon_set = find(objects(render(helm, f"{option}=node.cpu={cpu}")), "DaemonSet")
        resources = daemon_set["spec"]["template"]["spec"]["containers"][0]["resources"]
        assert resources["limits"]["cpu"] == resources["requests"]["cpu"] == cpu


def test_proxies_are_handed_to_the_operator(helm: Path) -> None:
    def flags(*values: str) -> list[str]:
        found = find(objects(render(helm, *values)), "Deployment")
        args = found["spec"]["template"]["spec"]["containers"][0]["args"]
        return [arg for arg in args if "-proxy=" in arg]

    assert flags() == []
    assert flags("--set=proxy.httpsProxy=http://proxy:3128") == [
        "--https-proxy=http://proxy:3128",
        "--no-proxy=localhost,127.0.0.1,.svc,.cluster.local",
    ]


def test_index_jobs_are_as_the_values_say(helm: Path) -> None:
    found = objects(render(helm, "--set=index.resources.limits.memory=8Gi"))
    args = find(found, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    (flag,) = [arg for arg in args if arg.startswith("--index-pod=")]
    index = json.loads(flag.removeprefix("--index-pod="))
    assert index["resources"]["limits"]["memory"] == "8Gi"
    assert index["tolerations"] == [{"operator": "Exists", "effect": "NoSchedule"}]
    assert index["securityContext"] == {}


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("--set=nodes.memory=1Gi", "additional properties 'nodes' not allowed"),
        ("--set=node.memmory=1Gi", "additional properties 'memmory' not allowed"),
        ("--set=node.memory=64GB", "at '/node/memory': '64GB' does not match pattern"),
        ("--set=node.memory=0", "at '/node/memory'"),
        ("--set=node.cpu=0", "at '/node/cpu'"),
        ("--set=node.drainSeconds=-1", "at '/node/drainSeconds': minimum: got -1, want 0"),
        ("--set=node.stateSize=255Mi", "node.stateSize is 255Mi: nodes need 256Mi at least"),
        ("--set=node.disk.capacity=much", "at '/node/disk/capacity'"),
        ("--set=node.disk.volume=tape", "value must be one of 'emptyDir', 'ephemeral', 'hostPath'"),
        ("--set=node.disk.enabled=true,node.disk.volume=hostPath", "at '/node/disk/hostPath'"),
        ("--set=operator.replicas=0", "at '/operator/replicas': minimum: got 0, want 1"),
        ("--set=webhook.failurePolicy=Sometimes", "value must be one of 'Ignore', 'Fail'"),
        ("--set=webhook.timeoutSeconds=6", "maximum: got 6, want 5"),
        ("--set=image.prefix=registry.example.com", "at '/image/prefix'"),
        ("--set=image.prefix=", "image.prefix is not set: build the three images, push them where your"),
        ("--set=index.securityContext.runAsUser=0", "at '/index/securityContext/runAsUser'"),
        ("--set=index.securityContext.privileged=true", "additional properties 'privileged' not allowed"),
        ("--set=proxy.httpsProxy=proxy:3128", "at '/proxy/httpsProxy'"),
        ("--set=image.pullPolicy=Sometimes", "at '/image/pullPolicy'"),
        ("--set=node.image=example:5000/node:1", "at '/node/image'"),
        ("--set=monitoring.interval=often", "at '/monitoring/interval'"),
        ("--set=crds.keep=maybe", "at '/crds/keep': got string, want boolean"),
        ("--kube-version=1.25.0", "chart requires kubeVersion: >=1.26.0-0"),
    ],
)
def test_refused_values(helm: Path, argument: str, says: str) -> None:
    done = template(helm, argument)
    assert done.returncode != 0
    assert says in done.stderr, done.stderr


# Values that are maps for Kubernetes.
WHOLE = ("resources", "nodeSelector", "dashboardLabels", "securityContext")


def leaves(values: Object, path: str = "") -> dict[str, Any]:
    found = {}
    for name, value in values.items():
        here = f"{path}.{name}" if path else name
        whole = not isinstance(value, dict) or not value or name in WHOLE
        if whole:
            found[here] = value
        else:
            found.update(leaves(value, here))
    return found


def test_every_value_is_in_the_readme() -> None:
    page = (CHART / "README.md").read_text()
    rows = re.findall(r"(?m)^\| `([A-Za-z.]+)` \| (.*?) \| .+ \|$", page)
    documented = {name: yaml.safe_load(default.strip("`")) for name, default in rows}
    assert documented == leaves(yaml.safe_load((CHART / "values.yaml").read_text()))


def test_every_value_is_in_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def has(node: Object, path: list[str]) -> bool:
        return not path or (
            path[0] in node.get("properties", {}) and has(node["properties"][path[0]], path[1:])
        )

    for name in leaves(yaml.safe_load((CHART / "values.yaml").read_text())):
        assert has(schema, name.split(".")), name


def unknown_metrics(expression: str) -> set[str]:
    page = (ROOT / "docs/metrics.md").read_text()
    ours = "(?:optcache|process|leader_election|workqueue|rest_client)_[a-z0-9_]+"
    documented = set(re.findall(rf"`({ours})`", page))
    without_texts = re.sub(r'"[^"]*"', "", expression)
    used = set(re.findall(rf"\b{ours}", without_texts))
    return {name for name in used if name.removesuffix("_bucket") not in documented}


def test_alerts_use_metrics_that_exist(helm: Path) -> None:
    rule = find(objects(render(helm, "--set=monitoring.rules=true")), "PrometheusRule")
    for alert in rule["spec"]["groups"][0]["rules"]:
        assert not unknown_metrics(alert["expr"]), alert["alert"]


def test_a_new_chart_with_old_images_restarts_no_pod(helm: Path, tmp_path: Path) -> None:
    newer = tmp_path / "optcache"
    shutil.copytree(CHART, newer)
    about = newer / "Chart.yaml"
    about.write_text(about.read_text().replace("version: 0.1.0", "version: 0.9.0"))
    tag = "--set=image.tag=v1"
    for kind in ("Deployment", "DaemonSet"):
        old, new = (find(objects(render(helm, tag, chart=c)), kind) for c in (CHART, newer))
        assert old["metadata"]["labels"] != new["metadata"]["labels"]
        assert old["spec"]["template"] == new["spec"]["template"]


def test_lint(helm: Path) -> None:
    command = [helm, "lint", "--strict", CHART]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
