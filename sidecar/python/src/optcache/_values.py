"""The bytes of a computed sample: docs/formats/computed.md is the specification."""

from __future__ import annotations

import math
import pickle
import re
import struct
import sys
import zlib
from typing import Any, Callable

_HEADER = struct.Struct("<4sB3xIQ")  # magic, version, CRC of what follows the header, its length
_MAGIC = b"OPTC"
_VERSION = 1
_ALIGNMENT = 16
_DEPTH_MAX = 32
_PARTS_MAX = 65_536
_DIMENSIONS_MAX = 32
_U32 = struct.Struct("<I")
_I64 = struct.Struct("<q")
_U64 = struct.Struct("<Q")
_F64 = struct.Struct("<d")
_DTYPE = re.compile(r"[<|][biufcSU]\d{1,6}")  # numpy's own notation
_TORCH_DTYPES = frozenset(
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
)


class UnencodableError(TypeError):
    """What a dataset returned has no place in the format."""


class CorruptError(ValueError):
    """Bytes that are no value."""


def encode(value: Any, allow_pickle: bool = False) -> bytes:
    """The value as bytes.

    Raises UnencodableError for what is none of: None, bool, int, float, str, bytes, NumPy arrays and
    scalars, PyTorch tensors, and tuples, lists and dicts of these. With `allow_pickle` others are
    pickled.
    """
    writer = _Writer(allow_pickle)
    writer.put(value, 0)
    body = b"".join(writer.pieces)
    return _HEADER.pack(_MAGIC, _VERSION, zlib.crc32(body), len(body)) + body


def decode(data: bytearray, allow_pickle: bool = False) -> Any:
    """The value of those bytes, equal to what was encoded. Arrays and tensors are parts of `data`,
    which nothing else may use any more: so they can be written to.

    Raises CorruptError if the bytes are not as `encode` made them.
    """
    try:
        magic, version, crc, length = _HEADER.unpack_from(data)
    except struct.error:
        raise CorruptError(f"a value has more than {len(data)} bytes") from None
    body = memoryview(data)[_HEADER.size :]
    if magic != _MAGIC or version != _VERSION:
        raise CorruptError("the bytes are not a value, or a value of another release")
    if length != len(body):
        raise CorruptError(f"it has {len(body)} bytes, not {length}")
    if zlib.crc32(body) != crc:
        raise CorruptError("its checksum does not match")
    reader = _Reader(data, allow_pickle)
    try:
        value = reader.take(0)
    except CorruptError:
        raise
    except Exception as error:  # what a pickle does, for example
        raise CorruptError(f"{type(error).__name__}: {error}") from None
    if reader.at != len(data):
        raise CorruptError("there are bytes after its end")
    return value


class _Writer:
    def __init__(self, allow_pickle: bool) -> None:
        self.pieces: list[bytes] = []
        self._allow_pickle = allow_pickle
        self._size = _HEADER.size
        self._parts = 0

    def put(self, value: Any, depth: int) -> None:
        self._parts += 1
        if depth > _DEPTH_MAX or self._parts > _PARTS_MAX:
            raise UnencodableError(
                f"a sample with more than {_PARTS_MAX:,} parts or {_DEPTH_MAX} levels"
            )
        kind = type(value)
        if (put := _PUT.get(kind)) is not None:
            put(self, value, depth)
        elif not self._put_library(value) and not self._put_pickled(value):
            raise UnencodableError(f"{kind.__module__}.{kind.__qualname__}")

    def _put_library(self, value: Any) -> bool:
        # Code that returns one has imported it.
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and type(value) is numpy.ndarray:
            return self._put_array(b"a", numpy, value)
        if numpy is not None and isinstance(value, numpy.generic):
            return self._put_array(b"g", numpy, numpy.asarray(value))
        if torch is not None and type(value) is torch.Tensor:
            return self._put_tensor(torch, value)
        return False

    def _put_array(self, tag: bytes, numpy: Any, value: Any) -> bool:
        little = value.dtype.newbyteorder("<")
        if not _DTYPE.fullmatch(little.str):
            return False
        self._put_shaped(tag, little.str, value.shape, value.astype(little, copy=False).tobytes())
        return True

    def _put_tensor(self, torch: Any, value: Any) -> bool:
        name = str(value.dtype).rpartition(".")[2]
        plain = (
            value.layout is torch.strided
            and value.device.type == "cpu"
            and not value.requires_grad
            and name in _TORCH_DTYPES
        )
        if not plain or sys.byteorder == "big":
            return False
        flat = value.resolve_conj().resolve_neg().contiguous().reshape(-1)
        if name == "bfloat16":  # which NumPy does not know
            flat = flat.view(torch.int16)
        self._put_shaped(b"t", name, value.shape, flat.numpy().tobytes())
        return True

    def _put_shaped(self, tag: bytes, dtype: str, shape: Any, content: bytes) -> None:
        if len(shape) > _DIMENSIONS_MAX:
            raise UnencodableError(f"an array with {len(shape)} dimensions")
        name = dtype.encode()
        self._add(tag + bytes([len(name), len(shape)]) + name + b"".join(map(_U64.pack, shape)))
        self._put_content(content)

    def _put_pickled(self, value: Any) -> bool:
        if self._allow_pickle:
            self.put_bytes(b"p", pickle.dumps(value, protocol=4))
        return self._allow_pickle

    def put_bytes(self, tag: bytes, content: bytes) -> None:
        self._add(tag + _U64.pack(len(content)))
        self._put_content(content)

    def _put_content(self, content: bytes) -> None:
        self._add(b"\0" * (-self._size % _ALIGNMENT))
        self._add(content)

    def put_items(self, tag: bytes, items: Any, count: int, depth: int) -> None:
        self._add(tag + _U32.pack(count))
        for item in items:
            self.put(item, depth + 1)

    def put_int(self, value: int, depth: int) -> None:
        if -(1 << 63) <= value < 1 << 63:
            self._add(b"i" + _I64.pack(value))
        else:
            length = value.bit_length() // 8 + 1
            self.put_bytes(b"I", value.to_bytes(length, "little", signed=True))

    def put_dict(self, value: dict[Any, Any], depth: int) -> None:
        both = (part for item in value.items() for part in item)
        self.put_items(b"{", both, len(value), depth)

    def add(self, piece: bytes) -> None:
        self._add(piece)

    def _add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self._size += len(piece)


