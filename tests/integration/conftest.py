"""What integration tests start: a store, a cache on it, training jobs. See README.md."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import optcache
import pytest
from harness import checks, plain_rank
from harness.checks import Records
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.cluster_side import ClusterSide, serve
from harness.dataset import Dataset, generate
from harness.errors import HarnessError
from harness.job import Job
from harness.plain_rank import CheckedSamples
from harness.store import LISTING, Store
from harness.training import Progress, train

ROOT = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("TEST_SEED", "1"))
SAMPLES = 1500
ARENA = 8 << 20
BATCH = 8
DEADLINE_SECONDS = 400
LONG_DEADLINE_SECONDS = 900


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(f"TEST_SEED={SEED}")


@pytest.fixture(scope="session")
def long() -> bool:
    """Whether tests may take minutes."""
    return os.environ.get("OPTCACHE_LONG") == "1"


@pytest.fixture
def deadline_seconds(long: bool) -> int:
    return LONG_DEADLINE_SECONDS if long else DEADLINE_SECONDS


@pytest.fixture(autouse=True)
def deadline(deadline_seconds: int) -> Iterator[None]:
    """A test that hangs fails."""

    def fail(number: int, frame: FrameType | None) -> None:
        raise HarnessError(f"the test is not done after {deadline_seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(deadline_seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of optcache, optcache-node and optcache-sidecar."""
    folder = Path(os.environ.get("OPTCACHE_BIN_DIR", ROOT / "build" / "dev" / "bin"))
    if not (folder / "optcache").exists():
        pytest.fail(f"the programs are not in {folder}: ./dev build, or set OPTCACHE_BIN_DIR")
    return folder


@pytest.fixture(scope="session")
def seed() -> int:
    """TEST_SEED."""
    return SEED


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Another sequence for each test; the same again with the same TEST_SEED."""
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Not to be changed: shared by all tests."""
    return generate(tmp_path_factory.mktemp("dataset"), SAMPLES, SEED)


@pytest.fixture(scope="session")
def digests(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the SHA-256 of each sample, as harness.job.Job wants it."""
    path = tmp_path_factory.mktemp("digests") / "sha256.bin"
    dataset.write_digests(path)
    return path


@pytest.fixture(scope="session")
def store(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """nginx over `dataset`; its access log goes on from test to test."""
    with Store(dataset.root, tmp_path_factory.mktemp("store")) as running:
        dataset.write_listing(running.listing_file)
        yield running


@pytest.fixture(scope="session")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of all caches over `store`, so that it is indexed once."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def start_cache(
    programs: Path, dataset: Dataset, store: Store, manifests: Path, tmp_path: Path
) -> Iterator[Callable[..., Cluster]]:
    """start_cache(machines=2, share=0.5): a Cluster whose nodes have room for that share."""
    with ExitStack() as running:

        def start(
            machines: int = 1,
            share: float = 0.5,
            arena: int = ARENA,
            overflow: int = ARENA,
            retention: str = "Optimal",
            disk: Path | None = None,
            disk_share: float = 0.0,
            cost: str = "",
            limits: str = "",
        ) -> Cluster:
            options = ClusterOptions(
                programs=programs,
                base_url=store.base_url,
                listing=LISTING,
                machines=machines,
                budget=Budget(
                    int(dataset.total_bytes * share / machines),
                    arena,
                    overflow,
                    disk=int(dataset.total_bytes * disk_share / machines * 10 / 9),
                ),
                state=manifests,
                sockets=tmp_path,
                disk=disk,
                cost=cost,
                limits=limits,
            )
            return running.enter_context(Cluster(options, retention, tmp_path))

        yield start


@pytest.fixture
def cluster_over(programs: Path, tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """cluster_over(source, listing, format): a Cluster over a source of that format."""
    with ExitStack() as running:

        def start(
            base_url: str, listing: str, format: str, memory: int = 64 << 20, machines: int = 1
        ) -> Cluster:
            options = ClusterOptions(
                programs=programs,
                base_url=base_url,
                listing=listing,
                machines=machines,
                budget=Budget(memory, 8 << 20, 8 << 20),
                state=tmp_path / "state",
                sockets=tmp_path,
                order="ImageFolder" if format == "TarFiles" else "Path",
                format=format,
            )
            return running.enter_context(Cluster(options, "Optimal", tmp_path))

        yield start


@pytest.fixture
def cache_over(cluster_over: Callable[..., Cluster]) -> Callable[..., Path]:
    """cache_over(source, listing, format): the socket of a cache over a source of that format."""

    def start(base_url: str, listing: str, format: str, memory: int = 64 << 20) -> Path:
        return cluster_over(base_url, listing, format, memory).socket(0)

    return start


@pytest.fixture
def run_job(dataset: Dataset, digests: Path, tmp_path: Path) -> Callable[..., Records]:
    """run_job(sockets, epochs=3): trains with a rank at each socket. The run must end, and every
    rank get what its sampler lists, with the right bytes."""

    def run(
        sockets: Sequence[Path],
        epochs: int,
        first_epoch: int = 0,
        passes: int = 0,
        until: float = 0.0,
        on_batch: Progress = lambda epoch, done: None,
    ) -> Records:
        folder = Path(tempfile.mkdtemp(prefix="job-", dir=tmp_path))
        jobs = [
            Job(
                rank=rank,
                world=len(sockets),
                epochs=epochs,
                batch=BATCH,
                seed=SEED,
                digests=str(digests),
                rendezvous=str(folder / "rendezvous"),
                records=str(folder / f"records-{rank}.json"),
                first_epoch=first_epoch,
                passes=passes,
                until=until,
            )
            for rank in range(len(sockets))
        ]
        environments = [{"OPTCACHE_SOCKET": str(socket)} for socket in sockets]
        records = train(Path(plain_rank.__file__), jobs, environments, folder, on_batch)
        assert [*checks.wrong_samples(dataset, records)] == []
        assert [*checks.wrong_orders(dataset, jobs, records)] == []
        return records

    return run


@pytest.fixture(scope="session")
def batches_per_epoch(dataset: Dataset) -> Callable[[int], int]:
    """batches_per_epoch(ranks): of each rank."""
    return lambda ranks: -(-(-(-len(dataset.paths) // ranks)) // BATCH)


@pytest.fixture
def open_samples(digests: Path) -> Callable[[Path], CheckedSamples]:
    """open_samples(socket): the dataset in this process, through that sidecar."""
    return lambda socket: CheckedSamples(
        optcache.Dataset(socket=str(socket)), digests.read_bytes()
    )


@pytest.fixture
def side(programs: Path, tmp_path: Path) -> Iterator[ClusterSide]:
    running = ClusterSide(programs, tmp_path / "cluster")
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def served(side: ClusterSide, store: Store) -> ClusterSide:
    """One node that serves the dataset, indexed by a Job."""
    return serve(side, store, ["vision"])
