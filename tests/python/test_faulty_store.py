"""The store that misbehaves for tests: what it is told, and what it sends by range."""

from __future__ import annotations

import select
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import faulty_store  # noqa: E402
from harness.dataset import Dataset  # noqa: E402
from harness.faulty_store import FOR_EVER, FaultyStore  # noqa: E402

BODY = b"0123456789"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FaultyStore]:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(BODY)
    with FaultyStore(Dataset(tmp_path, ("a", "b"), (len(BODY),) * 2)) as running:
        yield running


def read(store: FaultyStore, path: str, range_header: str = "") -> tuple[int, bytes, str]:
    headers = {"Range": range_header} if range_header else {}
    request = urllib.request.Request(store.base_url + path, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.status, answer.read(), answer.headers.get("Content-Range", "")


def test_a_range_is_sent_alone(store: FaultyStore) -> None:
    assert read(store, "a") == (200, BODY, "")
    assert read(store, "a", "bytes=3-5") == (206, b"345", "bytes 3-5/10")
    assert store.ranges("a") == ["", "bytes=3-5"]
    assert (store.gets("a"), store.gets("b")) == (2, 0)


def test_what_breaks_is_the_range(store: FaultyStore) -> None:
    store.script("a", faulty_store.truncated)
    with pytest.raises(IncompleteRead) as raised:
        read(store, "a", "bytes=4-9")
    assert raised.value.partial == b"456"
    assert read(store, "a", "bytes=7-9")[1] == b"789"


def test_what_is_told_of_one_object_outlasts_a_fault_of_all(store: FaultyStore) -> None:
    store.script("a", faulty_store.missing, FOR_EVER)
    store.script_all(faulty_store.unavailable)
    for path in ("a", "b"):
        with pytest.raises(urllib.error.HTTPError, match="503"):
            read(store, path)
    store.heal()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        read(store, "a")
    assert read(store, "b")[1] == BODY


def ask(store: FaultyStore) -> HTTPConnection:
    """For "a"; the answer is not read."""
    connection = HTTPConnection(store.base_url.removeprefix("http://").rstrip("/"), timeout=60)
    connection.request("GET", "/a")
    return connection


def test_a_store_that_is_gone_refuses_connections_and_comes_back(store: FaultyStore) -> None:
    held = ask(store)
    assert held.getresponse().read() == BODY
    store.refuse()
    assert held.sock.recv(1) == b"", "its connections end"
    with pytest.raises(ConnectionRefusedError):
        ask(store)
    store.heal()
    assert read(store, "a")[1] == BODY


def test_a_frozen_store_answers_afterwards(store: FaultyStore) -> None:
    store.script_all(faulty_store.frozen)
    held = ask(store)
    assert select.select([held.sock], [], [], 0.2)[0] == []
    store.heal()
    assert held.getresponse().read() == BODY
