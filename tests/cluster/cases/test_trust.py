"""Who may not come in stays out, is told why in one sentence, counted, and logged without secrets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from cluster import doors, objects
from cluster.cluster import Cluster
from cluster.doors import Attempt
from cluster.release import Release
from cluster.workspace import Samples, Store, Workspace
from harness import lies

AUDIENCE = "optcache"
NODE_NAME = "optcache-node"
OPERATOR_NAME = "optcache-operator"
WIRE, PAGES, MANIFESTS = 4100, 4101, 4102
WEBHOOK, CONTROL, OPERATOR_PAGES = 9443, 8443, 8080


@dataclass
class Scene:
    """A Dataset, a node, and the tokens of several people."""

    workspace: Workspace
    release: Release
    authority: str
    node: str  # on the machine of the pod whose token is the good one
    elsewhere: str  # a node on another
    operator: str
    tokens: dict[str, str]

    @property
    def manifest(self) -> str:
        return f"/v1/datasets/{self.workspace.name}/images/manifest"

    def manifests(self, token: str, path: str = "", method: str = "GET", body: str = "") -> Attempt:
        path = path or self.manifest
        where = (self.node, MANIFESTS, self.authority, NODE_NAME)
        return doors.https(*where, path, token=self.tokens.get(token, ""), method=method, body=body)

    def wire(
        self, token: str, role: int = lies.SIDECAR, who: str = "holder", node: str = ""
    ) -> Attempt:
        where = (node or self.node, WIRE, self.authority, NODE_NAME)
        who = f"{self.workspace.name}/{who}"
        return doors.wire(*where, who=who, token=self.tokens.get(token, ""), role=role)

    def refused(self) -> float:
        return self.release.metric("node", "optcache_refusals_total")


@pytest.fixture(scope="module")
def scene(release: Release, cluster: Cluster, store: Store, samples: Samples) -> Iterator[Scene]:
    release.restore()
    workspace, other = (Workspace(cluster, name, store, samples) for name in ("owner", "stranger"))
    for each in (workspace, other):
        each.delete()
        each.create()
        each.apply(objects.sleeping_pod(each.name, "holder", {}, {}))
        each.wait_for("pod/holder", "condition=Ready", 120)
    workspace.make_dataset()
    space, stranger = workspace.name, other.name
    key = cluster.paths.pki / "sa.key"
    uid = workspace.get("serviceaccount/default")["metadata"]["uid"]

    def token(namespace: str, audience: str) -> str:
        """Of a pod there, as kubelets ask for it."""
        words = ["create", "token", "default", f"--namespace={namespace}", f"--audience={audience}"]
        words += ["--bound-object-kind=Pod", "--bound-object-name=holder"]
        return cluster.kubectl(*words).stdout.strip()

    def claims(lifetime: float) -> dict[str, object]:
        return doors.service_account_claims(space, uid, AUDIENCE, lifetime)

    good = token(space, AUDIENCE)
    head, body, signature = good.split(".")
    tokens = {
        "good": good,
        "stranger's": token(stranger, AUDIENCE),
        "for another audience": token(space, "https://kubernetes.default.svc"),
        "expired": doors.signed_token(key, claims(-60)),
        "with another signature": f"{head}.{body}.{signature[::-1]}",
        "not a token": "x" * 200,
    }
    bundle = cluster.get("configmap/optcache-ca", f"--namespace={space}")["data"]["ca.crt"]
    machine = workspace.get("pod/holder")["spec"]["nodeName"]
    nodes = {pod["spec"]["nodeName"]: pod["status"]["podIP"] for pod in release.pods("node")}
    elsewhere = next(address for name, address in nodes.items() if name != machine)
    leader = release.leader()
    operator = next(
        pod["status"]["podIP"] for pod in release.pods("operator") if pod["metadata"]["name"] == leader
    )
    yield Scene(workspace, release, bundle, nodes[machine], elsewhere, operator, tokens)
    for each in (workspace, other):
        each.delete(wait=False)


BAD = ("", "for another audience", "expired", "with another signature", "not a token")


def test_manifests_are_for_those_who_may_use_the_dataset(scene: Scene) -> None:
    before = scene.refused()
    attempts = [scene.manifests("good"), scene.manifests("stranger's")]
    attempts += [scene.manifests(token) for token in BAD]
    good, stranger, *bad = doors.knock(attempts)
    assert good["status"] == 200
    assert stranger["status"] == 403 and scene.workspace.name in stranger["body"]
    assert [answer["status"] for answer in bad] == [401] * len(BAD)
    assert all(answer["body"].count("\n") <= 1 and answer["body"] for answer in bad)
    assert scene.refused() >= before + len(attempts) - 1


def test_manifests_are_put_by_their_own_namespace_alone(scene: Scene) -> None:
    path = f"/v1/datasets/{scene.workspace.name}/images/manifests/{'0' * 64}"
    before = scene.refused()
    attempts = [scene.manifests(token, path, "PUT", "no manifest") for token in ("stranger's", *BAD, "good")]
    *bad, good = doors.knock(attempts)
    assert [answer["status"] for answer in bad] == [403] + [401] * len(BAD)
    assert good["status"] == 400
    assert scene.refused() >= before + len(bad)


def test_the_wire_asks_for_a_token_or_a_certificate(scene: Scene) -> None:
    attempts = [scene.wire("good"), *(scene.wire(token) for token in BAD)]
    attempts.append(scene.wire("good", who="another"))
    attempts.append(scene.wire("good", role=lies.NODE))
    attempts.append(scene.wire("good", node=scene.elsewhere))
    good, *bad = doors.knock(attempts)
    assert good["type"] == doors.WELCOME, good
    assert [answer["type"] for answer in bad] == [doors.REFUSAL] * len(bad)
    assert all(answer["text"] for answer in bad)


def test_control_is_for_nodes(scene: Scene) -> None:
    where = (scene.operator, CONTROL, scene.authority, OPERATOR_NAME)
    paths = ("/v1/state", "/v1/status", "/metrics")
    attempts = [doors.https(*where, path, token=scene.tokens["good"]) for path in paths]
    attempts.append(
        doors.https(*where, "/v1/certificates", token=scene.tokens["good"], method="POST", body="no request")
    )
    for answer in doors.knock(attempts):
        assert answer.get("status") in (400, 401, 403, 404), answer


def test_no_port_speaks_plain_but_the_pages(scene: Scene) -> None:
    request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    closed = [(scene.node, WIRE), (scene.node, MANIFESTS), (scene.operator, WEBHOOK), (scene.operator, CONTROL)]
    answers = doors.knock([doors.plain(*door, request) for door in closed])
    for door, answer in zip(closed, answers, strict=True):
        assert "HTTP/1.1 200" not in answer.get("answer", ""), door
        assert "optcache" not in answer.get("answer", ""), door
    pages = [(scene.node, PAGES), (scene.operator, OPERATOR_PAGES)]
    for answer in doors.knock([doors.plain(*door, request) for door in pages]):
        assert answer["answer"].startswith("HTTP/1.1 200")


def test_no_log_has_a_token_or_a_key(scene: Scene) -> None:
    doors.knock([scene.manifests(token) for token in scene.tokens])
    doors.knock([scene.wire(token) for token in scene.tokens])
    for component in ("node", "operator"):
        text = scene.release.logs(component)
        assert text
        assert "PRIVATE KEY" not in text
        for name, token in scene.tokens.items():
            assert token not in text and token.rpartition(".")[2] not in text, name
