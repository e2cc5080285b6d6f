"""The endpoint answers as S3 does: cases from the API reference, each put by boto3 to a real server of
S3 and to the endpoint over it. What boto3 reads of the two answers is the same, but for the deviations
that are listed here and in docs/formats/s3-endpoint.md.
"""

from __future__ import annotations

import hashlib
import importlib.util
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from harness import s3_server, s3_tested
from test_s3_endpoint import BUCKET, KEYS, PREFIX, Content, cache_over

if importlib.util.find_spec("boto3") is None:
    pytest.skip("boto3 is not installed", allow_module_level=True)

OBJECT = PREFIX + "a.bin"
SIZE = 1000
EMPTY = PREFIX + "empty.bin"
ODD = PREFIX + "odd/a b+c&d=e%20ä<f>.bin"
ODD_LISTED = {"Key": quote(ODD), "Size": 3, "ETag": f'"{hashlib.md5(b"odd").hexdigest()}"'}
TYPED = PREFIX + "typed.json"
MANY = 1005  # more than a page has
PAST = datetime(2020, 1, 1, tzinfo=timezone.utc)
FUTURE = PAST + timedelta(days=36500)
OVERRIDES = {
    "ResponseCacheControl": "no-store",
    "ResponseContentDisposition": 'attachment; filename="a b.bin"',
    "ResponseContentEncoding": "identity",
    "ResponseContentLanguage": "de",
    "ResponseContentType": "text/plain; charset=utf-8",
    "ResponseExpires": PAST,
}


@dataclass(frozen=True)
class Case:
    operation: str
    words: Mapping[str, Any] = field(default_factory=dict)
    pages: bool = False  # all pages, as boto3's paginator asks for them


def of_object(operation: str, key: str = OBJECT, **words: Any) -> Case:
    return Case(operation, {"Bucket": BUCKET, "Key": key, **words})


def of_bucket(operation: str, **words: Any) -> Case:
    return Case(operation, {"Bucket": BUCKET, **words})


def listing(version: str, pages: bool = False, **words: Any) -> Case:
    return Case(f"list_objects{version}", {"Bucket": BUCKET, **words}, pages)


def ranges() -> Iterator[tuple[str, Case]]:
    for what, header in {
        "first bytes": "bytes=0-99",
        "one byte": "bytes=7-7",
        "to the end": "bytes=900-",
        "last bytes": "bytes=-10",
        "more last bytes than there are": f"bytes=-{SIZE + 1}",
        "over the end": f"bytes=990-{SIZE + 50}",
        "beyond the end": f"bytes={SIZE}-",
        "no last bytes": "bytes=-0",
        "backwards": "bytes=5-4",
        "several": "bytes=0-1,5-6",
        "another unit": "items=0-1",
        "no numbers": "bytes=a-b",
    }.items():
        yield f"range: {what}", of_object("get_object", Range=header)
    yield "range: of HEAD", of_object("head_object", Range="bytes=0-99")
    yield "range: HEAD beyond the end", of_object("head_object", Range=f"bytes={SIZE}-")
    yield "range: of an empty object", of_object("get_object", EMPTY, Range="bytes=0-0")


def conditions() -> Iterator[tuple[str, Case]]:
    for what, words in {
        "If-Match of another": {"IfMatch": '"other"'},
        "If-Match of any": {"IfMatch": "*"},
        "If-None-Match of another": {"IfNoneMatch": '"other"'},
        "If-None-Match of any": {"IfNoneMatch": "*"},
        "If-Modified-Since before": {"IfModifiedSince": PAST},
        "If-Unmodified-Since before": {"IfUnmodifiedSince": PAST},
        "If-Unmodified-Since after": {"IfUnmodifiedSince": FUTURE},
        "If-Match and If-Unmodified-Since": {"IfMatch": "ETag", "IfUnmodifiedSince": PAST},
        "If-None-Match and If-Modified-Since": {"IfNoneMatch": "ETag", "IfModifiedSince": PAST},
        "If-Match of the object": {"IfMatch": "ETag"},
        "If-None-Match of the object": {"IfNoneMatch": "ETag"},
        "If-Match and a range": {"IfMatch": "ETag", "Range": "bytes=1-2"},
        "If-Match of another and a range": {"IfMatch": '"other"', "Range": f"bytes={SIZE}-"},
    }.items():
        yield f"condition: {what}", of_object("get_object", **words)
    yield "condition: HEAD If-None-Match", of_object("head_object", IfNoneMatch="ETag")
    yield "condition: HEAD If-Match of another", of_object("head_object", IfMatch='"other"')


