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
GONE_SECONDS = 180


@pytest.fixture
def gone_afterwards(cluster: Cluster) -> Iterator[None]:
    yield
    words = ("delete", "namespace", demo.SPACE, "--ignore-not-found", f"--timeout={GONE_SECONDS}s")
    cluster.kubectl(*words, seconds=GONE_SECONDS + 30)


@pytest.mark.long
@pytest.mark.parametrize("source", demo.SOURCES)
def test_it_ends_well(
    source: str, installed: Release, gone_afterwards: None
) -> None:
    words = ["--epochs", str(EPOCHS), "--source", source]
    done = run([sys.executable, "-m", "cluster", "demo", *words], seconds=SECONDS)
    assert "all right" in done.stdout
    assert f"in {EPOCHS} epochs, {demo.PODS} pods" in done.stdout
