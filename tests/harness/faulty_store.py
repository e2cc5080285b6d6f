"""An object store that misbehaves as it is told, object by object.

It sends ranges, and does not look at If-Match: its readers have to compare ETags.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from dataclasses import dataclass
from typing import Any

from harness.dataset import Dataset
from harness.ports import free_port
from harness.store import LISTING

FOR_EVER = 1_000_000
PIECES = 10


def etag_of(body: bytes) -> str:
    return '"' + hashlib.sha256(body).hexdigest()[:16] + '"'


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        path = self.path.removeprefix("/")
        if path != LISTING:
            self.server.take_time()
        body = self.server.objects.get(path)
        if body is None:
            missing(self, b"")
        else:
            fault = self.server.next_fault(path, self.headers.get("Range", ""))
            (fault or right)(self, body)

    def do_HEAD(self) -> None:
        body = self.server.objects.get(self.path.removeprefix("/"))
        if body is None:
            missing(self, b"")
        else:
            self.begin(200, len(body), {"ETag": etag_of(body)})

    def answer(self, body: bytes, share: float = 1.0) -> None:
        """What is asked for of an object, and of that no more than this share of its bytes."""
        status, headers = 200, {"ETag": etag_of(body), "Accept-Ranges": "bytes"}
        if found := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            first, last = int(found[1]), min(int(found[2]), len(body) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
            status, body = 206, body[first : last + 1]
        self.begin(status, len(body), headers)
        self.wfile.write(body[: int(len(body) * share)])

    def begin(self, status: int, length: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


Fault = Callable[[Handler, bytes], None]


def right(handler: Handler, body: bytes) -> None:
    handler.answer(body)


def missing(handler: Handler, body: bytes) -> None:
    handler.begin(404, 0, {})


def unavailable(handler: Handler, body: bytes) -> None:
    handler.begin(503, 0, {})


def unavailable_for_a_second(handler: Handler, body: bytes) -> None:
    handler.begin(503, 0, {"Retry-After": "1"})


def slow(handler: Handler, body: bytes) -> None:
    """All of it, in two seconds."""
    handler.begin(200, len(body), {"ETag": etag_of(body)})
    step = -(-len(body) // PIECES)
    for begin in range(0, len(body), step):
        handler.wfile.write(body[begin : begin + step])
        handler.wfile.flush()
        time.sleep(2 / PIECES)


def stalled(handler: Handler, body: bytes) -> None:
    """Half of it, then nothing until the reader has gone."""
    _half(handler, body)
    handler.connection.recv(1)


def frozen(handler: Handler, body: bytes) -> None:
    """Nothing until the store is healed, then all of it."""
    handler.server.healed.wait()
    right(handler, body)


def truncated(handler: Handler, body: bytes) -> None:
    """Half of it, then the connection ends."""
    _half(handler, body)


def reset(handler: Handler, body: bytes) -> None:
    """Half of it, then the connection is torn down."""
    _half(handler, body)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def too_long(handler: Handler, body: bytes) -> None:
    """A byte more than there is, under the same ETag."""
    handler.begin(200, len(body) + 1, {"ETag": etag_of(body)})
    handler.wfile.write(body + b"!")


def grown(handler: Handler, body: bytes) -> None:
    """The object is another one now, and longer."""
    right(handler, body + b"!")


def replaced(handler: Handler, body: bytes) -> None:
    """The object is another one now, of the same length."""
    right(handler, bytes(255 - byte for byte in body))


def flipped(handler: Handler, body: bytes) -> None:
    """A bit of it is another one, under the same ETag and length."""
    handler.begin(200, len(body), {"ETag": etag_of(body)})
    handler.wfile.write(bytes([body[0] ^ 1]) + body[1:])


def flipped_in_a_cache(handler: Handler, body: bytes) -> None:
    """The same, for those who do not ask the server itself."""
    (right if handler.headers.get("Cache-Control") == "no-cache" else flipped)(handler, body)


def _half(handler: Handler, body: bytes) -> None:
    handler.answer(body, share=0.5)
    handler.close_connection = True


@dataclass(frozen=True)
class Pace:
    """How long an object takes at least, and how many do so at once; others wait their turn."""

    seconds: float = 0.0
    at_once: int = 1


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, objects: Mapping[str, bytes], pace: Pace) -> None:
        super().__init__((host, free_port()), Handler)
        self._pace = pace
        self._turns = threading.Semaphore(pace.at_once)
        self.objects = objects
        self.ranges: dict[str, list[str]] = collections.defaultdict(list)  # of each GET, by path
        self.faults: dict[str, tuple[Fault, int]] = {}  # by path; how many more times
        self.of_all: tuple[Fault, float] = (right, 0.0)  # whatever the path; of which share
        self.healed = threading.Event()
        self.healed.set()
        self._connections: set[Any] = set()
        self._chance = random.Random(0)
        self._lock = threading.Lock()

    def take_time(self) -> None:
        if self._pace.seconds:
            with self._turns:
                time.sleep(self._pace.seconds)

    def next_fault(self, path: str, range_header: str) -> Fault | None:
        with self._lock:
            self.ranges[path].append(range_header)
            fault_of_all, share = self.of_all
            if self._chance.random() < share:
                return fault_of_all
            fault, times = self.faults.get(path, (right, 0))
            self.faults[path] = (fault, times - 1)
            return fault if times > 0 else None

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Ends all connections."""
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):  # its client was faster
                    connection.shutdown(socket.SHUT_RDWR)

    def listen_again(self) -> None:
        """After server_close, at the same port."""
        self.socket = socket.socket(self.address_family, self.socket_type)
        self.server_bind()
        self.server_activate()

    def handle_error(self, *_: object) -> None:
        """A reader that went away is no news."""


class FaultyStore:
    """Serves a dataset until the end of its `with`; the listing knows sizes and ETags."""

    def __init__(self, dataset: Dataset, pace: Pace = Pace(), host: str = "127.0.0.1") -> None:
        objects = {path: (dataset.root / path).read_bytes() for path in dataset.paths}
        listing = [f"{path}\t{len(body)}\t{etag_of(body)}\n" for path, body in objects.items()]
        self._server = Server(host, {**objects, LISTING: "".join(listing).encode()}, pace)
        self._serve()

    def __enter__(self) -> FaultyStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def base_url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/"

    def gets(self, path: str) -> int:
        """How often it was asked for."""
        return len(self._server.ranges[path])

    def ranges(self, path: str) -> list[str]:
        """The range that each of these asked for; empty: all of it."""
        return list(self._server.ranges[path])

    def script(self, path: str, fault: Fault, times: int = 1) -> None:
        """The next `times` that `path` is asked for end so."""
        self._server.faults[path] = (fault, times)

    def script_all(self, fault: Fault, share: float = 1.0) -> None:
        """That share of all that is asked for ends so, until `heal`."""
        self._server.healed.clear()
        self._server.of_all = (fault, share)

    def refuse(self) -> None:
        """Its connections end, and others are refused, as if its process had ended; until `heal`."""
        self._end()
        self._server.hang_up()

    def heal(self) -> None:
        """What `script` has set alone counts again."""
        self._server.of_all = (right, 0.0)
        self._server.healed.set()
        if not self._thread.is_alive():
            self._server.listen_again()
            self._serve()

    def _serve(self) -> None:
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _end(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
