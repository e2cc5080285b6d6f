"""A namespace of a user: its store, its Datasets, its jobs, and what became of them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Optional

from cluster import objects, training
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.host import wait_until
from cluster.objects import Object
from cluster.settings import REPOSITORY
from cluster.training import Rank, StoreReads

POD_SECONDS = 300.0
INJECTED_TRIES = 3
DATASET_SECONDS = 180.0
SLOW_POLL_SECONDS = 1.0


class Samples:
    """What is in the store, as the demo's images are on this machine."""

    @cached_property
    def dataset(self) -> Any:
        from demo.dataset import open_dataset, unpack_default

        return open_dataset(unpack_default(REPOSITORY / "build" / "demo-data"))

    @cached_property
    def digests(self) -> list[str]:
        dataset = self.dataset
        return training.digests_of(dataset.read(index) for index in range(len(dataset.paths)))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """By the path that nginx logs."""
        paths = (f"/images/{path}" for path in self.dataset.paths)
        return dict(zip(paths, self.dataset.sizes, strict=True))

    def __len__(self) -> int:
        return len(self.dataset.paths)


class FewSamples(Samples):
    """Each `step`th of those whose paths begin so, for cases that are not about many."""

    def __init__(self, whole: Samples, step: int = 1, prefixes: tuple[str, ...] = ("",)) -> None:
        self._whole = whole
        self._step = step
        self._prefixes = prefixes

    @cached_property
    def dataset(self) -> Any:
        whole = self._whole.dataset
        named = zip(whole.paths, whole.sizes, strict=True)
        chosen = [(path, size) for path, size in named if path.startswith(self._prefixes)]
        paths, sizes = zip(*chosen[:: self._step], strict=True)
        return replace(whole, paths=paths, sizes=sizes)


class Store:
    """nginx in the namespace `store`, for all cases."""

    SPACE = "store"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def url(self) -> str:
        return f"http://store.{self.SPACE}.svc/images/"

    def start(self) -> None:
        self._cluster.apply(objects.namespace(self.SPACE), *objects.object_store(self.SPACE))
        rollout = ("rollout", "status", f"--namespace={self.SPACE}", "deployment/store")
        self._cluster.kubectl(*rollout, "--timeout=120s", seconds=150)

    def log(self, since: str) -> str:
        """A line for each request since that second of `host.utc`."""
        words = (f"--namespace={self.SPACE}", "deployment/store", "--tail=-1", f"--since-time={since}")
        return self._cluster.kubectl("logs", *words).stdout

    def reads(self, since: str, samples: Samples) -> StoreReads:
        return training.store_reads(self.log(since), samples.sizes)


