"""Prometheus over a cluster's pods, as docs/user/dashboards.md sets it up, with the chart's alerts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import prometheus
from harness.prometheus import Prometheus

from cluster import network, recipes, settings
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.release import Release

FIND_SECONDS = 2.0
META = "__meta_kubernetes_pod"

Object = dict[str, Any]


def targets(pods: list[Object]) -> list[Object]:
    """A target for each port of each container, with the labels of Prometheus' kubernetes_sd_configs.

    Debian's Prometheus is built without these.
    """
    found = []
    for pod in pods:
        about, status = pod["metadata"], pod.get("status", {})
        if not status.get("podIP") or status.get("phase") in ("Succeeded", "Failed"):
            continue
        labels = {
            "__meta_kubernetes_namespace": about["namespace"],
            f"{META}_name": about["name"],
            f"{META}_node_name": pod["spec"].get("nodeName", ""),
        }
        for owner in about.get("ownerReferences", []):
            if owner.get("controller"):
                labels[f"{META}_controller_name"] = owner["name"]
        for kind in ("label", "annotation"):
            for name, value in about.get(f"{kind}s", {}).items():
                labels[f"{META}_{kind}_{re.sub('[^a-zA-Z0-9_]', '_', name)}"] = value
        containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        for container in containers:
            for port in container.get("ports", []):
                address = f"{status['podIP']}:{port['containerPort']}"
                named = {**labels, f"{META}_container_port_name": port.get("name", "")}
                found.append({"targets": [address], "labels": named})
    return found


class PodFinder:
    """Keeps a file for Prometheus' file_sd_configs as the cluster's pods are, until its `with` ends."""

    def __init__(self, cluster: Cluster, file: Path) -> None:
        self._cluster = cluster
        self._file = file
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._find()

    def __enter__(self) -> PodFinder:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._ended.wait(FIND_SECONDS):
            try:
                self._find()
            except (ClusterError, subprocess.SubprocessError, ValueError):
                continue  # the API server may be what a case stops

    def _find(self) -> None:
        pods = self._cluster.get("pods", "--all-namespaces")["items"]
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(targets(pods)))
        written.replace(self._file)


@contextmanager
def running(cluster: Cluster, folder: Path, interval: str = "2s") -> Iterator[Prometheus]:
    """In the network of the control plane, from which all pods are reached.

    Its numbers are thrown away at the end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entry = prometheus.documented_scrape()
    del entry["kubernetes_sd_configs"]
    pods = folder / "pods.json"
    entry["file_sd_configs"] = [{"files": [str(pods)], "refresh_interval": "2s"}]
    rules = prometheus.chart_rules(cluster.paths.program("helm"))
    within = network.inside(settings.CONTROL_NAMESPACE)
    with PodFinder(cluster, pods), Prometheus(folder, [entry], rules, interval, within) as it:
        yield it
    shutil.rmtree(folder / "data", ignore_errors=True)


def wait_for_release(it: Prometheus, release: Release, seconds: float = 120.0) -> None:
    """Until all operators and nodes are scraped. Training pods come and go: wait_for them by query."""
    pods = len(release.pods("operator")) + len(release.pods("node"))
    it.wait_for_targets(pods, seconds)


def render(it: Prometheus, folder: Path, *words: str) -> Object:
    """The dashboards as pictures, in `folder`, and what `optcache dashboard render` says of them."""
    report: Object = it.render(recipes.present().programs / "optcache", folder, *words)
    return report


def check_pages(pods: list[Object]) -> None:
    """Of each of these the page is as Prometheus wants it: of an operator, a node, a sidecar."""
    for pod in pods:
        containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        ports = [port for container in containers for port in container.get("ports", [])]
        number = next(port["containerPort"] for port in ports if port.get("name", "").endswith("pages"))
        url = f"http://{pod['status']['podIP']}:{number}/metrics"
        command = network.inside(settings.CONTROL_NAMESPACE, "curl", "--silent", "--fail", url)
        page = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        prometheus.check_page(page.stdout)
