"""`./dev cluster demo`, as a person runs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from cluster import demo
from cluster.cluster import Cluster
from cluster.host import run
from cluster.release import Release

EPOCHS = 2
SECONDS = 900


@pytest.fixture
def gone_afterwards(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "namespace", demo.SPACE, "--ignore-not-found", "--wait=false")


def test_it_ends_well(at_length: None, installed: Release, gone_afterwards: None) -> None:
    done = run([sys.executable, "-m", "cluster", "demo", "--epochs", str(EPOCHS)], seconds=SECONDS)
    assert "all right" in done.stdout
    assert f"in {EPOCHS} epochs, {demo.PODS} pods" in done.stdout
