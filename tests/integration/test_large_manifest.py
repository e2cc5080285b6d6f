"""A manifest of a large dataset goes from a pod to a node, to another node and to a sidecar, and is
never in a process's memory as a request or an answer.

With OPTCACHE_LONG=1 and `-s` this prints what docs/memory.md says of ten million samples.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness.cluster_side import ClusterSide, Process
from harness.control_plane import NODE, Pod
from harness.processes import wait_until

LONG = os.environ.get("OPTCACHE_LONG") == "1"
SAMPLES = 10_000_000 if LONG else 300_000
PATIENCE = 600.0 if LONG else 120.0
BIRDS = "vision/birds"
POD = Pod("vision", "train-0")
# As in docs/memory.md.
BASE = 32 << 20
SAMPLE_BYTES = 100


class Peaks:
    """The most memory of a process that is not pages of files, which the kernel takes back."""

    def __init__(self, process: Process) -> None:
        self.bytes = 0
        self.status = Path(f"/proc/{process.pid}/status")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            found = re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+) kB$", self.status.read_text(), re.M)
            self.bytes = max(self.bytes, sum(map(int, found)) * 1024)

    def end(self) -> int:
        self._over.set()
        self._thread.join()
        return self.bytes


@contextmanager
def peak(process: Process, what: str, most: int) -> Iterator[None]:
    peaks = Peaks(process)
    try:
        yield
    finally:
        reached = peaks.end()
    whole = re.search(r"^VmHWM:\s+(\d+) kB$", peaks.status.read_text(), re.M)
    assert whole is not None
    print(f"{what}: {reached / 1e6:.0f} MB, {most / 1e6:.0f} MB allowed;", end=" ")
    print(f"with the pages of mapped files {int(whole[1]) * 1024 / 1e6:.0f} MB so far")
    assert reached <= most


@pytest.fixture
def manifest(programs: Path, tmp_path: Path) -> tuple[Path, str]:
    """The file and its digest."""
    program = programs / "bench_manifest"
    if not program.exists():
        pytest.skip("bench_manifest, which makes large manifests, is not built")
    file = tmp_path / "large.manifest"
    made: dict[str, Any] = json.loads(
        subprocess.check_output(
            [program, "--samples", str(SAMPLES), "--digests", "--output", file], timeout=PATIENCE
        )
    )
    return file, made["digest"]


def connect(side: ClusterSide) -> http.client.HTTPConnection:
    host, port = side.manifest_url().removeprefix("https://").split(":")
    trust = ssl.create_default_context(cafile=str(side.authority.certificate))
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    plain = socket.create_connection((host, int(port)), timeout=PATIENCE)
    connection.sock = trust.wrap_socket(plain, server_hostname=NODE)
    return connection


def put(side: ClusterSide, file: Path, digest: str) -> None:
    headers = {
        "Authorization": f"Bearer {side.token_of(Pod('vision', 'index')).read_text()}",
        "Content-Length": str(file.stat().st_size),
    }
    with open(file, "rb") as body:
        connection = connect(side)
        connection.request("PUT", f"/v1/datasets/{BIRDS}/manifests/{digest}", body, headers)
        answer = connection.getresponse()
        assert answer.status == 201, answer.read()


def get(side: ClusterSide, token: str) -> str:
    """The digest of what comes, a piece at a time."""
    headers = {"Authorization": f"Bearer {token}"}
    for _ in range(10):
        connection = connect(side)
        connection.request("GET", f"/v1/datasets/{BIRDS}/manifest", headers=headers)
        answer = connection.getresponse()
        if answer.status != 503:
            break
        time.sleep(float(answer.headers["Retry-After"]))
    assert answer.status == 200, answer.read()
    sha256 = hashlib.sha256()
    while piece := answer.read(1 << 20):
        sha256.update(piece)
    return sha256.hexdigest()


def test_a_large_manifest_goes_by_pieces(side: ClusterSide, manifest: tuple[Path, str]) -> None:
    file, digest = manifest
    print(f"{SAMPLES} samples, {file.stat().st_size / 1e6:.0f} MB")
    nodes = {name: side.start_node(name) for name in ("node-a", "node-b")}
    for name in nodes:
        side.wait_served(name)
    # Before anybody uses the dataset a node knows nothing of its samples.
    with peak(nodes["node-a"], "a node that takes it", BASE):
        put(side, file, digest)
        reports = side.operator.reports
        wait_until(lambda: digest in reports["node-a"]["manifests"], "node-a reports it", PATIENCE)
    listed = SAMPLE_BYTES * SAMPLES + BASE
    with peak(nodes["node-b"], "a node that fetches and serves it", listed):
        side.publish({BIRDS: (digest, ["vision"])})
        wait_until(lambda: digest in reports["node-b"]["manifests"], "node-b reports it", PATIENCE)
        for node in nodes.values():
            wait_until(node.is_ready, "the nodes serve it", PATIENCE)
    with peak(nodes["node-a"], "a node that serves and gives it", listed):
        got: list[str] = []
        token = side.token_of(POD).read_text()  # which writes the file anew at each call
        readers = [threading.Thread(target=lambda: got.append(get(side, token))) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        assert got == [digest] * 4
    sidecar, _ = side.start_sidecar(POD, BIRDS, "http://127.0.0.1:1/")
    with peak(sidecar, "a sidecar", listed + (16 << 20)):
        wait_until(lambda: "serving a dataset" in sidecar.text(), "it serves it", PATIENCE)
