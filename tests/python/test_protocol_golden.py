"""The frames of the hand-over protocol and its limits are those that the sidecar's tests write.

tests/golden/handoff has them; tests/unit/handoff/golden_frames_test.cc is the other side.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optcache import _protocol as protocol
from optcache import errors

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "handoff"
REQUEST = 0x01020304

ASKED: dict[str, tuple[int, Callable[[], bytes]]] = {
    "open": (protocol.OPEN, lambda: protocol.open_dataset("vision/imagenet")),
    "attach": (
        protocol.ATTACH,
        lambda: protocol.attach(
            2,
            "train",
            protocol.Recipe(
                known=True,
                size=1_281_167,
                kind=protocol.TORCH_DISTRIBUTED,
                seed=-5,
                world=8,
                rank=7,
                shuffle=True,
                drop_last=False,
                modern_randperm=False,
                base_seed=protocol.BASE_SEED_NEVER,
                tail_permutation=True,
                passes=90,
                behind=4352,
            ),
            4,
            protocol.MAX_VERSION,
        ),
    ),
    "attach_of_job": (
        protocol.ATTACH,
        lambda: protocol.attach(
            2,
            "",
            protocol.Recipe(
                known=True,
                size=9,
                shuffle=True,
                drop_last=True,
                modern_randperm=False,
                tail_permutation=False,
                order="torch-random size=9 draws=5",
                pass_reads=4,
            ),
            None,
            protocol.MAX_VERSION,
            "8f3a",
        ),
    ),
    "pass": (
        protocol.PASS,
        lambda: protocol.begin_pass(1 << 63, 3, 2, protocol.Pass(7, 5, 100, 0xE3069283)),
    ),
    "get": (
        protocol.GET,
        lambda: protocol.GET_BODY.pack(2, 9, 3, 4, 96) + array.array("I", [5, 0, 70_000]).tobytes(),
    ),
    "release": (protocol.RELEASE, lambda: array.array("Q", [1, 0x0102030405]).tobytes()),
    "detach": (protocol.DETACH, lambda: protocol.detach(9, 3)),
    "trace": (
        protocol.TRACE,
        lambda: protocol.trace(2, 3, 4, 5, 70, array.array("I", [5, 0, 6])),
    ),
    "open_computed": (
        protocol.OPEN_COMPUTED,
        lambda: protocol.open_computed("resized", "v1", 100, 1 << 20),
    ),
    "computed_put": (
        protocol.COMPUTED_PUT,
        lambda: protocol.PUT_BODY.pack(6, 9, 7) + b"\xab\xcd",
    ),
    "computed_counts": (protocol.COMPUTED_COUNTS, lambda: protocol.ID.pack(3)),
    "read_counts": (protocol.READ_COUNTS, lambda: protocol.ID.pack(2)),
}

ANSWERED: dict[str, tuple[int, Callable[[memoryview], Any], Any]] = {
    "welcome": (protocol.WELCOME, protocol.parse_welcome, (protocol.MAX_VERSION, 1 << 30)),
    "opened": (
        protocol.OPENED,
        protocol.parse_opened,
        protocol.Opened(2, 1_281_167, bytes(range(32)), 77, "a/b", "old"),
    ),
    "attached": (protocol.ATTACHED, protocol.parse_attached, protocol.Attached(9, 4, "train")),
    "done": (protocol.DONE, bytes, b""),
    "waiting": (protocol.WAITING, protocol.parse_string, "the store is away"),
    "computed_opened": (
        protocol.COMPUTED_OPENED,
        protocol.parse_computed_opened,
        protocol.ComputedOpened(3, True, 5, 6),
    ),
    "value": (protocol.VALUE, protocol.parse_value, protocol.Value(7, 8)),
    "compute": (protocol.COMPUTE, protocol.parse_compute, protocol.Compute(6, 9)),
    "counts": (protocol.COUNTS, protocol.parse_counts, protocol.Counts(1, 2, 3, 4, 5, 6)),
    "reads": (
        protocol.READS,
        protocol.parse_reads,
        protocol.Reads(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.5),
    ),
}


def golden(name: str) -> bytes:
    return bytes.fromhex((GOLDEN / f"{name}.hex").read_text())


def body_of(name: str, kind: int) -> memoryview:
    frame = golden(name)
    length, kind_there, request = protocol.HEADER.unpack_from(frame)
    assert (length, kind_there, request) == (len(frame) - protocol.HEADER.size, kind, REQUEST)
    return memoryview(frame)[protocol.HEADER.size :]


def test_every_file_has_its_test() -> None:
    files = {path.stem for path in GOLDEN.glob("*.hex")}
    assert files == {*ASKED, *ANSWERED, "hello", "samples", "error"}


@pytest.mark.parametrize("name", ASKED)
def test_a_request_is_written_as_the_sidecar_reads_it(name: str) -> None:
    kind, body = ASKED[name]
    assert protocol.frame(kind, REQUEST, body()) == golden(name)


def test_hello() -> None:
    assert protocol.frame(protocol.HELLO, REQUEST, protocol.hello(4242)) == golden("hello")


@pytest.mark.parametrize("name", ANSWERED)
def test_an_answer_is_read_as_the_sidecar_writes_it(name: str) -> None:
    kind, parse, expected = ANSWERED[name]
    assert parse(body_of(name, kind)) == expected


def test_samples() -> None:
    body = body_of("samples", protocol.SAMPLES)
    batch, count, others = protocol.SAMPLES_BODY.unpack_from(body)
    assert (batch, count, others) == (12, 3, 2)
    rest = body[protocol.SAMPLES_BODY.size :]
    entries = [*protocol.ENTRY.iter_unpack(rest[: 16 * count])]
    assert entries[:2] == [(4096, 100), (8192, 7)]
    kinds, tail = bytes(rest[16 * count : 17 * count]), rest[17 * count :]
    assert [*kinds] == [protocol.KIND_ARENA, protocol.KIND_STAND_IN, protocol.KIND_ERROR]
    place, length = entries[2]
    assert errors.code_name(tail[place]) == "data_loss"
    assert bytes(tail[place + 1 : place + length]) == b"cut"


def test_an_error() -> None:
    code, text = protocol.parse_error(body_of("error", protocol.ERROR))
    assert (errors.code_name(code), text) == ("not_found", "no such dataset")


def test_limits() -> None:
    lines = (GOLDEN / "constants.txt").read_text().splitlines()
    assert len(lines) > 20
    for line in lines:
        name, value = line.split()
        if name.startswith("code_"):
            assert errors.code_name(int(value)) == name[len("code_") :], line
        else:
            name = "_FROM_FIRST_PASS" if name == "from_first_pass" else name.upper()
            assert getattr(protocol, name) == int(value), line
