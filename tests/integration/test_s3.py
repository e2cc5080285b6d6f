"""Buckets of a real, strict server of S3: by http and https, awkward keys, keys that rotate."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote_plus

import optcache
import pytest
from harness import s3_tested
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.control_plane import Authority
from harness.processes import stop, wait_until
from harness.s3_server import BucketServer, Keys

from optcache.errors import SampleError

BUCKET = "data"
KEYS = Keys("AKIAOPTCACHETEST", "a/secret+that=is/long enough")
MANY = 3200  # more than three pages of a listing

AWKWARD = [
    "blank in a name.jpg",
    "plus+equals=and&query?fragment#.jpg",
    "percent%20%2F%.jpg",
    "quotes\"and'apostrophe.jpg",
    "brackets[](){}<>|^`\\.jpg",
    "semicolon;colon:at@comma,dollar$star*.jpg",
    "Grüße/日本語/😀.jpg",
    "tilde~dash-dot.under_score!.jpg",
    "/".join(["d" * 200] * 5) + "/" + "k" * 19,  # 1,024 bytes, the most that a key may have
]


@pytest.fixture(scope="module", autouse=True)
def _program() -> None:
    s3_tested.need_program()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    """With a bucket of many objects, and one of awkward keys; not to be changed."""
    with s3_tested.Server(tmp_path_factory.mktemp("s3"), KEYS) as running:
        client = running.client()
        client.make_bucket("awkward")
        for key in AWKWARD:
            client.put("awkward", key, key.encode())
        client.make_bucket(BUCKET)
        for number in range(MANY):
            running.place(BUCKET, _name(number), b"%d\n" % number)
        yield running


def _name(number: int) -> str:
    # Folders whose names and those of loose objects interleave around the slash.
    folder = f"class-{number % 7}" if number % 2 else f"class-{number % 7}.d/sub"
    return f"train/{folder}/{number:05}.jpg"


def _environment(keys: Keys | None) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    clean["HOME"] = "/nonexistent"  # the tester's own ~/.aws
    if keys is None:
        return clean
    return clean | {"AWS_ACCESS_KEY_ID": keys.access, "AWS_SECRET_ACCESS_KEY": keys.secret}


def _index(
    programs: Path,
    source: str,
    output: Path,
    *flags: str | Path,
    keys: Keys | None = KEYS,
    more: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    command = [programs / "optcache", "manifest", "build", "--source", source, "-o", output]
    return subprocess.run(
        [*command, *flags],
        env=_environment(keys) | (more or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def _paths(programs: Path, manifest: Path) -> list[str]:
    shown = subprocess.run(
        [programs / "optcache", "manifest", "show", "--paths", manifest],
        capture_output=True,
        check=True,
    )
    return shown.stdout.decode().split("\n")[:-1]


def _address(server: BucketServer, bucket: str, more: str = "") -> str:
    return f"s3://{bucket}?endpoint={server.endpoint}{more}"


def _verify(programs: Path, source: str, manifest: Path) -> None:
    command = [programs / "optcache", "manifest", "verify", "--source", source, manifest]
    done = subprocess.run(command, env=_environment(KEYS), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def _with_awkward_objects(server: BucketServer) -> list[str]:
    """Puts an object into BUCKET for each awkward name without a slash; the object holds its name."""
    client = server.client()
    client.make_bucket(BUCKET)
    names = [name for name in AWKWARD if "/" not in name]
    for name in names:
        client.put(BUCKET, f"train/{name}", name.encode())
    return names


def test_all_pages_of_a_listing_are_read(programs: Path, server: BucketServer, tmp_path: Path) -> None:
    done = _index(programs, _address(server, f"{BUCKET}/train"), tmp_path / "m", "--order", "path")
    assert done.returncode == 0, done.stderr
    expected = sorted(_name(number).removeprefix("train/") for number in range(MANY))
    assert _paths(programs, tmp_path / "m") == expected


def test_a_list_of_keys_is_read_and_nothing_is_listed(programs: Path, tmp_path: Path) -> None:
    with s3_tested.Server(tmp_path / "s3", KEYS) as server:
        names = _with_awkward_objects(server)
        client = server.client()
        client.put(BUCKET, "train/unlisted", b"x")
        etags = {name: f'"{hashlib.md5(name.encode()).hexdigest()}"' for name in names}
        lines = [f"train/{name}\t{len(name.encode())}\t{etags[name]}\n" for name in names]
        client.put(BUCKET, "lists/train all.txt", "".join([*lines, "val/a\t1\n"]).encode())
        client.put(BUCKET, "lists/bad.txt", b"train/a\t1\ntrain/b\n")
        source = _address(server, f"{BUCKET}/train", "&listing=lists/train%20all.txt")
        done = _index(programs, source, tmp_path / "m", "--order", "path")
        assert done.returncode == 0, done.stderr
        assert _paths(programs, tmp_path / "m") == sorted(names, key=str.encode)
        _verify(programs, source, tmp_path / "m")
        bad = _address(server, f"{BUCKET}/train", "&listing=lists/bad.txt")
        refused = _index(programs, bad, tmp_path / "m")
        assert refused.returncode == 1
        assert "the list lists/bad.txt" in refused.stderr
        assert "line 2: the size is missing" in refused.stderr
        assert server.gets() == 2
        assert server.listings() == 0
        # What the log calls a listing, so that the line above can fail.
        plain = _index(programs, _address(server, f"{BUCKET}/train"), tmp_path / "m")
        assert plain.returncode == 0, plain.stderr
        assert server.listings() > 0


def test_an_s3_inventory_is_read_and_nothing_is_listed(programs: Path, tmp_path: Path) -> None:
    with s3_tested.Server(tmp_path / "s3", KEYS) as server:
        names = _with_awkward_objects(server)
        client = server.client()
        rows = io.StringIO()
        writer = csv.writer(rows, quoting=csv.QUOTE_ALL)
        for name in names:
            key = quote_plus(f"train/{name}", safe="/")
            etag = hashlib.md5(name.encode()).hexdigest()
            writer.writerow([BUCKET, key, "v", "true", "false", len(name.encode()), etag])
            writer.writerow([BUCKET, key, "u", "false", "false", 1, "0" * 32])
        writer.writerow([BUCKET, "train/deleted", "v", "true", "true", "", ""])
        text = rows.getvalue().encode()
        files = {
            "inv/data/1.csv.gz": gzip.compress(text),
            "inv/data/2.csv.gz": gzip.compress(f"{BUCKET},val/a,v,true,false,1,".encode()),
        }
        for key, content in files.items():
            client.put(BUCKET, key, content)
        manifest = {
            "sourceBucket": BUCKET,
            "destinationBucket": f"arn:aws:s3:::{BUCKET}",
            "version": "2016-11-30",
            "creationTimestamp": "1514944800000",
            "fileFormat": "CSV",
            "fileSchema": "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, ETag",
            "files": [
                {"key": key, "size": len(body), "MD5checksum": hashlib.md5(body).hexdigest()}
                for key, body in files.items()
            ],
        }
        client.put(BUCKET, "inv/manifest.json", json.dumps(manifest).encode())
        parquet = manifest | {"fileFormat": "Parquet"}
        client.put(BUCKET, "parquet/manifest.json", json.dumps(parquet).encode())
        source = _address(server, f"{BUCKET}/train", "&listing=inv/manifest.json")
        done = _index(programs, source, tmp_path / "m", "--order", "path")
        assert done.returncode == 0, done.stderr
        assert _paths(programs, tmp_path / "m") == sorted(names, key=str.encode)
        _verify(programs, source, tmp_path / "m")
        source = _address(server, f"{BUCKET}/train", "&listing=parquet/manifest.json")
        refused = _index(programs, source, tmp_path / "m")
        assert refused.returncode == 1
        assert 'the inventory is in "Parquet", and only CSV can be read' in refused.stderr
        assert server.listings() == 0


def test_awkward_keys_are_listed_and_read(
    programs: Path, server: BucketServer, tmp_path: Path
) -> None:
    done = _index(programs, _address(server, "awkward"), tmp_path / "m", "--order", "path")
    assert done.returncode == 0, done.stderr
    assert sorted(_paths(programs, tmp_path / "m")) == sorted(AWKWARD)
    _verify(programs, _address(server, "awkward"), tmp_path / "m")


def test_a_training_process_reads_a_bucket(
    programs: Path, server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in _environment(KEYS).items():
        monkeypatch.setenv(name, value)
    options = ClusterOptions(
        programs=programs,
        base_url="",
        listing="",
        machines=1,
        budget=Budget(memory=1 << 20, arena=8 << 20, overflow=8 << 20),
        state=tmp_path / "state",
        sockets=tmp_path,
        bucket=f'{{bucket: awkward, endpoint: "{server.endpoint}"}}',
        order="Path",
    )
    with Cluster(options, "Optimal", tmp_path) as cluster:
        dataset = optcache.Dataset(socket=str(cluster.socket(0)), copy=True)
        assert len(dataset) == len(AWKWARD)
        for number, key in enumerate(sorted(AWKWARD, key=str.encode)):
            assert bytes(dataset[number]) == key.encode(), key


def test_a_certificate_of_ones_own(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    authority = Authority(tmp_path / "pki")
    certificate, private_key = authority.make_pair("server", ["localhost"])
    folder = tmp_path / "s3"
    folder.mkdir()
    with s3_tested.Server(folder, KEYS, "eu-test-1", certificate, private_key) as server:
        client = server.client(authority.certificate)
        client.make_bucket(BUCKET)
        client.put(BUCKET, "a", b"a")
        source = _address(server, BUCKET, "&region=eu-test-1")
        refused = _index(programs, source, tmp_path / "m")
        assert refused.returncode == 1
        assert "certificate" in refused.stderr
        done = _index(programs, source, tmp_path / "m", "--ca-file", authority.certificate)
        assert done.returncode == 0, done.stderr
        (tmp_path / "config").write_text(f"[default]\nca_bundle = {authority.certificate}\n")
        for more in (
            {"AWS_CA_BUNDLE": str(authority.certificate)},
            {"AWS_CONFIG_FILE": str(tmp_path / "config")},
        ):
            done = _index(programs, source, tmp_path / "m", more=more)
            assert done.returncode == 0, done.stderr


def test_keys_of_a_folder(programs: Path, server: BucketServer, tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "accessKeyID").write_text(KEYS.access + "\n")
    (folder / "secretAccessKey").write_text(KEYS.secret + "\n")
    source = _address(server, "awkward")
    done = _index(programs, source, tmp_path / "m", "--keys", folder, "--order", "path", keys=None)
    assert done.returncode == 0, done.stderr


def _mount(folder: Path, name: str, keys: Keys) -> None:
    """As the kubelet brings a Secret: a folder of its own, then the link to it is turned."""
    version = folder / f"..{name}"
    version.mkdir(parents=True)
    (version / "accessKeyID").write_text(keys.access)
    (version / "secretAccessKey").write_text(keys.secret)
    (folder / "..data_tmp").symlink_to(version.name)
    (folder / "..data_tmp").rename(folder / "..data")


def test_a_profile_has_keys_and_endpoint(
    programs: Path, server: BucketServer, tmp_path: Path
) -> None:
    aws = tmp_path / ".aws"
    aws.mkdir()
    (aws / "config").write_text(f"[profile lab]\nendpoint_url = {server.endpoint}\n")
    (aws / "credentials").write_text(
        f"[lab]\naws_access_key_id = {KEYS.access}\naws_secret_access_key = {KEYS.secret}\n"
    )
    command = [programs / "optcache", "manifest", "build", "--source", f"s3://{BUCKET}/train"]
    environment = _environment(None) | {"HOME": str(tmp_path), "AWS_PROFILE": "lab"}

    def build() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "-o", tmp_path / "m"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    done = build()
    assert done.returncode == 0, done.stderr
    assert len(_paths(programs, tmp_path / "m")) == MANY
    (aws / "credentials").write_text(f"[lab]\naws_secret_access_key = {KEYS.secret}\n")
    done = build()
    assert done.returncode != 0
    assert f'{aws / "credentials"} line 2: the profile "lab" has one of' in done.stderr
    assert KEYS.secret not in done.stderr


def test_keys_that_change_while_they_are_used(programs: Path, tmp_path: Path) -> None:
    before, after = Keys("AKIABEFORE", "before"), Keys("AKIAAFTER", "after")
    keys, buckets = tmp_path / "keys", tmp_path / "s3"
    _mount(keys, "before", before)
    for name in ("accessKeyID", "secretAccessKey"):
        (keys / name).symlink_to(f"..data/{name}")
    with ExitStack() as running:
        with s3_tested.Server(buckets, before) as server:
            client = server.client()
            client.make_bucket(BUCKET)
            for name in ("0", "1"):
                client.put(BUCKET, name, name.encode())
            source = _address(server, BUCKET)
            done = _index(programs, source, tmp_path / "m", "--order", "path", keys=before)
            assert done.returncode == 0, done.stderr
            socket = tmp_path / "sock"
            sidecar = subprocess.Popen(
                [
                    programs / "optcache-sidecar",
                    *("--name", "sidecar", "--socket", socket),
                    *("--node", "127.0.0.1:1"),  # nobody: all is read from the store
                    *("--dataset", f"data={tmp_path / 'm'}={source}", "--keys", f"data={keys}"),
                    *("--arena", "8Mi"),
                ],
                env=_environment(None),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            running.callback(stop, sidecar)
            wait_until(socket.exists, "the sidecar listens")
            dataset = optcache.Dataset(socket=str(socket), copy=True)
            assert bytes(dataset[0]) == b"0"
        with s3_tested.Server(buckets, after, port=server.port):
            _mount(keys, "after", after)
            wait_until(lambda: _reads(dataset, 1, b"1"), "it reads with the new keys")


def _reads(dataset: optcache.Dataset, number: int, content: bytes) -> bool:
    try:
        return bytes(dataset[number]) == content
    except SampleError:
        return False


@pytest.mark.parametrize(
    ("bucket", "more", "keys", "says"),
    [
        ("no-such-bucket", "", KEYS, "NoSuchBucket"),
        (BUCKET, "", Keys("AKIANOBODY", "x"), "check the access key ID"),
        (BUCKET, "", Keys(KEYS.access, "wrong"), "SignatureDoesNotMatch"),
        (BUCKET, "", None, "AccessDenied"),
        pytest.param(
            *(BUCKET, "&region=eu-west-7", KEYS, "us-east-1"),
            marks=pytest.mark.skipif(s3_tested.IS_CEPH, reason="Ceph takes any region"),
        ),
        (f"{BUCKET}/nothing-here", "", KEYS, 'no objects below "nothing-here/"'),
    ],
    ids=["bucket", "key-id", "secret", "no-keys", "region", "prefix"],
)
def test_what_is_wrong_is_said(
    programs: Path,
    server: BucketServer,
    tmp_path: Path,
    bucket: str,
    more: str,
    keys: Keys | None,
    says: str,
) -> None:
    source = f"s3://{bucket}?endpoint={server.endpoint}{more}"
    done = _index(programs, source, tmp_path / "m", keys=keys)
    assert done.returncode == 1
    assert says in done.stderr
    assert KEYS.secret not in done.stderr
