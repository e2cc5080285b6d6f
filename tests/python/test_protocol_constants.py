"""Every constant of the hand-over protocol has one value, wherever it is written.

It is written in lib/handoff/layout.h, for the sidecar, in optcache._protocol, for the training
process, and in docs/formats/handoff.md, for readers. Here all three are read as text and compared.
A constant that is new in one of them fails until it is in the others, or in a table below that says
why it need not be. What the bytes of each message are, golden frames say: test_protocol_golden.py.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Union

import pytest

from optcache import _protocol as protocol

ROOT = Path(__file__).resolve().parents[2]
LAYOUT = (ROOT / "lib/handoff/layout.h").read_text()
PAGE = (ROOT / "docs/formats/handoff.md").read_text()
LIMITS = PAGE.partition("\n## Limits\n")[2].partition("\n## ")[0]

# Of layout.h and of _protocol.
SHARED = {
    "kMinVersion": "MIN_VERSION",
    "kMaxVersion": "MAX_VERSION",
    "kNoIndex": "NO_INDEX",
    "kFromFirstPass": "_FROM_FIRST_PASS",
    "kMaxIds": "IDS_MAX",
    "kMaxReleases": "RELEASES_MAX",
    "kMaxTraceIds": "TRACE_MAX",
    "kMaxStringBytes": "STRING_MAX",
    "kMaxPutBytes": "PUT_MAX",
    "kFrameDeadline": "HELLO_S",
}
SIDECAR_ALONE = {
    "kTraceOrder": "a text, which the golden frames of Attach have",
    "kMaxRequestBytes": "the client keeps within it by kMaxIds, kMaxReleases and kMaxPutBytes",
    "kMaxReplyBytes": "the client takes what a u32 can say",
    "kMaxWaitingGets": "a connection of the client has one Get at a time",
    "kMaxClients": "of all clients together",
    "kMaxQueuedBytes": "the client sees a connection that is not read from",
    "kWriteDeadline": "how long the sidecar waits for a client",
    "kWaitingInterval": "compared with the client's patience below",
}
CLIENT_ALONE = {
    "BYTES_MAX": "the sidecar's batches have it, compared below",
    "PASSES_MAX": "of what a script may ask for; the frame has a u32",
    "BEHIND_MAX": "what a u32 can say",
    "PASS_READS_MAX": "of what a script may ask for; the frame has a u64",
    "SILENCE_S": "the client's patience",
    # Of lib/sampler/recipe.h: tests/golden/handoff/constants.txt.
    **dict.fromkeys(("SEQUENTIAL", "TORCH_DISTRIBUTED", "TORCH_RANDOM"), "kinds of recipes"),
    **dict.fromkeys(
        ("BASE_SEED_EVERY_PASS", "BASE_SEED_FIRST_PASS", "BASE_SEED_NEVER"), "fields of recipes"
    ),
}
STRUCTS = {
    "FrameHeader": protocol.HEADER,
    "SamplesHeader": protocol.SAMPLES_BODY,
    "SampleEntry": protocol.ENTRY,
}
# Rows of the page's limits, by how they begin, and what they are about.
ROWS = {
    "body of a frame from a client": "kMaxRequestBytes",
    "body of a frame from the server": "kMaxReplyBytes",
    "ids in a Get, in a Trace": "kMaxIds",
    "ids in the list of a pass": "kMaxTraceIds",
    "batches in a Release": "kMaxReleases",
    "unanswered Gets of a connection": "kMaxWaitingGets",
    "connections": "kMaxClients",
    "a frame begun and not ended; no Hello": "kFrameDeadline",
    "an answer that the client does not take": "kWriteDeadline",
}

Value = Union[int, str]


def value_of(text: str, known: dict[str, Value]) -> Value:
    """Of a constant expression as layout.h has them; a span of time in seconds."""
    if text.startswith('"'):
        return text.strip('"')
    text = re.sub(r"std::numeric_limits<std::uint(\d+)_t>::max\(\)", r"(2**\1 - 1)", text)
    text = re.sub(r"std::chrono::seconds\((\d+)\)", r"\1", text)
    text = re.sub(r"(\d)'(?=\d)", r"\1", text)
    text = re.sub(r"(\d+)_MiB", r"(\1 << 20)", text)
    text = re.sub(r"\b(\d+)U(?:LL)?\b", r"\1", text)
    value = eval(text, {"__builtins__": {}}, dict(known))
    assert isinstance(value, int), text
    return value


def constants() -> dict[str, Value]:
    known: dict[str, Value] = {}
    for name, text in re.findall(r"inline constexpr [\w:]+ (k\w+) = ([^;]+);", LAYOUT):
        known[name] = value_of(text, known)
    return known


def enumerators(enum: str) -> dict[str, int]:
    body = re.search(rf"enum class {enum} : [\w:]+ \{{(.*?)\}};", LAYOUT, re.DOTALL)
    assert body is not None
    return {name: int(number) for name, number in re.findall(r"k(\w+) = (\d+)", body.group(1))}


def as_python_has_it(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def integers() -> dict[str, int]:
    named = vars(protocol).items()
    return {name: value for name, value in named if name.isupper() and type(value) is int}


def test_layout_h_was_read() -> None:
    assert len(constants()) == LAYOUT.count("inline constexpr") > 15
    assert len(enumerators("FrameType")) + len(enumerators("EntryKind")) == len(
        re.findall(r"\bk\w+ = \d+,|\bk\w+ = \d+ \}", LAYOUT)
    )


@pytest.mark.parametrize(("in_cpp", "in_python"), SHARED.items())
def test_a_limit_is_the_same_in_both_libraries(in_cpp: str, in_python: str) -> None:
    assert getattr(protocol, in_python) == constants()[in_cpp]


def test_each_constant_is_shared_or_has_a_reason_not_to_be() -> None:
    assert constants().keys() == {*SHARED, *SIDECAR_ALONE}
    messages = {as_python_has_it(name) for name in enumerators("FrameType")}
    kinds = {"KIND_" + as_python_has_it(name) for name in enumerators("EntryKind")}
    assert integers().keys() == {*SHARED.values(), *CLIENT_ALONE, *messages, *kinds}


def test_messages_and_kinds_have_the_same_numbers() -> None:
    numbers = integers()
    for name, number in enumerators("FrameType").items():
        assert numbers[as_python_has_it(name)] == number, name
    for name, number in enumerators("EntryKind").items():
        assert numbers["KIND_" + as_python_has_it(name)] == number, name


@pytest.mark.parametrize(("name", "packed"), STRUCTS.items())
def test_structs_have_the_same_size(name: str, packed: struct.Struct) -> None:
    size = re.search(rf"static_assert\(sizeof\({name}\) == (\d+)", LAYOUT)
    assert size is not None
    assert packed.size == int(size.group(1))


def test_the_page_has_a_row_for_each_message() -> None:
    rows = re.findall(r"^\| (\d+) \| ([A-Z]\w+) \|", PAGE, re.MULTILINE)
    assert {name: int(number) for number, name in rows} == enumerators("FrameType")


def test_no_table_of_the_page_is_torn() -> None:
    """After an empty line, a row is shown as text."""
    for block in re.split(r"\n\s*\n", PAGE):
        if block.startswith("|"):
            assert re.match(r"\|.*\n\| ?:?-", block), block[:80]


@pytest.mark.parametrize(("row", "name"), ROWS.items())
def test_the_page_has_the_limits_of_the_code(row: str, name: str) -> None:
    shown = re.search(rf"^\| {re.escape(row)} \| (.*?) \|$", LIMITS, re.MULTILINE)
    assert shown is not None
    text = shown.group(1).replace(",", "").replace("\N{MINUS SIGN}", "-").removesuffix(" s")
    text = text.replace(" MiB", "_MiB").replace(" GiB", " * 1024_MiB")
    assert value_of(text, {}) == constants()[name]


def test_the_client_asks_for_no_more_than_a_batch_may_have() -> None:
    memory = (ROOT / "sidecar/ports/sample_memory.h").read_text()
    alone = re.search(r"ByteCount kAloneAlways = ([^;]+);", memory)
    assert alone is not None
    assert protocol.BYTES_MAX == value_of(alone.group(1), {})
    assert f"| {protocol.BYTES_MAX >> 20} MiB |" in LIMITS


def test_the_client_bears_more_silence_than_a_sidecar_that_lives_leaves() -> None:
    interval = constants()["kWaitingInterval"]
    assert isinstance(interval, int)
    assert interval * 10 <= protocol.SILENCE_S
