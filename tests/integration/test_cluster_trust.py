"""Who is refused what on a node of a cluster, and when a connection ends."""

from __future__ import annotations

import base64
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from harness.cluster_side import BIRDS, ClusterSide, read_all, serve
from harness.control_plane import Pod
from harness.dataset import Dataset
from harness.processes import wait_until
from harness.store import LISTING, Store
from torch.utils.data import DataLoader

import optcache
from optcache.torch import attach

POD = Pod("vision", "train-0")
BORROWER = Pod("speech", "train-0")


def test_a_forged_token_reads_the_store(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    forged = served.folder / "forged"
    forged.write_text("forged-token")
    # The manifest is there from before: what remains is the node.
    _, where = served.start_sidecar(POD, BIRDS, store.base_url)
    read_all(where, dataset)
    for process in served.others:
        process.stop()
    sidecar, where = served.start_sidecar(POD, BIRDS, store.base_url, forged)
    read_all(where, dataset)
    node = served.nodes["node-a"]
    wait_until(lambda: node.count("optcache_refusals_total", reason="token") > 0, "it is refused")
    assert sidecar.count("optcache_node_connected") == 0
    for log in (node.text(), sidecar.text()):
        assert "forged-token" not in log, "no token in a log"


def test_another_namespace_gets_neither_manifest_nor_samples(
    served: ClusterSide, store: Store
) -> None:
    sidecar, where = served.start_sidecar(Pod("speech", "train-0"), BIRDS, store.base_url)
    wait_until(lambda: "namespace speech may not use" in sidecar.text(), "it is told why")
    node = served.nodes["node-a"]
    assert node.count("optcache_refusals_total", reason="namespace") > 0
    assert node.count("optcache_requests_total") == 0


def test_plaintext_gets_nothing_at_any_port(served: ClusterSide) -> None:
    for address in (served.wire_address(), served.manifest_url().removeprefix("https://")):
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            plain.sendall(b"GET /v1/manifests/" + b"0" * 64 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = plain.recv(4096)
        assert b"200" not in answer and b"OPTC" not in answer
    wait_until(
        lambda: served.nodes["node-a"].count("optcache_tls_handshake_failures_total") >= 2,
        "it is counted",
    )


def make_loader(socket_path: Path, name: str, batch: int) -> DataLoader[Any]:
    samples = optcache.Dataset(name, socket=str(socket_path), copy=True)
    loader = DataLoader(samples, batch_size=batch, shuffle=True, collate_fn=len)
    return attach(loader, dataset=samples, name=f"by-{batch}")


def test_a_dataset_that_is_deleted_leaves_a_pods_others_alone(
    side: ClusterSide, store: Store, dataset: Dataset
) -> None:
    """And is cached again, for those too who began to read meanwhile, without a new connection."""
    own = "speech/own"
    serve(side, store, ["vision", "speech"])
    digest = side.operator.reports["node-a"]["manifests"][0]
    assert side.index(own, store.base_url, LISTING)["digest"] == digest
    both = {BIRDS: (digest, ["vision", "speech"]), own: (digest, ["speech"])}
    side.publish(both)
    sidecar, where = side.start_sidecar(
        BORROWER, BIRDS, store.base_url, None, "--dataset", f"{own}=={store.base_url}"
    )
    node = side.nodes["node-a"]
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "the sidecar has its node")
    read_all(where, dataset, BIRDS)
    read_all(where, dataset, own)

    def streams() -> set[str]:
        return {stream["name"] for stream in side.operator.reports["node-a"]["streams"]}

    early = make_loader(where, BIRDS, 32)
    assert sum(early) == len(dataset.paths)
    wait_until(lambda: len(streams()) == 1, "a stream is listed")
    side.publish({own: both[own]})
    wait_until(lambda: node.count("optcache_cache_private_bytes") == 0, "it is gone")
    wait_until(lambda: not streams(), "and nobody reads it")
    late = make_loader(where, BIRDS, 64)
    assert sum(late) == len(dataset.paths)
    assert node.count("optcache_refusals_total", reason="stream") >= 2, "each is told in the log"
    begin = store.log_size()
    read_all(where, dataset, own)
    assert store.read_bytes(begin) == 0, "its own is a hit as before"
    read_all(where, dataset, BIRDS)
    assert store.read_bytes(begin) >= dataset.total_bytes, "the other comes from the store"
    side.publish(both)
    wait_until(lambda: node.text().count("dataset served") == 3, "it is back")
    wait_until(lambda: len(streams()) == 2, "and with it who reads it")
    read_all(where, dataset, BIRDS)
    begin = store.log_size()
    read_all(where, dataset, BIRDS)
    assert store.read_bytes(begin) == 0
    assert sidecar.text().count("node connected") == 1
    assert "node lost" not in sidecar.text()


def test_an_access_that_is_taken_back_leaves_a_pods_others_alone(
    side: ClusterSide, store: Store, dataset: Dataset
) -> None:
    own = "speech/own"
    serve(side, store, ["vision", "speech"])
    digest = side.operator.reports["node-a"]["manifests"][0]
    side.index(own, store.base_url, LISTING)
    side.publish({BIRDS: (digest, ["vision", "speech"]), own: (digest, ["speech"])})
    sidecar, where = side.start_sidecar(
        BORROWER, BIRDS, store.base_url, None, "--dataset", f"{own}=={store.base_url}"
    )
    node = side.nodes["node-a"]
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "the sidecar has its node")
    read_all(where, dataset, BIRDS)
    read_all(where, dataset, own)
    side.publish({BIRDS: (digest, ["vision"]), own: (digest, ["speech"])})
    wait_until(lambda: node.count("optcache_cache_private_bytes") == 0, "its copies are gone")
    begin = store.log_size()
    read_all(where, dataset, BIRDS)
    assert store.read_bytes(begin) >= dataset.total_bytes
    assert node.count("optcache_refusals_total", reason="namespace") > 0
    begin = store.log_size()
    read_all(where, dataset, own)
    assert store.read_bytes(begin) == 0
    assert "node lost" not in sidecar.text()


