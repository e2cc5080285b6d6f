"""docs/user/quickstart.md, and what several-jobs.md builds on it, word for word, but for the name of the
training image. Its block of language bash, which makes a cluster, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import recipes
from cluster.cluster import Cluster
from cluster.host import run
from cluster.release import Release
from cluster.settings import REPOSITORY
from cluster.workspace import Store

PAGE = REPOSITORY / "docs" / "user" / "quickstart.md"
SEVERAL_JOBS = REPOSITORY / "docs" / "user" / "several-jobs.md"
SPACE = "quickstart"
READS = 2000
SECONDS = 800


@pytest.fixture
def gone_afterwards(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "namespace", SPACE, "--ignore-not-found")


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def counted(blocks: list[str], shell: dict[str, str]) -> int:
    """Runs them as one script, which prints one number."""
    script, count = re.subn(r"TRAINING_IMAGE=\S+", f"TRAINING_IMAGE={recipes.TRAINING}", "\n".join(blocks))
    assert count == 1
    done = run(["bash", "-euo", "pipefail", "-c", script], environment=shell, seconds=SECONDS)
    numbers = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    assert len(numbers) == 1, done.stdout
    return numbers[0]


def test_the_page_does_what_it_says(
    installed: Release, store: Store, shell: dict[str, str], gone_afterwards: None
) -> None:
    blocks = blocks_of(PAGE)
    assert len(blocks) >= 5
    # Half of it fits: the first epoch reads all, the others the other half each, and a little more: an
    # epoch takes ten seconds, and the plan comes in the second or third of them.
    assert counted(blocks, shell) <= 1.1 * (READS + 2 * READS / 2)


def test_two_jobs_share(
    installed: Release, store: Store, shell: dict[str, str], gone_afterwards: None
) -> None:
    where, what, *_ = blocks_of(PAGE)
    _, jobs = blocks_of(SEVERAL_JOBS)
    count = f"kubectl logs --namespace {SPACE} store | grep -c '\"GET /class'"
    # Six passes. Whoever keeps one half for ever reads the other six times.
    assert counted([where, what, jobs, count], shell) <= 0.9 * (READS + 5 * READS / 2)
