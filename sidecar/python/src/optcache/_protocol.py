"""The bytes of the hand-over protocol; docs/formats/handoff.md is the specification."""

from __future__ import annotations

import array
import struct
import sys
from dataclasses import dataclass, replace
from typing import NamedTuple, Optional

MIN_VERSION = 1
MAX_VERSION = 2

HELLO, OPEN, ATTACH, PASS, GET, RELEASE, DETACH, TRACE = range(1, 9)
OPEN_COMPUTED, COMPUTED_PUT, COMPUTED_COUNTS = range(9, 12)
READ_COUNTS = 12
WELCOME, OPENED, ATTACHED, DONE, SAMPLES, WAITING, ERROR = range(65, 72)
COMPUTED_OPENED, VALUE, COMPUTE, COUNTS = range(72, 76)
READS = 76

HEADER = struct.Struct("<IIQ")  # body length, type with its three zero bytes, request
GET_BODY = struct.Struct("<IQIIQ")  # dataset, stream, rank, pass, first; then ids
SAMPLES_BODY = struct.Struct("<QII")  # batch, count, others; then entries
ID = struct.Struct("<I")
NO_INDEX = (1 << 64) - 1  # GET_BODY's first: the place is not known
ENTRY = struct.Struct("<QQ")  # place, length
_HELLO_BODY = struct.Struct("<HHI")
_WELCOME_BODY = struct.Struct("<H6xQ")
_OPENED_BODY = struct.Struct("<IQ32sQ")
_RECIPE = struct.Struct("<BBQqII???B?III")
_ATTACHED_BODY = struct.Struct("<QI")
_PASS_BODY = struct.Struct("<QIIQQQ?I")
_DETACH_BODY = struct.Struct("<QI")
_TRACE_BODY = struct.Struct("<QIIQQ")  # stream, rank, pass, first, length; then ids
_OPEN_COMPUTED = struct.Struct("<QQ")  # samples, bytes; after the strings
_COMPUTED_OPENED = struct.Struct("<I?QQ")
PUT_BODY = struct.Struct("<QQQ")  # lease, length, offset; then bytes
_VALUE_BODY = struct.Struct("<QQ")  # both Value and Compute
_COUNTS_BODY = struct.Struct("<6Q")
_READS_BODY = struct.Struct("<11Q?d")
_U16 = struct.Struct("<H")
_U64 = struct.Struct("<Q")

KIND_ARENA, KIND_INLINE, KIND_ERROR, KIND_STAND_IN = range(4)

IDS_MAX = 65_536  # in one Get
TRACE_MAX = 1 << 26  # ids of a rank's list
PUT_MAX = (1 << 20) - PUT_BODY.size  # bytes in one part of a value
BYTES_MAX = 64 << 20  # of the samples in one Get, if there is more than one
RELEASES_MAX = 65_536  # in one Release
STRING_MAX = 4096
PASSES_MAX = (1 << 31) - 1  # so that the last has a number
BEHIND_MAX = (1 << 32) - 1
PASS_READS_MAX = (1 << 63) - 1
_FROM_FIRST_PASS = (1 << 32) - 1
HELLO_S = 10  # for the sidecar to say Welcome
SILENCE_S = 60  # of the sidecar, after which it counts as gone

SEQUENTIAL, TORCH_DISTRIBUTED, TORCH_RANDOM = range(3)  # kinds of recipes
BASE_SEED_EVERY_PASS, BASE_SEED_FIRST_PASS, BASE_SEED_NEVER = range(3)


class Tag(NamedTuple):
    """Where a batch stands: its first sample is the rank's `first`-th in that pass."""

    stream: int
    rank: int
    pass_number: int
    first: int


class Opened(NamedTuple):
    handle: int
    samples: int
    digest: bytes
    manifest_bytes: int
    name: str
    notice: str = ""  # what who opens it is to be told


class Attached(NamedTuple):
    stream: int
    first_pass: int
    loader: str = ""  # by which name it reads; empty: by the one that was said


class ComputedOpened(NamedTuple):
    handle: int
    first: bool  # it was not open before
    capacity: int
    memory: int  # bytes of the memory file that came with it


class Value(NamedTuple):
    """Where a computed sample lies in that memory."""

    offset: int
    length: int


class Compute(NamedTuple):
    """There is none."""

    lease: int
    room: int  # a longer value is not taken


class Counts(NamedTuple):
    capacity: int
    bytes: int
    values: int
    hits: int
    misses: int
    evictions: int


class Reads(NamedTuple):
    """What was delivered of a dataset, by where it came from, and what it cost the store."""

    node_samples: int
    node_bytes: int
    peer_samples: int
    peer_bytes: int
    store_samples: int
    store_sample_bytes: int
    uncached_requests: int  # of the same reads without a cache
    uncached_bytes: int
    store_requests: int
    store_bytes: int
    wait_us: int
    saved_cost: Optional[float]  # None: no price is known


@dataclass(frozen=True)
class Recipe:
    """What must be known of a sampler to replay it: lib/sampler/recipe.h."""

    known: bool
    size: int
    kind: int = SEQUENTIAL
    seed: int = 0
    world: int = 1
    rank: int = 0
    shuffle: bool = False
    drop_last: bool = False
    modern_randperm: bool = True
    base_seed: int = BASE_SEED_EVERY_PASS
    tail_permutation: bool = True
    passes: int = 0  # how many there will be; 0: not known
    behind: int = 0  # how many samples may be with the workers
    order: str = ""  # the recipe as text where the fields do not say it; "trace": lists will come
    pass_reads: int = 0  # this many ids of the rank's list, from the front, in each pass; 0: all


