"""An upgrade from an older release: parts of different age share the cache as long as it lasts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import objects, older, recipes
from cluster.checks import check_samples, check_store_reads
from cluster.cluster import Cluster
from cluster.host import utc, wait_until
from cluster.release import READY_SECONDS, Release
from cluster.workspace import Workspace

pytestmark = pytest.mark.long  # another release is built from its sources

PODS = 4
EPOCHS = 3
SHARE = 0.30
TRAINING_SECONDS = 600
# Of store bytes, above the least that any cache reads; without one it were 1.25.
TOLERANCE = 1.1
# As if a pass were read without a cache, which is 1.125.
TOLERANCE_OF_LOSS = 1.15
# By the chart's values.
NODE, SIDECAR = (f"{recipes.PREFIX}optcache/{name}" for name in ("cache-node", "sidecar"))


@pytest.fixture(scope="session")
def older_chart(cluster: Cluster) -> Path:
    """Its images are in the cluster."""
    if reason := older.missing():
        pytest.skip(reason)
    tree = older.build(cluster.paths)
    for name in recipes.COMPONENTS:
        cluster.load(recipes.component(name, cluster.images, cluster.paths, tree))
    return tree.root / "charts" / "optcache"


@pytest.fixture
def older_release(release: Release, older_chart: Path) -> Iterator[Release]:
    """Installed where nothing was, for a case that upgrades it."""
    release.uninstall()
    release.install({"image": {"tag": older.TAG}}, older_chart)
    yield release
    release.uninstall()


def node_images(release: Release) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in release.pods("node")}


def ready_nodes(release: Release) -> int:
    conditions = [each for pod in release.pods("node") for each in pod["status"].get("conditions", [])]
    return sum((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def sidecar_images(workspace: Workspace) -> set[str]:
    return {pod["spec"]["initContainers"][0]["image"] for pod in workspace.pods("train")}


def check_job(workspace: Workspace, since: str, tolerance: float) -> None:
    workspace.wait_for_job("train", TRAINING_SECONDS)
    assert all(rank.cached for rank in workspace.ranks("train"))
    check_samples(workspace, "train", PODS, EPOCHS)
    check_store_reads(workspace, since, SHARE, EPOCHS, tolerance)


def test_an_upgrade_in_the_middle_of_a_job(older_release: Release, workspace: Workspace) -> None:
    """Nodes are replaced one at a time, older ones beside newer ones; sidecars stay as they are."""
    workspace.make_dataset(capacity=f"{SHARE:.0%}")
    since = utc()
    # Slow, so that all nodes have been replaced before the third pass.
    workspace.start_training("train", environment={"EPOCHS": str(EPOCHS), "PAUSE": "0.3"}, pods=PODS)
    workspace.wait_for_batches("train", 20)
    before = workspace.identities("train")
    assert node_images(older_release) == {f"{NODE}:{older.TAG}"}

    older_release.install({"node": {"maxUnavailable": 1}})

    assert node_images(older_release) == {f"{NODE}:{recipes.TAG}"}
    assert workspace.get("job/train")["status"]["active"] == PODS
    check_job(workspace, since, TOLERANCE_OF_LOSS)
    assert workspace.identities("train") == before
    assert sidecar_images(workspace) == {f"{SIDECAR}:{older.TAG}"}


def test_nodes_that_stay_older(older_release: Release, workspace: Workspace, cluster: Cluster) -> None:
    """The DaemonSet replaces none: a new job, of newer operator and sidecars, reads through them."""
    workspace.make_dataset(capacity=f"{SHARE:.0%}")
    in_space = f"--namespace={older_release.SPACE}"
    patch = '{"spec": {"updateStrategy": {"type": "OnDelete"}}}'
    cluster.kubectl("patch", in_space, "daemonset/optcache-node", f"--patch={patch}")
    before = objects.names(older_release.pods("node"))

    older_release.install()

    since = utc()
    workspace.start_training("train", environment={"EPOCHS": str(EPOCHS)}, pods=PODS)
    check_job(workspace, since, TOLERANCE)
    assert sidecar_images(workspace) == {f"{SIDECAR}:{recipes.TAG}"}
    assert objects.names(older_release.pods("node")) == before
    assert node_images(older_release) == {f"{NODE}:{older.TAG}"}

    for pod in before:
        cluster.kubectl("delete", in_space, f"pod/{pod}")
        wait_until(lambda: ready_nodes(older_release) == len(before), "another in its place", READY_SECONDS)
    assert node_images(older_release) == {f"{NODE}:{recipes.TAG}"}
