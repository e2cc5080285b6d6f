"""A node and sidecars as they run in a cluster: by TLS, with tokens, on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.control_plane import ApiServer, Authority, Operator, Pod
from harness.dataset import Dataset, dataset_key
from harness.errors import HarnessError
from harness.ports import free_port
from harness.processes import last_lines, stop, wait_until
from harness.store import LISTING, Store

import optcache

MEMORY = 256 << 20
BIRDS = "vision/birds"


class Process:
    """A program that was started here, with its pages at `http`."""

    def __init__(self, command: Sequence[str | Path], log: Path, http: int, **env: str) -> None:
        self.log = log
        self.http = http
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **env},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def count(self, name: str, **labels: str) -> float:
        """The sum of a metric over the series with these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/metrics", timeout=60) as page:
            lines = page.read().decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if re.split("[{ ]", line, maxsplit=1)[0] == name and all(w in line for w in wanted)
        )

    def answers(self) -> bool:
        """Whether its pages are there."""
        return self._is_ok("healthz")

    def is_ready(self) -> bool:
        return self._is_ok("readyz")

    def _is_ok(self, page: str) -> bool:
        try:
            answer = urllib.request.urlopen(f"http://127.0.0.1:{self.http}/{page}", timeout=5)
        except OSError:
            return False
        with answer:
            return bool(answer.status == 200)

    def ended(self) -> bool:
        return self._process.poll() is not None

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> int:
        return stop(self._process)

    def kill(self) -> None:
        stop(self._process, grace_seconds=0.0)


