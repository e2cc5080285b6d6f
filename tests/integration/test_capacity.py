"""Two datasets of one machine that has no room for both: who gets its memory, and who gives it up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness.cluster import transit_reserve
from harness.processes import stop, wait_until

FILES, SIZE = 500, 8192
WHOLE = FILES * SIZE
ROOM = WHOLE * 5 // 4
SECONDS = 180.0
PAUSES = {"fast": 0.02, "slow": 0.4}

DATASET = """\
---
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {{name: {name}}}
spec: {{source: {{file: {{path: {path}}}}}, cache: {{capacity: 100%}}}}
"""
PLAN = """\
---
apiVersion: optcache.io/v1alpha1
kind: CachePlan
metadata: {{name: {name}}}
spec: {{dataset: {name}, retention: {retention}}}
"""
TRAIN = """\
import sys, time
import optcache
from optcache.torch import attach
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

data = optcache.Dataset("default/" + sys.argv[1])
sampler = DistributedSampler(data, num_replicas=1, rank=0)
loader = DataLoader(data, batch_size=10, sampler=sampler, collate_fn=list)
attach(loader)
for epoch in range(1000):
    sampler.set_epoch(epoch)
    for batch in loader:
        time.sleep(float(sys.argv[2]))
"""


class Machine:
    """`optcache up` over two datasets, and jobs that read one each."""

    def __init__(self, programs: Path, folder: Path, plans: str = "") -> None:
        self._optcache = programs / "optcache"
        self._folder = folder
        for name in PAUSES:
            (folder / name).mkdir()
            for index in range(FILES):
                (folder / name / f"{index:04}.bin").write_bytes(bytes([index % 256]) * SIZE)
        configuration = folder / "datasets.yaml"
        datasets = [DATASET.format(name=name, path=folder / name) for name in PAUSES]
        configuration.write_text("".join(datasets) + plans)
        self._running: list[subprocess.Popen[bytes]] = []
        up = (self._optcache, "up", "-f", configuration, "--memory", str(ROOM), "--port", "0")
        flags = ("--state", folder / "state", "--socket-dir", folder)
        with (folder / "up.log").open("w") as log:
            self._start([*up, *flags], stdout=log, stderr=log)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            stop(process)

    def _start(self, words: list[Any], **more: Any) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "OPTCACHE_SOCKET": str(self._folder / "machine-0.sock")}
        self._running.append(subprocess.Popen(words, env=environment, start_new_session=True, **more))
        return self._running[-1]

    def train(self, name: str, pause: float) -> subprocess.Popen[bytes]:
        return self._start([sys.executable, "-c", TRAIN, name, str(pause)])

    def end(self, job: subprocess.Popen[bytes]) -> None:
        self._running.remove(job)
        stop(job)

    def status(self) -> dict[str, Any]:
        words = (self._optcache, "status", "--state", self._folder / "state", "--output", "json")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        status: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        return status

    def datasets(self) -> dict[str, Any]:
        found = self.status().get("datasets", [])
        return {item["name"].removeprefix("default/"): item for item in found}

    def have(self, fast: int, slow: int) -> bool:
        found = self.datasets()
        return len(found) == 2 and all(
            abs(found[name]["capacity"] - bytes_) <= 1
            for name, bytes_ in {"fast": fast, "slow": slow}.items()
        )

    def held(self) -> dict[str, int]:
        """Bytes of each, as the node said last."""
        return {
            name: sum(share["used"] for share in item["nodes"])
            for name, item in self.datasets().items()
        }


@pytest.mark.long
def test_memory_goes_to_what_is_read_faster(programs: Path, tmp_path: Path) -> None:
    with Machine(programs, tmp_path) as machine:
        half = ROOM // 2
        wait_until(lambda: machine.have(half, half), "each has half while nobody reads", SECONDS)
        for name, pause in PAUSES.items():
            machine.train(name, pause)
        fast_has_all = "the fast one has all that it wants"
        wait_until(lambda: machine.have(WHOLE, ROOM - WHOLE), fast_has_all, SECONDS)
        notes = machine.datasets()["slow"]["notes"]
        assert "the next byte is worth more to default/fast" in notes[0]


@pytest.mark.long
@pytest.mark.parametrize("retention", ["Optimal", "Pin", "LRU"])
def test_what_nobody_reads_any_more_gives_way(
    programs: Path, tmp_path: Path, retention: str
) -> None:
    plans = "".join(PLAN.format(name=name, retention=retention) for name in PAUSES)
    with Machine(programs, tmp_path, plans) as machine:
        first = machine.train("slow", PAUSES["fast"])
        wait_until(lambda: machine.held().get("slow") == WHOLE, "the first job fills it", SECONDS)
        machine.end(first)
        machine.train("fast", PAUSES["fast"])
        most = 0

        def has_its_share() -> bool:
            nonlocal most
            held = machine.held()
            most = max(most, sum(held.values()))
            return held["fast"] >= ROOM // 2 * 9 // 10 and sum(held.values()) <= ROOM

        wait_until(has_its_share, "the second job has the memory that it is due", SECONDS)
        assert most <= ROOM + len(PAUSES) * transit_reserve(ROOM, WHOLE, FILES)
