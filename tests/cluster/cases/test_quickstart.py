"""docs/user/quickstart.md, word for word, but for the name of the training image."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from cluster import recipes
from cluster.cluster import Cluster
from cluster.host import run
from cluster.release import Release
from cluster.settings import REPOSITORY
from cluster.workspace import Store

PAGE = REPOSITORY / "docs" / "user" / "quickstart.md"
SPACE = "quickstart"
READS = 2000
SECONDS = 800


@pytest.fixture
def gone_afterwards(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "namespace", SPACE, "--ignore-not-found")


def test_the_page_does_what_it_says(
    installed: Release, store: Store, shell: dict[str, str], gone_afterwards: None
) -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    script, count = re.subn(r"TRAINING_IMAGE=\S+", f"TRAINING_IMAGE={recipes.TRAINING}", "\n".join(blocks))
    assert count == 1
    done = run(["bash", "-euo", "pipefail", "-c", script], environment=shell, seconds=SECONDS)
    counted = [int(line) for line in done.stdout.splitlines() if line.isdigit()]
    # Half of it fits: the first epoch reads all, the others the other half each, and a little more: an
    # epoch takes ten seconds, and the plan comes in the second or third of them.
    assert len(counted) == 1 and counted[0] <= 1.1 * (READS + 2 * READS / 2), done.stdout
