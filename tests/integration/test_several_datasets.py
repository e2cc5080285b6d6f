"""A loader over two datasets of one sidecar: what the real parts make of it."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness.cluster import START_SECONDS, Metrics, listens, parse_metrics
from harness.dataset import Dataset, generate
from harness.processes import stop, wait_until
from harness.store import LISTING, Store
from torch.utils.data import ConcatDataset, DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

BATCH = 8
RANKS = 2
EPOCHS = 4
SHARE = 0.3
SAMPLES = {"images": 900, "more": 500}

DATASET = """\
---
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {{name: {name}}}
spec:
  source: {{http: {{baseURL: "{url}", listing: {listing}}}}}
  cache: {{capacity: "{capacity}"}}
"""


class Machine:
    """A store for each dataset, and `optcache up` over both, with room for a share of each."""

    def __init__(self, programs: Path, folder: Path, running: ExitStack) -> None:
        self._optcache = programs / "optcache"
        self._state = folder / "state"
        self.socket = folder / "machine-0.sock"
        self.datasets: dict[str, Dataset] = {}
        self.stores: dict[str, Store] = {}
        configuration = folder / "datasets.yaml"
        text = ""
        for seed, (name, count) in enumerate(SAMPLES.items()):
            data = self.datasets[name] = generate(folder / name, count, seed)
            (folder / f"store-{name}").mkdir()
            store = running.enter_context(Store(data.root, folder / f"store-{name}"))
            data.write_listing(store.listing_file)
            self.stores[name] = store
            capacity = int(data.total_bytes * SHARE)
            text += DATASET.format(
                name=name, url=store.base_url, listing=LISTING, capacity=capacity
            )
        configuration.write_text(text)
        words = ["up", "-f", configuration, "--port", "0", "--arena", str(8 << 20)]
        words += ["--state", self._state, "--socket-dir", folder]
        with (folder / "up.log").open("w") as log:
            up = subprocess.Popen(
                [self._optcache, *words], stdout=log, stderr=log, start_new_session=True
            )
        running.callback(stop, up)
        wait_until(lambda: listens(self.socket), "the sidecar listens", START_SECONDS)
        self.samples = [
            optcache.Dataset(f"default/{name}", socket=str(self.socket)) for name in SAMPLES
        ]
        self._begun = {name: store.log_size() for name, store in self.stores.items()}

    def status(self) -> dict[str, Any]:
        command = [self._optcache, "status", "--state", self._state, "--output", "json"]
        done = subprocess.run(command, capture_output=True, check=True)
        status: dict[str, Any] = json.loads(done.stdout)
        return status

    def sidecar_metrics(self) -> Metrics:
        (sidecar,) = self.status()["sidecars"]
        with urllib.request.urlopen(sidecar["metrics"], timeout=120) as page:
            return parse_metrics(page.read().decode())

    def wait_for_the_plans(self, epoch: int) -> None:
        """Until the node has planned this epoch of both: a plan that comes later finds samples already
        dropped.
        """

        def planned() -> bool:
            log = (self._state / "logs" / "node-0.log").read_text(errors="replace")
            newest = dict.fromkeys(SAMPLES, -1)
            for line in log.splitlines():
                found = re.search(r"pass planned.*dataset=default/(\w+).*plan=\S* ?\S+ (\d+)", line)
                if found:
                    newest[found[1]] = max(newest[found[1]], int(found[2]))
            return min(newest.values()) >= epoch

        wait_until(planned, f"epoch {epoch} of both is planned")

    def taken(self, name: str) -> float:
        """Bytes that its store was asked for, beside the least that any cache of its size must read."""
        whole = self.datasets[name].total_bytes
        least = (1 + (EPOCHS - 1) * (1 - SHARE)) * whole
        taken = self.stores[name].read_bytes(self._begun[name])
        print(f"{name}: {taken} bytes of the store; the bound is {least:.0f}: {taken / least:.3f}")
        return taken / least


@pytest.fixture
def machine(programs: Path, tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as running:
        yield Machine(programs, tmp_path, running)


def test_both_are_planned(machine: Machine) -> None:
    """Two ranks, in turn. All reads were predicted, and no sample is a wrong one."""
    both: ConcatDataset[Any] = ConcatDataset(machine.samples)
    contents = [
        data.read(index)
        for data in machine.datasets.values()
        for index in range(len(data.paths))
    ]
    samplers: list[DistributedSampler[Any]] = [
        DistributedSampler(both, num_replicas=RANKS, rank=rank, seed=3) for rank in range(RANKS)
    ]
    loaders = [
        attach(DataLoader(both, BATCH, sampler=sampler, collate_fn=list), epochs=EPOCHS)
        for sampler in samplers
    ]
    for epoch in range(EPOCHS):
        for sampler in samplers:
            sampler.set_epoch(epoch)
        read: list[list[bytes]] = [[], []]
        for number, batches in enumerate(zip(*loaders, strict=True)):
            for ids, batch in zip(read, batches, strict=True):
                ids += map(bytes, batch)
            if number == 0:
                machine.wait_for_the_plans(epoch)
        assert read == [[contents[index] for index in sampler] for sampler in samplers]
    counts = loaders[0].optcache.stats()
    assert counts is not None and counts.samples == EPOCHS * len(both)
    metrics = machine.sidecar_metrics()
    assert metrics["optcache_unpredicted_reads_total"] == 0
    assert metrics["optcache_unknown_orders_total"] == 0
    assert metrics["optcache_passes_total"] == len(SAMPLES) * RANKS * EPOCHS
    for name in SAMPLES:
        assert machine.taken(name) <= 1.05
