"""The list of sources that a sidecar writes (docs/formats/sources.md), right and wrong ones."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import ROOT

import optcache
from optcache._source_reads import FileSource, source_of
from optcache._sources import (
    MissingListError,
    Served,
    UnusableListError,
    WithKeys,
    dataset_around,
    dataset_at,
    named,
    no_dataset_at,
    sources_of,
    sources_or_none,
)


STAY = "keys stay with the sidecar"


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "sock"


def write(socket: Path, content: bytes) -> Path:
    path = Path(f"{socket}.sources")
    path.write_bytes(content)
    return path


def listing(*datasets: Any) -> bytes:
    return json.dumps({"version": 1, "datasets": datasets}).encode()


def test_reads_what_a_sidecar_writes(socket: Path) -> None:
    golden = ROOT / "tests" / "golden" / "sidecar" / "sources.json"
    write(socket, golden.read_bytes())
    assert sources_of(str(socket)) == [
        Served(
            "vision/images",
            path="/data/images",
            manifest="/var/lib/optcache/images.manifest",
            digest=b"\xaa" * 32,
            patience_s=120,
        ),
        Served("vision/claim", path="/mnt/optcache/vision/claim"),
        Served("vision/web", url="http://store.example.com/images"),
        Served(
            "vision/web-by-tls", url="https://store.example.com/images", ca_file="/etc/ca.crt"
        ),
        Served(
            "vision/web-with-keys",
            kept=STAY,
            ca_file="/etc/ca.crt",
            with_keys=WithKeys(
                "https://store.example.com/images", keys_folder="/etc/keys", is_ours=True
            ),
        ),
        Served(
            "vision/bucket",
            kept=STAY,
            ca_file="/etc/ca.crt",
            manifest="/var/lib/optcache/bucket.manifest",
            digest=b"\xbb" * 32,
            with_keys=WithKeys(
                "https://bucket.s3.us-east-1.amazonaws.com/prefix/",
                "us-east-1",
                ambient=True,
                is_ours=True,
            ),
        ),
        Served(
            "vision/bucket-with-keys",
            kept=STAY,
            ca_file="/etc/ca.crt",
            with_keys=WithKeys(
                "https://bucket.s3.us-east-1.amazonaws.com/prefix/",
                "us-east-1",
                keys_folder="/etc/keys",
                ambient=True,
                is_ours=True,
            ),
        ),
        Served(
            "vision/open-bucket",
            url="https://s3.example.com/open/a%20b/",
            ca_file="/etc/ca.crt",
        ),
        Served(
            "vision/paid-bucket",
            kept=STAY,
            ca_file="/etc/ca.crt",
            with_keys=WithKeys(
                "https://paid.s3.us-east-1.amazonaws.com/",
                "us-east-1",
                requester_pays=True,
                is_ours=True,
            ),
        ),
        Served(
            "vision/role",
            kept=STAY,
            ca_file="/etc/ca.crt",
            with_keys=WithKeys(
                "https://s3.example.com/bucket/prefix/",
                "us-east-1",
                ambient=True,
                sts_endpoint="https://s3.example.com",
                token_file="/t",
                role_arn="arn",
                is_ours=True,
            ),
        ),
        Served(
            "vision/unpacked", kept="its server unpacks objects that are stored compressed"
        ),
        Served(
            "vision/broken",
            kept="the sidecar's log says what is wrong with the bucket's address or keys",
        ),
        Served("vision/bytes", kept="its path is not UTF-8"),
    ]


def test_fields_that_it_does_not_know_are_skipped(socket: Path) -> None:
    write(socket, listing({"name": "a", "path": "/data", "since": 7}))
    assert sources_of(str(socket)) == [Served("a", path="/data")]


WRONG = {
    "empty": b"",
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe{}",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "no datasets": b'{"version": 1}',
    "another version": b'{"version": 2, "datasets": []}',
    "an entry that is none": listing(7),
    "no name": listing({"path": "/data"}),
    "no place": listing({"name": "a"}),
    "two places": listing({"name": "a", "path": "/data", "url": "http://host/"}),
    "relative": listing({"name": "a", "path": "data"}),
    "a name that is no text": listing({"name": ["a"], "path": "/data"}),
    "a NUL": listing({"name": "a", "path": "/da\0ta"}),
    "long": listing({"name": "a", "path": "/" + "x" * 4096}),
    "ftp": listing({"name": "a", "url": "ftp://host/"}),
    "user": listing({"name": "a", "url": "http://me:secret@host/"}),
    "header": listing({"name": "a", "url": "http://host/a\r\nHost: b"}),
    "manifest alone": listing({"name": "a", "path": "/data", "manifest": "/m"}),
    "no patience": listing({"name": "a", "path": "/data", "patienceSeconds": 0}),
    "endless patience": listing({"name": "a", "path": "/data", "patienceSeconds": 86_401}),
    "a patience that is no number": listing(
        {"name": "a", "path": "/data", "patienceSeconds": True}
    ),
    "keys of a source that needs none": listing(
        {"name": "a", "path": "/data", "withKeys": {"url": "http://host/"}}
    ),
    "keys and no address": listing({"name": "a", "kept": "k", "withKeys": {}}),
    "keys that are no object": listing({"name": "a", "kept": "k", "withKeys": []}),
    "keys for a file": listing({"name": "a", "kept": "k", "withKeys": {"url": "file:///a"}}),
    "a region with a header": listing(
        {"name": "a", "kept": "k", "withKeys": {"url": "http://host/", "region": "a\r\nb"}}
    ),
    "a service that is none": listing(
        {"name": "a", "kept": "k", "withKeys": {"url": "http://host/", "stsEndpoint": "sts"}}
    ),
    "a payer that is a number": listing(
        {"name": "a", "kept": "k", "withKeys": {"url": "http://host/", "requesterPays": 1}}
    ),
    "no digest": listing({"name": "a", "path": "/data", "manifest": "/m", "digest": "a"}),
    "too long": listing(*({"name": "a", "path": "/" + "x" * 4000} for _ in range(300))),
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG)
def test_a_wrong_list_is_not_used(
    socket: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(socket, content)
    with pytest.raises(UnusableListError, match="sources"):
        sources_of(str(socket))
    assert sources_or_none(str(socket)) is None
    (line,) = caplog.records
    assert str(path) in line.getMessage() and "not read while it is away" in line.getMessage()


def test_no_list_is_no_news(socket: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(MissingListError):
        sources_of(str(socket))
    assert sources_or_none(str(socket)) is None
    assert not caplog.records


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "of others"])
def test_a_list_that_may_be_of_others_is_not_used(
    socket: Path, tmp_path: Path, kind: str
) -> None:
    path = Path(f"{socket}.sources")
    if kind == "link":
        write(tmp_path / "other", listing())
        path.symlink_to(tmp_path / "other.sources")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        write(socket, listing()).chmod(0o666)
    with pytest.raises(UnusableListError):
        sources_of(str(socket))


def test_any_bytes_are_a_list_or_none(socket: Path) -> None:
    chance = random.Random(3)
    good = listing({"name": "a", "path": "/data", "manifest": "/m", "digest": "a" * 64})
    for _ in range(500):
        content = bytearray(good)
        for _ in range(chance.randrange(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        write(socket, content)
        try:
            assert all(isinstance(entry, Served) for entry in sources_of(str(socket)))
        except UnusableListError:
            pass


SERVED = [
    Served("default/train", path="/data/train"),
    Served("default/web", url="http://host/images"),
    Served("other/twice", path="/data/twice"),
    Served("default/twice", kept="keys stay with the sidecar"),
]


@pytest.mark.parametrize(
    "root, name",
    [
        ("/data/train", "default/train"),
        ("/data/train/", "default/train"),
        ("/data/../data/./train", "default/train"),
        ("http://host/images/", "default/web"),
        ("default/train", "default/train"),
        ("train", "default/train"),
        ("default/twice", "default/twice"),
        ("twice", None),
        ("/data", None),
        ("/data/train/cats", None),
        ("/other/train", None),
        ("/no/such/dir", None),
    ],
)
def test_the_dataset_of_a_root(root: str, name: Optional[str]) -> None:
    found = dataset_at(root, SERVED)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    "root, found",
    [
        ("/data/train/cats", ("default/train", "cats")),
        ("/data/train/cats/../dogs/big/", ("default/train", "dogs/big")),
        ("/data/training", None),
        ("http://host/images/a%20b/", ("default/web", "a b")),
        ("http://host/images2", None),
        ("/other/train", None),
    ],
)
def test_the_dataset_around_a_root(root: str, found: Optional[tuple[str, str]]) -> None:
    around = dataset_around(root, SERVED)
    assert (around and (around[0].name, around[1])) == found


def test_an_address_or_a_name_is_no_relative_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cats").mkdir()
    monkeypatch.chdir(tmp_path)
    web = Served("web", url="http://host/images")
    served = [Served("files", path=str(tmp_path)), web]
    assert dataset_around("http://host/images/train", served) == (web, "train")
    assert dataset_around("imagenett", served) is None
    assert dataset_around("cats", served) == (served[0], "cats")


def test_the_longest_path_around_a_root_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    (inner / "c").mkdir(parents=True)
    served = [Served("outer", path=str(tmp_path)), Served("inner", path=str(inner))]
    assert dataset_around(str(inner / "c"), served) == (served[1], "c")
    (tmp_path / "link").symlink_to(inner)
    assert dataset_around(str(tmp_path / "link" / "c"), served) == (served[1], "c")
    twice = [*served, Served("again", path=str(inner))]
    with pytest.raises(optcache.OptcacheError, match="several datasets have the source"):
        dataset_around(str(inner / "c"), twice)


def test_a_root_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    served = [Served("a", path=str(tmp_path / "real"))]
    assert dataset_at(str(tmp_path / "link"), served) == served[0]


def test_a_root_of_two() -> None:
    served = [Served("a", path="/data"), Served("b", path="/data")]
    with pytest.raises(optcache.OptcacheError, match="several datasets have the source /data.*a, b"):
        dataset_at("/data", served)


def test_says_what_is_served_and_what_to_write() -> None:
    assert str(no_dataset_at("/no", "/run/sock", SERVED[:2])) == (
        "no dataset of the sidecar at /run/sock has the source or the name '/no'; it serves "
        "default/train (/data/train), default/web (http://host/images): give one of these "
        "folders, or its name, as name='default/train'"
    )


def test_names() -> None:
    assert named(SERVED, "train") == SERVED[0]
    assert named(SERVED, "") is None
    assert named(SERVED[:1], "") == SERVED[0]


def test_a_folder_counts_if_it_is_there(tmp_path: Path) -> None:
    assert source_of(Served("a", path=str(tmp_path))) == FileSource(str(tmp_path))
    assert source_of(Served("a", path=str(tmp_path / "none"))) is None
    assert source_of(Served("a", kept="keys")) is None
    assert source_of(None) is None
