"""A link between clients and a server that is slow as told, and counts what passes.

As a class it runs this file as a program of its own, so that who measures CPU can leave it out.
Each connection is carried to the server's port. An answer arrives `delay` seconds later than it was
sent, and so does the first request of a connection, as if it had waited for a handshake; all answers
together pass at no more than `rate` bytes a second (0: at any rate), in the order in which they came.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import HarnessError
from harness.processes import stop

QUEUE_BYTES_MAX = 4 << 20  # on their way in one direction of a connection; no more is read then


class SlowLink:
    """Runs from construction to the end of its `with`."""

    def __init__(self, to_port: int, delay: float = 0.0, rate: float = 0.0) -> None:
        tests = Path(__file__).resolve().parents[1]
        arguments = ["--to", str(to_port), "--delay", str(delay), "--rate", str(rate)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.slow_link", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(tests)},
            start_new_session=True,
        )
        try:
            self.port = int(self._ask("port"))
        except BaseException:
            stop(self._process)
            raise

    def __enter__(self) -> SlowLink:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._process)

    def answered_bytes(self) -> int:
        """Of all answers that have passed so far, with their HTTP headers."""
        return int(self._ask("bytes"))

    @contextmanager
    def at_rate(self, rate: float) -> Iterator[None]:
        """Answers pass at no more than so many bytes a second; afterwards at any rate."""
        self._ask("rate", f"{rate}")
        try:
            yield
        finally:
            self._ask("rate", "0")

    def _ask(self, what: str, value: str = "") -> str:
        pipes = self._process
        assert pipes.stdin is not None and pipes.stdout is not None
        pipes.stdin.write(f"{what} {value}\n".encode())
        pipes.stdin.flush()
        line = pipes.stdout.readline()
        if not line:
            raise HarnessError(f"the slow link ends with status {pipes.wait()}")
        return str(json.loads(line)[what])


class _Link:
    """What all connections share: the one line of answers, and their count."""

    def __init__(self, delay: float, rate: float) -> None:
        self.delay = delay
        self.rate = rate
        self._passed = 0
        # What is in the line: when its last byte leaves it, how many bytes, at which rate.
        self._queue: deque[tuple[float, int, float]] = deque()

    def arrival(self, now: float, size: int) -> float:
        """When so many bytes that are sent now are there."""
        self.passed(now)
        free = max(self._queue[-1][0], now) if self._queue else now
        if not self.rate:
            self._passed += size
            return now + self.delay
        free += size / self.rate
        self._queue.append((free, size, self.rate))
        return free + self.delay

    def passed(self, now: float) -> int:
        """Bytes that are not in the line any more."""
        while self._queue and self._queue[0][0] <= now:
            self._passed += self._queue.popleft()[1]
        if not self._queue:
            return self._passed
        free, size, rate = self._queue[0]
        return self._passed + size - round((free - now) * rate)


class _End(asyncio.Protocol):
    """One of a connection's two ends: what comes in here goes out at `other`, when it is due."""

    def __init__(self, link: _Link, answers: bool) -> None:
        self._link = link
        self._answers = answers
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[float, bytes]] = deque()  # no bytes: the end
        self._queued = 0
        self._timer: asyncio.TimerHandle | None = None
        self._blocked = False  # the other end takes no more for now
        self._not_before = 0.0
        self.other: _End | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if not self._answers:
            self._not_before = self._loop.time() + self._link.delay

    def data_received(self, data: bytes) -> None:
        now = self._loop.time()
        due = self._link.arrival(now, len(data)) if self._answers else max(now, self._not_before)
        self._push(due, data)

    def eof_received(self) -> bool:
        self._push(max(self._loop.time() + self._link.delay, self._not_before), b"")
        return True

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        if self.other and self.other.transport:
            self.other.transport.close()

    def pause_writing(self) -> None:
        if self.other:
            self.other._blocked = True

    def resume_writing(self) -> None:
        if self.other:
            self.other._blocked = False
            self.other.flush()

    def flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self.other is None or self.other.transport is None or self._blocked:
            return
        now = self._loop.time()
        while self._queue and self._queue[0][0] <= now and not self._blocked:
            _, data = self._queue.popleft()
            self._queued -= len(data)
            if data:
                self.other.transport.write(data)
            elif not self.other.transport.is_closing():
                with suppress(OSError):  # that side has gone, which connection_lost is told next
                    self.other.transport.write_eof()
        if self._queue and not self._blocked:
            self._timer = self._loop.call_at(self._queue[0][0], self.flush)
        assert self.transport is not None
        if self._queued < QUEUE_BYTES_MAX and not self.transport.is_closing():
            self.transport.resume_reading()

    def _push(self, due: float, data: bytes) -> None:
        self._queue.append((due, data))
        self._queued += len(data)
        if self._queued >= QUEUE_BYTES_MAX:
            assert self.transport is not None
            self.transport.pause_reading()
        self.flush()


class _Client(_End):
    """The end at a client, which opens the other one."""

    def __init__(self, link: _Link, to_port: int) -> None:
        super().__init__(link, answers=False)
        self._to_port = to_port

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._opening = asyncio.ensure_future(self._open())

    async def _open(self) -> None:
        assert self.transport is not None
        server = _End(self._link, answers=True)
        server.other = self
        try:
            await self._loop.create_connection(lambda: server, "127.0.0.1", self._to_port)
        except OSError:
            self.transport.abort()
            return
        self.other = server
        if self.transport.is_closing() and server.transport:
            server.transport.close()
        self.flush()


async def _serve(to_port: int, delay: float, rate: float) -> None:
    loop = asyncio.get_running_loop()
    link = _Link(delay, rate)
    server = await loop.create_server(lambda: _Client(link, to_port), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    while words := (await loop.run_in_executor(None, sys.stdin.readline)).split():
        if words[0] == "rate":
            link.rate = float(words[1])
        answer = {"port": port, "bytes": link.passed(loop.time()), "rate": link.rate}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=int, required=True)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=0.0)
    given = parser.parse_args()
    asyncio.run(_serve(given.to, given.delay, given.rate))
