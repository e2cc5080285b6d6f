"""Wire messages that are well formed and say anything: ids that there are not, streams of no world."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence

HEADER = struct.Struct("<2sBBIIIQ")
SIDECAR, NODE = 1, 2
FRAMES = 400
IDS_OF_GET = 64


def hello(role: int, token: str = "", name: str = "liar") -> bytes:
    versions = struct.pack("<HHB", 1, 1, role)
    return _frame(1, versions + _text(name) + struct.pack("<I", 77) + _text(token))


def told_by(role: int, dataset: int, samples: int, chance: random.Random) -> Iterator[bytes]:
    """Frames that a peer of that role may send."""
    liar = _Liar(dataset, samples, chance)
    messages = liar.of_sidecars() if role == SIDECAR else liar.of_nodes()
    for _ in range(FRAMES):
        kind, make = chance.choice(messages)
        payload = chance.randbytes(chance.choice((0, 1, 1000))) if kind in (6, 15) else b""
        yield _frame(kind, make(), payload)


def gets(dataset: int, ids: Sequence[int]) -> Iterator[bytes]:
    """Asks for these samples, a few at a time, as a sidecar without an order does."""
    for begin in range(0, len(ids), IDS_OF_GET):
        of_get = ids[begin : begin + IDS_OF_GET]
        items = b"".join(struct.pack("<IQI", 0, 0, sample) for sample in of_get)
        yield _frame(4, struct.pack("<QQBI", dataset, 0, 0, len(of_get)) + items)


def attaching_and_ending(dataset: int, streams: int) -> Iterator[bytes]:
    """Frames of a sidecar whose ranks come and go, under names that are long where they are told on."""
    none = random.Random(0)
    liar = _Liar(dataset, 1, none)
    for stream in range(1, streams + 1):
        name = f"liar/{stream}/".ljust(1024, "\1")
        yield _frame(9, liar.attach(stream, name, "default/" + "\2" * 1000))
        end = struct.pack("<QII4Q??", stream, 0, 0, 0, 0, 0, 0, True, True)
        yield _frame(10, end)


class _Liar:
    def __init__(self, dataset: int, samples: int, chance: random.Random) -> None:
        self._dataset = dataset
        self._samples = samples
        self._chance = chance

    def of_sidecars(self) -> list[tuple[int, Callable[[], bytes]]]:
        return [
            (4, self._get),
            (6, self._put),
            (8, self._lease_update),
            (9, self._stream_attach),
            (10, self._stream_progress),
        ]

    def of_nodes(self) -> list[tuple[int, Callable[[], bytes]]]:
        return [
            (4, self._get),
            (5, self._sample_reply),
            (7, self._store_reply),
            (8, self._lease_update),
            (11, self._lookup),
            (12, self._lookup_reply),
            (13, self._holding),
            (14, self._announce),
            (15, self._push),
        ]

    # --- Values

    def _u8(self, most: int) -> bytes:
        return bytes([self._chance.randint(0, most)])

    def _u32(self) -> bytes:
        return struct.pack("<I", self._chance.choice((0, 1, 7, 1 << 16, (1 << 32) - 1)))

    def _u64(self) -> bytes:
        return struct.pack("<Q", self._chance.choice((0, 1, 9, 1 << 33, (1 << 63) - 1, (1 << 64) - 1)))

    def _id(self) -> bytes:
        there_is = self._chance.randrange(self._samples)
        none = (self._samples, (1 << 32) - 1)
        return struct.pack("<I", self._chance.choice((there_is, there_is, *none)))

    def _key(self) -> bytes:
        return struct.pack("<Q", self._dataset if self._chance.random() < 0.9 else 1)

    def _list(self, item: Callable[[], bytes]) -> bytes:
        count = self._chance.randrange(4)
        return struct.pack("<I", count) + b"".join(item() for _ in range(count))

    def _read_item(self) -> bytes:
        return self._u32() + self._u64() + self._id()

    # --- Messages

    def _stream_attach(self) -> bytes:
        stream = self._chance.choice((1, 9, (1 << 64) - 1))  # 0 is none
        world = self._chance.choice((1, 2, 1 << 16))
        return self.attach(stream, "a/b/c", "default/images", world)

    def _get(self) -> bytes:
        return self._key() + self._u64() + self._u8(2) + self._list(self._read_item)

    def _put(self) -> bytes:
        return self._key() + self._u64() + self._read_item() + self._u64() + self._u32()

    def _push(self) -> bytes:
        return self._key() + self._u64() + self._read_item() + self._u32()

    def _lease_update(self) -> bytes:
        return self._key() + self._u8(2) + self._list(lambda: self._id() + self._u64())

    def attach(self, stream: int, name: str, dataset: str, world: int = 1) -> bytes:
        """By the first or another rank of that stream."""
        names = self._key() + _text(dataset) + struct.pack("<Q", stream) + _text(name)
        ranks = struct.pack("<II", world, self._chance.randrange(world))
        numbers = self._u32() + self._u8(2) + self._u64() + self._u64() + ranks
        flags = self._u8(1) + self._u8(1) + self._u8(1) + self._u8(2) + self._u8(1) + self._u8(1)
        return names + numbers + flags + self._u32()

    def _stream_progress(self) -> bytes:
        place = self._u64() + self._u32() + self._u32()
        return place + b"".join(self._u64() for _ in range(4)) + self._u8(1) + self._u8(1)

    def _sample_reply(self) -> bytes:
        return self._u32() + bytes([self._chance.randint(2, 5)]) + self._u64() + self._u32() + self._u32()

    def _store_reply(self) -> bytes:
        return self._key() + self._id() + self._u8(1) + self._u8(10)

    def _lookup(self) -> bytes:
        return self._key() + self._u8(1) + self._list(self._id)

    def _lookup_reply(self) -> bytes:
        def item() -> bytes:
            return self._id() + self._u8(3) + self._u32() + self._u64() + self._u8(1)

        return self._key() + self._list(item)

    def _holding(self) -> bytes:
        return self._key() + self._list(self._id) + self._list(self._id)

    def _announce(self) -> bytes:
        return self._key() + self._list(self._id)


def _text(text: str) -> bytes:
    return struct.pack("<H", len(text)) + text.encode()


def _frame(kind: int, body: bytes, payload: bytes = b"") -> bytes:
    head = HEADER.pack(b"OC", 1, kind, 0, 1, len(body), len(payload))
    return head + struct.pack("<I", _crc32c(head + body)) + body + payload


def _crc_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC_TABLE = [_crc_of_byte(byte) for byte in range(256)]


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[crc & 0xFF ^ byte]
    return crc ^ 0xFFFFFFFF
