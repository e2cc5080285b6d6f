"""Node and sidecars as they run in a cluster: by TLS, with tokens; the operator and the API server
are played."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.cluster_side import BIRDS, ClusterSide, Process, read_all, serve
from harness.control_plane import Pod
from harness.dataset import Dataset
from harness.processes import wait_until
from harness.store import LISTING, Store

import optcache

POD = Pod("vision", "train-0")
BORROWER = Pod("speech", "train-0")


def test_what_a_pod_reads_comes_from_the_node_the_second_time(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    sidecar, where = served.start_sidecar(POD, BIRDS, store.base_url)
    read_all(where, dataset)
    begin = store.log_size()
    other, there = served.start_sidecar(Pod("vision", "train-1"), BIRDS, store.base_url)
    wait_until(lambda: other.count("optcache_node_connected") == 1, "the sidecar has its node")
    read_all(there, dataset)
    assert store.read_bytes(begin) == 0
    assert served.nodes["node-a"].count("optcache_token_checks_total", result="good") >= 2
    assert sidecar.count("optcache_node_connected") == 1


def test_what_a_warmup_has_read_is_there_for_pods(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    """By the token of its own pod; one of a namespace that may not use the dataset gets no further."""
    begin = store.log_size()
    job = Pod("vision", "images-warm-0")
    said = served.warm(job, BIRDS, store.base_url, "--part", f"node1={dataset.total_bytes}", "--at", "node1")
    assert said["read"] == len(dataset.paths) and said["failed"] == 0, said
    assert store.read_bytes(begin) >= dataset.total_bytes
    begin = store.log_size()
    said = served.warm(job, BIRDS, store.base_url)
    assert (said["read"], said["held"]) == (0, len(dataset.paths)), said
    sidecar, where = served.start_sidecar(POD, BIRDS, store.base_url)
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "the sidecar has its node")
    read_all(where, dataset)
    assert store.read_bytes(begin) == 0
    said = served.warm(Pod("strangers", "warm-0"), BIRDS, store.base_url, "--timeout", "5")
    assert "5 s" in said["message"], said


def test_nodes_and_pods_meet_by_ipv6(
    programs: Path, tmp_path: Path, store: Store, dataset: Dataset
) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    side = ClusterSide(programs, tmp_path / "cluster", host="::1")
    try:
        serve(side, store, ["vision"])
        sidecar, where = side.start_sidecar(POD, BIRDS, store.base_url)
        wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "the sidecar has its node")
        read_all(where, dataset)
        side.start_node("node-b")
        side.wait_served("node-b")
        digest = side.operator.reports["node-a"]["manifests"][0]
        side.publish({BIRDS: (digest, ["vision"])})
        side.wait_ready("node-b")  # with the manifest, from the other node
        assert side.operator.reports["node-b"]["address"] == side.wire_address("node-b")
    finally:
        side.close()


def test_a_pod_waits_for_its_manifest_with_a_message(
    side: ClusterSide, store: Store, dataset: Dataset
) -> None:
    side.start_node()
    side.wait_served()
    sidecar, where = side.start_sidecar(POD, BIRDS, store.base_url)
    wait_until(lambda: sidecar.count("optcache_manifests_awaited") == 1, "it awaits the manifest")
    wait_until(lambda: "no manifest yet" in sidecar.text(), "it says what it waits for")
    indexed = side.index(BIRDS, store.base_url, LISTING)
    side.publish({BIRDS: (indexed["digest"], ["vision"])})
    read_all(where, dataset)


def test_an_index_says_what_changed_since_the_list_before(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    (before,) = served.operator.reports["node-a"]["manifests"]
    gone = [path for path in dataset.paths if not path.endswith("0.png")]
    said = served.index(BIRDS, store.base_url, LISTING, "--before", before, "--include", "**/*0.png")
    first = said["changes"]["removed"].pop("first")
    assert first in gone, said
    assert said["changes"] == {
        "added": {"count": 0},
        "changed": {"count": 0},
        "removed": {"count": len(gone)},
    }
    said = served.index(BIRDS, store.base_url, LISTING, "--before", before)
    assert said["digest"] == before and "changes" not in said


def test_a_node_that_restarts_while_the_operator_is_away_goes_on(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    sidecar, where = served.start_sidecar(POD, BIRDS, store.base_url)
    read_all(where, dataset)
    served.operator.stop()
    served.nodes["node-a"].kill()
    node = served.start_node()
    served.wait_ready()
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "the sidecar is back")
    read_all(where, dataset)
    begin = store.log_size()
    read_all(where, dataset)
    assert store.read_bytes(begin) == 0
    assert node.count("optcache_coordinator_connected") == 0
    assert served.operator.certificates == 1, "it went on with the certificate that it had"


def test_a_sidecar_that_restarts_without_a_node_goes_on_with_its_manifest(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    sidecar, where = served.start_sidecar(POD, BIRDS, store.base_url)
    read_all(where, dataset)
    served.nodes["node-a"].kill()
    sidecar.kill()
    _, again = served.start_sidecar(POD, BIRDS, store.base_url)
    read_all(again, dataset)


def read_from(side: ClusterSide, pod: Pod, store: Store, dataset: Dataset) -> int:
    """Bytes that `pod`, new, reads from `store` to get all samples, which are those of `dataset`."""
    sidecar, where = side.start_sidecar(pod, BIRDS, store.base_url)
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "the sidecar has its node")
    begin = store.log_size()
    read_all(where, dataset)
    return store.read_bytes(begin)


def test_what_a_guest_puts_is_a_hit_for_its_own_namespace_alone(
    side: ClusterSide, store: Store, dataset: Dataset, tmp_path: Path
) -> None:
    """It reads another store, where the same names hold other bytes."""
    serve(side, store, ["vision", "speech"])
    node = side.nodes["node-a"]

    def private() -> float:
        return node.count("optcache_cache_private_bytes")

    false = poisoned(dataset, tmp_path / "poison")
    (tmp_path / "nginx").mkdir()
    with Store(false.root, tmp_path / "nginx") as other:
        assert read_from(side, BORROWER, other, false) >= dataset.total_bytes
        wait_until(lambda: private() == dataset.total_bytes, "all are kept for it")
        again = Pod("speech", "train-1")
        assert read_from(side, again, other, false) == 0, "its own namespace hits"
    assert read_from(side, POD, store, dataset) >= dataset.total_bytes, "nobody else does"
    wait_until(lambda: private() == 0, "the owner's take their place")
    assert node.count("optcache_cache_bytes") == dataset.total_bytes
    assert read_from(side, Pod("speech", "train-2"), store, dataset) == 0


def poisoned(dataset: Dataset, root: Path) -> Dataset:
    """The same files with other content, which a listing cannot tell apart."""
    for index, name in enumerate(dataset.paths):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(byte ^ 1 for byte in dataset.read(index)))
        times = (dataset.root / name).stat()
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return Dataset(root, dataset.paths, dataset.sizes)


def test_what_a_guest_puts_and_a_digest_proves_is_for_all(
    side: ClusterSide, store: Store, dataset: Dataset
) -> None:
    serve(side, store, ["vision", "speech"], "--verify", "Digest")
    node = side.nodes["node-a"]
    assert read_from(side, BORROWER, store, dataset) >= dataset.total_bytes
    wait_until(
        lambda: node.count("optcache_cache_samples") == len(dataset.paths), "all have been proven"
    )
    assert node.count("optcache_cache_private_bytes") == 0
    assert read_from(side, POD, store, dataset) == 0


def test_an_index_job_of_another_namespace_is_refused(
    side: ClusterSide, store: Store
) -> None:
    side.start_node()
    side.wait_served()
    refused = side.index(BIRDS, store.base_url, LISTING, namespace="speech")
    assert refused["reason"] == "ManifestRefused", refused
    assert "namespace speech" in refused["message"]
    assert "token-of-speech-index" not in refused["message"]
    assert side.nodes["node-a"].count("optcache_refusals_total", reason="manifest") > 0


def test_a_second_node_fetches_the_manifest_from_the_first(
    served: ClusterSide, store: Store
) -> None:
    digest = served.operator.reports["node-a"]["manifests"][0]
    second: Process = served.start_node("node-b")
    served.wait_served("node-b")
    served.publish({BIRDS: (digest, ["vision"])})
    wait_until(
        lambda: digest in served.operator.reports["node-b"]["manifests"], "the other has it, too"
    )
    assert second.count("optcache_manifest_fetches_total", result="stored") == 1
    served.wait_ready("node-b")


def test_a_node_does_not_wait_for_a_manifest_that_nobody_has(side: ClusterSide) -> None:
    """It is brought by an index Job, which finds nodes that are ready alone."""
    side.start_node()
    side.wait_served()
    side.publish({BIRDS: ("0" * 64, ["vision"])})
    side.wait_ready()


def test_a_dataset_that_is_made_again_is_served_again(side: ClusterSide, store: Store) -> None:
    """Its manifest was awaited when it was deleted."""
    side.start_node()
    side.wait_served()
    indexed = side.index(BIRDS, store.base_url, LISTING)
    digest = indexed["digest"]
    wait_until(lambda: digest in side.operator.reports["node-a"]["manifests"], "it has the manifest")
    second = side.start_node("node-b")
    side.wait_served("node-b")
    side.publish({BIRDS: (digest, ["vision"])}, holders=[])
    wait_until(lambda: second.count("optcache_manifests_awaited") == 1, "the second awaits it")
    side.publish({})
    wait_until(lambda: second.count("optcache_manifests_awaited") == 0, "nobody wants it")
    side.publish({BIRDS: (digest, ["vision"])})
    wait_until(lambda: "dataset served" in second.text(), "the second serves it")


def test_a_node_that_is_asked_to_end_gives_its_samples_away(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    digest = served.operator.reports["node-a"]["manifests"][0]
    second = served.start_node("node-b")
    served.wait_served("node-b")
    served.nodes["node-a"].stop()
    first = served.start_node("node-a", drain_seconds=20)
    served.publish({BIRDS: (digest, ["vision"])})
    served.wait_ready("node-a")
    served.wait_ready("node-b")
    _, where = served.start_sidecar(POD, BIRDS, store.base_url)
    read_all(where, dataset)
    held = first.count("optcache_cache_samples")
    assert held > 0
    assert first.stop() == 0
    assert second.count("optcache_cache_samples") >= held


PASSWORD = "open-sesame-4711"


@pytest.fixture
def guarded(side: ClusterSide, dataset: Dataset, tmp_path: Path) -> Iterator[Store]:
    """A store by TLS that wants a password; its certificate is of an authority of its own."""
    folder = tmp_path / "guarded"
    folder.mkdir()
    chain, key = side.authority.make_pair("store", ["localhost"])
    users = folder / "users"
    users.write_text(f"reader:{{PLAIN}}{PASSWORD}\n")
    guard = (
        f"ssl_certificate {chain}; ssl_certificate_key {key}; "
        f"auth_basic samples; auth_basic_user_file {users};"
    )
    with Store(dataset.root, folder, guard, secure=True) as running:
        dataset.write_listing(running.listing_file)
        yield running


def secret(side: ClusterSide, name: str, **fields: str) -> Path:
    """As Kubernetes mounts it."""
    folder = side.folder / name
    folder.mkdir()
    for field, value in fields.items():
        (folder / field.replace("_", ".")).write_text(value)
    return folder


def test_keys_of_a_web_server_come_from_a_secret(
    side: ClusterSide, guarded: Store, dataset: Dataset
) -> None:
    ca = side.authority.certificate.read_text()
    right = secret(side, "right", username="reader\n", password=f"{PASSWORD}\n", ca_crt=ca)
    side.start_node()
    side.wait_served()
    indexed = side.index(BIRDS, guarded.base_url, LISTING, "--keys", str(right))
    assert "digest" in indexed, indexed
    side.publish({BIRDS: (indexed["digest"], ["vision"])})
    side.wait_ready()

    changing = secret(side, "changing", username="reader", password="wrong", ca_crt=ca)
    keys = ("--keys", f"{BIRDS}={changing}")
    sidecar, where = side.start_sidecar(POD, BIRDS, guarded.base_url, None, *keys)
    samples = optcache.Dataset(socket=str(where), copy=True)
    with pytest.raises(optcache.OptcacheError, match="HTTP 401: the server wants a key"):
        samples[0]
    (changing / "password").write_text(PASSWORD)

    def is_taken() -> bool:
        try:
            return bytes(samples[0]) == dataset.read(0)
        except optcache.OptcacheError:
            return False

    wait_until(is_taken, "the new password is read")
    read_all(where, dataset)
    assert PASSWORD not in sidecar.text()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"username": "reader", "password": "wrong"}, "HTTP 401: the server wants a key, or another one"),
        ({"username": "reader"}, "username and password go together, one is missing"),
        ({}, "HTTP 401: the server wants a key, or another one"),
    ],
    ids=["wrong", "incomplete", "none"],
)
def test_an_index_job_without_the_right_keys_says_so(
    side: ClusterSide, guarded: Store, fields: dict[str, str], says: str
) -> None:
    ca = side.authority.certificate.read_text()
    folder = secret(side, "keys", ca_crt=ca, **fields)
    side.start_node()
    side.wait_served()
    refused = side.index(BIRDS, guarded.base_url, LISTING, "--keys", str(folder))
    assert refused["reason"] == "SourceForbidden"
    assert says in refused["message"]