def token_until(token: str, until: float) -> str:
    """A token that says when it expires."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": int(until)}).encode()).decode()
    return f"head.{claims.rstrip('=')}.{token}"


@pytest.mark.long
def test_a_connection_ends_with_its_token_and_its_pod_comes_back_with_a_fresh_one(
    served: ClusterSide, store: Store, dataset: Dataset
) -> None:
    old = token_until("old", time.time() + 12)
    fresh = token_until("fresh", time.time() + 3600)
    served.api.pods |= {old: POD, fresh: POD}
    token = served.folder / "changing-token"
    token.write_text(old)
    sidecar, where = served.start_sidecar(POD, BIRDS, store.base_url, token)
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "the sidecar has its node")
    read_all(where, dataset)
    token.write_text(fresh)  # as the kubelet does it
    wait_until(lambda: "has expired" in sidecar.text(), "the connection ends")
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "it is back")
    begin = store.log_size()
    read_all(where, dataset)
    assert store.read_bytes(begin) == 0
    assert fresh in served.api.reviewed


@pytest.mark.long
def test_a_connection_by_a_token_that_was_carried_away_ends_with_it(
    served: ClusterSide, store: Store
) -> None:
    old = token_until("old", time.time() + 12)
    served.api.pods[old] = POD
    token = served.folder / "stolen-token"
    token.write_text(old)
    sidecar, _ = served.start_sidecar(POD, BIRDS, store.base_url, token)
    wait_until(lambda: sidecar.count("optcache_node_connected") == 1, "it is in")
    del served.api.pods[old]  # expired, as the API server knows
    wait_until(lambda: "has expired" in sidecar.text(), "the connection ends")
    node = served.nodes["node-a"]
    wait_until(lambda: node.count("optcache_refusals_total", reason="token") > 0, "it is refused")
    assert sidecar.count("optcache_node_connected") == 0
