"""The store misbehaves: samples come all the same, or the training process learns why they do not.

Each case has a sample of its own, so that all of them share one cache.
"""

from __future__ import annotations

import random
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness import faulty_store
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset, generate
from harness.faulty_store import FOR_EVER, Fault, FaultyStore
from harness.plain_rank import CheckedSamples
from harness.processes import wait_until
from harness.store import LISTING
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache.torch import attach

SAMPLES = 240
OUTAGE_SECONDS = 12
STORE_CONCURRENCY = 32  # of a sidecar, by default

OTHERS = iter(range(140, SAMPLES))  # read beside those of a case, each once

PASSING: list[Fault] = [
    faulty_store.unavailable,
    faulty_store.unavailable_for_a_second,
    faulty_store.slow,
    faulty_store.truncated,
    faulty_store.reset,
    faulty_store.too_long,
]
# Those that come back at once, and how often.
STUBBORN = {faulty_store.unavailable: 9, faulty_store.truncated: 4, faulty_store.too_long: 4}
# Fault, code and cause in the message.
LASTING: list[tuple[Fault, str, str]] = [
    (faulty_store.missing, "not_found", "HTTP 404: no such object"),
    (faulty_store.grown, "conflict", "changed since the manifest was made"),
    (faulty_store.replaced, "conflict", "changed since the manifest was made"),
]
OWN = 20  # the first of the samples that have a test to themselves


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return generate(tmp_path_factory.mktemp("objects"), SAMPLES, seed=3)


