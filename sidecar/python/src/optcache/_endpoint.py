"""The sidecar as a process sees it: one connection a thread, made again when it breaks."""

from __future__ import annotations

import os
import random
import stat
import threading
import time
from typing import Callable, Optional, TypeVar

from . import _protocol as protocol
from ._breaker import Breaker
from ._channel import Channel, forsake_ended
from ._faults import BROKEN, RefusedError, SilentError, SourceFaltersError
from ._notices import tell
from ._stats import counters
from .errors import OptcacheError, SidecarUnavailableError

FIRST_WAIT_S = 10.0  # for a sidecar that was never there
# For one that is being restarted, or whose dataset is being indexed: most indexes take less. A process
# that gives up is started again only as far as its Job's backoffLimit allows.
RETURN_WAIT_S = 300.0
INSTEAD_AFTER_S = 5  # of silence, where samples can be had without it
TELL_EVERY_S = 10.0
PATH_MAX = 107  # bytes of a Unix socket's path
_PAUSE_FIRST_S = 0.05
_PAUSE_MAX_S = 1.0
_SOURCE_PAUSE_MAX_S = 10.0  # between tries of a source
_TELL_AFTER_S = 0.5
_SETS_IT = "wait= or OPTCACHE_WAIT sets how long"
_PATIENCE_SETS_IT = "spec.source.patience of the dataset sets how long"
_chance = random.SystemRandom()  # takes no numbers from the generator of the training

T = TypeVar("T")


class Patience:
    """How long a request waits for a sidecar that is away, and for a source that falters."""

    def __init__(
        self,
        endpoint: Endpoint,
        wait: Optional[float] = None,
        least_s: float = 0.0,
        source_s: float = 0.0,
        advice: str = "",
    ) -> None:
        """Args:
            wait: seconds; None: what OPTCACHE_WAIT says, or what is usual.
            least_s: seconds that are waited even if that is less.
            source_s: seconds since bytes came, once the source has faltered; if that is more.
            advice: what messages say, too, while the sidecar does not answer.
        """
        self._endpoint = endpoint
        self._least_s = least_s
        self._source_s = source_s
        self._advice = advice
        self._source_faltered = False
        self._wait = wait
        self._began = time.monotonic()
        self._patient_since = self._began  # or since bytes came from the source
        self._pause = _PAUSE_FIRST_S
        self._told_at: Optional[float] = None  # seconds of waiting

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def _patient_s(self) -> float:
        return time.monotonic() - self._patient_since

    def wait(self, why: Exception) -> None:
        """Pauses before another try. Raises SidecarUnavailableError when that has lasted too
        long.
        """
        if isinstance(why, SourceFaltersError):
            self._note_source(why)
        limit, sets_it = self._limit(why)
        rest = limit - self._patient_s
        if rest <= 0:
            self._endpoint.note_source("")
            since = " since bytes came" if self._patient_since > self._began else ""
            waited = f". Waited {limit:g} s{since}: {sets_it}" if limit > 0 else ""
            raise SidecarUnavailableError(self._explain(why) + waited) from why
        self._tell(why, limit, sets_it)
        if isinstance(why, SourceFaltersError):
            # Ranks that lost the same store do not come back to it in step.
            pause = self._pause * _chance.uniform(0.5, 1)
            told = why.retry_after_s * _chance.uniform(1, 1.25)
            self._endpoint.pause(min(max(pause, told), rest))
            self._pause = min(self._pause * 2, _SOURCE_PAUSE_MAX_S)
        elif self._endpoint.away and not isinstance(why, RefusedError):
            self._endpoint.wait(min(rest, _TELL_AFTER_S))
        else:
            self._endpoint.pause(min(self._pause, rest))
            self._pause = min(self._pause * 2, _PAUSE_MAX_S)

    def _explain(self, why: Exception) -> str:
        advice = "" if isinstance(why, RefusedError) or not self._advice else f". {self._advice}"
        return self._endpoint.explain(why) + advice

    def _note_source(self, why: SourceFaltersError) -> None:
        self._source_faltered = True
        if why.progressed:
            self._patient_since = time.monotonic()
            self._pause = _PAUSE_FIRST_S
        self._endpoint.note_source(str(why))

    def _tell(self, why: Exception, limit: float, sets_it: str) -> None:
        waited = self.waited_s
        if self._told_at is None:
            if not isinstance(why, RefusedError) and waited <= _TELL_AFTER_S:
                return
            tell(f"waiting up to {limit:g} s ({sets_it}): {self._explain(why)}")
        else:
            # While the sidecar is away, the breaker tells, once for all that wait.
            if waited - self._told_at < TELL_EVERY_S or self._endpoint.away:
                return
            tell(f"still waiting, {self._patient_s:.0f} of {limit:g} s: {self._endpoint.explain(why)}")
        self._told_at = waited

    def _limit(self, why: Exception) -> tuple[float, str]:
        """In seconds, and what sets it."""
        if self._endpoint.path_bytes > PATH_MAX:
            return 0.0, _SETS_IT  # no sidecar can ever listen there
        limit = max(self._sidecar_limit(why), self._least_s)
        if self._source_faltered and self._source_s > limit:
            return self._source_s, _PATIENCE_SETS_IT
        return limit, _SETS_IT

    def _sidecar_limit(self, why: Exception) -> float:
        if self._wait is not None:
            return self._wait
        given = os.environ.get("OPTCACHE_WAIT")
        if given:
            return _seconds(given)
        answers = self._endpoint.seen or isinstance(why, RefusedError)
        return RETURN_WAIT_S if answers else FIRST_WAIT_S


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise OptcacheError(f"OPTCACHE_WAIT={given} is not a number of seconds", "invalid_argument")
    return seconds