_PUT: dict[type, Callable[[_Writer, Any, int], None]] = {
    type(None): lambda w, v, d: w.add(b"N"),
    bool: lambda w, v, d: w.add(b"T" if v else b"F"),
    int: _Writer.put_int,
    float: lambda w, v, d: w.add(b"f" + _F64.pack(v)),
    str: lambda w, v, d: w.put_bytes(b"s", v.encode("utf-8", "surrogatepass")),
    bytes: lambda w, v, d: w.put_bytes(b"b", v),
    bytearray: lambda w, v, d: w.put_bytes(b"B", bytes(v)),
    tuple: lambda w, v, d: w.put_items(b"(", v, len(v), d),
    list: lambda w, v, d: w.put_items(b"[", v, len(v), d),
    dict: _Writer.put_dict,
}


class _Reader:
    def __init__(self, data: bytearray, allow_pickle: bool) -> None:
        self.at = _HEADER.size
        self._data = data
        self._view = memoryview(data)
        self._allow_pickle = allow_pickle
        self._parts = 0

    def take(self, depth: int) -> Any:
        self._parts += 1
        if depth > _DEPTH_MAX or self._parts > _PARTS_MAX:
            raise CorruptError("it has too many parts")
        tag = bytes(self._take(1))
        if tag == b"N":
            return None
        if tag in b"TF":
            return tag == b"T"
        if tag == b"i":
            return _I64.unpack(self._take(8))[0]
        if tag == b"f":
            return _F64.unpack(self._take(8))[0]
        if tag in b"([":
            items = [self.take(depth + 1) for _ in range(self._count(1))]
            return tuple(items) if tag == b"(" else items
        if tag == b"{":
            return {self.take(depth + 1): self.take(depth + 1) for _ in range(self._count(2))}
        if tag in b"agt":
            return self._take_shaped(tag)
        return self._take_bytes(tag)

    def _take_bytes(self, tag: bytes) -> Any:
        if tag not in b"sbBIp":
            raise CorruptError(f"there is no part {tag!r}")
        (length,) = _U64.unpack(self._take(8))
        content = bytes(self._take_content(length))
        if tag == b"s":
            return content.decode("utf-8", "surrogatepass")
        if tag == b"B":
            return bytearray(content)
        if tag == b"I":
            return int.from_bytes(content, "little", signed=True)
        if tag == b"p":
            if not self._allow_pickle:
                raise CorruptError("it is pickled, and allow_pickle is not set")
            return pickle.loads(content)
        return content

    def _take_shaped(self, tag: bytes) -> Any:
        name_length, dimensions = self._take(2)
        name = str(self._take(name_length), "ascii")
        if dimensions > _DIMENSIONS_MAX:
            raise CorruptError("an array has too many dimensions")
        shape = tuple(_U64.unpack(self._take(8))[0] for _ in range(dimensions))
        return self._tensor(name, shape) if tag == b"t" else self._array(tag, name, shape)

    def _array(self, tag: bytes, name: str, shape: tuple[int, ...]) -> Any:
        import numpy

        if not _DTYPE.fullmatch(name):
            raise CorruptError(f"there is no array of {name}")
        dtype = numpy.dtype(name)
        at = self._skip_content(math.prod(shape) * dtype.itemsize)
        array: Any = numpy.ndarray(shape, dtype, self._data, at)
        native = array if sys.byteorder == "little" else array.astype(dtype.newbyteorder("="))
        return native[()] if tag == b"g" else native

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Any:
        import torch

        if name not in _TORCH_DTYPES:
            raise CorruptError(f"there is no tensor of {name}")
        dtype = getattr(torch, name)
        count = math.prod(shape)
        at = self._skip_content(count * torch.empty((), dtype=dtype).element_size())
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(self._data, dtype=dtype, count=count, offset=at).reshape(shape)

    def _count(self, parts_each: int) -> int:
        count: int = _U32.unpack(self._take(4))[0]
        if count * parts_each > len(self._data) - self.at:
            raise CorruptError("it ends early")
        return count

    def _take_content(self, length: int) -> memoryview:
        at = self._skip_content(length)
        return self._view[at : at + length]

    def _skip_content(self, length: int) -> int:
        """Where it begins."""
        if any(self._take(-self.at % _ALIGNMENT)):
            raise CorruptError("its padding is not zero")
        self._take(length)
        return self.at - length

    def _take(self, length: int) -> memoryview:
        if length > len(self._data) - self.at:
            raise CorruptError("it ends early")
        self.at += length
        return self._view[self.at - length : self.at]
