"""Certificates are replaced all the time, and no pod notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster import admissions, objects
from cluster.release import Release
from cluster.workspace import Workspace


@pytest.fixture
def short_lived(installed: Release, long: bool) -> Iterator[float]:
    """Leaves of two minutes under a CA of ten; in short, half of that. Seconds to look on."""
    leaf, authority, propagation, seconds = (120, 600, 60, 600) if long else (60, 240, 20, 110)
    flags = {"leaf-lifetime": leaf, "node-leaf-lifetime": leaf, "ca-lifetime": authority}
    flags["propagation-delay"] = propagation
    installed.install({"operator": {"extraArgs": [f"--{name}={value}s" for name, value in flags.items()]}})
    yield seconds
    installed.install()


def test_no_admission_fails_while_certificates_change(
    short_lived: float, installed: Release, workspace: Workspace, long: bool
) -> None:
    workspace.make_dataset()
    labels, annotations = objects.injected("images")
    pod = objects.sleeping_pod(workspace.name, "tried", labels, annotations)
    injector = installed.pods("operator")[0]["status"]["podIP"]
    workspace.start_training("train", pods=2, environment={"EPOCHS": "1", "PAUSE": "0.05"})
    tally = admissions.admit(workspace.cluster.paths, pod, injector, short_lived, rate=5)
    assert (tally.injected, tally.failures) == (tally.asked, [])
    assert tally.asked > short_lived
    assert tally.certificates >= 3
    workspace.wait_for_job("train", 300)
