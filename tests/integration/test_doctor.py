"""`optcache doctor` beside a real `optcache up`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness import commands
from harness.cluster import Cluster
from harness.processes import wait_until

Findings = dict[str, dict[str, str]]
SOCKET = "sidecar's socket"


def diagnose(programs: Path, state: Path, socket: Path) -> tuple[int, Findings]:
    """The exit status, and the findings by what they are about."""
    words = ["doctor", "--state", state, "--socket", socket, "--output", "json"]
    ended = commands.run([programs / "optcache", *words], state)
    return ended.code, {each["about"]: each for each in json.loads(ended.out)["findings"]}


def test_a_healthy_cache_has_no_fault(
    programs: Path, start_cache: Callable[..., Cluster], manifests: Path
) -> None:
    cluster = start_cache(machines=2)
    socket = cluster.socket(1)
    code, findings = diagnose(programs, manifests, socket)
    assert code == 0, findings
    assert findings[SOCKET]["what"] == f"{socket}: a sidecar answers"
    assert "running cache" not in findings, "it has no fault of its own"
    assert findings["limit"]["what"] == (
        "no loader is attached now: what limits other readers is not known"
    )
    for kind in ("node", "sidecar"):
        for machine in (0, 1):
            url = cluster.metrics_url(f"{kind}-{machine}")
            assert findings[f"{kind}-{machine}"]["what"] == f"{url} answers"


def test_a_killed_sidecar_is_a_fault_with_what_to_do(
    programs: Path, start_cache: Callable[..., Cluster], manifests: Path
) -> None:
    cluster = start_cache()
    socket, url = cluster.socket(0), cluster.metrics_url("sidecar-0")
    code, findings = 0, Findings()

    def found_dead() -> bool:
        """`optcache up` starts it again, but waits longer each time."""
        nonlocal code, findings
        cluster.kill("sidecar-0")
        code, findings = diagnose(programs, manifests, socket)
        page = findings["sidecar-0"]
        return "no process listens" in findings[SOCKET]["what"] and page["severity"] == "fault"

    wait_until(found_dead, "the doctor looks while the sidecar is dead")
    assert code == 1
    assert findings[SOCKET] == {
        "severity": "fault",
        "about": SOCKET,
        "what": f"{socket}: no process listens there",
        "do": "The sidecar has ended. Start `optcache up` again; its log is in the folder logs of the "
        "state folder.",
    }
    page = findings["sidecar-0"]
    assert page["what"].startswith(f"{url} does not answer: ")
    assert page["do"] == (
        "Look at its log in the folder logs of the state folder. `optcache up` starts a part that has "
        "ended again."
    )
    assert findings["node-0"]["severity"] == "ok", "it goes on"


def decode_slowly(samples: list[Any]) -> int:
    """Has its samples in use for long, as a worker that decodes them."""
    time.sleep(1)
    return len(samples)


def test_workers_that_always_work_are_what_limits_training(
    programs: Path, start_cache: Callable[..., Cluster], manifests: Path
) -> None:
    pytest.importorskip("torch")
    from optcache.torch import attach
    from torch.utils.data import DataLoader

    cluster = start_cache(share=1.0)
    socket = cluster.socket(0)
    # Nothing takes the batches, and there is room for more than the workers make meanwhile.
    loader = attach(
        DataLoader(
            optcache.Dataset(socket=str(socket)),
            batch_size=4,
            num_workers=2,
            prefetch_factor=150,
            collate_fn=decode_slowly,
        ),
        name="train",
    )
    batches = iter(loader)
    assert next(batches) == 4
    code, findings = diagnose(programs, manifests, socket)
    assert code == 0, findings
    assert "; workers of loaders worked on samples for " in findings["limit"]["what"]
    assert findings["limit"]["severity"] == "warning"
    assert "num_workers" in findings["limit"]["do"]
