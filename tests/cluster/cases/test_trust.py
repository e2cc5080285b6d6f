"""Who may not come in stays out, is told why in one sentence, counted, and logged without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from cluster import doors, objects, sources
from cluster.cluster import Cluster
from cluster.doors import Attempt
from cluster.errors import ClusterError
from cluster.host import wait_until
from cluster.objects import Object
from cluster.release import Release
from cluster.workspace import FewSamples, Samples, Store, Workspace
from harness import lies

AUDIENCE = "optcache"
NODE_NAME = "optcache-node"
OPERATOR_NAME = "optcache-operator"
WIRE, PAGES, MANIFESTS = 4100, 4101, 4102
WEBHOOK, CONTROL, OPERATOR_PAGES = 9443, 8443, 8080
SIDECAR_PAGES = 4103
NOTED_SECONDS = 20
WAIT_SECONDS = 120
TRAINING_SECONDS = 240
STEP = 350  # which leaves some forty samples
LOOT = "token-of-default"
# A token of Kubernetes, whoever's: head and claims of a JWT are JSON objects.
TOKEN = re.compile(r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.")


@dataclass
class Scene:
    """A Dataset, a node, and the tokens of several people."""

    workspace: Workspace
    release: Release
    authority: str
    node: str  # on the machine of the pod whose token is the good one
    elsewhere: str  # a node on another
    operator: str
    reader: str  # an injected pod
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

    def control(self, token: str, path: str, method: str = "GET", body: str = "") -> Attempt:
        where = (self.operator, CONTROL, self.authority, OPERATOR_NAME)
        return doors.https(*where, path, token=self.tokens.get(token, ""), method=method, body=body)

    def refused(self) -> float:
        return self.release.metric("node", "optcache_refusals_total")

    def turned_away(self) -> float:
        return self.release.metric("node", "optcache_net_refused_connections_total", side="server")

    def control_refused(self) -> float:
        return self.release.metric("operator", "optcache_control_refusals_total")

    def not_by_tls(self, component: str, server: str) -> float:
        labels = {"server": server, "reason": "not_tls"}
        return self.release.metric(component, "optcache_tls_handshake_failures_total", **labels)

    def check_logged(self, component: str, event: str, reasons: set[str]) -> None:
        """Of many alike within a second there is one line."""
        line = re.compile(rf'"event":"{event}".*"reason":"(\w+)"')
        wait_until(
            lambda: reasons <= set(line.findall(self.release.logs(component))),
            f"the log of {component} has {event!r} for {sorted(reasons)}",
            NOTED_SECONDS,
        )


def check_counted(count: Callable[[], float], before: float, refusals: int) -> None:
    """Others may be refused meanwhile, too."""
    wait_until(
        lambda: count() >= before + refusals,
        lambda: f"{refusals} refusals counted, not {count() - before:.0f}",
        NOTED_SECONDS,
    )


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
    workspace.apply(objects.sleeping_pod(workspace.name, "reader", *objects.injected("images")))
    workspace.wait_for("pod/reader", "condition=Ready", 120)
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
    reader = workspace.get("pod/reader")["status"]["podIP"]
    yield Scene(workspace, release, bundle, nodes[machine], elsewhere, operator, reader, tokens)
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
    check_counted(scene.refused, before, len(attempts) - 1)
    scene.check_logged("node", "refused", {"token", "namespace"})


def test_manifests_are_put_by_their_own_namespace_alone(scene: Scene) -> None:
    path = f"/v1/datasets/{scene.workspace.name}/images/manifests/{'0' * 64}"
    before = scene.refused()
    attempts = [scene.manifests(token, path, "PUT", "no manifest") for token in ("stranger's", *BAD, "good")]
    *bad, good = doors.knock(attempts)
    assert [answer["status"] for answer in bad] == [403] + [401] * len(BAD)
    assert good["status"] == 400
    check_counted(scene.refused, before, len(bad))
    scene.check_logged("node", "refused", {"token", "manifest"})


def test_the_wire_asks_for_a_token_or_a_certificate(scene: Scene) -> None:
    refused, turned_away = scene.refused(), scene.turned_away()
    attempts = [scene.wire("good"), *(scene.wire(token) for token in BAD)]
    attempts.append(scene.wire("good", who="another"))
    attempts.append(scene.wire("stranger's"))
    attempts.append(scene.wire("good", role=lies.NODE))
    attempts.append(scene.wire("good", node=scene.elsewhere))
    good, *bad = doors.knock(attempts)
    assert good["type"] == doors.WELCOME, good
    assert [answer["type"] for answer in bad] == [doors.REFUSAL] * len(bad)
    assert all(answer["text"] for answer in bad)
    check_counted(scene.turned_away, turned_away, len(bad))
    check_counted(scene.refused, refused, len(bad) - 1)  # who is no node is seen before it is heard
    scene.check_logged("node", "peer refused", {"denied", "certificate"})
    scene.check_logged("node", "refused", {"token", "pod"})


def test_control_is_for_nodes(scene: Scene) -> None:
    before = scene.control_refused()
    attempts = [scene.control("good", path) for path in ("/v1/state", "/v1/status", "/metrics")]
    attempts += [
        scene.control(token, "/v1/certificates", "POST", "no request")
        for token in ("good", "stranger's", *BAD)
    ]
    for answer in doors.knock(attempts):
        assert answer.get("status") in (400, 401, 403, 404), answer
    check_counted(scene.control_refused, before, len(attempts))
    scene.check_logged(
        "operator", "control request refused", {"no_certificate", "no_token", "token_refused"}
    )


def test_no_port_speaks_plain_but_the_pages(scene: Scene) -> None:
    request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    closed = {
        ("node", "wire"): (scene.node, WIRE),
        ("node", "manifests"): (scene.node, MANIFESTS),
        ("operator", "webhook"): (scene.operator, WEBHOOK),
        ("operator", "control"): (scene.operator, CONTROL),
    }
    before = {server: scene.not_by_tls(*server) for server in closed}
    answers = doors.knock([doors.plain(*door, request) for door in closed.values()])
    for server, answer in zip(closed, answers, strict=True):
        assert "HTTP/1.1 200" not in answer.get("answer", ""), server
        assert "optcache" not in answer.get("answer", ""), server
        check_counted(partial(scene.not_by_tls, *server), before[server], 1)
    pages = [(scene.node, PAGES), (scene.operator, OPERATOR_PAGES), (scene.reader, SIDECAR_PAGES)]
    for answer in doors.knock([doors.plain(*door, request) for door in pages]):
        assert answer["answer"].startswith("HTTP/1.1 200")


def test_pages_of_sidecars_are_pages_alone(scene: Scene) -> None:
    """Whoever reaches the pod reads numbers there and nothing else."""
    paths = ("/", "/v1/state", "/metrics/../token", "//var/run/secrets/optcache/token")
    requests = [f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" for path in paths]
    for answer in doors.knock([doors.plain(scene.reader, SIDECAR_PAGES, text) for text in requests]):
        assert re.match(r"HTTP/1\.1 4\d\d ", answer["answer"]), answer
    path = f"/api/v1/namespaces/{scene.workspace.name}/pods/reader:{SIDECAR_PAGES}/proxy/metrics"
    text = scene.workspace.kubectl("get", "--raw", path)
    assert "optcache_" in text
    check_no_secrets(text, scene.tokens)


def check_no_secrets(text: str, tokens: dict[str, str]) -> None:
    assert "PRIVATE KEY" not in text
    assert not TOKEN.search(text)
    for name, token in tokens.items():
        assert token not in text and token.rpartition(".")[2] not in text, name


def test_no_log_has_a_token_or_a_key(scene: Scene) -> None:
    """Nor has an object of the namespace, in which the index Job and a sidecar ran."""
    doors.knock([scene.manifests(token) for token in scene.tokens])
    doors.knock([scene.wire(token) for token in scene.tokens])
    for component in ("node", "operator"):
        text = scene.release.logs(component)
        assert text
        check_no_secrets(text, scene.tokens)
    sidecar = scene.workspace.log("reader", "optcache-sidecar")
    index = scene.workspace.kubectl("logs", "--selector=app.kubernetes.io/component=index", "--tail=-1")
    assert sidecar and index
    check_no_secrets(scene.workspace.story(), scene.tokens)


@pytest.fixture
def thief(installed: Release, cluster: Cluster, store: Store, samples: Samples) -> Iterator[Workspace]:
    yield from new_space(Workspace(cluster, "thief", store, FewSamples(samples, STEP)))


@pytest.fixture
def victim(thief: Workspace, cluster: Cluster, store: Store) -> Iterator[Workspace]:
    """With the token of a ServiceAccount in a Secret, which is like the keys of a web server."""
    for space in new_space(Workspace(cluster, "victim", store, thief.samples)):
        secret = {"name": LOOT, "namespace": space.name}
        secret["annotations"] = {"kubernetes.io/service-account.name": "default"}
        kind = "kubernetes.io/service-account-token"
        space.apply({"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": secret})
        space.wait_for(f"secret/{LOOT}", "jsonpath={.data.token}", WAIT_SECONDS)
        yield space


def new_space(space: Workspace) -> Iterator[Workspace]:
    space.delete()
    space.create()
    yield space
    space.delete(wait=False)


def volumes_of(pod: Object) -> tuple[set[str], set[str]]:
    """The Secrets that a pod mounts, and the audiences of its tokens."""
    volumes = pod["spec"]["volumes"]
    parts = [part for volume in volumes for part in volume.get("projected", {}).get("sources", [])]
    secrets = {volume["secret"]["secretName"] for volume in volumes if "secret" in volume}
    secrets |= {part["secret"]["name"] for part in parts if "secret" in part}
    tokens = [part["serviceAccountToken"] for part in parts if "serviceAccountToken" in part]
    # That of the API server, where the pod has one, is for its usual audience and names none.
    return secrets, {token["audience"] for token in tokens if "audience" in token}


def test_a_dataset_takes_no_secret_of_those_who_use_it(thief: Workspace, victim: Workspace) -> None:
    """Its owner names a Secret of theirs, and reads what their sidecars send to a server of the owner."""
    thief.apply(*sources.keyed_store(thief.name, thief.samples, []))
    thief.wait_for("deployment/store", "condition=Available", WAIT_SECONDS)
    bait = objects.dataset(thief.name, "images", f"http://store.{thief.name}.svc/images/", "100%")
    bait["spec"]["source"]["http"]["listing"] = sources.LISTING
    bait["spec"]["access"] = [{"namespace": victim.name, "secretRef": {"name": LOOT}}]
    with pytest.raises(ClusterError, match="spec.access.*secretRef"):
        thief.kubectl("create", "--filename=-", stdin=json.dumps(bait))
    thief.kubectl("create", "--validate=ignore", "--filename=-", stdin=json.dumps(bait))
    thief.wait_for("dataset/images", "condition=Ready", WAIT_SECONDS)

    victim.start_training("train", f"{thief.name}/images", pods=1, environment={"EPOCHS": "1", "PAUSE": "0"})
    victim.wait_for_job("train", TRAINING_SECONDS)
    (pod,) = victim.pods("train")
    secrets, audiences = volumes_of(pod)
    assert LOOT not in secrets
    assert AUDIENCE in audiences
    reads = sources.reads_of(thief.kubectl("logs", "deployment/store", "--tail=-1"))
    assert reads and not [read for read in reads if read.keys]


def test_a_dataset_takes_no_token_of_those_who_use_it(thief: Workspace, victim: Workspace) -> None:
    """Its owner names a role and a service for tokens; pods give them theirs only if they say so."""
    bait = objects.dataset(thief.name, "bucket", "")
    server = f"http://store.{thief.name}.svc"
    role = {"roleARN": "arn:aws:iam::123456789012:role/reader", "stsEndpoint": server}
    bait["spec"]["source"] = {"s3": {"bucket": "images", "endpoint": server, **role}}
    bait["spec"]["access"] = [{"namespace": victim.name}]
    thief.apply(bait)
    thief.wait_for("dataset/bucket", "condition=Ready=false", WAIT_SECONDS)

    name = f"{thief.name}/bucket"
    labels, annotations = objects.injected(name)
    victim.apply(objects.sleeping_pod(victim.name, "silent", labels, annotations))
    lends = {**annotations, "optcache.io/pod-identity": name}
    victim.apply(objects.sleeping_pod(victim.name, "lends", labels, lends))
    silent, lending = victim.get("pod/silent"), victim.get("pod/lends")
    assert volumes_of(silent)[1] == {AUDIENCE}
    assert volumes_of(lending)[1] == {AUDIENCE, "sts.amazonaws.com"}
    for pod, given in ((silent, False), (lending, True)):
        (sidecar,) = [c for c in pod["spec"]["initContainers"] if c["name"] == "optcache-sidecar"]
        command = " ".join(sidecar["args"])
        assert ("token-file=" in command) == given
        assert (f"--no-ambient-keys {name}" in command) != given
