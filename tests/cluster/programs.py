"""The cluster's programs, built from Go modules. They are kept: they change with go.mod alone."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster import settings
from cluster.errors import ClusterError
from cluster.host import run
from cluster.settings import Paths

MODULES = settings.HERE / "tools"
# Of each module in `tools`, what it makes.
PROGRAMS = {
    "kubernetes": (
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-proxy",
        "kube-scheduler",
        "kubectl",
        "kubelet",
    ),
    "helm": ("helm",),
    "coredns": ("coredns",),
    "kwok": ("kwok", "kwokctl"),
    "s3": ("versitygw",),
}
ALWAYS = ("kubernetes", "helm", "coredns")
# A program whose package has another name than it.
RENAMED = {"server": "etcd"}
BUILD_SECONDS = 3600.0


def ensure(paths: Paths, modules: Sequence[str] = ALWAYS) -> None:
    """Builds what is missing or of another version: minutes the first time, then nothing."""
    paths.programs.mkdir(parents=True, exist_ok=True)
    for module in modules:
        names = PROGRAMS[module]
        stamp = paths.programs / f".{module}"
        digest = _digest(module)
        have = all((paths.programs / name).exists() for name in names)
        if have and (paths.borrowed or (stamp.exists() and stamp.read_text() == digest)):
            continue
        if not shutil.which("go"):
            raise ClusterError(f"{', '.join(names)} must be built: there is no Go toolchain (go)")
        print(f"cluster: building {', '.join(names)}", file=sys.stderr, flush=True)
        _build(module, paths.programs)
        stamp.write_text(digest)


def missing(paths: Paths) -> list[str]:
    """What this machine lacks to have them, a sentence each."""
    names = [name for module in ALWAYS for name in PROGRAMS[module]]
    if all((paths.programs / name).exists() for name in names) or shutil.which("go"):
        return []
    return ["the cluster's programs are built from Go modules, and there is no Go toolchain (go)"]


def _build(module: str, target: Path) -> None:
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
    command = ["go", "build", "-trimpath", "-ldflags", flags, "-o", f"{fresh}{os.sep}", "tool"]
    environment = {"CGO_ENABLED": "0"}
    run(command, seconds=BUILD_SECONDS, environment=environment, folder=MODULES / module)
    for file in fresh.iterdir():
        file.replace(target / RENAMED.get(file.name, file.name))
    fresh.rmdir()


def _digest(module: str) -> str:
    files = [(MODULES / module / name).read_bytes() for name in ("go.mod", "go.sum")]
    version = settings.KUBERNETES_VERSION.encode()
    return hashlib.sha256(b"\0".join([*files, version])).hexdigest()
