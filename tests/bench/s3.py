"""Buckets of a million objects, indexed: requests, time, memory.

The buckets are made up: 1,000 folders of 1,000 objects, or one folder with all of them, by names of
several kinds. Their pages of 1,000 keys take 20 or 10 ms, as a near store's do.
"""

from __future__ import annotations

import bisect
import hashlib
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from bench.context import Context
from bench.figures import Figure, at_most
from harness.errors import HarnessError

KEYS_A_FOLDER = 1000
KEYS_A_PAGE = 1000
BEFORE_KEY = "<Contents><Key>"
AFTER_KEY = (
    "</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
    "<ETag>&quot;0123456789abcdef0123456789abcdef&quot;</ETag><Size>110000</Size></Contents>"
)


@dataclass(frozen=True)
class Layout:
    """How the keys of a bucket are named."""

    name: str
    keys: Callable[[int], Iterable[str]]  # so many, in any order
    page_seconds: float


def _digest(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


def _uuid(number: int) -> str:
    return str(uuid.UUID(_digest(number)[:32]))


LAYOUTS = [
    Layout(
        f"in folders of {KEYS_A_FOLDER:,}",
        lambda count: (f"n{n // KEYS_A_FOLDER:08}/{n % KEYS_A_FOLDER:08}.jpg" for n in range(count)),
        0.02,
    ),
    Layout("in one, img_0000001.jpg", lambda c: (f"img_{n:07}.jpg" for n in range(c)), 0.01),
    Layout("in one, img_000000000001.jpg", lambda c: (f"img_{n:012}.jpg" for n in range(c)), 0.01),
    Layout("in one, 1.jpg", lambda count: (f"{n}.jpg" for n in range(count)), 0.01),
    Layout("in one, digests", lambda count: (_digest(n) for n in range(count)), 0.01),
    Layout("in one, UUIDs", lambda count: (f"{_uuid(n)}.jpg" for n in range(count)), 0.01),
]


class MadeUpBucket(ThreadingHTTPServer):
    """Answers ListObjectsV2 for so many keys; takes any signature."""

    daemon_threads = True

    def __init__(self, keys: int, layout: Layout) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.keys = sorted(f"train/{key}" for key in layout.keys(keys))
        self.page_seconds = layout.page_seconds
        self.pages = 0
        self.lock = threading.Lock()

    def page(self, prefix: str, start_after: str, roll_up: bool) -> str:
        with self.lock:
            self.pages += 1
        first = bisect.bisect_right(self.keys, max(start_after, prefix))
        last = bisect.bisect_left(self.keys, prefix + "~")
        if not roll_up:
            end = min(first + KEYS_A_PAGE, last)
            return _page(_entries(self.keys[first:end]), more=end < last)
        entries, count, at = "", 0, first
        while at < last and count < KEYS_A_PAGE:
            count += 1
            name, slash, _ = self.keys[at][len(prefix) :].partition("/")
            if not slash:
                entries += _entries([self.keys[at]])
                at += 1
                continue
            folder = f"{prefix}{name}/"
            entries += f"<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"
            at = bisect.bisect_left(self.keys, folder + "~")
        return _page(entries, more=at < last)


def _entries(keys: list[str]) -> str:
    return BEFORE_KEY + (AFTER_KEY + BEFORE_KEY).join(keys) + AFTER_KEY if keys else ""


def _page(entries: str, more: bool) -> str:
    truncated = "true" if more else "false"
    return (
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<IsTruncated>{truncated}</IsTruncated>{entries}</ListBucketResult>"
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: MadeUpBucket

    def do_GET(self) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        begin = time.monotonic()
        body = self.server.page(
            query.get("prefix", ""), query.get("start-after", ""), "delimiter" in query
        ).encode()
        time.sleep(max(0.0, self.server.page_seconds - (time.monotonic() - begin)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def run(context: Context) -> list[Figure]:
    keys = 20_000 if context.quick else 1_000_000
    return [figure for layout in LAYOUTS for figure in _indexed(context, keys, layout)]


def _indexed(context: Context, keys: int, layout: Layout) -> list[Figure]:
    with MadeUpBucket(keys, layout) as bucket:
        threading.Thread(target=bucket.serve_forever, daemon=True).start()
        context.say(f"indexing {keys} objects {layout.name}")
        command: list[str | Path] = [
            context.programs / "optcache",
            *("manifest", "build", "--order", "path"),
            *("--source", f"s3://bucket?endpoint=http://127.0.0.1:{bucket.server_port}"),
            *("-o", context.folder / "manifest"),
        ]
        keys_of_example = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}
        begin = time.monotonic()
        with open(context.folder / "log", "wb") as log:
            child = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | keys_of_example
            )
            _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        bucket.shutdown()
    if child.returncode != 0:
        words = (context.folder / "log").read_text(errors="replace")
        raise HarnessError(f"optcache manifest build ends with {child.returncode}: {words}")
    size = f"bucket of {keys:,} objects {layout.name}"
    pages = keys / KEYS_A_PAGE
    return [
        Figure(f"{size}: requests / pages of {KEYS_A_PAGE:,}", bucket.pages / pages,
               goal=at_most(1.25)),
        Figure(f"{size}: index, {layout.page_seconds * 1000:g} ms a page", seconds, "s",
               peer=f"one page after another {pages * layout.page_seconds:.1f} at least"),
        Figure(f"{size}: CPU of it", usage.ru_utime + usage.ru_stime, "s"),
        Figure(f"{size}: memory at most", usage.ru_maxrss / 1024, "MiB"),
    ]  # fmt: skip
