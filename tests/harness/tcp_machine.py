"""A node and sidecars that speak by TCP, as between machines, with a coordinator started by hand.

Its dataset can get another manifest while it runs. `optcache up` has neither: on one machine it uses
Unix sockets.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from harness.cluster_side import Process
from harness.errors import HarnessError
from harness.ports import free_port
from harness.processes import last_lines, wait_until
from harness.store import LISTING, Store

NAME = "default/images"


class TcpCoordinator:
    """Of one dataset, NAME, from construction to `close`; by default at any port of 127.0.0.1.

    It adds to `log`.
    """

    def __init__(self, programs: Path, log: Path, address: str = "127.0.0.1:0") -> None:
        self._log = log
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [programs / "coordinator_test_server", address],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        self.pid = self._process.pid
        self.url = self._answer("url")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        if status := self._process.wait():
            raise self._ended(status)

    def kill(self) -> None:
        """HarnessError if it had ended by itself."""
        if (status := self._process.poll()) is not None:
            raise self._ended(status)
        self._process.kill()
        self._process.wait()

    def publish(self, manifest: Path, capacity: int) -> str:
        """From now on it is the dataset's, with so many bytes of the nodes. Its digest."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{NAME} {capacity} {manifest}\n".encode())
        self._process.stdin.flush()
        return self._answer("manifest")

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/v1/status", timeout=60) as answer:
            return dict(json.load(answer))

    def _ended(self, status: int) -> HarnessError:
        return HarnessError(f"the coordinator ended with status {status}:\n{last_lines(self._log)}")

    def _answer(self, what: str) -> str:
        assert self._process.stdout is not None
        word, value = self._process.stdout.readline().decode().split()
        assert word == what
        return value


def build_manifest(programs: Path, base_url: str, file: Path, *include: str) -> None:
    """Of the samples that match."""
    flags = [word for pattern in include for word in ("--include", pattern)]
    subprocess.run(
        [
            programs / "optcache",
            *("manifest", "build", "--source", base_url, "--listing", LISTING),
            *("--order", "path", "-o", str(file), *flags),
        ],
        check=True,
        capture_output=True,
    )


class TcpMachine:
    """Runs from construction to `close`. Everything is in `folder`."""

    def __init__(self, programs: Path, store: Store, folder: Path, capacity: int) -> None:
        self._programs = programs
        self._store = store
        self._folder = folder
        self._capacity = capacity
        self._processes: list[Process] = []
        self._sockets: list[Path] = []
        self._coordinator = TcpCoordinator(programs, folder / "coordinator.log")
        self.control = self._coordinator.url
        self._address = f"127.0.0.1:{free_port()}"
        self.node = self._start_node()

    def close(self) -> None:
        for process in self._processes:
            process.stop()
        self._coordinator.close()

    def restart_node(self) -> None:
        self._processes.remove(self.node)
        self.node.kill()
        self.node = self._start_node()

    def index(self, *include: str) -> Path:
        """A manifest of the samples that match."""
        manifest = self._folder / f"{len(list(self._folder.iterdir()))}.manifest"
        build_manifest(self._programs, self._store.base_url, manifest, *include)
        return manifest

    def publish(self, manifest: Path) -> str:
        """From now on it is the dataset's. Its digest."""
        digest = self._coordinator.publish(manifest, self._capacity)
        wait_until(lambda: self.status()["datasets"] != [], "the coordinator has it")
        return digest

    def start_sidecar(self, name: str, manifest: Path, owner: str = "") -> Path:
        """The socket of a sidecar that has this manifest. Without an owner any jobs may attach."""
        http = free_port()
        socket = self._folder / f"{name}.sock"
        sidecar = self._start(
            *("optcache-sidecar", "--name", name, "--socket", str(socket)),
            *(("--owner", owner) if owner else ()),
            *("--node", self._address, "--metrics-address", f"127.0.0.1:{http}", "--arena", "2Mi"),
            *("--overflow", "8Mi", "--dataset", f"{NAME}={manifest}={self._store.base_url}"),
            http=http,
        )
        wait_until(lambda: sidecar.answers() and sidecar.count("optcache_node_connected") == 1, name)
        self._sockets.append(socket)
        return socket

    def socket(self, number: int) -> Path:
        """Of the sidecar that was started as that one, from 0."""
        return self._sockets[number]

    def status(self) -> dict[str, Any]:
        return self._coordinator.status()

    def _start_node(self) -> Process:
        http = free_port()
        return self._start(
            *("optcache-node", "--name", "node-0", "--listen", self._address, "--coordinator"),
            *(self.control, "--memory", str(self._capacity), "--metrics-address", f"127.0.0.1:{http}"),
            http=http,
        )

    def _start(self, program: str, *flags: str, http: int) -> Process:
        log = self._folder / f"{program}-{len(self._processes)}.log"
        process = Process([self._programs / program, *flags], log, http)
        self._processes.append(process)
        wait_until(process.answers, program)
        return process
