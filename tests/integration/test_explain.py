"""`optcache explain` beside a real `optcache up`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness import commands
from harness.cluster import DATASET, Cluster
from harness.dataset import Dataset
from harness.processes import wait_until

pytest.importorskip("torch")

from optcache.torch import attach  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

STREAM = f"stream default/local/{DATASET}/watch"
Findings = dict[str, dict[str, str]]


def ask(programs: Path, state: Path, *words: str) -> commands.Ended:
    return commands.run([programs / "optcache", "explain", *words, "--state", state], state)


def explain(programs: Path, state: Path, *words: str) -> tuple[dict[str, Any], Findings]:
    """What it tells, and its findings by what they are about."""
    ended = ask(programs, state, *words, "--output", "json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    return told, {each["about"]: each for each in told["findings"]}


def test_a_dataset_and_its_job(
    programs: Path, start_cache: Callable[..., Cluster], manifests: Path, dataset: Dataset
) -> None:
    cluster = start_cache(share=0.5)
    told, findings = explain(programs, manifests, "dataset", DATASET)
    assert told["name"] == f"default/{DATASET}"
    assert findings["index"]["what"].startswith(f"{len(dataset.paths)} samples, ")
    assert findings["streams"]["what"] == "no job reads it now"
    assert findings["hit ratio"]["what"] == "nothing was read yet"

    loader = attach(
        DataLoader(optcache.Dataset(socket=str(cluster.socket(0))), batch_size=8, collate_fn=list),
        name="watch",
    )
    assert sum(len(batch) for batch in loader) == len(dataset.paths)

    def is_told() -> bool:
        nonlocal findings
        _, findings = explain(programs, manifests, "dataset", DATASET)
        return STREAM in findings

    wait_until(is_told, "the coordinator has been told of the stream")
    assert "1 of 1 ranks, in pass " in findings[STREAM]["what"]
    assert findings[STREAM]["severity"] == "ok", findings[STREAM]

    told, findings = explain(programs, manifests, "job", "local")
    assert told["verdict"].startswith("Job local: 0 faults, "), told
    counts = re.findall(r"(\d+) from", findings["samples"]["what"])
    assert sum(map(int, counts)) == len(dataset.paths)
    assert "no rank read or waited" in findings["limit"]["what"], "it reads nothing now"
    text = ask(programs, manifests, "job", f"default/local/{DATASET}/watch").out
    assert f"\nok       {STREAM}: 1 of 1 ranks" in text


def test_what_is_not_there_names_what_is(
    programs: Path, start_cache: Callable[..., Cluster], manifests: Path
) -> None:
    start_cache()
    ended = ask(programs, manifests, "dataset", "photos")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"optcache: there is no dataset photos; there are: default/{DATASET}\n"
    ended = ask(programs, manifests, "job", "train")
    assert ended.code == 1
    assert ended.err == "optcache: there is no stream of a job train; no job is attached now\n"


def test_a_killed_sidecar_is_a_fault_of_the_job(
    programs: Path, start_cache: Callable[..., Cluster], manifests: Path
) -> None:
    cluster = start_cache(machines=2)
    loader = attach(
        DataLoader(optcache.Dataset(socket=str(cluster.socket(0))), batch_size=8, collate_fn=list),
        name="watch",
    )
    next(iter(loader))
    wait_until(
        lambda: ask(programs, manifests, "job", "local").code == 0,
        "the coordinator has been told of the stream",
    )
    findings: Findings = {}

    def found_dead() -> bool:
        """`optcache up` starts it again, but waits longer each time."""
        nonlocal findings
        cluster.kill("sidecar-1")
        _, findings = explain(programs, manifests, "job", "local")
        return "sidecars" in findings

    wait_until(found_dead, "explain looks while the sidecar is dead")
    assert findings["sidecars"] == {
        "severity": "fault",
        "about": "sidecars",
        "what": "1 of 2 do not answer",
        "do": "Run: optcache doctor",
    }
