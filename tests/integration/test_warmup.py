"""Nodes filled before a job reads: `optcache warmup` against `optcache up`, docs/user/warmup.md."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.checks import Records
from harness.cluster import DATASET, Cluster
from harness.dataset import Dataset
from harness.processes import stop, wait_until
from harness.store import LISTING, Store

SHARE = 0.5  # of the dataset that the nodes hold
HEDGES = 0.03  # of the requests: a second one for what is late
SECONDS = 180.0


@pytest.fixture
def command(programs: Path, manifests: Path) -> list[Any]:
    return [programs / "optcache", "warmup", DATASET, "--state", manifests, "--output", "json"]


def warm(command: list[Any], *more: str) -> dict[str, Any]:
    done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def reads(store: Store, begin: int) -> Counter[str]:
    """How often each sample was asked for since the log ended there."""
    paths = (line.split(" ", 4)[4] for line in store.access_log(begin).splitlines())
    return Counter(path for path in paths if not path.endswith(LISTING))


def cached(cluster: Cluster) -> int:
    return sum(int(member["used"]) for member in cluster.status()["members"])


@pytest.mark.parametrize("retention", ["Optimal", "Pin"])
def test_a_first_epoch_reads_from_the_store_only_what_there_is_no_room_for(
    start_cache: Callable[..., Cluster],
    run_job: Callable[..., Records],
    store: Store,
    dataset: Dataset,
    command: list[Any],
    retention: str,
) -> None:
    # Little is staged ahead, and nothing of a second epoch, so that reads of the store are the first's.
    cluster = start_cache(machines=2, share=SHARE, arena=512 << 10, retention=retention)
    begin = store.log_size()
    result = warm(command)
    seen = reads(store, begin)
    assert result["failed"] == 0 and result["progress"] == "100%"
    assert result["read"] == result["samples"]
    # What a node would have kept when it was asked may be the first for which it has no room.
    assert result["read"] <= len(seen) <= result["read"] + result["noRoom"]
    assert sum(seen.values()) <= (1 + HEDGES) * len(seen), "each sample is read once"
    room = dataset.total_bytes * SHARE
    # What is chosen is short by a small sample for each node. Under Pin a sample's home is chance,
    # and may be full where the other node has room.
    assert (0.99 if retention == "Optimal" else 0.85) * room <= result["bytes"] <= room
    if retention == "Optimal":
        assert result["noRoom"] == 0, result
    enough = result["bytes"] - 2 * max(dataset.sizes)
    wait_until(lambda: cached(cluster) >= enough, "nodes report it")

    begin = store.log_size()
    run_job([cluster.socket(0), cluster.socket(1)], epochs=1, passes=1)
    share = store.read_bytes(begin) / dataset.total_bytes
    print(f"{retention}: {share:.3f} of the bytes read in the first epoch")
    assert share <= 1 - enough / dataset.total_bytes + 0.02


def test_one_that_was_killed_goes_on_where_it_was(
    start_cache: Callable[..., Cluster], store: Store, dataset: Dataset, command: list[Any]
) -> None:
    cluster = start_cache(machines=2, share=1.0)
    begin = store.log_size()
    slowly = str(dataset.total_bytes // 10)
    running = subprocess.Popen(
        [*command, "--bandwidth", slowly], stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        quarter = len(dataset.paths) // 4
        wait_until(lambda: len(reads(store, begin)) > quarter, "a quarter is read", SECONDS)
        running.kill()
        running.wait()
    finally:
        stop(running)
    before = len(reads(store, begin))
    assert before < len(dataset.paths), "it was not done"
    wait_until(lambda: cached(cluster) > 0, "nodes report it")
    result = warm(command)
    assert result["held"] + result["read"] + result["noRoom"] == result["totalSamples"]
    assert result["bytes"] >= dataset.total_bytes - 2 * max(dataset.sizes)
    assert 0 < result["held"] <= before
    # What was on its way when it was killed, a second's worth, is read again.
    assert result["read"] <= len(dataset.paths) - before + len(dataset.paths) // 5
    seen = reads(store, begin)
    assert len(seen) >= result["held"] + result["read"]
    again = warm(command)
    assert again["read"] <= result["noRoom"] and again["held"] >= result["held"] + result["read"]


def test_it_keeps_to_its_bandwidth(
    start_cache: Callable[..., Cluster], dataset: Dataset, command: list[Any]
) -> None:
    start_cache(machines=2, share=1.0)
    result = warm(command, "--bandwidth", str(dataset.total_bytes // 4))
    assert result["read"] + result["noRoom"] == result["totalSamples"]
    assert result["bytes"] >= dataset.total_bytes - 2 * max(dataset.sizes)
    # Four seconds' worth, but for what the limit lets through at the beginning.
    assert result["seconds"] >= 2.0


def test_what_cannot_be_warmed_is_said(
    start_cache: Callable[..., Cluster], command: list[Any], tmp_path: Path, programs: Path
) -> None:
    start_cache(machines=1, share=0.5, retention="None")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "keeps anything of default/images" in done.stderr
    unknown = [word if word != DATASET else "mages" for word in command]
    done = subprocess.run(unknown, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "optcache: there is no dataset mages; there are: default/images\n"
    nowhere: list[Any] = [programs / "optcache", "warmup", DATASET, "--state", tmp_path]
    done = subprocess.run(nowhere, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "`optcache up` does not run in" in done.stderr
