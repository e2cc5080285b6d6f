"""What cases start: the cluster with the chart in it, a store, a namespace of their own."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from cluster import host, programs, recipes, story
from cluster.cluster import Cluster
from cluster.deadline import case_deadline
from cluster.plan_watch import PlanWatch
from cluster.release import Release
from cluster.rollout_jobs import PREFIXES
from cluster.settings import SMOKE, Paths
from cluster.workspace import FewSamples, Samples, Store, Workspace

DEADLINE_SECONDS = 600 if SMOKE else 1800
LONG_DEADLINE_SECONDS = 3600
# Ring 2, in this order: what is quick first, what takes the chart away last.
SMOKE_CASES = (
    "test_cli.py::test_status_and_explain",
    "test_training.py::test_a_plan_of_the_user_takes_the_place_of_the_default",
    "test_training.py::test_an_unlabelled_pod_is_left_alone",
    "test_sources.py::test_a_claim",
    "test_trust.py::test_the_wire_asks_for_a_token_or_a_certificate",
    "test_trust.py::test_control_is_for_nodes",
    "test_training.py::test_a_job_reads_through_the_cache",
    "test_rollout.py::test_a_patch_ends_complete",
    "test_training.py::test_an_uninstall_leaves_training_alone",
    "test_zz_rights.py::test_nothing_was_refused",
)
NAME_LENGTH = 40  # of a namespace; 63 are allowed, and others' names begin with it


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Ring 2 where it is asked for; on a machine that cannot carry a cluster, one clear line."""
    if SMOKE:
        by_name = {f"{item.path.name}::{item.name}": item for item in items}
        chosen = [by_name[name] for name in SMOKE_CASES]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    if lacks := host.missing() + programs.missing(Paths.default()):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"no cluster on this machine: {'; '.join(lacks)}"))


@pytest.fixture(scope="session")
def long() -> bool:
    """Whether cases may take many minutes."""
    return os.environ.get("OPTCACHE_LONG") == "1"


@pytest.fixture(autouse=True)
def deadline(long: bool) -> Iterator[None]:
    """A case that hangs fails."""
    with case_deadline(LONG_DEADLINE_SECONDS if long else DEADLINE_SECONDS):
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster that was up before stays up; one that was started here ends with the session."""
    running = Cluster()
    was_up = running.is_up()
    try:
        running.up(images=recipes.of_all_cases(running.paths))
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
def small(workspace: Workspace, samples: Samples) -> Workspace:
    """With few samples, for cases in which epochs are to take seconds."""
    workspace.samples = FewSamples(samples, prefixes=PREFIXES)
    return workspace


@pytest.fixture
def watch(workspace: Workspace, tmp_path: Path) -> Iterator[Callable[[str], PlanWatch]]:
    """watch("json"): what `kubectl get cacheplan images -w -o json` prints, until the case ends; "": without -o."""
    with ExitStack() as running:

        def start(output: str) -> PlanWatch:
            file = tmp_path / f"watch-{len(list(tmp_path.glob('watch-*')))}"
            return running.enter_context(PlanWatch(workspace, "images", output, file))

        yield start


@pytest.fixture
def shell(cluster: Cluster, tmp_path: Path) -> dict[str, str]:
    """An environment in which `kubectl` is the cluster's."""
    kubectl = tmp_path / "kubectl"
    words = " ".join(shlex.quote(str(word)) for word in cluster.tool("kubectl", []))
    kubectl.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    kubectl.chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}  # its cache is there


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
        story.keep(running, folder)
        report.sections += story.ends(folder)
