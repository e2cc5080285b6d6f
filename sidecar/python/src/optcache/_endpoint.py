"""The sidecar as a process sees it: one connection a thread, made again when it breaks."""

from __future__ import annotations

import logging
import os
import stat
import threading
import time
from typing import Callable, Optional, TypeVar

from ._channel import Channel, ChannelBroken, Refused
from ._stats import counters
from .errors import OptcacheError, SidecarUnavailable

log = logging.getLogger("optcache")

FIRST_WAIT_S = 10.0  # for a sidecar that was never there
RETURN_WAIT_S = 300.0  # for one that was and is being restarted
INSTEAD_AFTER_S = 2.0  # where samples can be had without it
INDEX_WAIT_S = 3600.0  # for one that says that it has nothing to give yet
PATH_MAX = 107  # bytes of a Unix socket's path
_PAUSE_FIRST_S = 0.05
_PAUSE_MAX_S = 1.0
_TELL_AFTER_S = 0.5

# What a request may end with when the sidecar goes away under it.
BROKEN = (ChannelBroken, OSError)

T = TypeVar("T")


class Patience:
    """How long a request waits for a sidecar that is away: pauses that double, up to a limit."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._began = time.monotonic()
        self._pause = _PAUSE_FIRST_S
        self._told = False

    @property
    def waited_s(self) -> float:
        return time.monotonic() - self._began

    def wait(self, why: Exception) -> None:
        """Pauses before another try. Raises SidecarUnavailable when that has lasted too long."""
        limit = self._limit(why)
        if self.waited_s >= limit:
            raise SidecarUnavailable(self._endpoint.explain(why)) from why
        if not self._told and (isinstance(why, Refused) or self.waited_s > _TELL_AFTER_S):
            self._told = True
            log.warning("waiting up to %.0f s: %s", limit, self._endpoint.explain(why))
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, _PAUSE_MAX_S)

    def _limit(self, why: Exception) -> float:
        given = os.environ.get("OPTCACHE_WAIT")
        if given:
            return _seconds(given)
        if isinstance(why, Refused):
            return INDEX_WAIT_S
        return RETURN_WAIT_S if self._endpoint.seen else FIRST_WAIT_S


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise OptcacheError(f"OPTCACHE_WAIT={given}: not a number of seconds", "invalid_argument")
    return seconds


class Endpoint:
    """A sidecar's socket. Thread-safe; each process makes its own.

    Attributes:
        seen: whether the sidecar has answered this process, or the one it was forked from.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.seen = False
        self._local = threading.local()
        self._away_since: Optional[float] = None

    def channel(self) -> Channel:
        """This thread's connection, made now if there is none that works.

        Raises OSError or ChannelBroken after one try.
        """
        channel: Optional[Channel] = getattr(self._local, "channel", None)
        if channel is not None and channel.healthy and channel.pid == os.getpid():
            return channel
        # The old one stays open as long as views of its batches are in use.
        self._local.channel = None
        self._local.channel = made = self.connect()
        return made

    def connect(self) -> Channel:
        """A connection of its own. Raises OSError or ChannelBroken after one try."""
        try:
            channel = Channel(self.path)
        except (OSError, ChannelBroken):
            if self._away_since is None:
                self._away_since = time.monotonic()
            raise
        if self._away_since is not None:
            counters.add(reconnects=1)
        self._away_since = None
        self.seen = True
        return channel

    def away_s(self) -> float:
        """For how long no connection could be made; 0 if the last could."""
        since = self._away_since
        return 0.0 if since is None else time.monotonic() - since

    def explain(self, why: Exception) -> str:
        """A sentence that says what is wrong and what to do."""
        if isinstance(why, Refused):
            return f"the sidecar at {self.path} says: {why}"
        if isinstance(why, FileNotFoundError):
            advice = "start optcache-sidecar, or set OPTCACHE_SOCKET to where it listens"
            return f"there is no socket at {self.path}: {advice}"
        if (length := len(os.fsencode(self.path))) > PATH_MAX:
            return f"{self.path} is {length} bytes long, a socket's path may have {PATH_MAX}"
        if isinstance(why, OSError) and not self._is_socket():
            return f"{self.path} is not a socket: set OPTCACHE_SOCKET to where the sidecar listens"
        if isinstance(why, ConnectionRefusedError):
            return f"nobody listens at {self.path}: optcache-sidecar has ended, see its log"
        return f"the sidecar at {self.path} does not answer: {why}"

    def _is_socket(self) -> bool:
        try:
            return stat.S_ISSOCK(os.stat(self.path).st_mode)
        except OSError:
            return True  # that error says more


def with_patience(
    endpoint: Endpoint, action: Callable[[], T], instead: Optional[Callable[[], T]] = None
) -> T:
    """What `action` gives as soon as there is a sidecar; or `instead` when there is none for long.

    Raises:
        SidecarUnavailable: there was none for too long.
        OptcacheError: the sidecar refused.
    """
    patience = Patience(endpoint)
    while True:
        try:
            return action()
        except Refused as refused:
            if refused.code != "unavailable":
                raise OptcacheError(str(refused), refused.code) from None
            why: Exception = refused
        except BROKEN as broken:
            why = broken
        if instead is not None and endpoint.away_s() >= INSTEAD_AFTER_S:
            return instead()
        patience.wait(why)


_endpoints: dict[str, Endpoint] = {}


def endpoint_at(path: Optional[str]) -> Endpoint:
    """The endpoint at `path`, or at what OPTCACHE_SOCKET says."""
    chosen = path or os.environ.get("OPTCACHE_SOCKET")
    if not chosen:
        raise SidecarUnavailable(
            "where is the sidecar? Set OPTCACHE_SOCKET (the injected sidecar and `optcache up` "
            "do), or give socket=..."
        )
    # Two threads may make it at once; one of the two stays.
    return _endpoints.setdefault(chosen, Endpoint(chosen))
