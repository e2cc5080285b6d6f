"""Whether the sidecar answers, as one process knows it: a circuit breaker that probes by itself."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Optional

from ._notices import tell
from .errors import OptcacheError

log = logging.getLogger("optcache")

PROBE_FIRST_S = 0.05  # a sidecar that is merely restarted is back soon
PROBE_MAX_S = 5.0
PROBE_AWAITED_MAX_S = 1.0  # where reads wait for it
TELL_EVERY_S = 10.0
IDLE_S = 60.0  # after which no reader asks for it any more


class Breaker:
    """Open from the moment at which the sidecar did not answer until a probe finds it again.

    While it is open, only one daemon thread tries the sidecar; it ends when no thread reads,
    and the next read starts it again. Thread-safe. A forked process takes the state over
    and probes for itself: it would otherwise have to wait in vain first.
    """

    def __init__(self, path: str, probe: Callable[[], None]) -> None:
        """Args:
            path: the sidecar's socket, for the log.
            probe: raises an error that is no OptcacheError if the sidecar does not answer.
        """
        self._path = path
        self._probe = probe
        self._why: Optional[tuple[type[Exception], tuple[Any, ...]]] = None  # None: it is closed
        self._began = self._asked_at = 0.0
        self._samples: int  # read from the source meanwhile
        self._source_fault: str  # what the source has said since it gave the last of them
        self._told: set[str] = set()
        self.after_fork()

    def after_fork(self) -> None:
        """In the child, where no other thread runs."""
        self._changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._waiting = 0
        self._samples = 0
        self._source_fault = ""

    @property
    def open(self) -> bool:
        if self._why is None:
            return False
        self._asked_at = time.monotonic()
        if self._thread is None:  # forked, or idle for long
            with self._changed:
                self._start_probe()
        return self._why is not None

    def trip(self, why: Exception) -> None:
        """The sidecar did not answer."""
        with self._changed:
            if self._why is None:
                # Without its traceback, whose frames would stay alive.
                self._why = (type(why), why.args)
                self._began = self._asked_at = time.monotonic()
                self._samples = 0
                self._source_fault = ""
                self._told = set()
                self._start_probe()

    def raise_if_open(self) -> None:
        """Raises what it was tripped by."""
        why = self._why
        if why is not None and self.open:
            kind, args = why
            raise kind(*args)

    def wait(self, seconds: float) -> None:
        """Until it is closed, or for this many seconds."""
        if not self.open:
            return
        with self._changed:
            self._waiting += 1
            if self._waiting == 1:
                self._changed.notify_all()  # the probe may be in a long pause
            try:
                self._changed.wait_for(lambda: self._why is None, seconds)
            finally:
                self._waiting -= 1

    def tell_begin(self, where: str) -> None:
        """Samples are read from there from now on; the log is told once."""
        with self._changed:
            why = self._why
            if why is None or where in self._told:
                return
            self._told.add(where)
        kind, args = why
        log.warning(
            "the sidecar at %s does not answer (%s): reading samples from %s until it does",
            self._path,
            kind(*args),
            where,
        )

    def count(self, samples: int) -> None:
        """This many were read from the source."""
        with self._changed:
            self._samples += samples
            self._source_fault = ""

    def note_source(self, fault: str) -> None:
        """The source did not give a sample, either; "": that is not waited for any more."""
        with self._changed:
            self._source_fault = fault

    def _start_probe(self) -> None:
        if self._thread is not None or self._why is None:
            return
        thread = threading.Thread(
            target=self._run, name=f"optcache-probe {self._path}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # no more threads: then each read tries for itself
            self._why = None
            return
        self._thread = thread

    def _run(self) -> None:
        pause = PROBE_FIRST_S
        told_at, told_samples = time.monotonic(), 0
        while True:
            with self._changed:
                most = PROBE_AWAITED_MAX_S if self._waiting else PROBE_MAX_S
                self._changed.wait(min(pause, most))
                if not self._waiting and time.monotonic() - self._asked_at > IDLE_S:
                    self._thread = None
                    return
            pause = min(pause * 2, PROBE_MAX_S)
            if self._answers():
                self._close()
                return
            if time.monotonic() - told_at >= TELL_EVERY_S:
                told_at = time.monotonic()
                told_samples = self._tell_progress(told_samples)

    def _answers(self) -> bool:
        try:
            self._probe()
        except OptcacheError:
            pass  # that is an answer, which the next read is given as well
        except Exception as why:  # whatever it is, the next probe may do better
            log.debug("the sidecar at %s does not answer: %s", self._path, why)
            self._why = (type(why), why.args)  # what is so now is what reads are told
            return False
        return True

    def _tell_progress(self, told_samples: int) -> int:
        with self._changed:
            samples, waiting, fault = self._samples, self._waiting, self._source_fault
            seconds = time.monotonic() - self._began
        if samples > told_samples or waiting or fault:
            tell(
                f"the sidecar at {self._path} has not answered for {seconds:.0f} s: {samples} "
                f"samples were read from the source, {waiting} reads wait"
                + (f", and the source fails: {fault}" if fault else "")
            )
        return samples

    def _close(self) -> None:
        with self._changed:
            samples, told = self._samples, bool(self._told)
            seconds = time.monotonic() - self._began
            self._why = None
            self._thread = None
            self._changed.notify_all()
        log.log(
            logging.WARNING if samples or told else logging.INFO,
            "the sidecar at %s answers again after %.1f s: %d samples were read from the source",
            self._path,
            seconds,
            samples,
        )