class Endpoint:
    """A sidecar's socket. Thread-safe; each process makes its own.

    Attributes:
        seen: whether the sidecar has answered this process, or the one it was forked from.
        silence_s: how long a request waits for the next word of the sidecar.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen = False
        self.silence_s = protocol.SILENCE_S
        self._local = threading.local()
        self._lost = False  # since the last connection
        self._breaker = Breaker(path, self._probe)

    def after_fork(self) -> None:
        self._breaker.after_fork()

    def hurry(self) -> None:
        """There is a source to be read instead: silence is borne for a short time only. A sidecar
        that waits for its store is not silent.
        """
        self.silence_s = INSTEAD_AFTER_S

    def channel(self) -> Channel:
        """This thread's connection, made now if there is none that works.

        Raises OSError or ChannelBrokenError after one try; at once while the sidecar is known to be
        away.
        """
        channel: Optional[Channel] = getattr(self._local, "channel", None)
        if channel is not None and channel.healthy and channel.pid == os.getpid():
            channel.bear_silence(self.silence_s)
            return channel
        # The old one stays open as long as views of its batches are in use.
        if channel is not None:
            channel.forsake()
        self._local.channel = None
        self._local.channel = made = self.connect()
        return made

    def connect(self) -> Channel:
        """A connection of its own. Raises as `channel` does."""
        self._breaker.raise_if_open()
        try:
            channel = Channel(self.path, self.silence_s)
        except BROKEN as why:
            self._lost = True
            self._breaker.trip(why)
            raise
        forsake_ended(self.path)
        if self._lost:
            counters.add(reconnects=1)
        self._lost = False
        self.seen = True
        return channel

    def _probe(self) -> None:
        Channel(self.path, INSTEAD_AFTER_S).close()

    @property
    def path_bytes(self) -> int:
        return len(os.fsencode(self.path))

    @property
    def away(self) -> bool:
        """The sidecar has not answered, and no probe has found it since."""
        return self._breaker.open

    def note(self, why: Exception) -> None:
        """A request ended with that. Silence is as telling as a connection that cannot be made."""
        if isinstance(why, SilentError):
            self.leave(why)

    def leave(self, why: Exception) -> None:
        """Counts as away from now on."""
        self._lost = True
        self._breaker.trip(why)

    def wait(self, seconds: float) -> None:
        """Until a probe finds the sidecar, or for this many seconds."""
        self._breaker.wait(seconds)

    def pause(self, seconds: float) -> None:
        """For this many seconds; while the sidecar is away, until it is back at most."""
        if self.away:
            self._breaker.wait(seconds)
        else:
            time.sleep(seconds)

    def tell_begin(self, where: str) -> None:
        """Tells the log, once in the absence, that samples are read from there."""
        self._breaker.tell_begin(where)

    def count_direct(self, samples: int) -> None:
        """This many samples were read from the source."""
        self._breaker.count(samples)

    def note_source(self, fault: str) -> None:
        """The source did not give a sample, either; "": that is not waited for any more."""
        self._breaker.note_source(fault)

    def explain(self, why: Exception) -> str:
        """A sentence that says what is wrong and what to do."""
        if isinstance(why, RefusedError):
            return f"the sidecar at {self.path} says: {why}"
        if isinstance(why, SourceFaltersError):
            return f"the sidecar at {self.path} does not answer, nor does the source: {why}"
        if isinstance(why, FileNotFoundError):
            advice = "start optcache-sidecar, or set OPTCACHE_SOCKET to where it listens"
            return f"there is no socket at {self.path}: {advice}"
        if self.path_bytes > PATH_MAX:
            return f"{self.path} is {self.path_bytes} bytes long, a socket's path may have {PATH_MAX}"
        if isinstance(why, OSError) and not self._is_socket():
            return f"{self.path} is not a socket: set OPTCACHE_SOCKET to where the sidecar listens"
        if isinstance(why, ConnectionRefusedError):
            return f"no process listens at {self.path}: optcache-sidecar has ended, see its log"
        return f"the sidecar at {self.path} does not answer: {why}"

    def _is_socket(self) -> bool:
        try:
            return stat.S_ISSOCK(os.stat(self.path).st_mode)
        except OSError:
            return True  # that error says more


def with_patience(
    endpoint: Endpoint,
    action: Callable[[], T],
    instead: Optional[Callable[[], T]] = None,
    wait: Optional[float] = None,
    source_s: float = 0.0,
    advice: str = "",
) -> T:
    """What `action` gives as soon as there is a sidecar; or `instead`, while there is none. One that
    was never there is first waited for, INSTEAD_AFTER_S: it may be on its way.

    Args:
        instead: may raise SourceFaltersError, and is asked again then.
        wait: as of Patience, which is had where there is nothing else to do.
        source_s: likewise, once the source has faltered.
        advice: likewise.

    Raises:
        SidecarUnavailableError: there was none for too long.
        OptcacheError: the sidecar refused.
    """
    least_s = 0 if instead is None else INSTEAD_AFTER_S + 1
    patience = Patience(endpoint, wait, least_s, source_s, advice)

    def goes_on_alone() -> bool:
        return endpoint.away and (endpoint.seen or patience.waited_s >= INSTEAD_AFTER_S)

    while True:
        if instead is not None and goes_on_alone():
            try:
                return instead()
            except SourceFaltersError as falters:
                why: Exception = falters
        else:
            try:
                return action()
            except RefusedError as refused:
                if refused.code != "unavailable":
                    raise OptcacheError(str(refused), refused.code) from None
                why = refused
            except BROKEN as broken:
                why = broken
                endpoint.note(why)
                if instead is not None and patience.waited_s >= INSTEAD_AFTER_S:
                    endpoint.leave(why)  # it takes connections, and ends them
                if instead is not None and goes_on_alone():
                    continue
        patience.wait(why)


_endpoints: dict[str, Endpoint] = {}


def _after_fork_in_child() -> None:
    for endpoint in list(_endpoints.values()):
        endpoint.after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)


def endpoint_at(path: Optional[str]) -> Endpoint:
    """The endpoint at `path`, or at what OPTCACHE_SOCKET says."""
    chosen = path or os.environ.get("OPTCACHE_SOCKET")
    if not chosen:
        raise SidecarUnavailableError(
            "the socket of the sidecar is not known: set OPTCACHE_SOCKET (`optcache up` prints the "
            "line, and in a pod with a sidecar it is set), or give socket=..."
        )
    # Two threads may make it at once; one of the two stays.
    return _endpoints.setdefault(chosen, Endpoint(chosen))
