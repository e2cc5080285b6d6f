"""Machines whose parts speak by TCP, each in a network of its own, so that any can be cut off.

Within `network.own_network()`; processes that train and the store are there too, the store at HUB.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from harness.chaos import COORDINATOR, STORE
from harness.cluster import Budget, listens
from harness.cluster_side import Process
from harness.errors import HarnessError
from harness.network import HUB, Host, cut_off
from harness.processes import last_lines, wait_until
from harness.tcp_machine import NAME, TcpCoordinator, build_manifest

PORT = 7440  # of every part
PAGES = 7441


class TcpCluster:
    """Runs from construction to the end of its `with`. Logs and sockets are in `folder`."""

    def __init__(
        self, programs: Path, base_url: str, machines: int, budget: Budget, folder: Path
    ) -> None:
        self._programs = programs
        self._base_url = base_url
        self._machines = range(machines)
        self._budget = budget
        self._folder = folder
        self._manifest = folder / "images.manifest"
        self._hosts: dict[str, Host] = {}
        self._processes: dict[str, Process] = {}
        self._deaths: Counter[tuple[str, str]] = Counter()
        build_manifest(programs, base_url, self._manifest)
        names = [f"{part}-{machine}" for part in ("node", "sidecar") for machine in self._machines]
        with ExitStack() as undo:
            for number, name in enumerate([COORDINATOR, *names], start=1):
                self._hosts[name] = Host(number)
                undo.callback(self._hosts[name].close)
            self.restart_coordinator()
            undo.callback(lambda: self._coordinator.close())
            for name in names:
                self._processes[name] = self._start(name)
                undo.callback(self._stop, name)
            wait_until(self._is_ready, "nodes work by the newest state, and sidecars listen")
            self._undo = undo.pop_all()

    def __enter__(self) -> TcpCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def pids(self) -> dict[str, int]:
        """Of nodes and sidecars, by name. One that has ended is started again."""
        for name, process in self._processes.items():
            if process.ended():
                status = process.stop()
                ending = f"signal {-status}" if status < 0 else f"exit status {status}"
                self._deaths[name, ending] += 1
                self._processes[name] = self._start(name)
        return {name: process.pid for name, process in self._processes.items()}

    def deaths(self) -> Counter[tuple[str, str]]:
        """How often a process has ended, by its name and how."""
        return self._deaths

    @property
    def coordinator_pid(self) -> int:
        return self._coordinator.pid

    def kill_coordinator(self) -> None:
        """The others go on."""
        self._coordinator.kill()

    def orphans_that_ended(self) -> list[str]:
        """None: `pids` starts them again, whether there is a coordinator or not."""
        return []

    def restart_coordinator(self) -> None:
        """At the same address. It knows the dataset, and learns the rest from the nodes."""
        host = self._hosts[COORDINATOR]
        with host.entered():
            self._coordinator = TcpCoordinator(
                self._programs, self._log(COORDINATOR), f"{host.address}:{PORT}"
            )
        self._coordinator.publish(self._manifest, self._budget.memory * len(self._machines))

    def cut(self, part: str, other: str) -> AbstractContextManager[None]:
        """Packets between the two are lost; without an `other`, all packets of the part."""
        addresses = {name: host.address for name, host in self._hosts.items()}
        return cut_off(addresses[part], {**addresses, STORE: HUB, "": ""}[other])

    def socket(self, machine: int) -> Path:
        return self._folder / f"machine-{machine}.sock"

    def log_of(self, process: str) -> str:
        return self._log(process).read_text(errors="replace")

    def _log(self, process: str) -> Path:
        return self._folder / f"{process}.log"

    def _is_ready(self) -> bool:
        status = self._coordinator.status()
        members = status["members"]
        return (
            len(members) == len(self._machines)
            and all(member["applied"] == status["version"] for member in members)
            and all(listens(self.socket(machine)) for machine in self._machines)
        )

    def _start(self, name: str) -> Process:
        part, _, machine = name.partition("-")
        program = self._programs / f"optcache-{part}"
        flags = self._node_flags(name) if part == "node" else self._sidecar_flags(int(machine))
        pages = f"127.0.0.1:{PAGES}"
        with self._hosts[name].entered():
            return Process([program, "--name", name, "--metrics-address", pages, *flags], self._log(name), PAGES)

    def _node_flags(self, name: str) -> list[str]:
        return [
            *("--listen", f"{self._hosts[name].address}:{PORT}"),
            *("--coordinator", f"http://{self._hosts[COORDINATOR].address}:{PORT}"),
            *("--memory", str(self._budget.memory)),
        ]

    def _sidecar_flags(self, machine: int) -> list[str]:
        return [
            *("--socket", str(self.socket(machine))),
            *("--node", f"{self._hosts[f'node-{machine}'].address}:{PORT}"),
            *("--arena", str(self._budget.arena), "--overflow", str(self._budget.overflow)),
            *("--dataset", f"{NAME}={self._manifest}={self._base_url}"),
        ]

    def _stop(self, name: str) -> None:
        if status := self._processes[name].stop():
            raise HarnessError(f"{name} ended with status {status}:\n{last_lines(self._log(name))}")
