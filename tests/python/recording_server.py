"""A web server of a test's own, which knows what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Optional, TypeVar

Server = TypeVar("Server", bound="RecordingServer")


class RecordingServer(ThreadingHTTPServer):
    """`asked`: of each GET the headers, by names in lower case, and the path as `path`."""

    daemon_threads = True

    def __init__(self, handler: type[RecordingHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.asked: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data"


class RecordingHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RecordingServer

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append({"path": self.path, **headers})
        self.answer()

    def answer(self) -> None:
        raise NotImplementedError

    def say(self, status: int, body: bytes, length: Optional[int] = None, **headers: str) -> None:
        """A name of a header may have `_` for `-`."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def running(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