def objects() -> Iterator[tuple[str, Case]]:
    yield "object", of_object("get_object")
    yield "object: HEAD", of_object("head_object")
    yield "object: empty", of_object("get_object", EMPTY)
    yield "object: odd key", of_object("get_object", ODD)
    yield "object: a folder of keys", of_object("get_object", PREFIX + "b")
    yield "object: none", of_object("get_object", "none")
    yield "object: HEAD of none", of_object("head_object", "none")
    yield "object: of no bucket", Case("get_object", {"Bucket": "nobody", "Key": "none"})
    yield "object: HEAD of no bucket", Case("head_object", {"Bucket": "nobody", "Key": "none"})
    yield "object: metadata", of_object("get_object", TYPED)
    yield "object: no such version", of_object("get_object", VersionId="0" * 32)
    for part in (1, 2):
        yield f"part {part}", of_object("get_object", PartNumber=part)
        yield f"part {part}: HEAD", of_object("head_object", PartNumber=part)
    yield "override: all", of_object("get_object", **OVERRIDES)
    for name, value in OVERRIDES.items():
        yield f"override: {name}", of_object("get_object", **{name: value})
    yield "override: of a range", of_object("get_object", Range="bytes=0-1", **OVERRIDES)
    yield "override: of none", of_object("get_object", "none", **OVERRIDES)


def listings() -> Iterator[tuple[str, Case]]:
    few = {"Prefix": PREFIX + "b/"}
    for what, words in {
        "all": {},
        "prefix": few,
        "prefix of no key": {"Prefix": "none"},
        "prefix that is a key": {"Prefix": OBJECT},
        "delimiter": {"Prefix": PREFIX, "Delimiter": "/"},
        "delimiter of the bucket": {"Delimiter": "/"},
        "delimiter of letters": {"Prefix": PREFIX, "Delimiter": "an"},
        "delimiter in no key": {**few, "Delimiter": "|"},
        "encoding": {"Prefix": PREFIX + "odd/", "EncodingType": "url"},
        "no keys": {"MaxKeys": 0},
        "one key": {"MaxKeys": 1},
        "as many keys as there are": {**few, "MaxKeys": 3},
        "more keys than a page": {"MaxKeys": MANY},
        "a negative number of keys": {"MaxKeys": -1},
        "of no bucket": {"Bucket": "nobody"},
    }.items():
        for version in ("", "_v2"):
            yield f"list{version}: {what}", listing(version, **words)
    sizes = {"PaginationConfig": {"PageSize": 2}}
    for version in ("", "_v2"):
        yield f"list{version}: pages", listing(version, True)
        yield f"list{version}: pages of two", listing(version, True, **few, **sizes)
        rolled = {"Prefix": PREFIX, "Delimiter": "/", **sizes}
        yield f"list{version}: pages of prefixes", listing(version, True, **rolled)
    yield "list: marker", listing("", **few, Marker=PREFIX + "b/1.bin")
    yield "list: marker between", listing("", **few, Marker=PREFIX + "b/1")
    yield "list: marker beyond", listing("", Marker="z")
    yield "list_v2: start after", listing("_v2", **few, StartAfter=PREFIX + "b/1.bin")
    yield "list_v2: start before the prefix", listing("_v2", **few, StartAfter="a")
    yield "list_v2: owner", listing("_v2", **few, FetchOwner=True)
    yield "list_v2: wrong token", listing("_v2", ContinuationToken="*")


def buckets() -> Iterator[tuple[str, Case]]:
    yield "bucket: HEAD", of_bucket("head_bucket")
    yield "bucket: HEAD of none", Case("head_bucket", {"Bucket": "nobody"})
    yield "bucket: location", of_bucket("get_bucket_location")
    yield "bucket: location of none", Case("get_bucket_location", {"Bucket": "nobody"})
    yield "bucket: versioning", of_bucket("get_bucket_versioning")
    yield "buckets", Case("list_buckets")


CASES = {
    name: case
    for cases in (objects, ranges, conditions, listings, buckets)
    for name, case in cases()
}

# --- What differs, and why: docs/formats/s3-endpoint.md has the same list.

# Whatever the case.
NOT_COMPARED = {
    "LastModified": "the index of a bucket has ETags and no times",
    "CreationDate": "a bucket has no time here",
    "Metadata": "the index has none",
    "ChecksumAlgorithm": "the index has none",
    "ChecksumCRC32": "the same; new clients write objects with it",
    "ChecksumType": "the same",
    "BucketRegion": "lists of buckets have none here; clients of before 2025 do not show it",
    "AccessPointAlias": "the same",
    "StorageClass": "versitygw names STANDARD in headers, S3 does not",
    "EncodingType": "versitygw passes encoding-type over; boto3 has decoded the keys",
    "ContinuationToken": "versitygw names one that was not sent",
    "Message": "each server has sentences of its own",
}
PRESENCE = {"Owner", "NextContinuationToken"}  # each server has its own

