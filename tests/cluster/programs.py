"""The cluster's programs, built from Go modules.

They lie outside of the checkout, in a folder that the modules' digest names, so that a machine builds
them once. Go's caches are not kept: gigabytes that nothing else would use.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster import settings
from cluster.errors import ClusterError
from cluster.host import run
from cluster.settings import Paths

# Of each module in settings.TOOLS, what it makes. Those of "kubernetes" share its libraries.
PROGRAMS = {
    "kubernetes": (
        "coredns",
        "etcd",
        "helm",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubectl",
        "kubelet",
    ),
    "kwok": ("kwok", "kwokctl"),
    "s3": ("versitygw",),
}
ALWAYS = ("kubernetes",)
# A program whose package has another name than it.
RENAMED = {"server": "etcd"}
BUILD_SECONDS = 3600.0


def ensure(paths: Paths, modules: Sequence[str] = ALWAYS) -> None:
    """Builds what is missing: minutes the first time on a machine, then nothing."""
    paths.programs.mkdir(parents=True, exist_ok=True)
    if not paths.borrowed:
        _link(paths)
    missing_ones = [module for module in modules if not _is_built(paths, module)]
    if not missing_ones:
        return
    caches = paths.programs / ".go"
    with open(paths.programs / ".go.lock", "w", encoding="utf-8") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        for module in missing_ones:
            with open(paths.programs / f".{module}.lock", "w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # who comes second finds them made
                if not _is_built(paths, module):
                    _build(module, paths.programs, caches)
        with contextlib.suppress(BlockingIOError):  # another process uses them, and removes them
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(caches, ignore_errors=True)


def _is_built(paths: Paths, module: str) -> bool:
    return all(paths.program(name).exists() for name in PROGRAMS[module])


def _link(paths: Paths) -> None:
    """The checkout's `build/cluster/bin` leads to the programs of its modules."""
    link = paths.programs_link
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)  # of a checkout that built its own
    if not link.is_symlink() or link.readlink() != paths.programs:
        fresh = link.with_name(f".bin.{os.getpid()}")
        fresh.symlink_to(paths.programs)
        fresh.replace(link)


def missing(paths: Paths) -> list[str]:
    """What this machine lacks to have them, a sentence each."""
    if all(_is_built(paths, module) for module in ALWAYS) or shutil.which("go"):
        return []
    return ["the cluster's programs are built from Go modules, and there is no Go toolchain (go)"]


def _build(module: str, target: Path, caches: Path) -> None:
    names = ", ".join(PROGRAMS[module])
    if not shutil.which("go"):
        raise ClusterError(f"{names} must be built: there is no Go toolchain (go)")
    print(f"cluster: building {names}", file=sys.stderr, flush=True)
    version = settings.KUBERNETES_VERSION
    minor = version.split(".")[1]
    variables = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": "1",
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
    }
    flags = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in variables.items())])
    fresh = target / f".{module}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    # -modcacherw: what it fetches can be removed again.
    command = ["go", "build", "-trimpath", "-modcacherw", "-ldflags", flags]
    folder = settings.TOOLS / module
    own = [f"./{main.parent.name}" for main in sorted(folder.glob("*/main.go"))]
    command += ["-o", f"{fresh}{os.sep}", "tool", *own]
    environment = {
        "CGO_ENABLED": "0",
        "GOCACHE": str(caches / "build"),
        "GOMODCACHE": str(caches / "modules"),
    }
    run(command, seconds=BUILD_SECONDS, environment=environment, folder=folder)
    for file in fresh.iterdir():
        file.replace(target / RENAMED.get(file.name, file.name))
    fresh.rmdir()
