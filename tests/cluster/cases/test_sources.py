"""Datasets of other sources: a web server that wants keys, a claim, a server that comes late."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import objects, processes, sources
from cluster.checks import check_samples
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.host import wait_until
from cluster.objects import Object
from cluster.release import Release
from cluster.sources import Keys
from cluster.workspace import FewSamples, Samples, Store, Workspace

STEP = 350  # which leaves some forty samples
EPOCHS = 2
LASTING_EPOCHS = 60
START_SECONDS = 120
TRAINING_SECONDS = 240
ENVIRONMENT = {"EPOCHS": str(EPOCHS), "PAUSE": "0"}
USER = 1234
INDEX_SECONDS = 90


@pytest.fixture(scope="session")
def few(samples: Samples) -> Samples:
    return FewSamples(samples, STEP)


@pytest.fixture
def owner(workspace: Workspace, few: Samples) -> Workspace:
    workspace.samples = few
    return workspace


@pytest.fixture
def borrower(owner: Workspace, cluster: Cluster, store: Store, few: Samples) -> Iterator[Workspace]:
    """Another namespace, without a Dataset."""
    space = Workspace(cluster, f"{owner.name}-borrower", store, few)
    space.delete()
    space.create()
    yield space
    space.delete(wait=False)


def test_a_store_that_wants_keys(installed: Release, owner: Workspace, borrower: Workspace) -> None:
    """Each namespace reads by a Secret that it names; keys are where they must be and nowhere else."""
    reader, visitor = Keys("reader"), Keys("visitor")
    owner.apply(*sources.keyed_store(owner.name, owner.samples, [reader, visitor]))
    owner.apply(reader.secret(owner.name, "keys"), visitor.secret(borrower.name, "keys-of-ours"))
    owner.wait_for("deployment/store", "condition=Available", START_SECONDS)
    owner.make_dataset(
        capacity="100%",
        verify="Digest",
        source={
            "http": {
                "baseURL": f"http://store.{owner.name}.svc/images/",
                "listing": sources.LISTING,
                "secretRef": {"name": "keys"},
            }
        },
        access=[{"namespace": borrower.name}],
    )
    name = f"{owner.name}/images"
    lends: Object = {"optcache.io/keys": f"{name}=keys-of-ours"}

    # First, so that nothing is in the cache: it must read the store itself.
    borrower.start_training("train", name, pods=1, environment=ENVIRONMENT, annotations=lends)
    borrower.wait_for_batches("train", 1)
    owner.start_training("train", pods=1, environment=ENVIRONMENT)
    for space in (borrower, owner):
        space.wait_for_job("train", TRAINING_SECONDS)
        assert all(rank.cached for rank in space.ranks("train"))
        check_samples(space, "train", pods=1, epochs=EPOCHS)

    reads = sources.reads_of(owner.kubectl("logs", "deployment/store", "--tail=-1"))
    assert {read.status for read in reads} <= {200, 206}
    assert {read.user for read in reads} == {reader.user, visitor.user}
    story = "\n".join([owner.story(), borrower.story(), installed.logs("node"), installed.logs("operator")])
    assert "index" in story and "train.py" in story
    for trace in (*reader.traces, *visitor.traces):
        assert trace not in story


@pytest.fixture
def volume(cluster: Cluster, owner: Workspace) -> Iterator[Path]:
    """The folder of a claim `images` that is bound."""
    name = f"{owner.name}-images"
    gone = ("delete", "persistentvolume", name, "--ignore-not-found")
    cluster.kubectl(*gone, "--timeout=60s")  # what a session that was cut off has left
    folder = cluster.paths.run / "volumes" / name
    sources.fill(folder, owner.samples)
    owner.apply(*sources.claim(owner.name, "images", name, folder))
    owner.wait_for("persistentvolumeclaim/images", "jsonpath={.status.phase}=Bound", START_SECONDS)
    yield folder
    cluster.kubectl(*gone, "--wait=false")  # it goes after its claim, which goes after its pods


def test_a_claim(installed: Release, owner: Workspace, volume: Path) -> None:
    """Of a volume that many machines mount; the pod runs as a user of its own, and so does its sidecar."""
    owner.make_dataset(capacity="100%", source={"pvc": {"claimName": "images"}})
    assert owner.get("dataset/images")["status"]["samples"] == len(owner.samples)
    user = {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER}
    pod: Object = {"securityContext": {**objects.POD_SECURITY, **user}}
    owner.start_training("train", pods=2, environment=ENVIRONMENT, pod=pod)
    owner.wait_for_job("train", TRAINING_SECONDS)
    assert all(rank.cached for rank in owner.ranks("train"))
    check_samples(owner, "train", pods=2, epochs=EPOCHS)


@pytest.mark.long
def test_a_claim_is_read_while_the_sidecar_is_frozen(
    installed: Release, owner: Workspace, volume: Path
) -> None:
    """By the training process, which returns to the sidecar when that answers."""
    owner.make_dataset(capacity="100%", source={"pvc": {"claimName": "images"}})
    environment = {"EPOCHS": str(LASTING_EPOCHS), "PAUSE": "0.2"}
    owner.start_training("train", pods=1, environment=environment)
    owner.wait_for_batches("train", 3)
    (pod,) = owner.pods("train")
    log = lambda: owner.log(pod["metadata"]["name"])  # noqa: E731
    (pid,) = processes.of_pod(pod["metadata"]["uid"], "optcache-sidecar")
    processes.send(pid, signal.SIGSTOP)
    try:
        folder = f"/mnt/optcache/{owner.name}/images"
        wait_until(lambda: f"reading samples from files under {folder}" in log(), "it reads", TRAINING_SECONDS)
        owner.wait_for_batches("train", len(owner.ranks("train")[0].batch_times) + 10)
    finally:
        processes.send(pid, signal.SIGCONT)
    wait_until(lambda: "answers again after" in log(), "it reads through the sidecar", TRAINING_SECONDS)
    owner.wait_for_job("train", TRAINING_SECONDS)
    check_samples(owner, "train", pods=1, epochs=LASTING_EPOCHS)


def test_a_claim_of_a_borrower_is_named_by_its_pods(
    installed: Release, cluster: Cluster, owner: Workspace, borrower: Workspace, volume: Path
) -> None:
    """Without that a pod is refused, and told what to write."""
    source = {"pvc": {"claimName": "images"}}
    owner.make_dataset(capacity="100%", source=source, access=[{"namespace": borrower.name}])
    name = f"{owner.name}/images"
    with pytest.raises(ClusterError, match="optcache.io/claims"):
        borrower.apply(objects.sleeping_pod(borrower.name, "without", *objects.injected(name)))

    of_borrower = f"{borrower.name}-copy"
    gone = ("delete", "persistentvolume", of_borrower, "--ignore-not-found")
    cluster.kubectl(*gone, "--timeout=60s")
    borrower.apply(*sources.claim(borrower.name, "copy", of_borrower, volume))
    borrower.wait_for("persistentvolumeclaim/copy", "jsonpath={.status.phase}=Bound", START_SECONDS)
    lends: Object = {"optcache.io/claims": f"{name}=copy"}
    borrower.start_training("train", name, pods=1, environment=ENVIRONMENT, annotations=lends)
    borrower.wait_for_job("train", TRAINING_SECONDS)
    assert all(rank.cached for rank in borrower.ranks("train"))
    check_samples(borrower, "train", pods=1, epochs=EPOCHS)
    cluster.kubectl(*gone, "--wait=false")


def index_jobs(workspace: Workspace) -> set[str]:
    words = ("jobs", "--selector=app.kubernetes.io/component=index")
    return set(objects.names(workspace.get(*words)["items"]))


def test_a_dataset_is_indexed_anew_by_hand(installed: Release, owner: Workspace) -> None:
    """While its Job still tries a server that does not answer: another takes that one's place."""
    deployment, service = objects.object_store(owner.name)
    url = f"http://store.{owner.name}.svc/images/"
    owner.apply(service, objects.dataset(owner.name, "images", url))
    owner.wait_for("dataset/images", "condition=SourceReachable=false", INDEX_SECONDS)
    before = index_jobs(owner)
    assert len(before) == 1
    owner.kubectl("annotate", "dataset/images", "optcache.io/reindex=by-hand")
    wait_until(
        lambda: len(index_jobs(owner)) == 1 and index_jobs(owner).isdisjoint(before),
        lambda: f"another Job alone instead of {before}: {index_jobs(owner)}",
        INDEX_SECONDS,
    )
    owner.apply(deployment)
    owner.wait_for("dataset/images", "condition=Ready", INDEX_SECONDS)
