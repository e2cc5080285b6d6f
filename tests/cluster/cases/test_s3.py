"""A bucket by https with a certificate that only its owner signs, and keys that change while a job reads."""

from __future__ import annotations

from pathlib import Path

from cluster import buckets
from cluster.buckets import BucketServer, Keys
from cluster.checks import TOLERANCE, bound, check_samples
from cluster.cluster import Cluster
from cluster.host import utc, wait_until
from cluster.release import Release
from cluster.workspace import Workspace

PODS = 2
EPOCHS = 3
SHARE = 0.30
SECRET = "bucket-keys"
TRAINING_SECONDS = 600
ROTATION_SECONDS = 90
PAUSE = "0.05"  # a batch: so that the job still reads when the kubelet has brought other keys


def askers(server: BucketServer, since: str) -> list[str]:
    """Who asked for objects, one after the other."""
    requests = buckets.requests_of(server.log(since))
    return [request.who for request in requests if request.operation == "GetObject"]


def test_a_bucket_whose_keys_rotate(
    installed: Release, cluster: Cluster, workspace: Workspace, tmp_path: Path
) -> None:
    """Every sample right, no request refused, and the bucket read as little as it can be."""
    old, new = Keys("reader-old"), Keys("reader-new")
    server = BucketServer(cluster, workspace.name, tmp_path / "authority")
    server.start([old, new])
    workspace.apply(buckets.secret(workspace.name, SECRET, old.values(server.authority)))
    workspace.make_dataset(capacity=f"{SHARE:.0%}", source=server.source(SECRET))
    assert workspace.get("dataset/images")["status"]["samples"] == len(workspace.samples)

    since = utc()
    environment = {"EPOCHS": str(EPOCHS), "PAUSE": PAUSE}
    workspace.start_training("train", pods=PODS, environment=environment)
    workspace.wait_for_batches("train", 10)
    assert set(askers(server, since)) == {old.access}
    workspace.apply(buckets.secret(workspace.name, SECRET, new.values(server.authority)))
    wait_until(
        lambda: askers(server, since)[-100:] == [new.access] * 100,
        lambda: f"both pods ask with the new keys: {askers(server, since)[-100:]}",
        ROTATION_SECONDS,
    )
    server.allow([new])  # from now on a request with the old ones would be refused
    workspace.wait_for_job("train", TRAINING_SECONDS)
    assert all(rank.cached for rank in workspace.ranks("train"))
    check_samples(workspace, "train", PODS, EPOCHS)

    requests = list(buckets.requests_of(server.log(since)))
    assert {request.status for request in requests} == {200}
    total = workspace.samples.dataset.total_bytes
    least = bound(total, SHARE * total, EPOCHS)
    read = server.reads(since, workspace.samples)
    assert read.body_bytes <= TOLERANCE * least, f"{read.body_bytes / least:.4f} x the bound"
    story = "\n".join([workspace.story(), installed.logs("node"), installed.logs("operator")])
    assert old.secret not in story and new.secret not in story
