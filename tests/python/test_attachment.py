"""A loader's word with the sidecar, against a sidecar that is made up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Optional

import pytest
from conftest import DEADLINE_S

import optcache
from optcache import _protocol as protocol
from optcache._attachment import Attachment
from optcache._channel import Refused

RECIPE = protocol.Recipe(known=True, size=10)
PASS = protocol.Pass(epoch=0, start=0, length=10)


class Sidecar:
    """Dataset, endpoint and channel in one: answers as a sidecar does, and notes what it is told."""

    def __init__(self) -> None:
        self.name = "local/test"
        self.path = "/none"
        self.endpoint = self
        self.seen = True
        self.told: list[Any] = []
        self.refusals: list[Refused] = []  # of the next passes
        self.in_pass: Optional[Callable[[], None]] = None  # happens while a pass is announced

    def connect(self) -> Sidecar:
        return self

    def alive(self) -> bool:
        return True

    def open_on(self, channel: Any) -> int:
        return 1

    def attach(
        self, handle: int, loader: str, recipe: protocol.Recipe, passes_from: Optional[int]
    ) -> protocol.Attached:
        self.told.append(f"attach {loader}")
        return protocol.Attached(stream=77, first_pass=3)

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
    sidecar.refusals = [Refused("attach it", "not_found")]
    assert attachment.begin(RECIPE, PASS) == protocol.Tag(77, 0, 3, 0)
    assert sidecar.told == ["attach train", "pass 3", "attach train", "pass 3"]


def test_a_refusal_that_stays_is_an_error(sidecar: Sidecar) -> None:
    attachment = attached(sidecar)
    sidecar.refusals = [Refused("attach it", "not_found")] * 2
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


def test_two_loaders_of_one_name_do_not_displace_each_other(
    sidecar: Sidecar, caplog: pytest.LogCaptureFixture
) -> None:
    train = attached(sidecar)
    validation = attached(sidecar)
    for _ in range(2):
        train.begin(RECIPE, PASS)
        validation.begin(RECIPE, PASS)
    attaches = [told for told in sidecar.told if told.startswith("attach")]
    assert attaches == ["attach train", "attach train", "attach train-2"]
    assert caplog.text.count("goes on as 'train-2'") == 1


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
