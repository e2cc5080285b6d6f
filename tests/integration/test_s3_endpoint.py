"""Client libraries of S3, not changed, read a bucket through the sidecar's endpoint: the bytes are
those of the bucket, and come from the cache the second time. Each is skipped where it is not
installed; `./dev test frameworks` installs all.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import socket
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from harness import prometheus, s3_reader, s3_server, s3_tested
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.errors import HarnessError
from harness.processes import wait_until
from harness.prometheus import PANELS_OF_S3, Prometheus, empty_panels
from harness.s3_server import BucketServer, Keys

KEYS = Keys("AKIAOPTCACHETEST", "a/secret+that=is/long enough")
BUCKET = s3_reader.BUCKET
PREFIX = s3_reader.PREFIX
SAMPLES = 24
EPOCHS = 2


@pytest.fixture(scope="module", autouse=True)
def _program() -> None:
    s3_tested.need_program()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BucketServer]:
    with s3_tested.Server(tmp_path / "s3", KEYS) as running:
        running.client().make_bucket(BUCKET)
        running.client().make_bucket("checkpoints")
        yield running


@dataclass
class Content:
    """What lies in the bucket, and what a client reads of it: SHA-256 by key or sample."""

    samples: dict[str, str] = field(default_factory=dict)
    objects: int = 0
    total_bytes: int = 0

    def place(self, server: BucketServer, key: str, body: bytes) -> None:
        server.place(BUCKET, PREFIX + key, body)
        self.objects += 1
        self.total_bytes += len(body)


def random_bytes() -> list[bytes]:
    chance = random.Random(7)
    return [chance.randbytes(chance.randint(1, 200_000)) for _ in range(SAMPLES)]


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def loose_objects(server: BucketServer, folder: Path) -> Content:
    content = Content()
    for number, body in enumerate(random_bytes()):
        key = f"class {number % 3}/+{number:03}.bin"
        content.place(server, key, body)
        content.samples[PREFIX + key] = sha256(body)
    return content


def tar_shards(server: BucketServer, folder: Path) -> Content:
    content = Content()
    samples = random_bytes()
    for shard in range(4):
        into = BytesIO()
        with tarfile.open(fileobj=into, mode="w") as archive:
            for number in range(shard, SAMPLES, 4):
                member = tarfile.TarInfo(f"{number:03}.bin")
                member.size = len(samples[number])
                archive.addfile(member, BytesIO(samples[number]))
                content.samples[f"{number:03}"] = sha256(samples[number])
        content.place(server, f"shard-{shard}.tar", into.getvalue())
    return content


def mosaic_shards(server: BucketServer, folder: Path) -> Content:
    from streaming import MDSWriter

    content = Content()
    columns = {"id": "str", "bytes": "bytes"}
    with MDSWriter(out=str(folder / "mds"), columns=columns, size_limit=1 << 19) as out:
        for number, body in enumerate(random_bytes()):
            out.write({"id": str(number), "bytes": body})
            content.samples[str(number)] = sha256(body)
    for file in sorted((folder / "mds").iterdir()):
        content.place(server, file.name, file.read_bytes())
    return content


def json_lines(server: BucketServer, folder: Path) -> Content:
    content = Content()
    samples = random_bytes()
    for part in range(3):
        lines = []
        for number in range(part, SAMPLES, 3):
            lines.append(json.dumps({"id": str(number), "bytes": samples[number].hex()}))
            content.samples[str(number)] = sha256(samples[number])
        content.place(server, f"part-{part}.jsonl", "\n".join(lines).encode() + b"\n")
    return content


@contextmanager
def cache_over(
    programs: Path,
    server: BucketServer,
    content: Content,
    folder: Path,
    sampler: str = "",
    share: float = 2,
) -> Iterator[Cluster]:
    """All of the bucket has room in it, or that share of its bytes. Its environment has the bucket's keys; its clients' not."""
    options = ClusterOptions(
        programs=programs,
        base_url="",
        listing="",
        machines=1,
        budget=Budget(memory=int(share * content.total_bytes), arena=16 << 20, overflow=16 << 20),
        state=folder / "state",
        sockets=folder,
        bucket=f'{{bucket: {BUCKET}, prefix: "{PREFIX}", endpoint: "{server.endpoint}"}}',
        order="Path",
        s3_endpoint=True,
        sampler=sampler,
    )
    keys = {"AWS_ACCESS_KEY_ID": KEYS.access, "AWS_SECRET_ACCESS_KEY": KEYS.secret}
    before = {name: os.environ.get(name) for name in keys}
    os.environ.update(keys)
    try:
        with Cluster(options, "Optimal", folder) as cluster:
            # The sidecar listens there after its own socket.
            wait_until(lambda: listens_at(cluster.s3_endpoint(0)), "the endpoint listens")
            yield cluster
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def listens_at(endpoint: str) -> bool:
    place = urlsplit(endpoint)
    try:
        socket.create_connection((str(place.hostname), place.port or 0), timeout=60).close()
    except OSError:
        return False
    return True


def environment(cache: Cluster) -> dict[str, str]:
    """Of a client that has keys of nobody."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return clean | {
        "AWS_ENDPOINT_URL_S3": cache.s3_endpoint(0),
        "OPTCACHE_SOCKET": str(cache.socket(0)),
        "AWS_ACCESS_KEY_ID": s3_server.ANY_KEYS.access,
        "AWS_SECRET_ACCESS_KEY": s3_server.ANY_KEYS.secret,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # AWS's own program
    }


