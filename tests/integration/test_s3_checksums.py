"""Checksums that a real server of S3 keeps with its objects are compared with what is read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import s3_server
from harness.s3_server import Keys, S3Server

BUCKET = "sums"
KEYS = Keys("AKIAOPTCACHETEST", "secret")
BODY = b"123456789"
DAMAGED = b"123456780"
# Of BODY: what a client sends along, and how messages name it.
SUMS = {
    "crc32": ("y/Q5Jg==", "CRC-32"),
    "crc32c": ("4waSgw==", "CRC-32C"),
    "crc64nvme": ("rosUhgp5mIg=", "CRC-64/NVME"),
    "sha1": ("98O8HYCOBHMq32eZZczDTKeuNEE=", "SHA-1"),
    "sha256": ("FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=", "SHA-256"),
}


@pytest.fixture(scope="module", autouse=True)
def _program() -> None:
    if why := s3_server.missing_program():
        pytest.skip(why)
    s3_server.program()  # the first time it is built, which no test shall wait for


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server(tmp_path_factory.mktemp("s3"), KEYS) as running:
        running.client().make_bucket(BUCKET)
        yield running


def _read(programs: Path, server: S3Server, key: str, manifest: Path) -> str:
    """Reads all of the object, by the index that wants its digest; gives what went wrong, or nothing."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    keys = {"AWS_ACCESS_KEY_ID": KEYS.access, "AWS_SECRET_ACCESS_KEY": KEYS.secret}
    source = f"s3://{BUCKET}?endpoint={server.endpoint}"
    done = subprocess.run(
        [programs / "optcache", "manifest", "build", "--source", source, "--include", key]
        + ["--verify", "Digest", "-o", manifest],
        env=clean | keys | {"HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("kind", SUMS)
def test_a_damaged_object_is_refused_by_its_checksum(
    programs: Path, server: S3Server, tmp_path: Path, kind: str
) -> None:
    told, name = SUMS[kind]
    key = f"{kind}.bin"
    server.client().put(BUCKET, key, BODY, {f"x-amz-checksum-{kind}": told})
    assert _read(programs, server, key, tmp_path / "right") == ""
    server.place(BUCKET, key, DAMAGED)  # the server goes on telling ETag and checksum of BODY
    wrong = _read(programs, server, key, tmp_path / "wrong")
    assert f"attempt 2: {key} bytes 0-8: the {name} of what came is " in wrong
    assert f"the store says {told}; nor was it at a second read" in wrong


def test_the_checksum_that_the_server_adds_is_compared(
    programs: Path, server: S3Server, tmp_path: Path
) -> None:
    server.client().put(BUCKET, "plain.bin", BODY)
    assert _read(programs, server, "plain.bin", tmp_path / "right") == ""
    server.place(BUCKET, "plain.bin", DAMAGED)
    wrong = _read(programs, server, "plain.bin", tmp_path / "wrong")
    assert "the CRC-64/NVME of what came is " in wrong


@pytest.fixture
def boto3_client(server: S3Server) -> Any:
    pytest.importorskip("boto3")
    return s3_server.boto3_client(server.endpoint, KEYS)


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])  # boto3's without its extra crt
def test_what_boto3_puts_is_compared(
    programs: Path, server: S3Server, boto3_client: Any, tmp_path: Path, algorithm: str
) -> None:
    key = f"boto3-{algorithm}.bin"
    boto3_client.put_object(Bucket=BUCKET, Key=key, Body=BODY, ChecksumAlgorithm=algorithm)
    assert _read(programs, server, key, tmp_path / "right") == ""
    server.place(BUCKET, key, DAMAGED)
    told, name = SUMS[algorithm.lower()]
    wrong = _read(programs, server, key, tmp_path / "wrong")
    assert f"the {name} of what came is " in wrong and f"the store says {told}" in wrong


def test_a_checksum_of_parts_is_not_taken_for_that_of_the_object(
    programs: Path, server: S3Server, boto3_client: Any, tmp_path: Path
) -> None:
    key = "parts.bin"
    upload = {"Bucket": BUCKET, "Key": key}
    begun = boto3_client.create_multipart_upload(**upload, ChecksumAlgorithm="SHA256")
    upload["UploadId"] = begun["UploadId"]
    sent = boto3_client.upload_part(**upload, PartNumber=1, Body=BODY, ChecksumAlgorithm="SHA256")
    part = {"PartNumber": 1, "ETag": sent["ETag"], "ChecksumSHA256": sent["ChecksumSHA256"]}
    boto3_client.complete_multipart_upload(**upload, MultipartUpload={"Parts": [part]})
    told = boto3_client.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
    assert told["ChecksumSHA256"].endswith("-1")
    assert _read(programs, server, key, tmp_path / "manifest") == ""