class ClusterSide:
    """An operator, an API server, and what runs beside them. All ends with `close`."""

    def __init__(self, programs: Path, folder: Path, host: str = "127.0.0.1") -> None:
        self._programs = programs
        self._host = host  # of the nodes
        self.folder = folder
        folder.mkdir()
        self.authority = Authority(folder)
        self.api = ApiServer(self.authority)
        self.operator = Operator(self.authority, {"node-token-a": "node-a", "node-token-b": "node-b"})
        self.nodes: dict[str, Process] = {}
        self._addresses: dict[str, tuple[int, int, int]] = {}
        self.others: list[Process] = []  # sidecars
        (folder / "api-token").write_text("service-account-token")

    def close(self) -> None:
        for process in [*self.others, *self.nodes.values()]:
            if not process.ended():
                process.stop()
        self.operator.stop()
        self.api.close()

    def start_node(self, name: str = "node-a", drain_seconds: int = 0) -> Process:
        """Starts it (again, with the same ports and state) and waits until it serves its pages."""
        ports = self._addresses.setdefault(name, (free_port(), free_port(), free_port()))
        wire, manifests, http = ports
        token = self.folder / f"{name}.token"
        token.write_text(f"node-token-{name.removeprefix('node-')}")
        node = Process(
            [
                *(self._programs / "optcache-node", "--name", name, "--memory", str(MEMORY)),
                *("--listen", self._at(wire), "--advertise", self._host),
                *("--metrics-address", f"127.0.0.1:{http}", "--manifests", self._at(manifests)),
                *("--coordinator", self.operator.url, "--ca", self.authority.certificate),
                *("--token-file", token, "--state-dir", self.folder / f"{name}.state"),
                *("--api-server", self.api.url, "--api-ca", self.authority.certificate),
                *("--api-token-file", self.folder / "api-token"),
                *("--drain-seconds", str(drain_seconds)),
            ],
            self.folder / f"{name}.log",
            http,
        )
        self.nodes[name] = node
        return node

    def wire_address(self, name: str = "node-a") -> str:
        return self._at(self._addresses[name][0])

    def manifest_url(self, name: str = "node-a") -> str:
        return f"https://{self._at(self._addresses[name][1])}"

    def _at(self, port: int) -> str:
        return f"[{self._host}]:{port}" if ":" in self._host else f"{self._host}:{port}"

    def token_of(self, pod: Pod) -> Path:
        """A file with a token that the API server knows as the pod's."""
        token = f"token-of-{pod.namespace}-{pod.name}"
        self.api.pods[token] = pod
        path = self.folder / token
        path.write_text(token)
        return path

    def index(
        self, dataset: str, source: str, listing: str, *flags: str, namespace: str = ""
    ) -> dict[str, Any]:
        """Runs the verb of an index Job, in the dataset's namespace if in no other; its
        termination message."""
        namespace = namespace or dataset.split("/")[0]
        message = self.folder / "termination"
        message.unlink(missing_ok=True)
        subprocess.run(
            [
                *(self._programs / "optcache-sidecar", "index", "--dataset", dataset),
                *("--source", source, "--listing", listing, "--node-ca", self.authority.certificate),
                *("--token-file", self.token_of(Pod(namespace, "index"))),
                *("--manifests", self.manifest_url(), "--termination-file", message),
                *("--timeout", "30", *flags),
            ],
            check=False,
            capture_output=True,
        )
        outcome: dict[str, Any] = json.loads(message.read_text())
        return outcome

    def warm(self, pod: Pod, dataset: str, source: str, *flags: str) -> dict[str, Any]:
        """Runs the verb of a Warmup's Job in that pod; its termination message."""
        message = self.folder / "termination"
        message.unlink(missing_ok=True)
        subprocess.run(
            [
                *(self._programs / "optcache-sidecar", "warm", "--dataset", f"{dataset}=={source}"),
                *("--name", f"{pod.namespace}/{pod.name}", "--node", self.wire_address()),
                *("--node-ca", self.authority.certificate, "--token-file", self.token_of(pod)),
                *("--manifests", self.manifest_url(), "--termination-file", message),
                *flags,
            ],
            check=False,
            capture_output=True,
        )
        outcome: dict[str, Any] = json.loads(message.read_text())
        return outcome

    def publish(
        self, datasets: dict[str, tuple[str, list[str]]], holders: list[int] | None = None
    ) -> None:
        """A state with these datasets (digest and namespaces by name) on all nodes.

        Their manifests are with `holders`, or with who reports them."""
        names = sorted(self._addresses)
        ids = {name: number for number, name in enumerate(names, 1)}
        members = [
            {
                "id": ids[name],
                "name": name,
                "address": self.wire_address(name),
                "capacity": MEMORY,
                "manifest_url": self.manifest_url(name),
            }
            for name in names
        ]
        reported = {
            digest: [
                ids[name]
                for name, report in self.operator.reports.items()
                if digest in report.get("manifests", [])
            ]
            for digest, _ in datasets.values()
        }
        states = [
            {
                "name": name,
                "manifest": digest,
                "key": f"{dataset_key(name, digest):016x}",
                "retention": "optimal",
                "objective": "bytes",
                "planned": "0.0",
                "base": "",
                "capacities": [{"member": ids[node], "bytes": MEMORY // 2} for node in names],
                "streams": [],
                "inventory_wanted": 0,
                "namespaces": namespaces,
                "manifest_members": sorted(ids.values()),
                "manifest_holders": sorted(reported[digest] if holders is None else holders),
            }
            for name, (digest, namespaces) in sorted(datasets.items())
        ]
        self.operator.publish(members, states)

    def start_sidecar(
        self, pod: Pod, dataset: str, source: str, token: Path | None = None, *flags: str
    ) -> tuple[Process, Path]:
        """The sidecar of `pod` and its socket; `token` instead of its own."""
        where = self.folder / f"{pod.namespace}-{pod.name}"
        where.mkdir(exist_ok=True)
        http = free_port()
        sidecar = Process(
            [
                *(self._programs / "optcache-sidecar", "--name", f"{pod.namespace}/{pod.name}"),
                *("--socket", where / "sock", "--metrics-address", f"127.0.0.1:{http}", "--arena", "16Mi"),
                *("--node", self.wire_address(), "--node-ca", self.authority.certificate),
                *("--token-file", token or self.token_of(pod)),
                *("--manifests", self.manifest_url(), "--manifest-dir", where / "manifests"),
                *("--dataset", f"{dataset}=={source}", *flags),
            ],
            where / "log",
            http,
            POD_NAMESPACE=pod.namespace,
            OPTCACHE_OWNER="job-1",
        )
        self.others.append(sidecar)
        wait_until((where / "sock").exists, f"sidecar listens:\n{last_lines(sidecar.log)}")
        wait_until(sidecar.answers, f"sidecar has its pages:\n{last_lines(sidecar.log)}")
        return sidecar, where / "sock"

    def wait_ready(self, name: str = "node-a") -> None:
        self._wait(name, self.nodes[name].is_ready, f"{name} is ready")

    def wait_served(self, name: str = "node-a") -> None:
        """Its manifest port answers, so it has its certificate."""
        self._wait(name, lambda: name in self.operator.reports, f"{name} reports")

    def _wait(self, name: str, condition: Callable[[], bool], what: str) -> None:
        try:
            wait_until(condition, what)
        except HarnessError as error:
            raise HarnessError(f"{error}\n{last_lines(self.nodes[name].log)}") from error


def serve(side: ClusterSide, store: Store, namespaces: list[str], *flags: str) -> ClusterSide:
    """One node that serves the dataset to these, indexed by a Job with these flags."""
    side.start_node()
    side.wait_served()
    indexed = side.index(BIRDS, store.base_url, LISTING, *flags)
    assert "digest" in indexed, indexed
    wait_until(
        lambda: indexed["digest"] in side.operator.reports["node-a"]["manifests"],
        "the node reports the manifest",
    )
    side.publish({BIRDS: (indexed["digest"], namespaces)})
    side.wait_ready()
    return side


def read_all(socket_path: Path, dataset: Dataset, name: str | None = None) -> None:
    """Every sample once, each with the right bytes; of the sidecar's dataset of that name."""
    samples = optcache.Dataset(name, socket=str(socket_path), copy=True)
    assert len(samples) == len(dataset.paths)
    for first in range(0, len(samples), 64):
        ids = list(range(first, min(first + 64, len(samples))))
        for index, sample in zip(ids, samples.__getitems__(ids)):
            assert hashlib.sha256(sample).digest() == hashlib.sha256(dataset.read(index)).digest()
