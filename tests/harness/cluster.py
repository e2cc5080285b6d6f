"""The cache under test: `optcache up` with simulated machines, each a node and a sidecar."""

from __future__ import annotations

import json
import os
import re
import signal
import socket as sockets
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.chaos import COORDINATOR
from harness.errors import HarnessError
from harness.processes import POLL_SECONDS, last_lines, stop, wait_for_end, wait_until

DATASET = "images"
START_SECONDS = 600.0  # with indexing, of a large folder too
RETURN_SECONDS = 60.0  # of a process that was killed

CONFIGURATION = """\
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {{name: {dataset}}}
spec:
  source: {source}
  order: {order}
  format: {format}
  verify: {verify}
  cache: {{capacity: "{capacity}", tiers: {tiers}}}
{cost}{limits}---
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
    overflow: int = 64 << 20  # of each sidecar, taken only while its arena is full
    computed: int = 0  # of each sidecar, for computed samples
    disk: int = 0  # of each node, in files: what plans count on is a tenth less


def transit_reserve(memory: int, total_bytes: int, samples: int) -> int:
    """What a node of so much memory may hold beside it for transit, by its rule."""
    return max(memory // 50, min(256 * (total_bytes // samples), 128 << 10, memory // 4))


@dataclass(frozen=True)
class ClusterOptions:
    programs: Path  # the folder of the optcache programs
    base_url: str  # of the store; without a listing, a folder
    listing: str
    machines: int
    budget: Budget
    state: Path  # manifests stay there, so one dataset is indexed once
    sockets: Path
    bucket: str = ""  # instead of base_url: what is written below spec.source.s3
    order: str = "ImageFolder"
    format: str = "Files"
    verify: str = "Checksum"
    disk: Path | None = None  # the nodes' disk, if their budget has one
    s3_endpoint: bool = False  # of each sidecar
    sampler: str = ""  # the order in which DATASET is read there
    keys: Path | None = None  # folder with those of the store
    patience: str = "10m"  # with the store
    cost: str = ""  # what is written as spec.cost
    limits: str = ""  # what is written as spec.limits
    allowed: Sequence[int] = ()  # users beside the one of `optcache up`
    user: int | None = None  # of `optcache up`; none: that of this process

    @property
    def source(self) -> str:
        if self.bucket:
            return f"{{patience: {self.patience}, s3: {self.bucket}}}"
        if not self.listing:
            return f'{{patience: {self.patience}, file: {{path: "{self.base_url}"}}}}'
        return f'{{patience: {self.patience}, http: {{baseURL: "{self.base_url}", listing: {self.listing}}}}}'


Metrics = dict[str, float]  # by name, summed over labels, and by series as it is written


class Cluster:
    """Runs from construction to the end of its `with`. Log and configuration are in `folder`."""

    def __init__(self, options: ClusterOptions, retention: str, folder: Path) -> None:
        self._options = options
        self._folder = folder
        self._log = folder / "optcache-up.log"
        self._configuration = folder / "dataset.yaml"
        self._configuration.write_text(
            CONFIGURATION.format(
                dataset=DATASET,
                source=options.source,
                order=options.order,
                format=options.format,
                verify=options.verify,
                capacity=options.machines
                * (options.budget.memory + options.budget.disk * 9 // 10),
                tiers="[Memory, Disk]" if options.disk else "[Memory]",
                cost=f"  cost: {options.cost}\n" if options.cost else "",
                limits=f"  limits: {options.limits}\n" if options.limits else "",
                retention=retention,
            )
        )
        self._left: dict[str, int] = {}  # orphans
        self._metrics_urls: dict[str, str] = {}
        self._start()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name, pid in self._left.items():
            if _name_of(pid) == name:
                os.kill(pid, signal.SIGKILL)
        status = stop(self._up)
        if status != 0 and error is None and not self._left:
            raise HarnessError(f"optcache up ended with status {status}:\n{last_lines(self._log)}")

    def groups(self) -> list[int]:
        """The process groups of `optcache up` and of what it has started."""
        return [self._up.pid, *self.pids().values()]

    def pids(self) -> dict[str, int]:
        """Of the processes that run now, by the names that `optcache up` gave them."""
        pids = {}
        children = Path(f"/proc/{self._up.pid}/task/{self._up.pid}/children").read_text()
        for pid in map(int, children.split()):
            if name := _name_of(pid):
                pids[name] = pid
        return pids

    def kill(self, process: str, number: signal.Signals = signal.SIGKILL) -> None:
        """A signal to one process, "node-0" or "sidecar-1", once it runs; it is started again."""
        wait_until(lambda: process in self.pids(), f"{process} runs", RETURN_SECONDS)
        os.kill(self.pids()[process], number)

    @property
    def coordinator_pid(self) -> int:
        return self._up.pid

    def deaths(self) -> Counter[tuple[str, str]]:
        """How often a process has ended, by its name and how: "node-0" by "signal 9"."""
        return deaths_in(self._log.read_text(errors="replace"))

    def kill_coordinator(self) -> None:
        """SIGKILL to `optcache up` itself. What it has started goes on, and nobody looks after it."""
        self._left = self.pids()
        self._up.kill()
        self._up.wait()

    def kill_for_good(self, process: str, number: signal.Signals = signal.SIGKILL) -> None:
        """A signal that ends a process, after SIGKILL to `optcache up`, which would start it again."""
        self.kill_coordinator()
        os.kill(self._left[process], number)
        wait_until(lambda: _name_of(self._left[process]) != process, f"{process} has ended")

    def orphans_that_ended(self) -> list[str]:
        """Of those that kill_coordinator has left."""
        return [name for name, pid in self._left.items() if _name_of(pid) != name]

    def restart_coordinator(self) -> None:
        """Starts `optcache up` again; returns when it has put others in the place of its orphans."""
        self._start()
        if left := sorted(self._left.keys() - self.orphans_that_ended()):
            raise HarnessError(f"still there after optcache up was started again: {left}")
        self._left = {}

    def socket(self, machine: int) -> Path:
        return self._options.sockets / f"machine-{machine}.sock"

    def s3_endpoint(self, machine: int) -> str:
        """As `optcache up` prints it, for AWS_ENDPOINT_URL_S3."""
        return self._said(rf"machine {machine} .*\nexport .*\nexport AWS_ENDPOINT_URL_S3=(\S+)")

    def log_of(self, process: str) -> str:
        """What it and its forerunners in the same state folder wrote; of COORDINATOR, `optcache up`."""
        if process == COORDINATOR:
            return self._log.read_text(errors="replace")
        return (self._options.state / "logs" / f"{process}.log").read_text(errors="replace")

    def metrics_of(self, process: str) -> Metrics:
        """The numbers of one process."""
        with urllib.request.urlopen(self.metrics_url(process), timeout=120) as page:
            text: str = page.read().decode()
        (self._folder / f"{process}.metrics").write_text(text)  # for those who --keep
        return parse_metrics(text)

    @property
    def control(self) -> str:
        """Address of the coordinator, as --coordinator takes it."""
        return (self._options.state / "coordinator").read_text().strip()

    @property
    def url(self) -> str:
        """Of the coordinator's pages."""
        return self._said(r"coordinator: \S+, metrics at (\S+)/metrics")

    def metrics_url(self, process: str) -> str:
        """Of "node-0" or "sidecar-1"; while there is no coordinator, as it was told last."""
        status = self.status()
        for part in status.get("members", []) + status.get("sidecars", []):
            self._metrics_urls[part["name"]] = part["metrics"]
        if process not in self._metrics_urls:
            raise HarnessError(f"optcache status does not say where the metrics of {process} are")
        return self._metrics_urls[process]

    def node_metrics(self) -> list[Metrics]:
        return [self.metrics_of(f"node-{machine}") for machine in range(self._options.machines)]

    def sidecar_metrics(self) -> list[Metrics]:
        return [self.metrics_of(f"sidecar-{machine}") for machine in range(self._options.machines)]

    def _said(self, line: str) -> str:
        """What `optcache up` has printed there last; `line` is a pattern with a group."""
        found: list[str] = re.findall(line, self._log.read_text(errors="replace"))
        if not found:
            raise HarnessError(f"there is no line {line!r}:\n{last_lines(self._log)}")
        return found[-1]

    def _start(self) -> None:
        with open(self._log, "ab") as log:
            self._up = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self._options.user,
                group=self._options.user,
                extra_groups=None if self._options.user is None else [],
            )
        try:
            self._wait_until_ready()
        except BaseException:
            stop(self._up)
            raise

    def _command(self) -> Sequence[str | Path]:
        options = self._options
        return [
            options.programs / "optcache",
            "up",
            *("-f", self._configuration),
            *("--machines", str(options.machines)),
            *("--memory", str(options.budget.memory)),
            *("--arena", str(options.budget.arena)),
            *("--overflow", str(options.budget.overflow)),
            *("--computed", str(options.budget.computed)),
            *("--state", options.state),
            *("--socket-dir", options.sockets),
            *("--port", "0"),
            *self._disk(),
            *(["--s3-endpoint"] if options.s3_endpoint else []),
            *(word for user in options.allowed for word in ("--allow-uid", str(user))),
            *(["--sampler", f"{DATASET}={options.sampler}"] if options.sampler else []),
            *(["--keys", f"{DATASET}={options.keys}"] if options.keys else []),
        ]

    def _disk(self) -> Sequence[str | Path]:
        options = self._options
        if options.disk is None:
            return []
        return ["--disk", options.disk, "--disk-capacity", str(options.budget.disk)]

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
        status = self.status()
        members = status.get("members", [])
        return (
            len(members) == self._options.machines
            and all(member["applied"] == status["version"] for member in members)
            and all(listens(self.socket(machine)) for machine in range(self._options.machines))
        )

    def status(self) -> dict[str, Any]:
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

    def status_text(self) -> str:
        """`optcache status` as people see it."""
        program, words = self._options.programs / "optcache", ("status", "--state")
        command: list[str | Path] = [program, *words, self._options.state]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def _name_of(pid: int) -> str:
    """What `optcache up` calls that process; nothing between fork and exec, and after its end."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return words[words.index(b"--name") + 1].decode() if b"--name" in words else ""


def listens(path: Path) -> bool:
    """A socket file may be one of a process that was killed."""
    with sockets.socket(sockets.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def deaths_in(log: str) -> Counter[tuple[str, str]]:
    """What `optcache up` says in its log of the ends of what it has started."""
    return Counter(re.findall(r"(\S+) died \(([^)]+)\)", log))


def parse_metrics(text: str) -> Metrics:
    """Prometheus' text format. Under a name alone, its series are added up."""
    metrics: Metrics = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            name = series.split("{", 1)[0]
            metrics[name] = metrics.get(name, 0.0) + float(value)
            metrics[series] = float(value) if series != name else metrics[name]
    return metrics
