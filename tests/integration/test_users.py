"""A machine that several users share: who may read what another one serves."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import optcache
import pytest
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset

OTHER, FRIEND = 65534, 65533
READ = "import sys, optcache; print(len(optcache.Dataset(socket=sys.argv[1], wait=0)[3]))"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")


@pytest.fixture
def folder() -> Iterator[Path]:
    """That every user can reach."""
    path = Path(tempfile.mkdtemp(prefix="oc-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def read_as(user: int, socket: Path, package: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", READ, socket],
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_other_users_are_told_to_be_allowed(
    programs: Path, dataset: Dataset, folder: Path, tmp_path: Path
) -> None:
    options = ClusterOptions(
        programs=programs,
        base_url=str(dataset.root),
        listing="",
        machines=1,
        budget=Budget(dataset.total_bytes, 8 << 20),
        state=tmp_path / "state",
        sockets=folder,
        allowed=[FRIEND],
    )
    shutil.copytree(Path(optcache.__file__).parent, folder / "package" / "optcache")
    with Cluster(options, "Optimal", tmp_path) as cluster:
        friend = read_as(FRIEND, cluster.socket(0), folder / "package")
        assert friend.stdout.strip() == str(dataset.sizes[3]), friend.stderr
        other = read_as(OTHER, cluster.socket(0), folder / "package")
        assert other.returncode != 0
        assert f"this sidecar is not for user {OTHER}: train as the user that started it" in other.stderr
        refused = 'optcache_channel_refused_total{reason="user"}'
        assert cluster.metrics_of("sidecar-0")[refused] >= 1
        for path in (tmp_path / "state", tmp_path / "state" / "logs"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
