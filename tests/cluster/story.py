"""What was in the cluster when a case failed: files to read, and the ends of our pods' logs to print."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from pathlib import Path

from cluster.cluster import Cluster
from cluster.release import Release

LINES = 50  # of each pod
SIDECARS_MAX = 4
QUESTIONS = {
    "objects.txt": ("get", "all,datasets,cacheplans,events", "--all-namespaces", "--output=wide"),
    "pods.txt": ("describe", "pods", "--all-namespaces"),
    "datasets.yaml": ("get", "datasets,cacheplans", "--all-namespaces", "--output=yaml"),
}
LOGS = ("operator.log", "node.log", "sidecar.log")


def keep(cluster: Cluster, folder: Path) -> None:
    """Writes it to `folder`; a question that fails leaves what it said."""
    for name, words in QUESTIONS.items():
        (folder / name).write_text(cluster.kubectl(*words, check=False).stdout)
    for component in ("operator", "node"):
        (folder / f"{component}.log").write_text(Release(cluster).logs(component))
    (folder / "sidecar.log").write_text(_sidecars(cluster))
    (folder / "time.txt").write_text(time.strftime("%Y-%m-%dT%H:%M:%SZ\n", time.gmtime()))


def ends(folder: Path) -> list[tuple[str, str]]:
    """What a report shows of it: sections with their titles."""
    shown = [("objects.txt", _last((folder / "objects.txt").read_text(errors="replace").splitlines()))]
    for name in LOGS:
        pods = by_pod((folder / name).read_text(errors="replace"))
        shown += [(f"{name} of {pod}", _last(lines)) for pod, lines in pods.items()]
    return shown


def by_pod(text: str) -> dict[str, list[str]]:
    """The lines of each pod, of `kubectl logs --prefix`."""
    pods: dict[str, list[str]] = defaultdict(list)
    pod = "kubectl"  # what it says itself
    for line in text.splitlines():
        if found := re.match(r"\[(pod/[^]]+)\] ?", line):
            pod, line = found[1], line[found.end() :]
        pods[pod].append(line)
    return pods


def _last(lines: list[str]) -> str:
    return "\n".join(lines[-LINES:])


def _sidecars(cluster: Cluster) -> str:
    words = ("get", "pods", "--all-namespaces", "--selector=optcache.io/inject=true", "--output=json")
    done = cluster.kubectl(*words, check=False)
    pods = json.loads(done.stdout)["items"] if done.returncode == 0 else []
    texts = []
    for pod in pods[-SIDECARS_MAX:]:
        meta = pod["metadata"]
        place = (meta["name"], f"--namespace={meta['namespace']}", "--container=optcache-sidecar")
        log = cluster.kubectl("logs", *place, "--prefix", f"--tail={LINES}", check=False)
        texts.append(f"{log.stdout}{log.stderr}")
    return "\n".join(texts)
