"""The chart, installed as users do, with values for three workers on one small machine."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from cluster import recipes
from cluster.cluster import Cluster
from cluster.host import utc, wait_until
from cluster.objects import Object, names
from cluster.settings import REPOSITORY

CHART = REPOSITORY / "charts" / "optcache"
NAME = "optcache"
SPACE = "optcache-system"
READY_SECONDS = 180.0
PAGES_PORTS = {"operator": 8080, "node": 4101}

# A machine with this label has no node of the cache.
BARE = "optcache.test/bare"
NOT_BARE: Object = {"nodeSelectorTerms": [{"matchExpressions": [{"key": BARE, "operator": "DoesNotExist"}]}]}

VALUES: Object = {
    "image": {"prefix": recipes.PREFIX, "tag": recipes.TAG, "pullPolicy": "Never"},
    "operator": {"resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}}},
    "node": {
        "memory": "256Mi",
        "samples": 100000,
        "cpu": "100m",
        "drainSeconds": 10,
        # All at once: what is about upgrades says otherwise.
        "maxUnavailable": "100%",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": NOT_BARE}},
    },
}


class Release:
    SPACE = SPACE

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        # When it was taken away, from and until: its rights go before its pods do.
        self.removals: list[tuple[str, str]] = []
        self._has_own_values = False

    def install(self, values: Optional[Mapping[str, Any]] = None, chart: Path = CHART) -> float:
        """Installs or upgrades; seconds until operator and nodes are ready."""
        began = time.monotonic()
        self._has_own_values = bool(values)
        path = self.cluster.paths.run / "values.json"
        path.write_text(json.dumps(_merged(VALUES, values or {})))
        words = ("upgrade", NAME, chart, "--install", f"--namespace={SPACE}", "--create-namespace")
        self.cluster.helm(*words, f"--values={path}")
        self._label_namespace()
        self.wait_ready()
        return time.monotonic() - began

    def test(self) -> None:
        """`helm test`: a pod is injected and admitted, as a dry run."""
        self.cluster.helm("test", NAME, f"--namespace={SPACE}", "--timeout=120s")

    def uninstall(self) -> None:
        began = utc()
        words = ("uninstall", NAME, f"--namespace={SPACE}", "--wait", "--ignore-not-found")
        self.cluster.helm(*words)
        wait_until(lambda: self._all_pods() == [], "no pod of ours", READY_SECONDS)
        self.removals.append((began, utc()))

    def restore(self) -> None:
        """As installed, whatever a case has left."""
        if self._has_own_values or not self.is_installed():
            self.install()
        self.wait_ready()

    def is_installed(self) -> bool:
        words = ("status", NAME, f"--namespace={SPACE}")
        return self.cluster.helm(*words, check=False).returncode == 0

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        operator = ("rollout", "status", f"--namespace={SPACE}", f"deployment/{NAME}-operator")
        self.cluster.kubectl(*operator, f"--timeout={seconds:.0f}s", seconds=seconds + 30)
        wait_until(self._nodes_ready, "the nodes are ready", seconds)
        wait_until(self._trusted, "the injector has its caBundle", seconds)
        wait_until(lambda: self.leader() in names(self.pods("operator")), "an operator leads", seconds)

    def _nodes_ready(self) -> bool:
        """As `rollout status` says it, which says nothing of nodes that are replaced by hand."""
        nodes = self.cluster.get("daemonset", f"--namespace={SPACE}", f"{NAME}-node")
        status = nodes["status"]
        counts = ["numberAvailable"]
        if nodes["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            counts.append("updatedNumberScheduled")
        seen = status.get("observedGeneration") == nodes["metadata"]["generation"]
        return seen and all(status.get(count, 0) == status["desiredNumberScheduled"] for count in counts)

    def _trusted(self) -> bool:
        hooks = self.cluster.get("mutatingwebhookconfiguration", f"{NAME}-injector")["webhooks"]
        return all(hook["clientConfig"].get("caBundle") for hook in hooks)

    def pods(self, component: str, ending: bool = False) -> list[Object]:
        """Those that are to stay; with `ending` also those that are about to go."""
        selector = f"--selector=app.kubernetes.io/component={component}"
        items: list[Object] = self.cluster.get("pods", f"--namespace={SPACE}", selector)["items"]
        return [item for item in items if ending or "deletionTimestamp" not in item["metadata"]]

    def _all_pods(self) -> list[Object]:
        return [pod for component in PAGES_PORTS for pod in self.pods(component, ending=True)]

    def leader(self) -> str:
        """The pod that leads, or ""."""
        lease = self.cluster.get("lease", f"--namespace={SPACE}", f"{NAME}-operator")
        return str(lease["spec"].get("holderIdentity") or "").rpartition("_")[0]

    def term(self) -> int:
        """How often the lease has been taken."""
        lease = self.cluster.get("lease", f"--namespace={SPACE}", f"{NAME}-operator")
        return int(lease["spec"].get("leaseTransitions") or 0)

    def logs(self, component: str) -> str:
        selector = f"--selector=app.kubernetes.io/component={component}"
        words = (f"--namespace={SPACE}", selector, "--tail=-1", "--prefix", "--ignore-errors")
        return self.cluster.kubectl("logs", *words, check=False).stdout

    def metric(
        self, component: str, name: str, /, check: bool = True, of_pod: str = "", **labels: str
    ) -> float:
        """The sum of a metric over all pods of a component (or one), where it has these labels.

        A label's value is an expression. Without `check` a pod that does not answer counts nothing.
        """
        total = 0.0
        for pod in self.pods(component):
            if of_pod not in ("", pod["metadata"]["name"]):
                continue
            page = PAGES_PORTS[component]
            path = f"/api/v1/namespaces/{SPACE}/pods/{pod['metadata']['name']}:{page}/proxy/metrics"
            text = self.cluster.kubectl("get", "--raw", path, check=check).stdout
            pattern = rf"^{name}(\{{[^}}]*\}})? (\S+)$"
            for found, value in re.findall(pattern, text, re.MULTILINE):
                if all(re.search(rf'[{{,]{label}="({wanted})"', found) for label, wanted in labels.items()):
                    total += float(value)
        return total

    def _label_namespace(self) -> None:
        label = "pod-security.kubernetes.io/enforce=restricted"
        self.cluster.kubectl("label", "namespace", SPACE, label, "--overwrite")


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(inner, value) if both and inner is not None else value
    return merged
