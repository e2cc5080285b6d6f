"""Figures that only a cluster can give: how soon things are ready, and what many of them cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bench.figures import Figure, at_most

from cluster import recipes
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.host import missing
from cluster.release import Release
from cluster.rollouts import Rollout
from cluster.scale import REAL, Scale, Size
from cluster.workspace import Samples, Store, Workspace

MEBIBYTE = 1 << 20
ALTERNATIONS = 3
PODS = 3
# Of equal cost, in turns: by the time that one is asked for again, no node reports its last trial.
OBJECTIVES = ("Bytes", "Requests")
WAIT_SECONDS = 240
FULL, QUICK = Size(machines=1000, pods=5000, datasets=200), Size(machines=20, pods=50, datasets=5)

Say = Callable[[str], None]


def measure(quick: bool, say: Say) -> list[Figure]:
    """Starts a cluster of its own, unless one is up, and ends it."""
    if lacks := missing():
        raise ClusterError("; ".join(lacks))
    cluster = Cluster()
    was_up = cluster.is_up()
    try:
        say("cluster")
        cluster.up(images=[recipes.object_store(cluster.paths), recipes.training()])
        for name in recipes.COMPONENTS:
            cluster.load(recipes.component(name, cluster.images, cluster.paths))
        return list(_figures(cluster, quick, say))
    finally:
        if not was_up:
            cluster.down()


def _figures(cluster: Cluster, quick: bool, say: Say) -> Iterator[Figure]:
    release, store = Release(cluster), Store(cluster)
    release.uninstall()
    store.start()
    say("helm install")
    yield Figure("helm install until operator and nodes are ready", release.install({"node": REAL}), "s")
    workspace = Workspace(cluster, "figures", store, Samples())
    workspace.create()
    try:
        rollout = Rollout(workspace, "images")
        rollout.create("images", retention="Pin", rollout={"paused": True})
        say("a Dataset of 14,059 files")
        yield Figure("a Dataset of 14,059 files until it is Ready", workspace.make_dataset(), "s")
        say("first batches")
        yield from _first_batches(workspace, 1 if quick else ALTERNATIONS)
        say("a rollout")
        yield _prepared(workspace, rollout, 1 if quick else ALTERNATIONS)
    finally:
        workspace.delete()
    say("many machines")
    yield from _scale(Scale(cluster, release, store.url), QUICK if quick else FULL, 60 if quick else 600)


def _first_batches(workspace: Workspace, alternations: int) -> Iterator[Figure]:
    """From the pod's creation to the first batch in the training process."""
    seconds: dict[bool, list[float]] = {True: [], False: []}
    environment = {"STORE_URL": workspace.store.url, "EPOCHS": "1"}
    for turn in range(alternations):
        for inject in (True, False):
            name = f"{'injected' if inject else 'plain'}-{turn}"
            began = time.monotonic()
            workspace.start_training(name, pods=1, environment=environment, inject=inject)
            workspace.wait_for_batches(name, 1)
            seconds[inject].append(time.monotonic() - began)
            workspace.kubectl("delete", f"job/{name}", "--grace-period=1")
    with_us, without = (min(seconds[inject]) for inject in (True, False))
    yield Figure("a pod's first batch, from its creation", with_us, "s", peer=f"without us {without:.1f} s")
    yield Figure("of that, what injection adds", with_us - without, "s", goal=at_most(1.0))


def _prepared(workspace: Workspace, rollout: Rollout, alternations: int) -> Figure:
    """From a patch of a CachePlan until all nodes have derived it. No node goes over: it is paused."""
    environment = {"STORE_URL": workspace.store.url, "EPOCHS": "1000", "PAUSE": "0.1"}
    jobs = ("one", "two")
    for job in jobs:
        workspace.start_training(job, pods=PODS, environment=environment)
    rollout.wait_for_passes(1, WAIT_SECONDS, len(jobs))
    rollout.wait("the first revision", WAIT_SECONDS, phase="Complete", active=PODS)
    seconds = []
    for turn in range(alternations):
        began = time.monotonic()
        rollout.patch(retention="Optimal", objective=OBJECTIVES[turn % len(OBJECTIVES)])
        rollout.wait("it is prepared", WAIT_SECONDS, phase="Prepare", prepared=PODS)
        seconds.append(time.monotonic() - began)
        rollout.patch(retention="Pin", objective="Bytes")
        rollout.wait("all as before", WAIT_SECONDS, phase="Complete", prepared=PODS)
    seconds.sort()
    return Figure(
        f"patched until {PODS} nodes have prepared, 2 jobs reading",
        seconds[len(seconds) // 2],
        "s",
        f"the median of {len(seconds)}: {seconds[0]:.1f} to {seconds[-1]:.1f}",
    )


def _scale(scale: Scale, size: Size, seconds: float) -> Iterator[Figure]:
    what = f"{size.machines:,} machines, {size.pods:,} pods, {size.datasets} Datasets"
    try:
        scale.fill(size)
        steady = scale.steady(seconds)
        yield Figure(f"operator's memory: {what}", steady.resident_bytes / MEBIBYTE, "MiB", goal=at_most(256))
        yield Figure("its requests, nothing changing", steady.requests_a_minute, "a minute", goal=at_most(60))
        yield Figure("its writes in that time", len(steady.writes), "", goal=at_most(0))
        yield Figure("all reconciled after both replicas were killed", scale.restart(size.datasets), "s")
    finally:
        scale.empty()
