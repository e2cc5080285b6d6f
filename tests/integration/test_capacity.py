"""Two datasets of one machine that has no room for both: memory goes to the one that is read faster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.processes import stop, wait_until

FILES, SIZE = 500, 8192
WHOLE = FILES * SIZE
ROOM = WHOLE * 5 // 4
SECONDS = 60.0
PAUSES = {"fast": 0.02, "slow": 0.4}

DATASET = """\
---
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {{name: {name}}}
spec: {{source: {{file: {{path: {path}}}}}, cache: {{capacity: 100%}}}}
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


def test_memory_goes_to_what_is_read_faster(programs: Path, tmp_path: Path) -> None:
    for name in PAUSES:
        (tmp_path / name).mkdir()
        for index in range(FILES):
            (tmp_path / name / f"{index:04}.bin").write_bytes(bytes([index % 256]) * SIZE)
    configuration = tmp_path / "datasets.yaml"
    configuration.write_text("".join(DATASET.format(name=name, path=tmp_path / name) for name in PAUSES))
    optcache, state = programs / "optcache", tmp_path / "state"

    def seen() -> dict[str, Any]:
        words = (optcache, "status", "--state", state, "--output", "json")
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        found = json.loads(done.stdout)["datasets"] if done.returncode == 0 else []
        return {item["name"].removeprefix("default/"): item for item in found}

    def have(fast: int, slow: int) -> bool:
        found = seen()
        return len(found) == 2 and all(
            abs(found[name]["capacity"] - bytes_) <= 1
            for name, bytes_ in {"fast": fast, "slow": slow}.items()
        )

    up = (optcache, "up", "-f", configuration, "--memory", str(ROOM), "--port", "0")
    environment = {**os.environ, "OPTCACHE_SOCKET": str(tmp_path / "machine-0.sock")}
    running: list[subprocess.Popen[bytes]] = []
    try:
        with (tmp_path / "up.log").open("w") as log:
            flags = ("--state", state, "--socket-dir", tmp_path)
            running.append(subprocess.Popen([*up, *flags], stdout=log, stderr=log, start_new_session=True))
        wait_until(lambda: have(ROOM // 2, ROOM // 2), "each has half while nobody reads", SECONDS)
        for name, pause in PAUSES.items():
            words = [sys.executable, "-c", TRAIN, name, str(pause)]
            running.append(subprocess.Popen(words, env=environment, start_new_session=True))
        wait_until(lambda: have(WHOLE, ROOM - WHOLE), "the fast one has all that it wants", SECONDS)
        assert "the next byte is worth more to default/fast" in seen()["slow"]["notes"][0]
    finally:
        for process in reversed(running):
            stop(process)
