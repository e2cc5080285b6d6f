"""A machine without training pods is drained and comes back while a job reads on the others."""

from __future__ import annotations

from cluster.checks import check_samples, check_store_reads
from cluster.cluster import Cluster
from cluster.host import utc, wait_until
from cluster.objects import Object
from cluster.release import Release
from cluster.workspace import Workspace

PODS = 4
EPOCHS = 12
TRAINING_SECONDS = 900
MOVE_SECONDS = 120
LEAVES = "node3"
STAY = ("node1", "node2")
# Of three nodes there is room for 30 % of the images, which are 133 MB; of two for 25 %.
MEMORY = 16 << 20
NODE = {"memory": "16Mi", "drainSeconds": 30}


def on_those_that_stay() -> Object:
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(STAY)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def held_by(workspace: Workspace, machine: str) -> int:
    nodes = workspace.get("dataset/images")["status"].get("nodes", [])
    return sum(int(node["bytes"]) for node in nodes if node["name"] == machine)


def test_a_machine_is_drained_and_comes_back(
    installed: Release, workspace: Workspace, cluster: Cluster
) -> None:
    """The store is read no more than if there had been the smaller cache from the beginning."""
    installed.install({"node": NODE})
    workspace.make_dataset(capacity="30%")
    since = utc()
    environment = {"EPOCHS": str(EPOCHS), "PAUSE": "0.1", "BATCH": "32"}
    workspace.start_training("train", environment=environment, pods=PODS, pod=on_those_that_stay())
    wait_until(lambda: held_by(workspace, LEAVES) > MEMORY // 2, f"bytes on {LEAVES}", TRAINING_SECONDS)

    # Not the store, which may be there and has its log.
    jobs = "--pod-selector=batch.kubernetes.io/job-name"
    words = ("drain", LEAVES, jobs, "--ignore-daemonsets", "--delete-emptydir-data")
    try:
        cluster.kubectl(*words, seconds=180)
        (leaving,) = [
            pod["metadata"]["name"]
            for pod in installed.pods("node")
            if pod["spec"]["nodeName"] == LEAVES
        ]
        # DaemonSets are not drained: its node gives up what it holds because nothing is to run there.
        wait_until(lambda: held_by(workspace, LEAVES) == 0, f"nothing on {LEAVES}", MOVE_SECONDS)
        moved, lost = (
            installed.metric("node", "optcache_relocations_total", of_pod=leaving, result=result)
            for result in ("moved", "lost")
        )
        assert moved > 20 * lost
        words = ("delete", f"pod/{leaving}", f"--namespace={installed.SPACE}", "--timeout=90s")
        cluster.kubectl(*words, seconds=120)
    finally:
        cluster.kubectl("uncordon", LEAVES)
    installed.wait_ready()
    wait_until(lambda: held_by(workspace, LEAVES) > MEMORY // 2, f"bytes on {LEAVES} again", MOVE_SECONDS)

    workspace.wait_for_job("train", TRAINING_SECONDS)
    check_samples(workspace, "train", PODS, EPOCHS)
    total = workspace.samples.dataset.total_bytes
    share = len(STAY) * MEMORY / total
    check_store_reads(workspace, since, share, EPOCHS, 1.0)
