"""Warm-ups: nodes are full before the job begins, which then reads the rest alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cluster import prometheus
from cluster.checks import check_samples
from cluster.cluster import Cluster
from cluster.host import run, utc, wait_until
from cluster.objects import Object
from cluster.release import Release
from cluster.settings import REPOSITORY
from cluster.workspace import Samples, Workspace
from harness.prometheus import PANELS_OF_WARMUPS, empty_panels

SHARE = 0.30
HEDGES = 0.01  # second reads of what is late
STAGED = 0.10  # what sidecars read ahead of a second epoch, and hedges
WARM_SECONDS = 240
TRAINING_SECONDS = 300
WAITS_SECONDS = 60
OPTCACHE = Path(os.environ.get("OPTCACHE_BIN_DIR", REPOSITORY / "build" / "dev" / "bin")) / "optcache"


def warmup(space: str, name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "optcache.io/v1alpha1",
        "kind": "Warmup",
        "metadata": {"name": name, "namespace": space},
        "spec": {"dataset": "images", **spec},
    }


def reason(workspace: Workspace, name: str) -> str:
    status = workspace.get(f"warmup/{name}").get("status", {})
    reasons = {each["type"]: each["reason"] for each in status.get("conditions", [])}
    return str(reasons.get("Complete", ""))


def check_panels(cluster: Cluster, release: Release, folder: Path) -> None:
    """Those of warm-ups have data."""
    with prometheus.running(cluster, folder / "prometheus") as watched:
        prometheus.wait_for_release(watched, release)
        watched.wait_for("sum(optcache_warmup_state) > 0", "the Warmup is scraped")
        report = prometheus.render(watched, folder / "pictures", "--last=1m", "--dashboard=optcache-overview")
    assert empty_panels(report) & PANELS_OF_WARMUPS == set()


def test_a_first_epoch_after_a_warmup(
    installed: Release, cluster: Cluster, workspace: Workspace, samples: Samples, shell: dict[str, str], tmp_path: Path
) -> None:
    """One that was there before its Dataset waits for it. Another one reads nothing again, and goes."""
    workspace.apply(warmup(workspace.name, "early"))
    wait_until(lambda: reason(workspace, "early") == "NoDataset", "it waits", WAITS_SECONDS)
    since = utc()
    workspace.make_dataset(capacity=f"{SHARE:.0%}")
    workspace.wait_for("warmup/early", "condition=Complete", WARM_SECONDS)
    status = workspace.get("warmup/early")["status"]
    total = sum(samples.sizes.values())
    assert status["progress"] == "100%"
    # Each of three nodes is full, though some images take a good part of its 13 MB; and of those
    # that are read, all find room.
    assert 0.98 * SHARE * total <= status["bytes"] <= SHARE * total
    read = workspace.store.reads(since, samples).body_bytes
    print(f"{read / total:.3f} of the bytes read by the warm-up, {status['bytes'] / total:.3f} kept")
    assert read <= (SHARE + HEDGES) * total

    since = utc()
    words = ["warmup", "images", "--cluster", "-n", workspace.name, "--wait", "--timeout=4m", "--ttl=5s"]
    told = run([OPTCACHE, *words, "--output=json"], environment=shell, seconds=WARM_SECONDS + 30).stdout
    view = json.loads(told)
    assert view["state"] == "Complete", view
    assert workspace.store.reads(since, samples).body_bytes <= 0.02 * total
    wait_until(
        lambda: view["name"] not in workspace.kubectl("get", "warmups", "--output=name"),
        "it is deleted after its time",
        WAITS_SECONDS,
    )

    since = utc()
    workspace.start_training("train", pods=2, environment={"EPOCHS": "1", "PAUSE": "0"})
    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", pods=2, epochs=1)
    share = workspace.store.reads(since, samples).body_bytes / total
    print(f"{share:.3f} of the bytes read in the first epoch")
    assert share <= 1 - status["bytes"] / total + STAGED
    check_panels(cluster, installed, tmp_path)


def test_a_warmup_that_is_deleted_stops(installed: Release, workspace: Workspace) -> None:
    workspace.make_dataset(capacity="100%")
    workspace.apply(warmup(workspace.name, "slow", bandwidth="100Ki"))
    wait_until(lambda: "warmup" in workspace.kubectl("get", "pods", "--show-labels"), "it runs", WAITS_SECONDS)
    workspace.kubectl("delete", "warmup/slow", "--wait=false")
    wait_until(
        lambda: workspace.kubectl("get", "jobs,pods", "--selector=optcache.io/warmup", "--output=name") == "",
        "its Job and pods are gone",
        WARM_SECONDS,
    )
