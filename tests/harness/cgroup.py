"""A control group with a limit on memory, for this process and all that it starts: root alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from harness.errors import HarnessError
from harness.processes import wait_until

ROOT = Path("/sys/fs/cgroup")
EMPTY_SECONDS = 60.0


class MemoryGroup:
    """For a `with`, in which this process is in the group; afterwards it is where it was before.

    Version 1 (or hybrid) has a hierarchy for memory, version 2 one for all.
    """

    def __init__(self, limit: int) -> None:
        unified = (ROOT / "cgroup.controllers").exists()
        self._hierarchy = ROOT if unified else ROOT / "memory"
        self._before = self._hierarchy / own_group(
            Path("/proc/self/cgroup").read_text(), "" if unified else "memory"
        )
        self._group = self._hierarchy / f"optcache-test-{os.getpid()}"
        self._limit_file = self._group / ("memory.max" if unified else "memory.limit_in_bytes")
        self._limit = limit

    def __enter__(self) -> MemoryGroup:
        try:
            self._group.mkdir()
            if not self._limit_file.exists():  # version 2, where nothing has asked for it yet
                (self._hierarchy / "cgroup.subtree_control").write_text("+memory")
            self._limit_file.write_text(str(self._limit))
            _move_into(self._group)
        except OSError as error:
            self._remove()
            raise HarnessError(f"no limit on memory: {error}. Run it as root") from error
        return self

    def __exit__(self, *_: object) -> None:
        _move_into(self._before)
        self._remove()

    def cached_bytes(self) -> int:
        """Pages of files that count for the group, without those of shared memory."""
        lines = (self._group / "memory.stat").read_text().splitlines()
        stat = {name: int(value) for name, value in map(str.split, lines)}
        return stat["inactive_file"] + stat["active_file"]

    def _remove(self) -> None:
        """The last of its processes may take a moment to be gone."""
        wait_until(self._is_gone, "the control group is empty", EMPTY_SECONDS)

    def _is_gone(self) -> bool:
        with suppress(OSError):
            self._group.rmdir()
        return not self._group.exists()


def own_group(groups: str, controller: str) -> str:
    """Of a process, by its /proc/PID/cgroup; without a controller, that of version 2."""
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    raise HarnessError(f"this process is in no control group {controller!r}")


def _move_into(group: Path) -> None:
    (group / "cgroup.procs").write_text(str(os.getpid()))
