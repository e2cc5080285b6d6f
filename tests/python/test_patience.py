"""How long reads wait for a source that fails while the sidecar is away, by a clock of their own."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

import optcache
from optcache import _breaker, _endpoint
from optcache._faults import SourceFaltersError
from optcache._manifest import Member, Place
from optcache._source_reads import read_samples


class Away(_endpoint.Endpoint):
    """Of a sidecar that has gone. Pauses take no time."""

    away = True

    def __init__(self) -> None:
        super().__init__("/run/away")
        self.seen = True
        self.now = 1000.0
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Away:
    away = Away()
    monkeypatch.setattr(_endpoint, "time", types.SimpleNamespace(monotonic=lambda: away.now))
    return away


def not_asked() -> bytes:
    raise AssertionError("the sidecar is away")


def read(endpoint: Away, source: Callable[[], bytes], wait: float = 10) -> bytes:
    return _endpoint.with_patience(endpoint, not_asked, source, wait, 600)


def test_a_source_is_waited_for_by_its_patience_and_not_by_the_wait(endpoint: Away) -> None:
    def source() -> bytes:
        if endpoint.now < 1550:
            raise SourceFaltersError("HTTP 503")
        return b"sample"

    assert read(endpoint, source) == b"sample"
    assert max(endpoint.pauses) <= 10 and endpoint.pauses[-1] >= 5
    assert endpoint.pauses[0] <= 0.05
    assert len(set(endpoint.pauses[-10:])) == 10  # not in step with other ranks


def test_patience_ends(endpoint: Away) -> None:
    def source() -> bytes:
        raise SourceFaltersError("HTTP 503")

    with pytest.raises(optcache.SidecarUnavailableError) as caught:
        read(endpoint, source)
    assert endpoint.now == 1600
    assert "nor does the source: HTTP 503. Waited 600 s: spec.source.patience" in str(caught.value)


def test_a_wait_that_is_longer_counts(endpoint: Away) -> None:
    def source() -> bytes:
        raise SourceFaltersError("HTTP 503")

    with pytest.raises(optcache.SidecarUnavailableError, match="Waited 900 s: wait="):
        read(endpoint, source, wait=900)
    assert endpoint.now == 1900


def test_bytes_that_come_begin_patience_again(endpoint: Away) -> None:
    def source() -> bytes:
        falters = SourceFaltersError("cut")
        falters.progressed = endpoint.now < 2000
        if endpoint.now > 2500:
            return b"sample"
        endpoint.now += 100
        raise falters

    assert read(endpoint, source) == b"sample"


def test_the_source_says_when_to_ask_again(endpoint: Away) -> None:
    def source() -> bytes:
        if endpoint.pauses:
            return b"sample"
        raise SourceFaltersError("HTTP 429", retry_after_s=37)

    assert read(endpoint, source) == b"sample"
    assert 37 < endpoint.pauses[0] < 1.25 * 37  # not in step with other ranks


def test_time_is_told_since_bytes_came(endpoint: Away, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(_endpoint, "tell", told.append)
    endpoint.away = False
    patience = _endpoint.Patience(endpoint, 10, 0, 600)
    falters = SourceFaltersError("cut")
    for falters.progressed, passed in ((True, 900), (False, 20)):
        endpoint.now += passed
        patience.wait(falters)
    assert told[0].startswith("waiting up to 600 s") and told[1].startswith("still waiting, 20 of 600 s")
    endpoint.now += 600
    with pytest.raises(optcache.SidecarUnavailableError, match="Waited 600 s since bytes came: spec"):
        patience.wait(falters)


def test_a_forked_process_does_not_tell_its_parents_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(_breaker, "tell", told.append)
    breaker = _breaker.Breaker("/run/away", lambda: None)
    breaker.note_source("HTTP 503")
    breaker._tell_progress(0)
    assert told[0].endswith("and the source fails: HTTP 503")
    breaker.after_fork()
    breaker._tell_progress(0)
    assert len(told) == 1


def test_what_does_not_pass_is_raised_while_others_are_read() -> None:
    class Half:
        """Gives the first of two at the end alone, and not the other."""

        def __init__(self) -> None:
            self.begun, self.over = threading.Event(), threading.Event()
            self.ended: list[bool] = []

        def where(self, path: str) -> str:
            return path

        def fetch(self, place: Place, *_: Any) -> bytes:
            if self.begun.is_set():
                raise FileNotFoundError("gone")
            self.begun.set()
            self.over.wait(60)
            self.ended.append(True)
            return b"sample"

    manifest = types.SimpleNamespace(
        name="test",
        place=lambda index: Place("a", 6, 0, ""),
        members=lambda index: [Member(b"", 0, 6)],
        key=lambda index: None,
        sample_digest=lambda index: None,
    )
    source = Half()
    with pytest.raises(optcache.SampleError, match="gone"):
        read_samples(source, manifest, [0, 0])  # type: ignore[arg-type]
    assert not source.ended
    source.over.set()
