"""Control groups of the workers: `optcache/nN` in every hierarchy, for version 1, hybrid and 2."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from cluster import settings
from cluster.processes import kill, wait_gone

ROOT = Path("/sys/fs/cgroup")


def path_of(number: int) -> str:
    """The worker's group, as the kubelet wants it."""
    return f"/{settings.PREFIX}/n{number}"


def make(number: int) -> None:
    for hierarchy in _hierarchies():
        group = hierarchy
        for part in path_of(number).strip("/").split("/"):
            group = group / part
            group.mkdir(exist_ok=True)
            _allow_placement(group)


def kill_all(number: int) -> None:
    """Every process in the worker's groups: its pods."""
    pids = _pids(path_of(number))
    kill(pids)
    wait_gone(pids)


def workers() -> list[int]:
    """The numbers of the workers that have groups."""
    found = {
        int(group.name[1:])
        for hierarchy in _hierarchies()
        for group in (hierarchy / settings.PREFIX).glob("n[0-9]*")
    }
    return sorted(found)


def ours() -> list[Path]:
    """Those that are there, of all workers."""
    return [group for hierarchy in _hierarchies() if (group := hierarchy / settings.PREFIX).is_dir()]


def remove_all() -> None:
    """Our groups and those that containerd makes for its own; they hold no process any more."""
    for hierarchy in _hierarchies():
        for name in (settings.PREFIX, "k8s.io"):
            for folder, _, _ in os.walk(hierarchy / name, topdown=False):
                _remove(Path(folder))


def _remove(group: Path) -> None:
    with contextlib.suppress(FileNotFoundError, OSError):
        group.rmdir()


def _hierarchies() -> Iterator[Path]:
    if (ROOT / "cgroup.controllers").exists():
        yield ROOT
        return
    for path in sorted(ROOT.iterdir()):
        if path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists():
            yield path


def _pids(group: str) -> list[int]:
    pids: set[int] = set()
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / group.strip("/")):  # groups may end meanwhile
            with contextlib.suppress(OSError):
                pids.update(int(line) for line in Path(folder, "cgroup.procs").read_text().split())
    return sorted(pids)


def _allow_placement(group: Path) -> None:
    """A new cpuset of version 1 is empty, and takes no process before it has CPUs and memory."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / name).exists() and (group / "cgroup.clone_children").exists():
            (group / name).write_text((group.parent / name).read_text())