def read_epochs(
    cache: Cluster,
    client: str,
    folder: Path,
    after_epoch: Callable[[], None],
    epochs: int = EPOCHS,
    first_epoch: int = 0,
) -> list[list[tuple[str, str]]]:
    own = folder / "client"
    own.mkdir()
    read = []
    with open(folder / "client.log", "wb") as log:
        reader = subprocess.Popen(
            s3_reader.command(sys.executable, client, own, epochs, first_epoch),
            env=environment(cache),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        assert reader.stdin is not None and reader.stdout is not None
        try:
            for epoch in range(epochs):
                line = reader.stdout.readline()
                if not line:
                    raise HarnessError((folder / "client.log").read_text(errors="replace"))
                read.append([(key, digest) for key, digest in json.loads(line)])
                after_epoch()
                if epoch + 1 < epochs:
                    reader.stdin.write(b"\n")
                    reader.stdin.flush()
            reader.stdin.close()
            assert reader.wait(180) == 0
        finally:
            reader.kill()
            reader.wait()
            reader.stdout.close()
    return read


def needs(package: str) -> Any:
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")


@pytest.mark.parametrize(
    ("client", "make"),
    [
        pytest.param("boto3", loose_objects, marks=needs("boto3")),
        pytest.param("boto3_transfer", loose_objects, marks=needs("boto3")),
        pytest.param("s3fs", loose_objects, marks=needs("s3fs")),
        pytest.param("s3torchconnector", loose_objects, marks=needs("s3torchconnector")),
        pytest.param("webdataset", tar_shards, marks=[needs("webdataset"), needs("boto3")]),
        pytest.param(
            "webdataset_by_aws",
            tar_shards,
            marks=[needs("webdataset"), needs("boto3"), needs("awscli")],
        ),
        pytest.param("streaming", mosaic_shards, marks=needs("streaming")),
        pytest.param("datasets", json_lines, marks=[needs("datasets"), needs("s3fs")]),
    ],
)
def test_a_library_reads_the_cache(
    programs: Path,
    server: BucketServer,
    tmp_path: Path,
    client: str,
    make: Callable[[BucketServer, Path], Content],
) -> None:
    content = make(server, tmp_path)
    with cache_over(programs, server, content, tmp_path) as cache:
        requests: list[int] = []
        delivered: list[float] = []

        def note() -> None:
            (metrics,) = cache.sidecar_metrics()
            requests.append(server.gets())
            delivered.append(metrics[_from("local")])

        read = read_epochs(cache, client, tmp_path, note)
        (metrics,) = cache.sidecar_metrics()
    for epoch in read:
        assert dict(epoch) == content.samples
    assert requests[0] == content.objects, "each object is read from the bucket once"
    assert requests[1] == requests[0], "the second epoch is the cache's alone"
    assert delivered[1] - delivered[0] >= content.objects
    assert metrics['optcache_s3_requests_total{operation="refused"}'] == 0
    if client == "boto3_transfer":
        assert metrics["optcache_s3_joined_reads_total"] > content.objects
        assert delivered[1] - delivered[0] == content.objects, "ranges of an object are one read"


def _from(source: str) -> str:
    return f'optcache_client_samples_total{{source="{source}",dataset="default/images"}}'


def check_that_the_order_was_known(
    content: Content, read: list[list[tuple[str, str]]], requests: int, metrics: Mapping[str, float]
) -> None:
    """Each epoch another order, and each object read of the bucket once."""
    for epoch in read:
        assert dict(epoch) == content.samples
    assert read[0] != read[1]
    assert requests == content.objects
    assert metrics["optcache_unpredicted_reads_total"] == 0
    assert metrics["optcache_passes_total"] == EPOCHS


@needs("boto3")
@needs("torch")
@pytest.mark.parametrize("first_epoch", [0, 7])
def test_an_annotated_order_is_followed(
    programs: Path, server: BucketServer, tmp_path: Path, first_epoch: int
) -> None:
    content = loose_objects(server, tmp_path)
    sampler = f"torch-distributed,seed={s3_reader.SEED},epoch={first_epoch}"
    with cache_over(programs, server, content, tmp_path, sampler) as cache:
        read = read_epochs(
            cache, "boto3_in_order", tmp_path, lambda: None, first_epoch=first_epoch
        )
        (metrics,) = cache.sidecar_metrics()
        requests = server.gets()
    check_that_the_order_was_known(content, read, requests, metrics)
    assert metrics["optcache_unknown_orders_total"] == 0


@needs("boto3")
@needs("torch")
def test_ranges_of_shards_are_reads_of_their_order(
    programs: Path, server: BucketServer, tmp_path: Path
) -> None:
    """With room for some of the shards: the others are read once a pass, whatever their ranges."""
    shards, epochs = 40, 4
    kept = int(0.3 * shards)
    content = Content()
    chance = random.Random(9)
    parts: dict[str, list[bytes]] = {}
    for number in range(shards):
        key = f"{number:02}.parquet"
        parts[PREFIX + key] = [chance.randbytes(8 << 10) for _ in range(8)]
        content.place(server, key, b"".join(parts[PREFIX + key]))
    sampler = f"torch-distributed,seed={s3_reader.SEED}"
    requests: list[int] = []
    with cache_over(programs, server, content, tmp_path, sampler, share=0.3) as cache:
        read = read_epochs(
            cache,
            "boto3_ranges_in_order",
            tmp_path,
            lambda: requests.append(server.gets()),
            epochs,
        )
        (metrics,) = cache.sidecar_metrics()
    asked = 0
    for epoch in read:
        assert sorted(key for key, _ in epoch) == sorted(parts)
        for number, (key, digest) in enumerate(epoch):
            places = (7, 7, *(range(7) if number % 3 == 0 else (0, 2, 4)))
            assert digest == sha256(b"".join(parts[key][at] for at in places))
            asked += len(places)
    bound = shards - kept  # of a pass after the first
    print("requests of the store, after each epoch:", requests, "bound:", bound)
    assert requests[0] <= shards + bound, "the next pass is read ahead, and no more"
    assert requests[-1] <= shards + 1.05 * bound * epochs, "one more pass is read ahead"
    assert requests[-1] - requests[0] <= 1.05 * bound * (epochs - 1)
    assert metrics["optcache_s3_joined_reads_total"] == asked - shards * epochs
    assert metrics["optcache_unpredicted_reads_total"] == 0


@needs("boto3")
@needs("torch")
def test_an_attached_order_is_followed(
    programs: Path, server: BucketServer, tmp_path: Path
) -> None:
    content = loose_objects(server, tmp_path)
    with cache_over(programs, server, content, tmp_path) as cache:
        read = read_epochs(cache, "boto3_attached", tmp_path, lambda: None)
        (metrics,) = cache.sidecar_metrics()
        requests = server.gets()
    check_that_the_order_was_known(content, read, requests, metrics)


@needs("boto3")
def test_checkpoints_go_elsewhere(programs: Path, server: BucketServer, tmp_path: Path) -> None:
    from botocore.exceptions import ClientError

    content = loose_objects(server, tmp_path)
    with cache_over(programs, server, content, tmp_path) as cache:
        reader = s3_server.boto3_client(cache.s3_endpoint(0))
        checkpoint = random.Random(3).randbytes(3 << 20)
        for bucket in (BUCKET, "checkpoints"):
            with pytest.raises(ClientError) as refused:
                reader.put_object(Bucket=bucket, Key="epoch-1.pt", Body=checkpoint)
            assert refused.value.response["Error"]["Code"] == "AccessDenied"
            assert "endpoint_url=" in refused.value.response["Error"]["Message"]
        with pytest.raises(ClientError, match="AccessDenied"):
            reader.delete_object(Bucket=BUCKET, Key=next(iter(content.samples)))
        with pytest.raises(ClientError, match="NoSuchBucket"):
            reader.list_objects_v2(Bucket="checkpoints")

        writer = s3_server.boto3_client(server.endpoint, KEYS)
        writer.put_object(Bucket="checkpoints", Key="epoch-1.pt", Body=checkpoint)
        saved = writer.get_object(Bucket="checkpoints", Key="epoch-1.pt")["Body"].read()
        assert saved == checkpoint
        key = next(iter(content.samples))
        body = reader.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        assert sha256(body) == content.samples[key], "reading goes on"


@needs("boto3")
def test_any_signature_is_taken_and_conditions_are_kept(
    programs: Path, server: BucketServer, tmp_path: Path
) -> None:
    from botocore import UNSIGNED
    from botocore.client import Config
    from botocore.exceptions import ClientError

    content = loose_objects(server, tmp_path)
    key, digest = next(iter(content.samples.items()))
    with cache_over(programs, server, content, tmp_path) as cache:
        for signature in ("s3v4", "s3", UNSIGNED):
            config = Config(signature_version=signature)
            client = s3_server.boto3_client(cache.s3_endpoint(0), config=config)
            assert [bucket["Name"] for bucket in client.list_buckets()["Buckets"]] == [BUCKET]
            whole = client.get_object(Bucket=BUCKET, Key=key)
            assert sha256(whole["Body"].read()) == digest
            for operation, words in (
                ("get_object", {"Bucket": BUCKET, "Key": key}),
                ("list_objects_v2", {"Bucket": BUCKET}),
            ):
                url = client.generate_presigned_url(operation, words)
                with urllib.request.urlopen(url, timeout=120) as answer:
                    assert answer.status == 200
            since = whole["LastModified"]
            # An index keeps times of objects without ETags alone: Ceph tells ETags of all.
            assert (since.year == 1970) is s3_tested.IS_CEPH
            with_times = () if s3_tested.IS_CEPH else (since, since - timedelta(1))
            unchanged = [{"IfNoneMatch": whole["ETag"]}, *({"IfModifiedSince": at} for at in with_times[:1])]
            for condition in unchanged:
                with pytest.raises(ClientError) as refused:
                    client.get_object(Bucket=BUCKET, Key=key, **condition)
                assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 304
            changed = [{"IfMatch": "another"}, *({"IfUnmodifiedSince": at} for at in with_times[1:])]
            for condition in changed:
                with pytest.raises(ClientError, match="PreconditionFailed"):
                    client.get_object(Bucket=BUCKET, Key=key, **condition)


def test_a_web_page_cannot_read_it_by_a_name_of_its_own(
    programs: Path, server: BucketServer, tmp_path: Path
) -> None:
    content = loose_objects(server, tmp_path)
    with cache_over(programs, server, content, tmp_path) as cache:

        def ask(host: str, path: str) -> tuple[int, bytes]:
            asked = urllib.request.Request(cache.s3_endpoint(0) + path, headers={"Host": host})
            try:
                with urllib.request.urlopen(asked, timeout=120) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as refused:
                return refused.code, refused.read()

        key = next(iter(content.samples))
        status, body = ask(f"{BUCKET}.localhost:1", f"/{quote(key)}")
        assert (status, sha256(body)) == (200, content.samples[key])
        assert ask("localhost", "/")[1].startswith(b"This is the S3 endpoint")
        for path in ("/", f"/{BUCKET}", f"/{BUCKET}/{quote(key)}"):
            status, body = ask("evil.example", path)
            assert status == 403 and b"<Code>AccessDenied</Code>" in body
            assert b"names of the loopback" in body


def test_only_what_was_indexed_is_served(
    programs: Path, server: BucketServer, tmp_path: Path
) -> None:
    content = loose_objects(server, tmp_path)
    server.place(BUCKET, "secret/plan.txt", b"not for training")
    with cache_over(programs, server, content, tmp_path) as cache:
        server.place(BUCKET, PREFIX + "later.bin", b"came after the index")
        for key in ("secret/plan.txt", PREFIX + "later.bin"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{cache.s3_endpoint(0)}/{BUCKET}/{key}", timeout=120)
            assert refused.value.code == 404
            assert b"<Code>NoSuchKey</Code>" in refused.value.read()


@pytest.mark.skipif(bool(prometheus.lacks()), reason=prometheus.lacks())
def test_dashboards_show_the_endpoint(programs: Path, server: BucketServer, tmp_path: Path) -> None:
    content = loose_objects(server, tmp_path)
    with (
        cache_over(programs, server, content, tmp_path) as cache,
        Prometheus(tmp_path / "prometheus", [prometheus.scrape_of(cache, 1)]) as running,
    ):
        running.wait_for_targets(3)
        for key in content.samples:
            with urllib.request.urlopen(f"{cache.s3_endpoint(0)}/{BUCKET}/{quote(key)}", timeout=120) as body:
                assert sha256(body.read()) == content.samples[key]
        read = 'optcache_s3_requests_total{operation="get_object"}'
        running.wait_for(f"sum({read}) >= {len(content.samples)}", "all reads are scraped")
        words = ("--last=2m", "--step=1s", "--dashboard=optcache-overview")
        report = running.render(programs / "optcache", tmp_path / "pictures", *words)
    assert empty_panels(report) & PANELS_OF_S3 == set()
