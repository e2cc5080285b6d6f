"""Names, addresses and paths of the cluster: the one place where they are written."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TOOLS = HERE / "tools"  # the Go modules of the programs
KUBERNETES_VERSION = "v1.36.3"
DEBIAN_RELEASE = "bookworm"

# Ring 2: few cases, whatever else the machine does.
SMOKE = os.environ.get("OPTCACHE_SMOKE") == "1"

# Whose release is upgraded to that of now. Until there is a release: the first commit whose wire
# protocol is the present one, versions and their negotiation included.
OLDER_COMMIT = "ecf744fe768f8d5dc09322ac3971be8d7dd4470f"

WORKERS = 3
WORKERS_MAX = 8

# One cluster a machine: network namespaces and cgroups have these names, whoever started it.
PREFIX = "optcache"
CONTROL_NAMESPACE = f"{PREFIX}-cp"
CONTROL_ADDRESS = "10.77.0.1"
API_PORT = 26443
ETCD_PORT = 22379
SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
# Pods reach what is outside their own subnet through their node, nodes through the control plane.
CLUSTER_RANGE = "10.0.0.0/8"


def worker_name(number: int) -> str:
    return f"node{number}"


def worker_namespace(number: int) -> str:
    return f"{PREFIX}-n{number}"


def worker_address(number: int) -> str:
    return f"10.77.0.{10 + number}"


def pod_range(number: int) -> str:
    return f"10.78.{number}.0/24"


def cache_folder() -> Path:
    """Where every checkout of this user finds what takes minutes to build."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "optcache"


def tools_digest() -> str:
    """It changes with what the programs are built from."""
    state = hashlib.sha256(KUBERNETES_VERSION.encode())
    for file in sorted(path for path in TOOLS.rglob("*") if path.is_file()):
        state.update(f"\0{file.relative_to(TOOLS)}\0".encode() + file.read_bytes())
    return state.hexdigest()[:16]


@dataclass(frozen=True)
class Paths:
    """Where things lie. `root` belongs to this checkout, programs and images to all of them.

    Only `run` ends with the cluster.
    """

    root: Path
    programs: Path
    images: Path
    borrowed: bool  # the programs: made elsewhere, taken as they are

    @staticmethod
    def default() -> Paths:
        root = REPOSITORY / "build" / "cluster"
        kept = cache_folder()
        images = kept / f"images-{DEBIAN_RELEASE}"
        if elsewhere := os.environ.get("OPTCACHE_CLUSTER_BIN"):
            return Paths(root, Path(elsewhere).resolve(), images, borrowed=True)
        return Paths(root, kept / f"programs-{tools_digest()}", images, borrowed=False)

    @property
    def programs_link(self) -> Path:
        """Where those look who know the checkout alone."""
        return self.root / "bin"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def pki(self) -> Path:
        return self.run / "pki"

    @property
    def log(self) -> Path:
        """Of the last cluster; it stays after `down`."""
        return self.root / "log"

    @property
    def audit_log(self) -> Path:
        return self.log / "audit.log"

    def worker(self, number: int) -> Path:
        return self.run / f"n{number}"

    def kubeconfig(self, user: str = "admin") -> Path:
        return self.pki / f"{user}.kubeconfig"

    def program(self, name: str) -> Path:
        return self.programs / name
