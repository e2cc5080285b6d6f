"""The case that must run: install, index, train, upgrade in the middle, and take it all away."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cluster import objects, recipes, training
from cluster.checks import TOLERANCE, check_samples, check_store_reads
from cluster.cluster import Cluster
from cluster.host import utc, wait_until
from cluster.release import Release
from cluster.workspace import Workspace
from harness.oracle import fewest_reads

PODS = 4
EPOCHS = 3
SHARE = 0.30
CLOSE = 0.05  # observed to predicted, of one epoch
TRAINING_SECONDS = 600
BEYOND_ORACLE = 1.02
OF_EACH_POD = ("namespace", "uid", "creationTimestamp", "managedFields")


def test_a_job_reads_through_the_cache(installed: Release, workspace: Workspace) -> None:
    """The installation tests itself; every sample right, and the store read as little as it can be."""
    installed.test()
    workspace.make_dataset(capacity=f"{SHARE:.0%}")
    since = utc()
    workspace.start_training("train", environment={"EPOCHS": str(EPOCHS)}, pods=PODS)
    workspace.wait_for_job("train", TRAINING_SECONDS)
    assert all(rank.cached for rank in workspace.ranks("train"))
    check_samples(workspace, "train", PODS, EPOCHS)

    read = check_store_reads(workspace, since, SHARE, EPOCHS, TOLERANCE)

    samples = len(workspace.samples)
    expected = 1 - read.requests / (samples * EPOCHS)

    def shown() -> tuple[float, float]:
        head, line = workspace.kubectl("get", "datasets", "--output=wide").splitlines()
        columns = list(re.finditer(r"\S+(?: \S+)*\s*", head))  # a cell may be empty
        row = {column[0].strip(): line[column.start() : column.end()].strip() for column in columns}
        assert (row["NAME"], row["READY"], row["SAMPLES"]) == ("images", "True", str(samples))
        return float(row["HIT RATIO"] or 0), float(row["PREDICTED"] or 0)

    def told() -> bool:
        """Of the last epoch: more than of all, of which the first is cold, and as predicted."""
        observed, predicted = shown()
        return observed > expected and abs(observed - predicted) < CLOSE

    what = f"kubectl shows a hit ratio above {expected:.2f}, as predicted"
    wait_until(told, lambda: f"{what}: {shown()}", 120)


def test_two_jobs_share_what_they_will_read(
    installed: Release, workspace: Workspace, tmp_path: Path
) -> None:
    """Seeds of their own on one Dataset: what each will read is kept for it, whoever read it last."""
    workspace.make_dataset(capacity=f"{SHARE:.0%}")
    jobs = {"left": 0, "right": 1}
    since = utc()
    for job, seed in jobs.items():
        environment = {"EPOCHS": str(EPOCHS), "SEED": str(seed)}
        workspace.start_training(job, environment=environment, pods=2)
    for job, seed in jobs.items():
        workspace.wait_for_job(job, TRAINING_SECONDS)
        check_samples(workspace, job, 2, EPOCHS, seed)
    log = workspace.store.log(since)
    read = training.store_reads(log, workspace.samples.sizes)
    delivered = training.deliveries([rank for job in jobs for rank in workspace.ranks(job)])
    sizes = workspace.samples.dataset.sizes
    program = recipes.present().programs / "optcache"
    fewest = fewest_reads(program, tmp_path, delivered, sizes, SHARE)
    print(f"{read} of the store; {fewest} by MIN that knows how the jobs interleave")
    assert read.requests <= BEYOND_ORACLE * fewest.requests


def test_an_unlabelled_pod_is_left_alone(
    installed: Release, workspace: Workspace, cluster: Cluster
) -> None:
    """It is to the letter what it becomes where no webhook of ours looks."""
    workspace.make_dataset()

    def stored(space: str, *wishes: objects.Object) -> objects.Object:
        pod = objects.sleeping_pod(space, "asked", *(wishes or ({}, {})))
        words = ("create", "--dry-run=server", "--output=json", "--filename=-")
        answer: objects.Object = json.loads(cluster.kubectl(*words, stdin=json.dumps(pod)).stdout)
        for field in OF_EACH_POD:
            answer["metadata"].pop(field, None)
        return answer

    unseen = stored("kube-system")
    assert stored(workspace.name) == unseen
    injected = stored(workspace.name, *objects.injected("images"))
    assert injected["spec"] != unseen["spec"]
    first = injected["spec"]["initContainers"][0]
    assert (first["name"], first["restartPolicy"]) == ("optcache-sidecar", "Always")


def test_a_plan_of_the_user_takes_the_place_of_the_default(
    installed: Release, workspace: Workspace
) -> None:
    workspace.make_dataset()
    assert workspace.kubectl("get", "cacheplans", "--output=name").split() == ["cacheplan.optcache.io/images"]
    workspace.apply(objects.cache_plan(workspace.name, "mine", "images"))
    wait_until(
        lambda: workspace.kubectl("get", "cacheplans", "--output=name").split() == ["cacheplan.optcache.io/mine"],
        "the user's plan alone",
        30,
    )


def test_an_upgrade_restarts_no_training_pod(installed: Release, workspace: Workspace) -> None:
    """Operator and nodes are all replaced in the middle of an epoch; no sample is lost."""
    workspace.make_dataset()
    workspace.start_training("train", environment={"EPOCHS": "2", "PAUSE": "0.1"}, pods=PODS)
    workspace.wait_for_batches("train", 20)
    before = workspace.identities("train")
    nodes = set(objects.names(installed.pods("node")))
    annotation = {"podAnnotations": {"optcache.test/upgrade": workspace.name}}
    installed.install({"operator": annotation, "node": {**annotation, "maxUnavailable": 1}})
    assert nodes.isdisjoint(objects.names(installed.pods("node")))
    assert workspace.get("job/train")["status"]["active"] == PODS
    workspace.wait_for_job("train", TRAINING_SECONDS)
    assert workspace.identities("train") == before
    check_samples(workspace, "train", PODS, 2)


def test_an_uninstall_leaves_training_alone(
    installed_somehow: Release, workspace: Workspace, cluster: Cluster
) -> None:
    """Running pods go on from the store, and nothing is left that cannot be deleted."""
    workspace.make_dataset()
    workspace.start_training("train", environment={"EPOCHS": "2", "PAUSE": "0.05"}, pods=PODS)
    workspace.wait_for_batches("train", 20)
    before = workspace.identities("train")
    installed_somehow.uninstall()
    workspace.wait_for_job("train", TRAINING_SECONDS)
    assert workspace.identities("train") == before
    check_samples(workspace, "train", PODS, 2)
    workspace.kubectl("delete", "datasets,cacheplans", "--all", "--timeout=60s")
    left = cluster.kubectl("get", "all", f"--namespace={installed_somehow.SPACE}", "--output=name").stdout
    assert left == ""
