"""Sidecars that are ordinary containers, as before Kubernetes 1.29: no kubelet ends them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster import objects
from cluster.checks import check_samples
from cluster.release import Release
from cluster.workspace import Workspace

END_SECONDS = 300
PODS = 2


@pytest.fixture
def ordinary(installed: Release) -> Iterator[None]:
    installed.install({"operator": {"extraArgs": ["--ordinary-sidecars"]}})
    yield
    installed.install()


def containers(pod: objects.Object) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def test_jobs_end(ordinary: None, workspace: Workspace) -> None:
    """One that trains completes; one whose container is gone before it could connect fails."""
    workspace.make_dataset()
    failing = {**objects.training_container({}), "command": ["false"]}
    workspace.start_training("fail", pods=1, pod={"containers": [failing]})
    workspace.start_training("train", pods=PODS, environment={"EPOCHS": "1", "PAUSE": "0"})
    workspace.wait_for("job/fail", "condition=Failed", END_SECONDS)
    workspace.wait_for_job("train", END_SECONDS)
    check_samples(workspace, "train", PODS, epochs=1)
    pods = workspace.pods("fail") + workspace.pods("train")
    assert len(pods) == 1 + PODS
    for pod in pods:
        assert containers(pod) == ["optcache-sidecar", "train"]
        assert pod["spec"]["shareProcessNamespace"]
