"""The cache under test: `optcache up` with simulated machines, each a node and a sidecar."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.errors import HarnessError
from harness.processes import last_lines, stop, wait_for_end

DATASET = "images"
START_SECONDS = 600.0  # with indexing, of a large folder too
POLL_SECONDS = 0.1

CONFIGURATION = """\
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {{name: {dataset}}}
spec:
  source: {{http: {{baseURL: "{base_url}", listing: {listing}}}}}
  order: ImageFolder
  cache: {{capacity: "{capacity}"}}
---
apiVersion: optcache.io/v1alpha1
kind: CachePlan
metadata: {{name: {dataset}}}
spec: {{dataset: {dataset}, retention: {retention}}}
"""


@dataclass(frozen=True)
class Budget:
    """Bytes; what a machine holds between two epochs is at most their sum."""

    memory: int  # of each node: what the plan may fill
    arena: int  # of each sidecar


@dataclass(frozen=True)
class ClusterOptions:
    programs: Path  # the folder of the optcache programs
    base_url: str
    listing: str
    machines: int
    budget: Budget
    state: Path  # manifests stay there, so one dataset is indexed once
    sockets: Path


Metrics = dict[str, float]  # by name, summed over labels


class Cluster:
    """Runs from construction to the end of its `with`. Log and configuration are in `folder`."""

    def __init__(self, options: ClusterOptions, retention: str, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._log = folder / "optcache-up.log"
        configuration = folder / "dataset.yaml"
        configuration.write_text(
            CONFIGURATION.format(
                dataset=DATASET,
                base_url=options.base_url,
                listing=options.listing,
                capacity=options.machines * options.budget.memory,
                retention=retention,
            )
        )
        with open(self._log, "wb") as log:
            self._up = subprocess.Popen(
                self._command(configuration),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self._wait_until_ready()
        except BaseException:
            stop(self._up)
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        status = stop(self._up)
        if status != 0 and error is None:
            raise HarnessError(f"optcache up ended with status {status}:\n{last_lines(self._log)}")

    def socket(self, machine: int) -> Path:
        return self._options.sockets / f"machine-{machine}.sock"

    def node_metrics(self) -> list[Metrics]:
        return [self._scrape(f"node-{machine}") for machine in range(self._options.machines)]

    def sidecar_metrics(self) -> list[Metrics]:
        return [self._scrape(f"sidecar-{machine}") for machine in range(self._options.machines)]

    def _command(self, configuration: Path) -> Sequence[str | Path]:
        options = self._options
        return [
            options.programs / "optcache",
            "up",
            *("-f", configuration),
            *("--machines", str(options.machines)),
            *("--memory", str(options.budget.memory)),
            *("--arena", str(options.budget.arena)),
            *("--state", options.state),
            *("--socket-dir", options.sockets),
            *("--port", "0"),
        ]

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if wait_for_end(self._up, POLL_SECONDS):
                raise HarnessError(f"optcache up ends at once:\n{last_lines(self._log)}")
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"optcache up is not ready after {START_SECONDS:.0f} s:\n"
                    f"{last_lines(self._log)}"
                )

    def _is_ready(self) -> bool:
        """Whether all nodes work by the newest state, and all sidecars listen."""
        status = self._status()
        members = status.get("members", [])
        return (
            len(members) == self._options.machines
            and all(member["applied"] == status["version"] for member in members)
            and all(self.socket(machine).is_socket() for machine in range(self._options.machines))
        )

    def _status(self) -> dict[str, Any]:
        """What `optcache status` says; nothing in it while there is no coordinator yet."""
        asked = subprocess.run(
            [
                self._options.programs / "optcache",
                "status",
                *("--state", self._options.state),
                *("--output", "json"),
            ],
            capture_output=True,
            check=False,
        )
        status: dict[str, Any] = json.loads(asked.stdout) if asked.returncode == 0 else {}
        return status

    def _scrape(self, process: str) -> Metrics:
        """The numbers of one process. Its log says at which port it gives them."""
        log = self._options.state / "logs" / f"{process}.log"
        ports = re.findall(r"\bstarted\b.* http=(\d+)", log.read_text(errors="replace"))
        if not ports:
            raise HarnessError(f"{log} does not say http=PORT")
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[-1]}/metrics", timeout=30) as page:
            text: str = page.read().decode()
        (self._folder / f"{process}.metrics").write_text(text)  # for those who --keep
        return parse_metrics(text)


def parse_metrics(text: str) -> Metrics:
    """Prometheus' text format; series of one name are added up."""
    metrics: Metrics = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            name = series.split("{", 1)[0]
            metrics[name] = metrics.get(name, 0.0) + float(value)
    return metrics
