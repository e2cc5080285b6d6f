"""Clients of the S3 endpoint: how one is run, and the bound that it is compared with."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.s3_clients import CLIENTS, Layout, read_epochs  # noqa: E402
from harness import s3_reader  # noqa: E402
from harness.errors import HarnessError  # noqa: E402
from harness.s3_reader import BUCKET, PREFIX  # noqa: E402

OBJECTS = {f"{PREFIX}{name}": name.encode() * 100 for name in ("a.bin", "b.bin", "c.bin")}
LISTED = "<Contents><Key>{key}</Key><Size>{size}</Size></Contents>"
LISTING = (
    f"<ListBucketResult><Name>{BUCKET}</Name><IsTruncated>false</IsTruncated>"
    + "".join(LISTED.format(key=key, size=len(body)) for key, body in OBJECTS.items())
    + "</ListBucketResult>"
)


class Bucket(BaseHTTPRequestHandler):
    """The objects, and their list in one page."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path.removeprefix(f"/{BUCKET}").removeprefix("/")
        body = OBJECTS.get(path) if path else LISTING.encode()
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body or b"")

    do_HEAD = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    """Of a client of that bucket."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        yield clean | {
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "any",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_client_reads_whole_epochs(tmp_path: Path, epochs: int) -> None:
    pytest.importorskip("boto3")
    with environment() as words:
        read = read_epochs(Path(sys.executable), "boto3", tmp_path, epochs, words)
    assert read == {key: hashlib.sha256(body).hexdigest() for key, body in OBJECTS.items()}


def test_why_a_client_cannot_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="KeyError: 'unknown'"):
        read_epochs(Path(sys.executable), "unknown", tmp_path, 2, os.environ)


def test_each_client_is_one_that_reads() -> None:
    assert {client.name for client in CLIENTS} <= set(s3_reader.CLIENTS)


def test_all_are_read_once_and_then_what_has_no_room() -> None:
    layout = Layout(Path(), [1000] * 10)
    assert layout.bound(1) == 10
    assert layout.bound(5) == 10 + 4 * 7, "a quarter of the capacity for transit is too little for one"


def test_the_smallest_are_the_most_that_can_be_kept() -> None:
    assert Layout(Path(), [1, 1, 8, 30, 60]).bound(2) == 5 + 2
    assert Layout(Path(), [1, 1, 8, 25, 65]).bound(2) == 5 + 1, "one more in the reserve for transit"
