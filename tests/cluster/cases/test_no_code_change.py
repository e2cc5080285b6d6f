"""Training code that is not changed: pods that do not import optcache read a bucket by boto3."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from cluster import buckets, objects
from cluster.buckets import BucketServer, Keys
from cluster.checks import TOLERANCE, bound, check_samples
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.host import utc, wait_until
from cluster.objects import Object
from cluster.release import Release
from cluster.training import StoreReads
from cluster.workspace import FewSamples, Workspace

PODS = 2
EPOCHS = 3
SHARE = 0.30
SECRET = "bucket-keys"
TRAINING_SECONDS = 2700  # a busy machine takes 900
SAVED_SECONDS = 300  # after the job ends; it is written once a minute
ARENA = "16Mi"
# A sidecar does not know which epoch is the last: it reads ahead as much as its arena holds.
AHEAD_BYTES = PODS * (16 << 20)
ANNOTATIONS: Object = {
    "optcache.io/arena": ARENA,
    "optcache.io/python": "false",
    "optcache.io/resources": "cpu=200m",  # each read is a request to the sidecar
    "optcache.io/s3-endpoint": "true",
    "optcache.io/s3-placeholder-keys": "true",
    "optcache.io/sampler": f"torch-distributed,seed=0,world={PODS},ranks=1",
}


class ByKey(FewSamples):
    """In the order of the bucket's keys."""

    @cached_property
    def dataset(self) -> Any:
        whole = super().dataset
        paths, sizes = zip(*sorted(zip(whole.paths, whole.sizes, strict=True)), strict=True)
        return replace(whole, paths=paths, sizes=sizes)


def answers_to_writes(workspace: Workspace, job: str) -> list[str]:
    logs = [workspace.log(pod) for pod in objects.names(workspace.pods(job))]
    lines = [line for log in logs for line in log.splitlines() if line.startswith('{"event": "write"')]
    return [json.loads(line)["answer"] for line in lines]


def check_saved(workspace: Workspace, read: StoreReads) -> None:
    """What the status says that the pods saved, by the store's log. It never falls: what is read ahead
    in the end, for an epoch that does not come, may still count as saved.
    """
    samples = workspace.samples
    saved = EPOCHS * len(samples) - read.requests
    ahead = 1.5 * AHEAD_BYTES / (samples.dataset.total_bytes / len(samples))  # they differ in size
    said: Object = {}

    def is_told() -> bool:
        said.update(workspace.get("dataset/images")["status"].get("saved", {}))
        return bool(said) and said["requests"] >= 0.99 * saved  # a request that is taken back is not in the log

    wait_until(is_told, lambda: f"{saved} saved requests in the status: {said}", SAVED_SECONDS)
    assert said["requests"] <= saved + ahead, f"{saved} requests were saved: {said}"


def test_boto3_reads_through_the_endpoint(
    installed: Release, cluster: Cluster, workspace: Workspace
) -> None:
    """Without keys of its own: every sample right, the bucket read as little as can be, as the status says;
    no write taken.
    """
    workspace.samples = ByKey(workspace.samples)
    reader = Keys("reader")
    server = BucketServer(cluster, workspace.name)
    server.start([reader])
    workspace.apply(buckets.secret(workspace.name, SECRET, reader.values()))
    workspace.make_dataset(capacity=f"{SHARE:.0%}", source=server.source(SECRET), order="Path")

    since = utc()
    environment = {"BUCKET": buckets.BUCKET, "EPOCHS": str(EPOCHS), "WORLD_SIZE": str(PODS)}
    container = {**objects.training_container(environment), "args": ["/scripts/boto3_train.py"]}
    workspace.start_injected_training(
        "train", pods=PODS, annotations=ANNOTATIONS, pod={"containers": [container]}
    )
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, EPOCHS)
    assert answers_to_writes(workspace, "train") == ["AccessDenied"] * PODS

    requests = list(buckets.requests_of(server.log(since)))
    assert {(request.who, request.status) for request in requests} == {(reader.access, 200)}
    total = workspace.samples.dataset.total_bytes
    least = bound(total, SHARE * total, EPOCHS)
    read = server.reads(since, workspace.samples)
    assert read.body_bytes <= TOLERANCE * least + AHEAD_BYTES, f"{read.body_bytes / least:.4f} x the bound"
    check_saved(workspace, read)

    labels, own = objects.injected("images")
    pod = objects.sleeping_pod(workspace.name, "shared", labels, {**own, **ANNOTATIONS})
    pod["spec"]["hostNetwork"] = True
    with pytest.raises(ClusterError, match="s3-endpoint with hostNetwork"):
        workspace.apply(pod)
