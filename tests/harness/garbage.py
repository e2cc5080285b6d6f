"""What broken clients and strangers send, and how long a server puts up with it."""

from __future__ import annotations

import contextlib
import random
import socket
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError

Address = Path | tuple[str, int]
UNIX = "unix:"

CORPUS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus"
CLOSED_S = 90.0  # longer than any deadline of ours
TRICKLE_S = 60.0  # what a trickling frame would take
NOISE_BYTES = 64 << 10


@dataclass(frozen=True)
class Door:
    """A socket that a process of ours listens at, and what is said there."""

    name: str
    address: Address
    hello: bytes  # what a good client says first, and is answered
    huge: bytes  # announces more than anybody may send
    long: bytes  # the beginning of something long, said after hello
    welcome: tuple[int, bytes]  # where and what makes an answer to hello a good one

    def welcomes(self) -> bool:
        """Whether a good client gets in."""
        with connect(self.address) as client, contextlib.suppress(ConnectionError):
            client.sendall(self.hello)
            return self._is_welcome(client.recv(1 << 16))
        return False

    def welcomes_single_bytes(self) -> bool:
        """Whether a good client does whose bytes arrive one by one."""
        with connect(self.address) as client:
            for byte in _single(self.hello):
                client.sendall(byte)
            return self._is_welcome(client.recv(1 << 16))

    def _is_welcome(self, answer: bytes) -> bool:
        offset, expected = self.welcome
        return answer[offset : offset + len(expected)] == expected


def address_of(text: str) -> Address:
    """`text` is "host:port", "http://host:port/..." or "unix:/path"."""
    if text.startswith(UNIX):
        return Path(text.removeprefix(UNIX))
    host, port = text.removeprefix("http://").split("/")[0].rsplit(":", 1)
    return host, int(port)


def wire_door(address: str) -> Door:
    get = (CORPUS / "frame" / "get").read_bytes()
    mebibyte = (1 << 20).to_bytes(4, "little")
    return Door(
        name="wire",
        address=address_of(address),
        hello=(CORPUS / "frame" / "hello").read_bytes(),
        huge=(CORPUS / "frame" / "huge_body").read_bytes(),
        long=get[:12] + mebibyte + get[16:28],
        welcome=(3, b"\x02"),
    )


def http_door(url: str) -> Door:
    return Door(
        name="http",
        address=address_of(url),
        hello=b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
        huge=b"POST /v1/report HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
        long=b"GET /healthz HTTP/1.1\r\nX-Long: ",
        welcome=(0, b"HTTP/1.1 200 "),
    )


def handoff_door(path: Path) -> Door:
    return Door(
        name="handoff",
        address=path,
        hello=(CORPUS / "handoff" / "hello").read_bytes(),
        huge=(CORPUS / "handoff" / "too_long").read_bytes(),
        long=(1 << 20).to_bytes(4, "little") + bytes([5, 0, 0, 0]) + bytes(8),
        welcome=(4, bytes([65])),
    )


def connect(address: Address) -> socket.socket:
    if isinstance(address, tuple):
        return socket.create_connection(address, timeout=CLOSED_S)
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(address))  # waits while the backlog is full, which a timeout would forbid
    client.settimeout(CLOSED_S)
    return client


@contextlib.contextmanager
def crowd(door: Door, count: int) -> Iterator[list[socket.socket]]:
    """So many clients that say nothing."""
    with contextlib.ExitStack() as clients:
        yield [clients.enter_context(connect(door.address)) for _ in range(count)]


# --- Attacks. Each ends when the server has hung up, and gives the seconds that took.


def noise(door: Door, chance: random.Random) -> float:
    with connect(door.address) as client:
        return _until_closed(client, [chance.randbytes(NOISE_BYTES)])


def huge_length(door: Door, _: random.Random) -> float:
    with connect(door.address) as client:
        return _until_closed(client, [door.huge])


def half_then_silence(door: Door, _: random.Random) -> float:
    with connect(door.address) as client:
        return _until_closed(client, [door.hello[:-1]])


def silence(door: Door, _: random.Random) -> float:
    with connect(door.address) as client:
        return _until_closed(client, [])


def slow_hello(door: Door, _: random.Random) -> float:
    """One byte at a time, too slowly."""
    with connect(door.address) as client:
        return _until_closed(client, _single(door.hello), TRICKLE_S / len(door.hello))


def noise_after_hello(door: Door, chance: random.Random) -> float:
    with connect(door.address) as client:
        _say_hello(client, door)
        return _until_closed(client, [chance.randbytes(NOISE_BYTES)])


def slow_after_hello(door: Door, _: random.Random) -> float:
    """A byte a second of something long."""
    with connect(door.address) as client:
        _say_hello(client, door)
        return _until_closed(client, [door.long, *([b"x"] * int(TRICKLE_S))], 1.0)


ATTACKS: tuple[Callable[[Door, random.Random], float], ...] = (
    noise,
    huge_length,
    half_then_silence,
    silence,
    slow_hello,
    noise_after_hello,
    slow_after_hello,
)


def tell(door: Door, hello: bytes, frames: Iterable[bytes]) -> None:
    """Says it all, as far as it is listened to, and takes what is answered until that is all."""
    with connect(door.address) as client, contextlib.suppress(ConnectionError):
        client.sendall(hello)
        for frame in frames:
            client.sendall(frame)
        client.shutdown(socket.SHUT_WR)
        _closes(client, CLOSED_S)


def _single(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def _say_hello(client: socket.socket, door: Door) -> None:
    client.sendall(door.hello)
    if not client.recv(1 << 16):
        raise HarnessError(f"{door.name}: a good client is turned away")


def _until_closed(client: socket.socket, pieces: list[bytes], pause_s: float = 0.0) -> float:
    """Sends the pieces, a pause after each, and then nothing; until the other end has closed."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            client.sendall(piece)
            if pause_s and _closes(client, pause_s):
                return time.monotonic() - began
        if not _closes(client, CLOSED_S):
            raise HarnessError(f"still open after {time.monotonic() - began:.0f} s")
    return time.monotonic() - began


def _closes(client: socket.socket, seconds: float) -> bool:
    """Whether the other end closes within `seconds`; what it says until then is thrown away."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        client.settimeout(left)
        with contextlib.suppress(TimeoutError):
            if not client.recv(1 << 16):
                return True
    return False


# --- What the server has counted


class Page:
    """A scrape, with labels."""

    def __init__(self, url: str) -> None:
        with urllib.request.urlopen(url, timeout=120) as page:
            lines = page.read().decode().splitlines()
        self._series = [line.rsplit(" ", 1) for line in lines if line and line[0] != "#"]

    def sum(self, name: str, **labels: str) -> float:
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            float(value)
            for series, value in self._series
            if series.split("{", 1)[0] == name and all(label in series for label in wanted)
        )
