"""What cases start: the cluster with the chart in it, a store, a namespace of their own."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from cluster import host, programs, recipes
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from cluster.release import Release
from cluster.settings import Paths
from cluster.workspace import Samples, Store, Workspace

DEADLINE_SECONDS = 900
LONG_DEADLINE_SECONDS = 3600
NAME_LENGTH = 40  # of a namespace; 63 are allowed, and others' names begin with it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a machine that cannot carry a cluster, one clear line instead of failures."""
    if lacks := host.missing() + programs.missing(Paths.default()):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"no cluster on this machine: {'; '.join(lacks)}"))


@pytest.fixture(scope="session")
def long() -> bool:
    """Whether cases may take many minutes."""
    return os.environ.get("OPTCACHE_LONG") == "1"


@pytest.fixture(scope="session")
def at_length(long: bool) -> None:
    """For cases that repeat in another way what a shorter one says."""
    if not long:
        pytest.skip("only with ./dev test --long")


@pytest.fixture(autouse=True)
def deadline(long: bool) -> Iterator[None]:
    """A case that hangs fails."""
    seconds = LONG_DEADLINE_SECONDS if long else DEADLINE_SECONDS

    def fail(number: int, frame: FrameType | None) -> None:
        raise ClusterError(f"the case is not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster that was up before stays up; one that was started here ends with the session."""
    running = Cluster()
    was_up = running.is_up()
    try:
        running.up(images=[recipes.object_store(running.paths), recipes.training()])
        yield running
    finally:
        if not was_up:
            running.down()
            assert running.remains() == []


@pytest.fixture(scope="session")
def release(cluster: Cluster) -> Release:
    """The chart, with the programs that are built now, installed and ready."""
    for name in recipes.COMPONENTS:
        cluster.load(recipes.component(name, cluster.images, cluster.paths))
    installed = Release(cluster)
    installed.uninstall()  # of a session before: its pods run the programs of then
    installed.install()
    return installed


@pytest.fixture
def installed(release: Release) -> Release:
    """As `release`, also after a case that has taken it away or changed its values."""
    release.restore()
    return release


@pytest.fixture
def installed_somehow(release: Release) -> Release:
    """Ready, with the values that a case before has left: for one that takes it away."""
    if not release.is_installed():
        release.install()
    release.wait_ready()
    return release


@pytest.fixture(scope="session")
def samples() -> Samples:
    return Samples()


@pytest.fixture(scope="session")
def store(cluster: Cluster) -> Store:
    running = Store(cluster)
    running.start()
    return running


@pytest.fixture
def workspace(
    request: pytest.FixtureRequest, cluster: Cluster, store: Store, samples: Samples
) -> Iterator[Workspace]:
    """A namespace that enforces PodSecurity `restricted`; it goes with the case."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    name = words[:NAME_LENGTH].strip("-")
    space = Workspace(cluster, name, store, samples)
    space.delete()  # what a session that was cut off has left
    space.create()
    yield space
    space.delete(wait=False)  # the next case has another


@pytest.fixture
def shell(cluster: Cluster, tmp_path: Path) -> dict[str, str]:
    """An environment in which `kubectl` is the cluster's."""
    kubectl = tmp_path / "kubectl"
    words = " ".join(shlex.quote(str(word)) for word in cluster.tool("kubectl", []))
    kubectl.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    kubectl.chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}"}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Of a case that failed: what was in the cluster then, as files that the report names."""
    outcome: Any = yield
    report = outcome.get_result()
    running = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(running, Cluster):
        folder = running.paths.log / "cases" / item.name
        report.sections.append(("cluster", f"what was there: {folder}"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "failure.txt").write_text(report.longreprtext)  # to be read while others run
        _keep_story(running, folder)


def _keep_story(cluster: Cluster, folder: Path) -> None:
    questions = {
        "objects.txt": ("get", "all,datasets,cacheplans,events", "--all-namespaces", "--output=wide"),
        "pods.txt": ("describe", "pods", "--all-namespaces"),
        "datasets.yaml": ("get", "datasets,cacheplans", "--all-namespaces", "--output=yaml"),
    }
    for name, words in questions.items():
        (folder / name).write_text(cluster.kubectl(*words, check=False).stdout)
    release = Release(cluster)
    for component in ("operator", "node"):
        (folder / f"{component}.log").write_text(release.logs(component))
    (folder / "time.txt").write_text(time.strftime("%Y-%m-%dT%H:%M:%SZ\n", time.gmtime()))
