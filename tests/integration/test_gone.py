"""A sidecar that is killed for good, or frozen: training reads its source, and comes back."""

from __future__ import annotations

import pickle
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache import _endpoint
from optcache.torch import ImageFolder, attach

BATCH = 8
FAULT_AT = 20  # batches


class Rank:
    """Reads epochs, all samples once each and with the right bytes."""

    def __init__(self, samples: CheckedSamples) -> None:
        self.samples = samples.samples
        self.sampler: DistributedSampler[Any] = DistributedSampler(
            samples, num_replicas=1, rank=0
        )
        self.loader = attach(
            DataLoader(samples, batch_size=BATCH, sampler=self.sampler), dataset=samples.samples
        )
        self.epoch = 0

    def read(self, fault: Callable[[], None] = lambda: None) -> None:
        """One epoch; `fault` comes in its middle."""
        self.sampler.set_epoch(self.epoch)
        ids: list[int] = []
        longest, last = 0.0, time.monotonic()
        for number, (batch, right, _) in enumerate(self.loader):
            longest = max(longest, time.monotonic() - last)
            assert right.all(), f"wrong bytes among {batch.tolist()}"
            ids += batch.tolist()
            if number == FAULT_AT:
                fault()
            last = time.monotonic()
        assert ids == list(self.sampler)
        print(f"epoch {self.epoch}: the longest wait for a batch was {longest:.2f} s")
        self.epoch += 1


def fallbacks() -> int:
    return optcache.stats().fallbacks


def test_killed_for_good(
    start_cache: Callable[..., Cluster], open_samples: Callable[..., CheckedSamples], long: bool
) -> None:
    """The source is a web server."""
    cluster = start_cache(machines=1)
    rank = Rank(open_samples(cluster.socket(0)))
    before = fallbacks()
    rank.read(lambda: cluster.kill_for_good("sidecar-0"))
    samples = len(rank.samples)
    assert fallbacks() - before == samples - (FAULT_AT + 1) * BATCH
    if not long:
        return
    rank.read()
    cluster.restart_coordinator()
    wait_until(lambda: not rank.samples.endpoint.away, "the sidecar is back")
    before = fallbacks()
    rank.read()
    assert fallbacks() == before
    assert cluster.metrics_of("sidecar-0")["optcache_client_samples_total"] >= samples


def test_a_sidecar_that_ends_in_order(
    start_cache: Callable[..., Cluster], open_samples: Callable[..., CheckedSamples]
) -> None:
    """It takes its list along, since the next one may serve something else. Who has read it goes on."""
    cluster = start_cache(machines=1)
    listed = Path(f"{cluster.socket(0)}.sources")
    samples = open_samples(cluster.socket(0))
    assert listed.exists()
    before = fallbacks()
    cluster.kill_for_good("sidecar-0", signal.SIGTERM)
    assert not listed.exists()
    assert samples[7][1]
    copy = pickle.loads(pickle.dumps(samples))
    assert copy[8][1] and copy.samples.manifest is not samples.samples.manifest
    assert fallbacks() == before + 2


@pytest.mark.long
def test_frozen(
    start_cache: Callable[..., Cluster], open_samples: Callable[..., CheckedSamples]
) -> None:
    cluster = start_cache(machines=1)
    rank = Rank(open_samples(cluster.socket(0)))
    rank.read()
    before = fallbacks()
    rank.read(lambda: cluster.kill("sidecar-0", signal.SIGSTOP))
    rank.read()
    assert fallbacks() - before == 2 * len(rank.samples) - (FAULT_AT + 1) * BATCH
    cluster.kill("sidecar-0", signal.SIGCONT)
    wait_until(lambda: not rank.samples.endpoint.away, "the sidecar answers again")
    before = fallbacks()
    rank.read()
    assert fallbacks() == before


def test_another_node_is_frozen(
    start_cache: Callable[..., Cluster], open_samples: Callable[..., CheckedSamples]
) -> None:
    """Its connections stay. It holds half of what is kept; no read waits for it once it is silent."""
    cluster = start_cache(machines=2, share=0.6)
    rank = Rank(open_samples(cluster.socket(0)))
    rank.read()
    rank.read()

    def node(name: str) -> float:
        return cluster.metrics_of("node-0")[name]

    assert node("optcache_peer_silences_total") == 0
    rank.read(lambda: cluster.kill("node-1", signal.SIGSTOP))
    wait_until(lambda: node("optcache_peer_silences_total") >= 1, "node-1 is found silent")
    rank.read()
    cluster.kill("node-1", signal.SIGCONT)
    wait_until(lambda: node("optcache_silent_peers") == 0, "node-1 is there again")
    rank.read()


@pytest.fixture
def folder_cache(programs: Path, dataset: Dataset, tmp_path: Path) -> Iterator[Cluster]:
    """Over the folder itself."""
    options = ClusterOptions(
        programs=programs,
        base_url=str(dataset.root),
        listing="",
        machines=1,
        budget=Budget(dataset.total_bytes, 8 << 20),
        state=tmp_path / "state",
        sockets=tmp_path,
    )
    with ExitStack() as running:
        yield running.enter_context(Cluster(options, "Optimal", tmp_path))


def test_a_folder_and_its_root(folder_cache: Cluster, dataset: Dataset, long: bool) -> None:
    socket = str(folder_cache.socket(0))
    images = ImageFolder(str(dataset.root), decode=bytes, socket=socket)
    assert [path for path, _ in images.samples[:3]] == [
        str(dataset.root / path) for path in dataset.paths[:3]
    ]
    with pytest.raises(optcache.OptcacheError, match=f"it serves .*{dataset.root}"):
        ImageFolder(str(dataset.root.parent), socket=socket)
    before = fallbacks()
    folder_cache.kill_for_good("sidecar-0")
    assert images[7][0] == dataset.read(7)
    assert fallbacks() == before + 1
    if not long:
        return
    # One that begins now has the list of samples from its file.
    _endpoint._endpoints.clear()
    late = optcache.Dataset(socket=socket)
    assert late[8] == dataset.read(8)
    folder_cache.restart_coordinator()
    wait_until(lambda: not late.endpoint.away, "the sidecar is back")
    assert late[9] == dataset.read(9)
    assert fallbacks() == before + 2
