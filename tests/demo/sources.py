"""Where the images of a run lie: on a web server, or in a bucket. Either's log says what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Union

import accounting
from accounting import Read, Request
from cluster.buckets import requests_of
from harness.cluster import ClusterOptions
from harness.dataset import Dataset
from harness.s3_server import Keys, S3Server, keys_in_environment
from harness.store import LISTING, Store

BUCKET = "data"  # these two as boto3_rank.py has them
PREFIX = "train/"
KEYS = Keys("AKIAOPTCACHEDEMO", "a/secret+that=is/long enough")
REGION = "us-east-1"


@dataclass(frozen=True)
class WebServer:
    """nginx."""

    dataset: Dataset
    store: Store
    kind: ClassVar[str] = "http"

    @property
    def port(self) -> int:
        return self.store.port

    def options(self, options: ClusterOptions, port: int) -> ClusterOptions:
        """Those of a cache that reads the images at that port."""
        return replace(options, base_url=f"http://127.0.0.1:{port}/", listing=LISTING)

    def log_size(self) -> int:
        return self.store.log_size()

    def reads(self, begin: int) -> list[Read]:
        """Of samples, since the log ended at `begin`."""
        requests = accounting.parse_access_log(self.store.access_log(begin))
        return accounting.sample_reads(requests, self.dataset.paths)


@dataclass(frozen=True)
class Bucket:
    """versitygw, a real server of S3. The methods are those of WebServer."""

    dataset: Dataset
    server: S3Server
    kind: ClassVar[str] = "s3"

    @property
    def port(self) -> int:
        return self.server.port

    def options(self, options: ClusterOptions, port: int) -> ClusterOptions:
        endpoint = f"http://127.0.0.1:{port}"
        source = f'{{bucket: {BUCKET}, prefix: "{PREFIX}", endpoint: "{endpoint}"}}'
        return replace(options, bucket=source)

    def log_size(self) -> int:
        return len(self.server.log())

    def reads(self, begin: int) -> list[Read]:
        sizes = dict(zip(self.dataset.paths, self.dataset.sizes, strict=True))
        requests = parse_bucket_log(self.server.log()[begin:], sizes)
        return accounting.sample_reads(requests, self.dataset.paths)


Source = Union[WebServer, Bucket]


@contextmanager
def web_server(dataset: Dataset, folder: Path) -> Iterator[WebServer]:
    with Store(dataset.root, folder) as store:
        dataset.write_listing(store.listing_file)
        yield WebServer(dataset, store)


@contextmanager
def bucket(dataset: Dataset, folder: Path) -> Iterator[Bucket]:
    """Its keys are in the environment, where `optcache up` finds them."""
    with keys_in_environment(KEYS, REGION), S3Server(folder / "s3", KEYS, REGION) as server:
        server.client().make_bucket(BUCKET)
        for number, path in enumerate(dataset.paths):
            server.place(BUCKET, PREFIX + path, dataset.read(number))
        yield Bucket(dataset, server)


OPENERS: dict[str, Callable[[Dataset, Path], AbstractContextManager[Source]]] = {WebServer.kind: web_server, Bucket.kind: bucket}


def parse_bucket_log(log: str, sizes: Mapping[str, int]) -> list[Request]:
    """What versitygw answered, by the path below the prefix. Its log has whole seconds and no bytes.

    Samples are read whole, so an answer has the bytes of its object. `sizes` are by path.
    """
    beginning = f"/{BUCKET}/{PREFIX}"
    requests = []
    for request in requests_of(log):
        path = request.path.removeprefix(beginning)
        method = "GET" if request.operation == "GetObject" else request.operation
        body_bytes = sizes.get(path, 0) if request.status == 200 else 0
        requests.append(Request(request.time, method, request.status, body_bytes, path))
    return requests