def options_of(
    programs: Path, objects: Dataset, store: FaultyStore, folder: Path, patience: str = "10m"
) -> ClusterOptions:
    return ClusterOptions(
        programs=programs,
        base_url=store.base_url,
        listing=LISTING,
        machines=1,
        budget=Budget(objects.total_bytes // 2, 8 << 20),
        state=folder / "state",
        sockets=folder,
        patience=patience,
    )


@pytest.fixture(scope="module")
def store(objects: Dataset) -> Iterator[FaultyStore]:
    with FaultyStore(objects) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(
    programs: Path, objects: Dataset, store: FaultyStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cache")
    with Cluster(options_of(programs, objects, store, folder), "Optimal", folder) as running:
        yield running


@pytest.fixture
def samples(cluster: Cluster) -> optcache.Dataset:
    return optcache.Dataset(socket=str(cluster.socket(0)))


@pytest.mark.parametrize("fault", PASSING)
def test_fault_that_passes_is_not_noticed(
    samples: optcache.Dataset, store: FaultyStore, objects: Dataset, fault: Fault
) -> None:
    sample = PASSING.index(fault)
    path = objects.paths[sample]
    store.script(path, fault)
    assert samples[sample] == (objects.root / path).read_bytes()
    assert store.gets(path) == (1 if fault is faulty_store.slow else 2)


def test_a_body_that_broke_is_continued_where_it_broke(
    samples: optcache.Dataset, store: FaultyStore, objects: Dataset
) -> None:
    sample = OWN + 13
    path, size = objects.paths[sample], objects.sizes[sample]
    store.script(path, faulty_store.truncated, times=2)
    assert samples[sample] == (objects.root / path).read_bytes()
    half = size // 2
    begins = [half, half + (size - half) // 2]
    assert store.ranges(path) == ["", *(f"bytes={begin}-{size - 1}" for begin in begins)]


@pytest.mark.long
@pytest.mark.parametrize("fault", STUBBORN)
def test_fault_that_passes_late_is_waited_for(
    samples: optcache.Dataset, store: FaultyStore, objects: Dataset, fault: Fault
) -> None:
    """It is of one object: the store answers all others."""
    sample = OWN + 5 + list(STUBBORN).index(fault)
    path = objects.paths[sample]
    store.script(path, fault, times=STUBBORN[fault])
    with others_are_read(samples):
        assert samples[sample] == (objects.root / path).read_bytes()
    assert store.gets(path) == STUBBORN[fault] + 1


def test_store_is_given_the_time_it_asks_for(
    samples: optcache.Dataset, store: FaultyStore, objects: Dataset
) -> None:
    sample = len(PASSING)
    store.script(objects.paths[sample], faulty_store.unavailable_for_a_second, times=2)
    began = time.monotonic()
    assert len(samples[sample]) == objects.sizes[sample]
    assert time.monotonic() - began >= 2


@contextmanager
def others_are_read(samples: optcache.Dataset) -> Iterator[None]:
    """So that the store is not taken for gone: that would be waited for."""
    ended = threading.Event()

    def read() -> None:
        while not ended.wait(0.4):
            samples[next(OTHERS)]

    with ThreadPoolExecutor(1) as reader:
        reading = reader.submit(read)
        try:
            yield
        finally:
            ended.set()
            reading.result()


@pytest.mark.parametrize("case", LASTING)
def test_fault_that_cannot_pass_ends_the_read_with_its_reason(
    samples: optcache.Dataset,
    store: FaultyStore,
    objects: Dataset,
    case: tuple[Fault, str, str],
) -> None:
    fault, code, cause = case
    sample = len(PASSING) + 1 + LASTING.index(case)
    path = objects.paths[sample]
    store.script(path, fault, times=FOR_EVER)
    with pytest.raises(optcache.SampleError) as raised:
        samples[sample]
    assert raised.value.code == code
    assert raised.value.index == sample
    assert path in str(raised.value)
    assert f"bytes 0-{objects.sizes[sample] - 1}" in str(raised.value)
    assert cause in str(raised.value)
    assert store.gets(path) == 1
    # It is read as soon as the store is right again.
    store.script(path, faulty_store.right, times=0)
    assert samples[sample] == (objects.root / path).read_bytes()


def test_the_status_names_an_object_that_has_changed(
    samples: optcache.Dataset, cluster: Cluster, store: FaultyStore, objects: Dataset
) -> None:
    sample = OWN + 16
    path = objects.paths[sample]
    store.script(path, faulty_store.replaced, times=FOR_EVER)
    with pytest.raises(optcache.SampleError):
        samples[sample]

    def changed() -> str:
        (dataset,) = cluster.status()["datasets"]
        return str(dataset["store"].get("changed", ""))

    wait_until(lambda: changed() == path, "the sidecar says which object has changed")
    assert f"{path} is not the object that was indexed" in cluster.status_text()
    store.script(path, faulty_store.right, times=0)


def test_the_log_of_the_sidecar_names_a_failed_read(
    samples: optcache.Dataset, cluster: Cluster, store: FaultyStore, objects: Dataset
) -> None:
    """It is read until its line comes: others of the same cause may have had theirs just before."""
    sample = OWN
    path = objects.paths[sample]
    store.script(path, faulty_store.missing, times=FOR_EVER)
    line = rf"a read of the store failed .*object={path} bytes=0-\d+ attempt=1 code=not_found .*404"

    def is_named() -> bool:
        with pytest.raises(optcache.SampleError):
            samples[sample]
        return re.search(line, cluster.log_of("sidecar-0")) is not None

    wait_until(is_named, "the log names the object and the cause")
    store.script(path, faulty_store.right, times=0)


@pytest.mark.long
def test_store_that_stalls(
    samples: optcache.Dataset, store: FaultyStore, objects: Dataset
) -> None:
    """An attempt is given up after 20 s, and the next one succeeds."""
    sample = OWN + 1
    path = objects.paths[sample]
    store.script(path, faulty_store.stalled)
    assert samples[sample] == (objects.root / path).read_bytes()
    assert store.gets(path) == 2


@pytest.mark.long
def test_the_only_read_waits_for_a_store_that_is_gone(
    samples: optcache.Dataset,
    cluster: Cluster,
    store: FaultyStore,
    objects: Dataset,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All attempts and probes are its own. The logs say what is waited for."""
    path = objects.paths[OWN + 2]
    store.script(path, faulty_store.unavailable, times=FOR_EVER)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(lambda: bytes(samples[OWN + 2]))
        time.sleep(3 * OUTAGE_SECONDS)
        assert not read.done()
        line = r"waiting for the store .*requests=1 for_s=[23]\d patience_s=600 .*HTTP 503"
        assert re.search(line, cluster.log_of("sidecar-0"))
        said = [record.getMessage() for record in caplog.records if record.name == "optcache"]
        assert len(said) >= 2 and all("for the store of default/images, for" in text for text in said[1:])
        store.script(path, faulty_store.right, times=0)
        assert read.result(timeout=180) == (objects.root / path).read_bytes()


@pytest.mark.long
def test_store_that_is_gone_is_waited_for(
    samples: optcache.Dataset, store: FaultyStore, objects: Dataset
) -> None:
    """It is asked by a few reads for all, and when it is back, all of them end well."""
    lost = range(100, 140)
    for sample in lost:
        store.script(objects.paths[sample], faulty_store.unavailable, times=FOR_EVER)
    with ThreadPoolExecutor(1) as reader:
        batch = reader.submit(lambda: [bytes(view) for view in samples.__getitems__(list(lost))])
        time.sleep(OUTAGE_SECONDS)
        assert not batch.done()
        asked = sum(store.gets(objects.paths[sample]) for sample in lost)
        assert asked <= len(lost) * 4
        for sample in lost:
            store.script(objects.paths[sample], faulty_store.right, times=0)
        read = batch.result(timeout=180)
    assert read == [(objects.root / objects.paths[sample]).read_bytes() for sample in lost]


def test_store_that_is_gone_is_seen(
    samples: optcache.Dataset,
    cluster: Cluster,
    store: FaultyStore,
    objects: Dataset,
    programs: Path,
) -> None:
    """In the status: to how many it is silent, and why; and when it is back, that it answers."""

    def reach() -> dict[str, Any]:
        (dataset,) = cluster.status()["datasets"]
        reached: dict[str, Any] = dataset["store"]
        return reached

    def table() -> str:
        command = [programs / "optcache", "status", "--coordinator", cluster.control]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    began = time.monotonic()

    def is_of_this_test(seconds: float) -> bool:
        return seconds <= time.monotonic() - began

    lost = range(60, 90)
    samples[59]
    wait_until(lambda: reach()["answering"] == 1, "the sidecar says that the store answers")
    assert reach()["silent"] == 0
    assert "the store is silent" not in table()
    for sample in lost:
        store.script(objects.paths[sample], faulty_store.unavailable, times=FOR_EVER)
    with ThreadPoolExecutor(1) as reader:
        batch = reader.submit(lambda: [bytes(view) for view in samples.__getitems__(list(lost))])
        wait_until(lambda: reach()["silent"] == 1, "the sidecar says that the store is silent")
        seen = reach()
        assert seen["answering"] == 0 and seen["members_silent"] == 1
        assert 2 <= seen["silent_seconds"] and is_of_this_test(seen["silent_seconds"])
        assert "HTTP 503" in seen["cause"]
        note = "the store is silent: it answers nothing to 1 of 1 sidecar, on 1 machine"
        assert note in table() and "HTTP 503" in table()
        for sample in lost:
            store.script(objects.paths[sample], faulty_store.right, times=0)
        assert len(batch.result(timeout=180)) == len(lost)
    wait_until(lambda: reach()["answering"] == 1, "the sidecar says that it is back")
    back = reach()
    assert back["silent"] == 0 and back["cause"] == "" and is_of_this_test(back["quiet_seconds"])
    assert "the store is silent" not in table()


@pytest.mark.long
def test_patience_of_the_dataset_ends(
    programs: Path, objects: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It is the user's; the error says how long it was, and what the reason is."""
    folder = tmp_path_factory.mktemp("patience")
    with FaultyStore(objects) as store:
        options = options_of(programs, objects, store, folder, patience="3s")
        with Cluster(options, "Optimal", folder) as cluster:
            samples = optcache.Dataset(socket=str(cluster.socket(0)))
            for sample, fault in enumerate(STUBBORN):
                path = objects.paths[sample]
                store.script(path, fault, times=FOR_EVER)
                with pytest.raises(optcache.SampleError) as raised:
                    samples[sample]
                assert "given up: nothing of it came for 3 s, which is the patience" in str(raised.value)
                assert path in str(raised.value)
                assert store.gets(path) > 2


@pytest.mark.long
def test_connections_that_stall_hold_up_other_reads_for_seconds_only(
    programs: Path, objects: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As many stall as the sidecar reads at a time. The other read ends before these are given up."""
    stalled = range(STORE_CONCURRENCY)
    folder = tmp_path_factory.mktemp("stalled")
    with FaultyStore(objects) as store:
        with Cluster(options_of(programs, objects, store, folder), "Optimal", folder) as cluster:
            samples = optcache.Dataset(socket=str(cluster.socket(0)))
            samples[OWN * 2]  # the store has sent something
            for sample in stalled:
                store.script(objects.paths[sample], faulty_store.stalled)

            def asked() -> list[int]:
                return [store.gets(objects.paths[sample]) for sample in stalled]

            with ThreadPoolExecutor(1) as reader:
                batch = reader.submit(lambda: [bytes(view) for view in samples.__getitems__(list(stalled))])
                wait_until(lambda: 0 not in asked(), "all of them are asked for")
                other = OWN * 2 + 1
                assert samples[other] == (objects.root / objects.paths[other]).read_bytes()
                (metrics,) = cluster.sidecar_metrics()
                assert metrics.get("optcache_store_errors_total", 0) == 0, "none was given up"
                read = batch.result(timeout=180)
    assert read == [(objects.root / objects.paths[sample]).read_bytes() for sample in stalled]


def test_error_reaches_the_training_process(
    samples: optcache.Dataset, store: FaultyStore, objects: Dataset
) -> None:
    """Through a DataLoader's worker, with its sentence."""
    sample = OWN + 3
    path = objects.paths[sample]
    store.script(path, faulty_store.missing, times=FOR_EVER)
    loader: DataLoader[Any] = DataLoader(samples, sampler=[sample], num_workers=1)  # type: ignore[arg-type]
    with pytest.raises(optcache.SampleError, match=f"{path} bytes 0-.*HTTP 404: no such object"):
        list(loader)
    store.script(path, faulty_store.right, times=0)


def test_epoch_with_faults_here_and_there(
    programs: Path, objects: Dataset, chance: random.Random, tmp_path: Path, long: bool
) -> None:
    """In every third object at length; in short in fewer, since some faults hold all reads back."""
    digests = tmp_path / "digests"
    objects.write_digests(digests)
    ids: list[int] = []
    with FaultyStore(objects) as store:  # other tests count reads of samples that nobody has read
        for path in chance.sample(objects.paths, SAMPLES // (3 if long else 12)):
            store.script(path, chance.choice(PASSING))
        with Cluster(options_of(programs, objects, store, tmp_path), "Optimal", tmp_path) as cluster:
            samples = CheckedSamples(
                optcache.Dataset(socket=str(cluster.socket(0))), digests.read_bytes()
            )
            sampler: DistributedSampler[Any] = DistributedSampler(samples, num_replicas=1, rank=0)
            loader = attach(
                DataLoader(samples, batch_size=8, sampler=sampler, num_workers=2),
                dataset=samples.samples,
                epochs=1,
            )
            for batch, are_right, _ in loader:
                assert are_right.all()
                ids += batch.tolist()
    assert ids == list(sampler)
