"""A sidecar that is killed for good while training reads a bucket: who has its keys goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import optcache
import pytest
from harness import s3_server
from harness.cluster import DATASET, Budget, Cluster, ClusterOptions
from harness.dataset import Dataset
from harness.plain_rank import CheckedSamples
from harness.s3_server import Keys, S3Server
from harness.store import Store
from test_gone import BATCH, FAULT_AT, Rank, fallbacks

BUCKET = "data"
KEYS = Keys("AKIAOPTCACHETEST", "a/secret+that=is/long enough")


@pytest.fixture(autouse=True)
def no_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tester's own; and as on a machine outside Kubernetes."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "OPTCACHE_FALLBACK", "KUBERNETES_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The folder of those of DATASET, as a Secret is mounted."""
    folder = tmp_path / "keys" / "default" / DATASET
    folder.mkdir(parents=True)
    (folder / "accessKeyID").write_text(KEYS.access)
    (folder / "secretAccessKey").write_text(KEYS.secret)
    return folder


@pytest.fixture(scope="module")
def server(
    dataset: Dataset, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[S3Server]:
    """With the dataset in a bucket; not to be changed."""
    if why := s3_server.missing_program():
        pytest.skip(why)
    with S3Server(tmp_path_factory.mktemp("s3"), KEYS) as running:
        running.client().make_bucket(BUCKET)
        for path in dataset.paths:
            running.place(BUCKET, path, (dataset.root / path).read_bytes())
        yield running


@pytest.fixture
def over(
    programs: Path, dataset: Dataset, tmp_path: Path
) -> Iterator[Callable[..., Cluster]]:
    """over(bucket, keys): a cache over a bucket."""
    with ExitStack() as running:

        def start(bucket: str, keys: Path | None = None) -> Cluster:
            options = ClusterOptions(
                programs=programs,
                base_url="",
                listing="",
                machines=1,
                budget=Budget(dataset.total_bytes // 2, 8 << 20, 8 << 20),
                state=tmp_path / "state",
                sockets=tmp_path,
                bucket=bucket,
                keys=keys,
            )
            return running.enter_context(Cluster(options, "Optimal", tmp_path))

        yield start


def train_on(cluster: Cluster, samples: CheckedSamples) -> None:
    """An epoch, in whose middle the sidecar is killed: each sample comes, and with the right bytes."""
    rank = Rank(samples)
    before = fallbacks()
    rank.read(lambda: cluster.kill_for_good("sidecar-0"))
    assert fallbacks() - before == len(samples) - (FAULT_AT + 1) * BATCH


@pytest.mark.parametrize("where", ["pod", "laptop", "environment"])
def test_a_process_that_has_the_keys(
    server: S3Server,
    over: Callable[..., Cluster],
    open_samples: Callable[..., CheckedSamples],
    keys: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    around = where == "environment"
    if around:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS.access)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS.secret)
    place = f'{{bucket: {BUCKET}, endpoint: "{server.endpoint}"}}'
    cluster = over(place, None if around else keys)
    if where == "pod":
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        monkeypatch.setenv("OPTCACHE_FALLBACK_KEYS", str(keys.parents[1]))
    train_on(cluster, open_samples(cluster.socket(0)))
    listed = Path(f"{cluster.socket(0)}.sources").read_text()
    assert "withKeys" in listed and KEYS.secret not in listed and KEYS.access not in listed


def test_a_pod_that_does_not_ask_for_them(
    server: S3Server,
    over: Callable[..., Cluster],
    keys: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    cluster = over(f'{{bucket: {BUCKET}, endpoint: "{server.endpoint}"}}', keys)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    samples = optcache.Dataset(socket=str(cluster.socket(0)), wait=2)
    samples[7]
    before = fallbacks()
    cluster.kill_for_good("sidecar-0")
    helps = 'annotation optcache.io/fallback-keys: "true" gives them to its containers'
    with pytest.raises(optcache.SidecarUnavailableError, match=helps):
        samples[8]
    assert helps in capfd.readouterr().err
    assert fallbacks() == before


def test_a_public_bucket(
    dataset: Dataset,
    over: Callable[..., Cluster],
    open_samples: Callable[..., CheckedSamples],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also in a pod that asks for nothing: there are no keys that it could ask for."""
    bucket = tmp_path / "root" / BUCKET
    bucket.mkdir(parents=True)
    (bucket / "train").symlink_to(dataset.root)
    sizes = {path: (dataset.root / path).stat().st_size for path in dataset.paths}
    lines = [f"train/{path}\t{size}\n" for path, size in sizes.items()]
    (bucket / "list.txt").write_text("".join(lines))
    folder = tmp_path / "nginx"
    folder.mkdir()
    with Store(tmp_path / "root", folder) as store:
        place = f'endpoint: "{store.base_url}", prefix: train/, listing: list.txt'
        cluster = over(f"{{bucket: {BUCKET}, {place}}}")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
        train_on(cluster, open_samples(cluster.socket(0)))