class Workspace:
    def __init__(self, cluster: Cluster, name: str, store: Store, samples: Samples) -> None:
        self.cluster = cluster
        self.name = name
        self.store = store
        self.samples = samples

    def create(self) -> None:
        self.cluster.apply(objects.namespace(self.name), objects.scripts(self.name))

    def delete(self, seconds: float = 120, wait: bool = True) -> None:
        """All that is in it, without waiting for grace periods of pods."""
        self.kubectl("delete", "pods,jobs", "--all", "--grace-period=1", "--wait=false", check=False)
        self.kubectl("delete", "datasets", "--all", "--wait=false", check=False)
        words = ("delete", "namespace", self.name, "--ignore-not-found", f"--wait={str(wait).lower()}")
        self.cluster.kubectl(*words, f"--timeout={seconds:.0f}s", seconds=seconds + 30)

    def kubectl(self, *words: str, check: bool = True, stdin: Optional[str] = None) -> str:
        flags = (f"--namespace={self.name}",)
        return self.cluster.kubectl(*flags, *words, check=check, stdin=stdin).stdout

    def get(self, *words: str) -> Any:
        return self.cluster.get(f"--namespace={self.name}", *words)

    def apply(self, *documents: Object) -> None:
        self.cluster.apply(*documents)

    def wait_for(self, what: str, condition: str, seconds: float) -> None:
        """As kubectl wait; when it is not so in time, what is there instead is in the message."""
        words = (f"--for={condition}", f"--timeout={seconds:.0f}s", f"--namespace={self.name}", what)
        done = self.cluster.kubectl("wait", *words, check=False, seconds=seconds + 30)
        if done.returncode != 0:
            story = self.kubectl("describe", what, check=False)
            raise ClusterError(f"{what}: {condition} not within {seconds:.0f} s\n{story}")

    def make_dataset(self, name: str = "images", capacity: str = "30%", **spec: Any) -> float:
        """Seconds until it is Ready."""
        began = time.monotonic()
        self.apply(objects.dataset(self.name, name, self.store.url, capacity, **spec))
        self.wait_for(f"dataset/{name}", "condition=Ready", DATASET_SECONDS)
        return time.monotonic() - began

    def start_training(
        self,
        name: str,
        dataset: str = "images",
        *,
        pods: int = 4,
        environment: Optional[Mapping[str, str]] = None,
        pod: Optional[Object] = None,
        retries: int = 0,
        inject: bool = True,
        annotations: Optional[Object] = None,
    ) -> None:
        """An Indexed Job; its pods are injected unless `inject` says no. `annotations`: more of them."""
        labels, own = objects.injected(dataset) if inject else ({}, {})
        variables = dict(environment or {})
        self.apply(
            *objects.training_job(
                self.name,
                name,
                labels=labels,
                annotations={**own, **(annotations or {})},
                pods=pods,
                environment=variables,
                pod=pod,
                retries=retries,
            )
        )

    def start_injected_training(self, name: str, *, pods: int, **options: Any) -> None:
        """As `start_training`, for cases in which each pod must have a sidecar.

        The API server admits a pod without one if the injector does not answer in time, as on a very busy
        machine. Then the job is deleted and starts again.
        """
        for _ in range(INJECTED_TRIES):
            self.start_training(name, pods=pods, **options)
            wait_until(lambda: len(self.pods(name)) == pods, f"{pods} pods of {self.name}/{name}", POD_SECONDS)
            without = [pod["metadata"]["name"] for pod in self.pods(name) if not objects.has_sidecar(pod)]
            if not without:
                return
            print(f"{self.name}/{name} starts again: the API server injected no sidecar into {without}")
            words = ("delete", f"job/{name}", f"--namespace={self.name}", "--cascade=foreground")
            self.cluster.kubectl(*words, f"--timeout={POD_SECONDS:.0f}s", seconds=POD_SECONDS + 30)
        raise ClusterError(f"{self.name}/{name}: {INJECTED_TRIES} times a pod started without a sidecar")

    def pods(self, job: str) -> list[Object]:
        items: list[Object] = self.get("pods", f"--selector=batch.kubernetes.io/job-name={job}")["items"]
        return items

    def identities(self, job: str) -> dict[str, tuple[str, list[int]]]:
        """Each pod's UID and how often its containers have been restarted."""
        found = {}
        for pod in self.pods(job):
            status = pod["status"]
            states = status.get("initContainerStatuses", []) + status["containerStatuses"]
            restarts = [state["restartCount"] for state in states]
            found[pod["metadata"]["name"]] = (pod["metadata"]["uid"], restarts)
        return found

    def log(self, pod: str, container: str = "train", previous: bool = False) -> str:
        flags = ["--previous"] if previous else []
        return self.kubectl("logs", pod, f"--container={container}", "--tail=-1", *flags, check=False)

    def ranks(self, job: str) -> list[Rank]:
        return [training.read_rank(self.log(name)) for name in objects.names(self.pods(job))]

    def story(self) -> str:
        """Logs of all containers of all pods, and all objects but Secrets."""
        logs = [
            self.kubectl("logs", pod, "--all-containers", "--tail=-1", "--ignore-errors", check=False)
            for pod in objects.names(self.get("pods")["items"])
        ]
        kinds = "pods,jobs,deployments,configmaps,datasets,cacheplans,warmups,events"
        return "\n".join([*logs, self.kubectl("get", kinds, "--output=yaml")])

    def wait_for_batches(self, job: str, count: int, seconds: float = POD_SECONDS) -> None:
        """Until rank 0, which is the pod of index 0, has read so many."""
        labels = f"batch.kubernetes.io/job-name={job},batch.kubernetes.io/job-completion-index=0"
        words = ("logs", f"--selector={labels}", "--container=train", "--tail=-1")

        def read() -> bool:
            return len(training.read_rank(self.kubectl(*words, check=False)).batch_times) >= count

        wait_until(read, f"{count} batches of {self.name}/{job}", seconds)

    def wait_for_job(self, name: str, seconds: float) -> None:
        """ClusterError with the ends of its pods' logs where it fails."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                status = self.get(f"job/{name}")["status"]
            except ClusterError:  # the API server is busy
                if time.monotonic() > deadline:
                    raise
                time.sleep(SLOW_POLL_SECONDS)
                continue
            held = {item["type"] for item in status.get("conditions", []) if item["status"] == "True"}
            if "Complete" in held:
                return
            if "Failed" in held or time.monotonic() > deadline:
                raise ClusterError(f"job {name} is not complete: {json.dumps(status)}\n{self._story(name)}")
            time.sleep(SLOW_POLL_SECONDS)

    def _story(self, job: str) -> str:
        lines = []
        for pod in objects.names(self.pods(job)):
            for container in ("train", "optcache-sidecar"):
                tail = self.log(pod, container).splitlines()[-8:]
                lines += [f"{pod}/{container}: {line[:300]}" for line in tail]
        return "\n".join(lines)