# By case what the endpoint says: as in another case, or these words instead.
DEVIATIONS: dict[str, str | dict[str, Any]] = {
    # The index has no types of objects.
    "object: metadata": {"ContentType": "binary/octet-stream"},
    # The index has no times, and a condition of an unknown time is passed over.
    "condition: If-Unmodified-Since before": "object",
    # S3 says one or the other by the form of the version, which is its own.
    "object: no such version": {"status": 404, "error": "NoSuchVersion"},
    # versitygw passes encoding-type over, and takes any token for a key.
    "list: encoding": {"Contents": [ODD_LISTED | {"Owner": True}]},
    "list_v2: encoding": {"Contents": [ODD_LISTED]},
    "list_v2: wrong token": {"status": 400, "error": "InvalidArgument"},
}

# Where Ceph itself answers otherwise than S3, and the endpoint is not to answer as it does.
PARTS = "Ceph passes partNumber over"
CEPH = {
    "part 1": PARTS,
    "part 1: HEAD": PARTS,
    "part 2": PARTS,
    "part 2: HEAD": PARTS,
    "range: no last bytes": "Ceph sends the whole object",
    "range: backwards": "Ceph refuses it, S3 passes it over",
    "range: several": "Ceph sends the first one",
    "range: another unit": "Ceph sends the whole object as a range",
    "range: no numbers": "Ceph takes letters for 0",
    "condition: If-Match of any": "Ceph takes * for an ETag",
    "condition: If-None-Match of any": "Ceph takes * for an ETag",
    "condition: If-Unmodified-Since after": "Ceph's times end in 2106",
    "list: a negative number of keys": "Ceph takes it for 0",
    "list_v2: a negative number of keys": "Ceph takes it for 0",
    "bucket: location": "Ceph names its zone group",
}


@dataclass
class Servers:
    s3: Any  # clients
    endpoint: Any
    etag: str


@pytest.fixture(scope="module")
def servers(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    s3_tested.need_program()
    folder = tmp_path_factory.mktemp("conformance")
    chance = random.Random(3)
    bodies = {OBJECT: chance.randbytes(SIZE), EMPTY: b"", ODD: b"odd"}
    bodies |= {PREFIX + f"b/{key}.bin": key.encode() for key in ("1", "2", "c/3")}
    bodies |= {PREFIX + f"many/{number:04}": b"one of many" for number in range(MANY)}

    with s3_tested.Server(folder / "s3", KEYS) as server:
        s3 = s3_server.boto3_client(server.endpoint, KEYS)
        s3.create_bucket(Bucket=BUCKET)
        for key, body in bodies.items():
            s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        words = {"ContentType": "application/json", "Metadata": {"made-by": "people"}}
        s3.put_object(Bucket=BUCKET, Key=TYPED, Body=b"{}", **words)
        content = Content(total_bytes=sum(map(len, bodies.values())))
        with cache_over(programs, server, content, folder) as cache:
            endpoint = s3_server.boto3_client(cache.s3_endpoint(0))
            etag = s3.head_object(Bucket=BUCKET, Key=OBJECT)["ETag"]
            yield Servers(s3, endpoint, etag)


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: bool(each) if name in PRESENCE else comparable(each)
            for name, each in value.items()
            if name not in NOT_COMPARED and each != ""  # S3 has empty elements, versitygw has not
        }
    if isinstance(value, list):
        return list(map(comparable, value))
    return value.read() if hasattr(value, "read") else value


def told(answer: Any) -> Any:
    """What boto3 makes of an answer; of an error its code alone."""
    status = {"status": answer.pop("ResponseMetadata")["HTTPStatusCode"]}
    if "Error" in answer:
        return status | {"error": answer["Error"]["Code"]}
    return status | comparable(answer)


def ask(client: Any, case: Case, etag: str) -> Any:
    """What is told, or a list of that for all pages."""
    from botocore.exceptions import ClientError

    words = {name: etag if word == "ETag" else word for name, word in case.words.items()}
    try:
        if case.pages:
            return list(map(told, client.get_paginator(case.operation).paginate(**words)))
        return told(getattr(client, case.operation)(**words))
    except ClientError as error:
        return told(error.response)


@pytest.mark.parametrize("name", CASES)
def test_it_answers_as_s3_does(servers: Servers, name: str) -> None:
    expected = ask(servers.s3, CASES[name], servers.etag)
    found = ask(servers.endpoint, CASES[name], servers.etag)
    if s3_tested.IS_CEPH and name in CEPH:
        assert found != expected, "Ceph answers as S3 does: take it off the list"
        return
    if name not in DEVIATIONS:
        assert found == expected
        return
    assert found != expected, "it deviates no more: take it off the list"
    deviation = DEVIATIONS[name]
    if isinstance(deviation, str):
        assert found == ask(servers.s3, CASES[deviation], servers.etag)
    elif "error" in deviation:
        assert found == deviation
    else:
        assert found == expected | deviation
