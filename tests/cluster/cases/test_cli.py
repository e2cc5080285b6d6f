"""What `kubectl optcache` tells people of a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cluster import objects
from cluster.host import run
from cluster.release import Release
from cluster.settings import REPOSITORY
from cluster.workspace import Workspace


@pytest.fixture(scope="session")
def optcache() -> Path:
    return Path(os.environ.get("OPTCACHE_BIN_DIR", REPOSITORY / "build" / "dev" / "bin")) / "optcache"


def test_status_and_explain(
    installed: Release, workspace: Workspace, shell: dict[str, str], optcache: Path
) -> None:
    workspace.make_dataset()
    labels, annotations = objects.injected("images")
    workspace.apply(objects.sleeping_pod(workspace.name, "reader", labels, annotations))
    workspace.apply(objects.sleeping_pod(workspace.name, "stranger", {}, {}))
    workspace.wait_for("pod/reader", "condition=Ready", 120)
    status = run([optcache, "status", "--cluster"], environment=shell).stdout
    assert f"{workspace.name}/images" in status
    assert "operator, leads" in status
    told = run([optcache, "explain", "pod", "reader", "-n", workspace.name], environment=shell).stdout
    assert "Injected  yes: by injector" in told and f"Dataset   {workspace.name}/images, Ready" in told
    told = run([optcache, "explain", "pod", "stranger", "-n", workspace.name], environment=shell).stdout
    assert "optcache.io/inject" in told
