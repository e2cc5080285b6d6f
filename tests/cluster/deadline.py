"""The deadline of a case."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 60.0  # what cleans up after it may hang, too


class CaseTooLate(BaseException):
    """The case is past its deadline. It is no Exception: waits take those for faults that pass."""


@contextmanager
def case_deadline(seconds: float) -> Iterator[None]:
    """CaseTooLate in what runs within it, after that time and again each minute. In the main thread alone."""

    def fail(number: int, frame: FrameType | None) -> None:
        raise CaseTooLate(f"the case is not done after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
