"""Daemons that outlive the command that starts them; and the end of all that runs in a namespace.

A daemon's file in `run/` holds its process id and the time at which that process began, so that an
id that the kernel has given to somebody else is never signalled.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Optional

from cluster.host import Word, wait_until

GONE_SECONDS = 60.0


def _began(pid: int) -> Optional[str]:
    """When the process began, in clock ticks since boot; None if there is none, or a dead one.

    Its first thread may be dead while others still hold its ports.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        threads = len(os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" and threads <= 1 else fields[19]


@dataclass(frozen=True)
class Daemon:
    name: str
    folder: Path  # of its file
    log: Path

    @property
    def _file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    @property
    def pid(self) -> Optional[int]:
        """None if it does not run."""
        try:
            pid, began = self._file.read_text().split()
        except FileNotFoundError:
            return None
        return int(pid) if _began(int(pid)) == began else None

    def start(self, command: Sequence[Word]) -> int:
        """Its output is appended to the log. The process leads a session of its own."""
        for folder in (self.folder, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )
        process.returncode = 0  # it is not waited for: no warning when the object goes
        self._file.write_text(f"{process.pid} {_began(process.pid)}\n")
        return process.pid

    def send(self, number: Signals) -> None:
        if (pid := self.pid) is not None:
            send(pid, number)

    def stop(self, number: Signals = SIGTERM, seconds: float = GONE_SECONDS) -> None:
        """Returns when it is gone; SIGKILL after `seconds`."""
        self.send(number)
        deadline = time.monotonic() + seconds
        while (pid := self.pid) is not None:
            if time.monotonic() > deadline:
                kill([pid])
            _reap(pid)
            time.sleep(0.02)
        self._file.unlink(missing_ok=True)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def naming(path: Path) -> list[int]:
    """Processes of whose words one begins with this path, or has it as an option's value."""
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
            if any(word.rpartition("=")[2].startswith(f"{path}/") for word in words):
                found.append(pid)
    return found


def in_namespace(kind: str, inodes: Iterable[int]) -> list[int]:
    """Processes whose namespace of that kind (net, mnt) is one of these."""
    wanted = {f"{kind}:[{inode}]" for inode in inodes}
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/{kind}") in wanted:
                found.append(pid)
    return found


def send(pid: int, number: Signals) -> None:
    """Nothing where it has ended already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        if pid != os.getpid():
            send(pid, SIGKILL)


def wait_gone(pids: Sequence[int]) -> None:
    def gone() -> bool:
        for pid in pids:
            _reap(pid)
        return not any(_began(pid) for pid in pids)

    wait_until(gone, f"the end of the processes {pids}", GONE_SECONDS)


def of_pod(uid: str, program: str) -> list[int]:
    """The processes of that name in a pod's control groups."""
    found = []
    for pid in all_pids():
        with contextlib.suppress(OSError):
            groups = Path(f"/proc/{pid}/cgroup").read_text()
            executable = Path(os.readlink(f"/proc/{pid}/exe")).name
            if f"pod{uid}" in groups and executable == program:
                found.append(pid)
    return found
