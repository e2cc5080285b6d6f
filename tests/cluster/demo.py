"""A training job on a real cluster, for people: from nothing to figures, and the cluster stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.progress import ProgressLine

from cluster import buckets, recipes, training
from cluster.buckets import BucketServer, Keys
from cluster.checks import TOLERANCE, bound
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.host import utc
from cluster.objects import Object
from cluster.release import Release
from cluster.training import StoreReads
from cluster.workspace import Samples, Store, Workspace

SOURCES = ("http", "s3")  # of the Dataset
SECRET = "bucket-keys"
SPACE = "demo"
JOB = "train"
PODS = 4
SHARE = 0.30
STUCK_SECONDS = 600.0
POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Outcome:
    source: str
    samples: int
    total_bytes: int
    epochs: int
    store_bytes: int
    shown_hit_ratio: str  # by `kubectl get datasets`
    epoch_seconds: list[float]
    wrong: list[str]

    @property
    def least_bytes(self) -> float:
        """That any cache of this size reads."""
        return bound(self.total_bytes, SHARE * self.total_bytes, self.epochs)

    @property
    def right(self) -> bool:
        return not self.wrong and self.store_bytes <= TOLERANCE * self.least_bytes


def run(cluster: Cluster, epochs: int, source: str) -> int:
    line = ProgressLine()
    try:
        outcome = _train(cluster, epochs, source, line.say)
    finally:
        line.end()
    print(report(outcome))
    return 0 if outcome.right else 1


def _train(cluster: Cluster, epochs: int, source: str, say: Callable[[str, str], None]) -> Outcome:
    say("cluster", "images, then control plane and three workers")
    cluster.up(images=[recipes.object_store(cluster.paths), recipes.training()])
    for name in recipes.COMPONENTS:
        cluster.load(recipes.component(name, cluster.images, cluster.paths))
    say("helm install", "operator and nodes")
    Release(cluster).install()
    store, samples = Store(cluster), Samples()
    workspace = Workspace(cluster, SPACE, store, samples)
    workspace.kubectl("delete", "job,dataset", "--all", check=False)
    workspace.create()
    reads, spec = _start_source(workspace, source)
    say("Dataset", "the index Job lists the store")
    workspace.make_dataset(capacity=f"{SHARE:.0%}", **spec)
    since = utc()
    workspace.start_training(JOB, pods=PODS, environment={"EPOCHS": str(epochs)})
    _follow(workspace, epochs, say)
    say("results", "every sample is checked")
    ranks = workspace.ranks(JOB)
    wrong = list(training.wrong_bytes(ranks, samples.digests))
    wrong += training.wrong_orders(ranks, len(samples), PODS, epochs)
    first = next(rank for rank in ranks if rank.rank == 0)
    ends = [*first.epoch_times[1:], first.batch_times[-1]]
    return Outcome(
        source=source,
        samples=len(samples),
        total_bytes=samples.dataset.total_bytes,
        epochs=epochs,
        store_bytes=reads(since).body_bytes,
        shown_hit_ratio=str(workspace.get("dataset/images")["status"].get("hitRatio", "-")),
        epoch_seconds=[end - began for began, end in zip(first.epoch_times, ends, strict=True)],
        wrong=wrong,
    )


def _start_source(
    workspace: Workspace, source: str
) -> tuple[Callable[[str], StoreReads], Object]:
    """What tells its reads since a time, and what of the Dataset's spec says where it is."""
    if source == "http":
        workspace.store.start()
        return lambda since: workspace.store.reads(since, workspace.samples), {}
    keys = Keys("demo")
    server = BucketServer(workspace.cluster, SPACE)
    server.start([keys])
    workspace.apply(buckets.secret(SPACE, SECRET, keys.values()))
    return lambda since: server.reads(since, workspace.samples), {"source": server.source(SECRET)}


def _follow(workspace: Workspace, epochs: int, say: Callable[[str, str], None]) -> None:
    last_sign, last_count = time.monotonic(), -1
    while True:
        status = workspace.get(f"job/{JOB}")["status"]
        if status.get("succeeded", 0) == PODS:
            return
        batches = [len(rank.batch_times) for rank in workspace.ranks(JOB) if rank.rank == 0]
        count = sum(batches)
        if count != last_count:
            last_sign, last_count = time.monotonic(), count
        if status.get("failed", 0) or time.monotonic() - last_sign > STUCK_SECONDS:
            raise ClusterError(f"the job does not go on: ./dev cluster kubectl describe -n {SPACE} job/{JOB}")
        steps = -(-len(workspace.samples) // (PODS * 16)) * epochs
        ratio = workspace.get("dataset/images")["status"].get("hitRatio", "-")
        say(f"{PODS} pods train", f"{min(count / steps, 1):.0%} read, hit ratio {ratio}")
        time.sleep(POLL_SECONDS)


def report(outcome: Outcome) -> str:
    """A table, whether all was right, and what to look at next."""
    without = outcome.total_bytes * outcome.epochs
    least = outcome.least_bytes
    above = "" if outcome.store_bytes <= TOLERANCE * least else f": more than {TOLERANCE}, TOO MUCH"
    counted = {"http": "as nginx counted", "s3": "by the bucket's log, as many whole objects"}
    rows = [
        ("samples", f"{outcome.samples:,}, {outcome.total_bytes / 1e6:,.1f} MB, {SHARE:.0%} fit"),
        ("read by the job", f"{without / 1e6:,.1f} MB in {outcome.epochs} epochs, {PODS} pods"),
        ("read from the store", f"{outcome.store_bytes / 1e6:,.1f} MB, {counted[outcome.source]}"),
        ("no cache reads less than", f"{least / 1e6:,.1f} MB; here {outcome.store_bytes / least:.4f} of it{above}"),
        ("of that from the cache", f"{1 - outcome.store_bytes / without:.1%} of the bytes"),
        ("hit ratio", f"{outcome.shown_hit_ratio} of the reads, as kubectl says"),
        ("seconds an epoch", " ".join(f"{seconds:.1f}" for seconds in outcome.epoch_seconds)),
        ("bytes and orders", "all right" if not outcome.wrong else "; ".join(outcome.wrong)),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:{width}}  {text}" for name, text in rows]
    lines += [
        "",
        "The cluster is up:",
        f"  ./dev cluster kubectl get datasets,cacheplans,pods -n {SPACE}",
        "  ./dev cluster kubectl logs -n optcache-system deployment/optcache-operator",
        "  ./dev cluster down",
    ]
    return "\n".join(lines)
