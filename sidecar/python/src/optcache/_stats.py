"""What this process has asked for and how long it waited."""

from __future__ import annotations

import dataclasses
import os
import threading


@dataclasses.dataclass(frozen=True)
class Stats:
    """Counts since this process began; a DataLoader's workers count for themselves.

    Attributes:
        samples: samples read, from wherever they came.
        round_trips: requests for samples that the sidecar has answered.
        wait_seconds: time spent waiting for those answers.
        copies: samples that came through the socket because the arena had no room.
        fallbacks: samples read from their source because the sidecar did not answer.
        reconnects: connections made after one was lost.
    """

    samples: int = 0
    round_trips: int = 0
    wait_seconds: float = 0.0
    copies: int = 0
    fallbacks: int = 0
    reconnects: int = 0


class _Counters:
    """Thread-safe; a forked process starts at zero."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._now = Stats()

    def add(
        self,
        samples: int = 0,
        round_trips: int = 0,
        wait_seconds: float = 0.0,
        copies: int = 0,
        fallbacks: int = 0,
        reconnects: int = 0,
    ) -> None:
        with self._lock:
            now = self._now
            self._now = Stats(
                now.samples + samples,
                now.round_trips + round_trips,
                now.wait_seconds + wait_seconds,
                now.copies + copies,
                now.fallbacks + fallbacks,
                now.reconnects + reconnects,
            )

    def read(self) -> Stats:
        return self._now


counters = _Counters()
os.register_at_fork(after_in_child=counters.reset)


def stats() -> Stats:
    """The counts of this process."""
    return counters.read()
