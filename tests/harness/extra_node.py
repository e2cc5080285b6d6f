"""A node beside those of a coordinator, started by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Protocol

from harness.processes import stop


class Coordinated(Protocol):
    """What has a coordinator: a Cluster or a TcpMachine."""

    @property
    def control(self) -> str: ...
    def status(self) -> dict[str, Any]: ...


class Extra:
    """One more, until `end` or `kill`. With `user`, by that user id, so that a firewall can tell it apart."""

    def __init__(
        self, programs: Path, cluster: Coordinated, memory: int, folder: Path, disk: int = 0, user: int = 0
    ) -> None:
        self._cluster = cluster
        self._log = folder / "extra.log"
        command: list[str | Path] = [programs / "optcache-node", "--name", "extra"]
        command += ["--listen", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0", "--coordinator", cluster.control]
        command += ["--memory", str(memory), "--drain-seconds", "40"]
        if disk:
            command += ["--disk", folder / "extra", "--disk-capacity", str(disk), "--disk-goes"]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, user=user or None
            )

    def is_member(self) -> bool:
        return "extra" in [member["name"] for member in self._cluster.status()["members"]]

    def end(self) -> str:
        """By SIGTERM; what it says of its last minute."""
        assert stop(self._process, 60) == 0
        lines = [line for line in self._log.read_text().splitlines() if "drained" in line]
        return lines[-1]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