@dataclass(frozen=True)
class Pass:
    """One iteration: `length` samples (0: not known) from index `start` of the rank's list."""

    epoch: int
    start: int
    length: int
    crc: Optional[int] = None
    trace: Optional[array.array[int]] = None  # the rank's whole list, where there is no recipe
    ahead: tuple[array.array[int], ...] = ()  # those of the iterations that follow

    def rest(self, read: int) -> Pass:
        """What is left when the first `read` samples are left out."""
        if read == 0:
            return self
        left = max(self.length - read, 0)
        return replace(self, start=self.start + read, length=left, crc=None)


def frame(kind: int, request: int, body: bytes) -> bytes:
    return HEADER.pack(len(body), kind, request) + body


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > STRING_MAX:
        raise ValueError(f"a name has {len(encoded)} bytes, at most {STRING_MAX} are allowed")
    return _U16.pack(len(encoded)) + encoded


def hello(pid: int) -> bytes:
    return _HELLO_BODY.pack(MIN_VERSION, MAX_VERSION, pid)


def open_dataset(name: str) -> bytes:
    return _string(name)


def attach(
    handle: int,
    loader: str,
    recipe: Recipe,
    passes_from: Optional[int],
    version: int,
    job: str = "",
) -> bytes:
    seed = (recipe.seed + (1 << 63)) % (1 << 64) - (1 << 63)
    fields = _RECIPE.pack(
        recipe.known and not recipe.order,
        recipe.kind,
        recipe.size,
        seed,
        recipe.world,
        recipe.rank,
        recipe.shuffle,
        recipe.drop_last,
        recipe.modern_randperm,
        recipe.base_seed,
        recipe.tail_permutation,
        recipe.passes,
        _FROM_FIRST_PASS if passes_from is None else passes_from,
        recipe.behind,
    )
    body = struct.pack("<II", handle, 0) + _string("") + _string(loader) + fields
    if version < 2:
        return body
    told = recipe.order if recipe.known or recipe.order == "trace" else ""
    if told or recipe.pass_reads or job:
        body += _string(told)
    if recipe.pass_reads or job:
        body += _U64.pack(recipe.pass_reads)
    return body + _string(job) if job else body


def begin_pass(stream: int, rank: int, number: int, what: Pass) -> bytes:
    known = what.crc is not None
    return _PASS_BODY.pack(
        stream, rank, number, what.epoch % (1 << 64), what.start, what.length, known, what.crc or 0
    )


def trace(
    stream: int, rank: int, number: int, first: int, length: int, ids: array.array[int]
) -> bytes:
    if sys.byteorder == "big":
        ids = array.array("I", ids)
        ids.byteswap()
    return _TRACE_BODY.pack(stream, rank, number, first, length) + ids.tobytes()


def open_computed(name: str, what: str, samples: int, max_bytes: int) -> bytes:
    return _string(name) + _string(what) + _OPEN_COMPUTED.pack(samples, max_bytes)


def detach(stream: int, rank: int) -> bytes:
    return _DETACH_BODY.pack(stream, rank)


def parse_welcome(body: memoryview) -> tuple[int, int]:
    """Version and arena size."""
    version, size = _WELCOME_BODY.unpack_from(body)
    return version, size


def parse_opened(body: memoryview) -> Opened:
    handle, samples, digest, manifest_bytes = _OPENED_BODY.unpack_from(body)
    name, rest = _take_string(body[_OPENED_BODY.size :])
    notice = parse_string(rest) if rest else ""
    return Opened(handle, samples, digest, manifest_bytes, name, notice)


def parse_attached(body: memoryview) -> Attached:
    stream, first_pass = _ATTACHED_BODY.unpack_from(body)
    rest = body[_ATTACHED_BODY.size :]
    return Attached(stream, first_pass, parse_string(rest) if rest else "")


def parse_computed_opened(body: memoryview) -> ComputedOpened:
    return ComputedOpened(*_COMPUTED_OPENED.unpack_from(body))


def parse_value(body: memoryview) -> Value:
    return Value(*_VALUE_BODY.unpack_from(body))


def parse_compute(body: memoryview) -> Compute:
    return Compute(*_VALUE_BODY.unpack_from(body))


def parse_counts(body: memoryview) -> Counts:
    return Counts(*_COUNTS_BODY.unpack_from(body))


def parse_reads(body: memoryview) -> Reads:
    *counts, priced, saved_cost = _READS_BODY.unpack_from(body)
    return Reads._make([*counts, saved_cost if priced else None])


def parse_string(body: memoryview) -> str:
    return _take_string(body)[0]


def _take_string(body: memoryview) -> tuple[str, memoryview]:
    """The string that stands first, and what follows it."""
    (length,) = _U16.unpack_from(body)
    return str(body[2 : 2 + length], "utf-8", "replace"), body[2 + length :]


def parse_error(body: memoryview) -> tuple[int, str]:
    """Code and text of an Error frame."""
    return body[0], parse_string(body[1:])
