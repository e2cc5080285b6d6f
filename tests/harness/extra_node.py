"""A node beside those of `optcache up`, started by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.cluster import Cluster
from harness.processes import stop


class Extra:
    """One more, until `end` or `kill`. With `user`, by that user id, so that a firewall can tell it apart."""

    def __init__(
        self, programs: Path, cluster: Cluster, memory: int, folder: Path, disk: int = 0, user: int = 0
    ) -> None:
        self._cluster = cluster
        self._log = folder / "extra.log"
        command: list[str | Path] = [programs / "optcache-node", "--name", "extra"]
        command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--coordinator", cluster.url]
        command += ["--memory", str(memory), "--drain-seconds", "40"]
        if disk:
            command += ["--disk", folder / "extra", "--disk-capacity", str(disk), "--disk-goes"]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, user=user or None
            )

    def is_member(self) -> bool:
        return "extra" in [member["name"] for member in self._cluster.status()["members"]]

    def has_its_share(self) -> bool:
        """Samples have come, and nobody has any more for others."""
        if not self.is_member():
            return False
        nodes = [*self._cluster.node_metrics(), self._cluster.metrics_of("extra")]
        waiting = sum(node.get("optcache_outbox_bytes", 0) for node in nodes)
        return nodes[-1].get("optcache_cache_bytes", 0) > 0 and waiting == 0

    def end(self) -> str:
        """By SIGTERM; what it says of its last minute."""
        assert stop(self._process, 60) == 0
        lines = [line for line in self._log.read_text().splitlines() if "drained" in line]
        return lines[-1]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
