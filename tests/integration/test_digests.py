"""`verify: Digest` on one machine: other bytes under the same ETag never reach the training process."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import optcache
import pytest
from harness import faulty_store
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset, generate
from harness.faulty_store import FOR_EVER, Fault, FaultyStore
from harness.processes import wait_until
from harness.store import LISTING

SAMPLES = 48
MISMATCHES = "optcache_store_digest_mismatches_total"

# By the sample that has it, which no other test reads.
PASSING: list[tuple[int, Fault, int]] = [
    (0, faulty_store.flipped, 1),
    (1, faulty_store.flipped_in_a_cache, FOR_EVER),
]
LASTING = 2
NEVER_READ = 3  # by a test
READ_BY_ALL = range(8, SAMPLES)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return generate(tmp_path_factory.mktemp("objects"), SAMPLES, seed=11)


@pytest.fixture(scope="module")
def store(objects: Dataset) -> Iterator[FaultyStore]:
    with FaultyStore(objects) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def cluster(
    programs: Path, objects: Dataset, store: FaultyStore, folder: Path
) -> Iterator[Cluster]:
    options = ClusterOptions(
        programs=programs,
        base_url=store.base_url,
        listing=LISTING,
        verify="Digest",
        machines=1,
        budget=Budget(objects.total_bytes // 2, 8 << 20),
        state=folder / "state",
        sockets=folder,
    )
    with Cluster(options, "Optimal", folder) as running:
        yield running


@pytest.fixture
def samples(cluster: Cluster) -> optcache.Dataset:
    return optcache.Dataset(socket=str(cluster.socket(0)))


def mismatches(cluster: Cluster) -> float:
    return cluster.metrics_of("sidecar-0")[MISMATCHES]


@pytest.mark.usefixtures("cluster")
def test_indexing_reads_each_object_once(store: FaultyStore, objects: Dataset) -> None:
    assert store.gets(objects.paths[NEVER_READ]) == 1


@pytest.mark.parametrize("sample, fault, times", PASSING)
def test_other_bytes_are_read_once_more(
    samples: optcache.Dataset,
    cluster: Cluster,
    store: FaultyStore,
    objects: Dataset,
    sample: int,
    fault: Fault,
    times: int,
) -> None:
    """Past a cache that has them; and the right ones are delivered."""
    path = objects.paths[sample]
    seen, asked = mismatches(cluster), store.gets(path)
    store.script(path, fault, times)
    assert samples[sample] == (objects.root / path).read_bytes()
    assert store.gets(path) == asked + 2
    assert mismatches(cluster) == seen + 1


def test_bytes_that_stay_other_ones_are_refused_by_name(
    samples: optcache.Dataset, cluster: Cluster, store: FaultyStore, objects: Dataset
) -> None:
    path = objects.paths[LASTING]
    asked = store.gets(path)
    store.script(path, faulty_store.flipped, FOR_EVER)
    with pytest.raises(optcache.SampleError, match="SHA-256 is not the manifest's, nor was it at a second read") as raised:
        samples[LASTING]
    assert (raised.value.code, raised.value.index) == ("data_loss", LASTING)
    assert path in str(raised.value)
    assert store.gets(path) == asked + 2

    def is_named() -> bool:
        """Others of the same cause may have had their line just before."""
        with pytest.raises(optcache.SampleError):
            samples[LASTING]
        line = rf"a read of the store failed .*object={path} .*attempt=2 code=data_loss"
        return re.search(line, cluster.log_of("sidecar-0")) is not None

    wait_until(is_named, "the log names the object")
    # It is read as soon as the store is right again.
    store.script(path, faulty_store.right, 0)
    assert samples[LASTING] == (objects.root / path).read_bytes()


def test_all_samples_are_right_whichever_were_flipped(
    samples: optcache.Dataset,
    cluster: Cluster,
    store: FaultyStore,
    objects: Dataset,
    chance: random.Random,
) -> None:
    seen = mismatches(cluster)
    for sample in chance.sample(READ_BY_ALL, len(READ_BY_ALL) // 2):
        store.script(objects.paths[sample], faulty_store.flipped)
    ids = list(READ_BY_ALL)
    chance.shuffle(ids)
    for begin in range(0, len(ids), 8):
        batch = ids[begin : begin + 8]
        views = samples.__getitems__(batch)
        assert views == [(objects.root / objects.paths[sample]).read_bytes() for sample in batch]
    assert mismatches(cluster) > seen


def test_verify_bytes_names_the_object_that_has_other_ones(
    cluster: Cluster, folder: Path, programs: Path, store: FaultyStore, objects: Dataset
) -> None:
    (manifest,) = (folder / "state" / "manifests").glob("*.manifest")

    def verify(*more: str) -> subprocess.CompletedProcess[str]:
        command = [programs / "optcache", "manifest", "verify", manifest]
        source = ["--source", store.base_url, "--listing", LISTING]
        return subprocess.run(
            [*command, *source, *more], capture_output=True, text=True, check=False
        )

    sample = READ_BY_ALL[0]
    store.script(objects.paths[sample], faulty_store.flipped, FOR_EVER)
    found = verify("--bytes")
    assert found.returncode == 1
    assert f"other contents: 1\n  {objects.paths[sample]}\n" in found.stdout
    store.script(objects.paths[sample], faulty_store.flipped, 1)
    found = verify("--bytes")
    assert found.returncode == 0, found.stdout + found.stderr
