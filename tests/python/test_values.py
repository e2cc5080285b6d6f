"""The bytes of computed samples: round trips, and bytes from anywhere."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import numpy
import pytest
import torch
from optcache._values import CorruptError, UnencodableError, decode, encode

DTYPES = ("?", "u1", "<i2", ">i4", "<u8", "<f2", "<f4", "<f8", "<c8", "S3", "<U2")
TENSORS = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.complex64)


def same(a: Any, b: Any) -> bool:
    """Equal in type, shape and every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool(torch.all((a == b) | (a != a)))
    if isinstance(a, (numpy.ndarray, numpy.generic)):
        little = a.dtype.newbyteorder("<")
        return b.dtype == little and a.shape == b.shape and a.astype(little).tobytes() == b.tobytes()
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    return struct.pack("d", a) == struct.pack("d", b) if isinstance(a, float) else bool(a == b)


def some_value(chance: random.Random, depth: int = 0) -> Any:
    """Any value that has a place in the format."""
    kind = chance.randrange(13 if depth < 4 else 10)
    if kind < 3:
        return chance.choice([None, True, False, 0.0, -0.0, float("inf"), float("nan")])
    if kind == 3:
        return chance.randrange(-(1 << chance.randrange(1, 200)), 1 << chance.randrange(1, 200))
    if kind == 4:
        return "".join(map(chr, chance.choices(range(0x11000), k=chance.randrange(9))))
    if kind == 5:
        return chance.choice([bytes, bytearray])(chance.randbytes(chance.randrange(70)))
    shape = tuple(chance.randrange(4) for _ in range(chance.randrange(4)))
    if kind < 8:
        return some_array(chance, shape)
    if kind == 8:
        array = some_array(chance, ())
        return array[()]
    if kind == 9:
        flat = torch.tensor([chance.randrange(2) for _ in range(numpy.prod(shape, dtype=int))])
        return flat.to(chance.choice(TENSORS)).reshape(shape)
    items = [some_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 12:
        return {i if chance.random() < 0.5 else str(i): item for i, item in enumerate(items)}
    return tuple(items) if kind == 10 else items


def some_array(chance: random.Random, shape: tuple[int, ...]) -> Any:
    dtype = numpy.dtype(chance.choice(DTYPES))
    count = int(numpy.prod(shape, dtype=int))
    if dtype.kind in "SU":
        return numpy.array(["ab"] * count, dtype).reshape(shape)
    array = numpy.array([chance.randrange(2) for _ in range(count)]).astype(dtype).reshape(shape)
    return array.T if chance.random() < 0.5 else array


@pytest.mark.parametrize("seed", range(300))
def test_a_value_comes_back_as_it_was(seed: int) -> None:
    value = some_value(random.Random(seed))
    assert same(value, decode(bytearray(encode(value)))), repr(value)


def test_what_comes_back_may_be_written_to() -> None:
    data = encode((numpy.zeros(3), torch.zeros(3), 1))
    first, second = decode(bytearray(data)), decode(bytearray(data))
    first[0][0] = first[1][0] = 5
    assert second[0][0] == second[1][0] == 0


class Tuple(tuple):  # type: ignore[type-arg]
    """Is not exactly a tuple."""


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        Tuple((1, 2)),
        numpy.array([object()]),
        numpy.zeros(2, "f4,i2"),
        numpy.array("2020", "M8[D]"),
        torch.zeros(2, requires_grad=True),
        torch.zeros(2).to_sparse(),
        torch.nn.Parameter(torch.zeros(2)),
        [0] * 70_000,
    ],
)
def test_what_has_no_place_is_refused(value: Any) -> None:
    with pytest.raises(UnencodableError):
        encode([value])


def test_too_deep_is_refused() -> None:
    value: list[Any] = []
    for _ in range(40):
        value = [value]
    with pytest.raises(UnencodableError):
        encode(value)


def test_pickles_are_for_who_asks_for_them() -> None:
    with pytest.raises(UnencodableError):
        encode({1, 2})
    data = encode([{1, 2}, 3], allow_pickle=True)
    assert decode(bytearray(data), allow_pickle=True) == [{1, 2}, 3]
    with pytest.raises(CorruptError, match="allow_pickle"):
        decode(bytearray(data))


def test_a_bit_that_changed_is_seen() -> None:
    data = encode([numpy.arange(4), "text"])
    for at in range(0, 8 * len(data), 7):
        wrong = bytearray(data)
        wrong[at // 8] ^= 1 << (at % 8)
        if 40 <= at < 64:
            continue  # padding of the header
        with pytest.raises(CorruptError):
            decode(wrong)
    for length in range(len(data)):
        with pytest.raises(CorruptError):
            decode(bytearray(data[:length]))
    with pytest.raises(CorruptError):
        decode(bytearray(data + b"\0"))


@pytest.mark.parametrize("seed", range(200))
def test_hostile_bytes_with_a_right_checksum_are_refused_or_a_value(seed: int) -> None:
    chance = random.Random(seed)
    body = bytearray(encode(some_value(chance))[20:])
    for _ in range(60):
        wrong = bytearray(body)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(wrong))
            wrong[at : at + chance.randrange(3)] = chance.choice(
                [chance.randbytes(2), b"\xff" * 8, b"(", b"a", b"t", b"p", b"{"]
            )
        head = struct.pack("<4sB3xIQ", b"OPTC", 1, zlib.crc32(wrong), len(wrong))
        try:
            decode(bytearray(head + wrong))
        except CorruptError:
            pass
