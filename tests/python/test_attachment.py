"""A loader's word with the sidecar, against a sidecar that is made up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Optional

import pytest
from conftest import DEADLINE_S

import optcache
from optcache import _job
from optcache import _protocol as protocol
from optcache._attachment import Attachment
from optcache._faults import RefusedError

RECIPE = protocol.Recipe(known=True, size=10)
PASS = protocol.Pass(epoch=0, start=0, length=10)


class Sidecar:
    """Dataset, endpoint and channel in one: answers as a sidecar does, and notes what it is told."""

    def __init__(self) -> None:
        self.name = "local/test"
        self.path = "/none"
        self.endpoint = self
        self.seen = True
        self.away = False
        self.silence_s = 60
        self.goes_on_alone = False
        self.wait = None
        self.identity = "the sidecar images"
        self.told: list[Any] = []
        self.refusals: list[RefusedError] = []  # of the next passes
        self.names: dict[str, str] = {}  # that loaders get for theirs
        self.in_pass: Optional[Callable[[], None]] = None  # happens while a pass is announced

    def connect(self) -> Sidecar:
        return self

    def alive(self) -> bool:
        return True

    def bear_silence(self, seconds: int) -> None:
        pass

    def note(self, why: Exception) -> None:
        pass

    def open_on(self, channel: Any) -> int:
        return 1

    def attach(
        self,
        handle: int,
        loader: str,
        recipe: protocol.Recipe,
        passes_from: Optional[int],
        job: str,
    ) -> protocol.Attached:
        self.told.append(f"attach {loader}")
        return protocol.Attached(77, 3, self.names.get(loader, loader))

    def begin_pass(self, stream: int, rank: int, number: int, what: protocol.Pass) -> None:
        self.told.append(f"pass {number}")
        if self.in_pass is not None:
            self.in_pass()
        if self.refusals:
            raise self.refusals.pop(0)

    def detach(self, stream: int, rank: int) -> None:
        self.told.append("detach")

    def close(self) -> None:
        self.told.append("close")


@pytest.fixture
def sidecar() -> Sidecar:
    return Sidecar()


def attached(sidecar: Sidecar, loader: str = "train") -> Attachment:
    attachment = Attachment(sidecar, loader)  # type: ignore[arg-type]
    attachment.attach(RECIPE)
    return attachment


def test_attaches_again_when_the_sidecar_knows_it_no_more(sidecar: Sidecar) -> None:
    attachment = attached(sidecar)
    sidecar.refusals = [RefusedError("attach it", "not_found")]
    assert attachment.begin(RECIPE, PASS) == protocol.Tag(77, 0, 3, 0)
    assert sidecar.told == ["attach train", "pass 3", "attach train", "pass 3"]


def test_a_refusal_that_stays_is_an_error(sidecar: Sidecar) -> None:
    attachment = attached(sidecar)
    sidecar.refusals = [RefusedError("attach it", "not_found")] * 2
    with pytest.raises(optcache.OptcacheError, match="attach it"):
        attachment.begin(RECIPE, PASS)


def test_a_loader_may_die_while_it_is_spoken_of(sidecar: Sidecar) -> None:
    attachment = attached(sidecar)
    sidecar.in_pass = attachment.detach  # as the garbage collector does
    announcing = threading.Thread(target=attachment.begin, args=(RECIPE, PASS), daemon=True)
    announcing.start()
    announcing.join(DEADLINE_S)
    assert not announcing.is_alive(), "it waits for itself"
    assert sidecar.told == ["attach train", "pass 3", "detach", "close"]


def attaches_of_two(sidecar: Sidecar) -> list[str]:
    """Of two loaders of one name, which take turns."""
    loaders = [attached(sidecar), attached(sidecar)]
    for _ in range(2):
        for loader in loaders:
            loader.begin(RECIPE, PASS)
    return [told for told in sidecar.told if told.startswith("attach")]


def test_two_loaders_of_one_name_do_not_displace_each_other(
    sidecar: Sidecar, caplog: pytest.LogCaptureFixture
) -> None:
    attaches = attaches_of_two(sidecar)
    assert attaches == ["attach train", "attach train", "attach train-2"]
    said = "two loaders of local/test are attached as 'train'. The earlier one is now attached as 'train-2'."
    assert caplog.text.count(said) == 1


def test_a_loader_that_is_made_anew_inherits_the_name(sidecar: Sidecar) -> None:
    for _ in range(3):
        loader = attached(sidecar)  # while the one before is still there
        loader.begin(RECIPE, PASS)
    again = attached(sidecar)
    loader.detach()
    again.begin(RECIPE, PASS)
    assert {told for told in sidecar.told if told.startswith("attach")} == {"attach train"}


def test_a_name_is_free_again_when_its_loader_has_gone(sidecar: Sidecar) -> None:
    first = attached(sidecar)
    attached(sidecar).detach()
    first.begin(RECIPE, PASS)
    assert "attach train-2" not in sidecar.told


def test_a_loader_keeps_the_name_that_the_sidecar_gave_it(sidecar: Sidecar) -> None:
    sidecar.names = {"train": "train-2"}  # another job's has the other
    attachment = attached(sidecar)
    attachment.begin(RECIPE, PASS)
    sidecar.names = {}
    sidecar.refusals = [RefusedError("attach it", "not_found")]  # it was started anew
    attachment.begin(RECIPE, PASS)
    attaches = [told for told in sidecar.told if told.startswith("attach")]
    assert attaches == ["attach train", "attach train-2"]


def test_loaders_of_one_process_differ_by_names_that_were_given_too(sidecar: Sidecar) -> None:
    sidecar.names = {"train": "train-2"}
    attaches = attaches_of_two(sidecar)
    assert attaches == ["attach train", "attach train", "attach train-2-2"]


def test_all_ranks_of_a_launcher_are_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _job._VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert _job.job() == ""
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("MASTER_PORT", "29500")
    first = _job.job()
    monkeypatch.setenv("RANK", "1")
    assert _job.job() == first != ""
    monkeypatch.setenv("MASTER_PORT", "29501")
    assert _job.job() not in ("", first)


def test_what_is_said_of_a_job_comes_last() -> None:
    plain = protocol.attach(1, "train", RECIPE, None, 2)
    empty_order_and_reads = bytes(2 + 8)
    assert protocol.attach(1, "train", RECIPE, None, 2, "j") == (
        plain + empty_order_and_reads + b"\1\0j"
    )
    assert protocol.attach(1, "train", RECIPE, None, 1, "j") == plain
    answer = b"\x4d" + bytes(7) + b"\5\0\0\0"
    assert protocol.parse_attached(memoryview(answer)) == (77, 5, "")
    assert protocol.parse_attached(memoryview(answer + b"\1\0a")) == (77, 5, "a")
