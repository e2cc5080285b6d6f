"""Second requests for late reads: the tail of read times with and without, and their price."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.context import Context
from bench.figures import Figure, at_least, at_most

FALLS_BY = 5.0
MORE_REQUESTS = 0.02

SIZE = 50_000
USUAL_SECONDS = 0.010
STRAGGLER_SECONDS = 2.0
STRAGGLE_EVERY = 100  # one request of so many, at a random place among them
TURNS = 3


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def do_GET(self) -> None:
        time.sleep(self.server.next_delay())
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Store(ThreadingHTTPServer):
    """A web server on the loopback whose answers take their time."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = random.Random(1).randbytes(SIZE)
        self.requests = 0
        self._chance = random.Random(2)
        self._straggler = 0
        self._lock = threading.Lock()

    def next_delay(self) -> float:
        with self._lock:
            place = self.requests % STRAGGLE_EVERY
            if place == 0:
                self._straggler = self._chance.randrange(STRAGGLE_EVERY)
            self.requests += 1
            late = place == self._straggler
        return USUAL_SECONDS + (STRAGGLER_SECONDS if late else 0)

    def handle_error(self, *_: object) -> None:
        """A reader that went away is no news."""


@contextmanager
def running_store() -> Iterator[Store]:
    store = Store()
    thread = threading.Thread(target=store.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.shutdown()
        store.server_close()
        thread.join()


def read(context: Context, extra: float) -> dict[str, Any]:
    """All reads from a server of their own, so that each run meets the same stragglers."""
    reads = 600 if context.quick else 6000
    with running_store() as store:
        arguments = ("--url", f"http://127.0.0.1:{store.server_port}/", "--size", str(SIZE))
        asked = ("--reads", str(reads), "--extra", str(extra))
        result: dict[str, Any] = context.ask("bench_hedge", "read", *arguments, *asked)
        return {**result, "requests": store.requests}


def figures_of(name: str, plain: dict[str, Any], hedged: dict[str, Any]) -> list[Figure]:
    peer = "without: p50 {p50_ms:.0f} ms, p99 {p99_ms:.0f} ms, p99.9 {p99_9_ms:.0f} ms"
    return [
        Figure(f"{name}: p99", hedged["p99_ms"], "ms", peer.format(**plain)),
        Figure(f"{name}: p99.9", hedged["p99_9_ms"], "ms"),
        Figure(
            f"{name}: p99 falls by",
            plain["p99_ms"] / hedged["p99_ms"],
            goal=at_least(FALLS_BY),
        ),
        Figure(
            f"{name}: more requests",
            hedged["requests"] / hedged["reads"] - 1,
            goal=at_most(MORE_REQUESTS),
        ),
    ]


def run(context: Context) -> list[Figure]:
    sizes = ["--reads", "5000"] if context.quick else []
    simulated = context.ask("bench_hedge", "simulate", *sizes)
    figures = figures_of("simulated", simulated["plain"], simulated["hedged"])
    for turn in range(1 if context.quick else TURNS):
        context.say(f"reads from a server, turn {turn + 1}")
        plain = read(context, 0)
        figures += figures_of(f"real, turn {turn + 1}", plain, read(context, MORE_REQUESTS))
    return figures
