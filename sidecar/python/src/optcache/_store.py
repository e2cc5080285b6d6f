"""Computed samples of one name, as a process sees them: asked for, computed, handed in."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any, Callable, Optional

from . import _protocol as protocol
from ._channel import Channel
from ._endpoint import Endpoint, endpoint_at, with_patience
from ._faults import BROKEN, ChannelBrokenError, RefusedError
from ._values import CorruptError, UnencodableError, decode, encode
from .errors import OptcacheError, SidecarUnavailableError

log = logging.getLogger("optcache")

_RETRY_S = 1.0
_ALL = (1 << 63) - 1  # bytes: whatever the sidecar has


class Store:
    """The values that all processes with the same `name` at the same sidecar share.

    Nothing here fails a reader: without a sidecar, or where it refuses, values are computed, and one
    line in the log says why. Thread-safe; may be pickled, and used after a fork.

    Attributes:
        name: of the samples, in the sidecar.
        identity: as of a Dataset.
        goes_on_alone: as of a Dataset.
        wait: as of a Dataset.
    """

    goes_on_alone = True
    wait: Optional[float] = None

    def __init__(
        self,
        name: str,
        what: str,
        samples: int,
        max_bytes: Optional[int],
        allow_pickle: bool,
        socket: Optional[str],
    ) -> None:
        """Opens them, waiting for a sidecar that is still on its way.

        Args:
            name: what is shared.
            what: computes them; all who share must say the same.
            samples: how many there are.
            max_bytes: of all values together; None: what the sidecar has.
        """
        self.name = "computed/" + name
        self._given = (name, what + (" pickled" if allow_pickle else ""), samples, max_bytes or _ALL)
        self._key = "\n".join(map(str, self._given[:3]))  # of what the sidecar calls them
        self._samples = samples
        self._allow_pickle = allow_pickle
        self._told: set[str] = set()  # what the log has been told
        self._reset()
        self._endpoint: Optional[Endpoint] = None
        at = ""
        try:
            self._endpoint = endpoint_at(socket)
            at = self._endpoint.path
            with_patience(self._endpoint, lambda: self._open(self.endpoint.channel()))
        except SidecarUnavailableError as why:
            self._alone(str(why))
        except OptcacheError as why:
            self._endpoint = None
            self._alone(str(why))
        self.identity = f"{at} computed/{self._key}"

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._computed_alone = 0  # in this process
        self._try_again_at = 0.0

    def __len__(self) -> int:
        return self._samples

    @property
    def endpoint(self) -> Endpoint:
        assert self._endpoint is not None, "available() says whether there is one"
        return self._endpoint

    def available(self) -> bool:
        """Whether a sidecar keeps these values now."""
        return self._reach() is not None

    def open_on(self, channel: Channel) -> int:
        """What the sidecar calls them on that connection. Raises ChannelBrokenError if it does not keep
        them any more.
        """
        try:
            return self._open(channel)
        except RefusedError as refused:
            raise ChannelBrokenError(str(refused)) from None

    def get(self, index: int, tag: Optional[protocol.Tag], compute: Callable[[], Any]) -> Any:
        """The value of that sample, by `compute` if no process has it. Raises what `compute` raises."""
        channel = self._reach()
        if channel is None:
            return self._compute_alone(compute)
        try:
            got = channel.get_computed(channel.handles[self._key], index, tag)
        except (RefusedError, *BROKEN) as why:
            self._lose(why)
            return self._compute_alone(compute)
        if isinstance(got, protocol.Compute):
            return self._compute(channel, got, compute)
        try:
            return decode(got, self._allow_pickle)
        except CorruptError as why:
            self.tell(f"a sample of '{self._given[0]}' is not used, and computed: {why}")
            return self._compute_alone(compute)

    def counts(self) -> protocol.Counts:
        """Of the sidecar; where there is none, of this process."""
        channel = self._reach()
        try:
            if channel is not None:
                return channel.computed_counts(channel.handles[self._key])
        except (RefusedError, *BROKEN) as why:
            self._lose(why)
        return protocol.Counts(0, 0, 0, 0, self._computed_alone, 0)

    # --- Copies in other processes

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__, _endpoint=self._endpoint and self._endpoint.path)
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        path = state.pop("_endpoint")
        self.__dict__.update(state)
        self._endpoint = path and endpoint_at(path)
        self._reset()

    # --- The sidecar

    def _open(self, channel: Channel) -> int:
        handle = channel.handles.get(self._key)
        if handle is not None:
            return handle
        opened = channel.open_computed(*self._given)
        channel.handles[self._key] = opened.handle
        if opened.first:
            log.warning(
                "samples of '%s' are computed once and kept (up to %.1f MiB): random "
                "changes, such as augmentation, stay as they were the first time",
                self._given[0],
                opened.capacity / 2**20,
            )
        return opened.handle

    def _reach(self) -> Optional[Channel]:
        """A connection on which they are open; None: there is none now."""
        if self._endpoint is None or time.monotonic() < self._try_again_at:
            return None
        try:
            channel = self._endpoint.channel()
            self._open(channel)
        except (RefusedError, *BROKEN) as why:
            self._lose(why)
            return None
        return channel

    def _lose(self, why: Exception) -> None:
        self._try_again_at = time.monotonic() + _RETRY_S
        assert self._endpoint is not None
        self._endpoint.note(why)
        self._alone(self._endpoint.explain(why))

    def _alone(self, why: str) -> None:
        self.tell(f"samples of '{self._given[0]}' are computed each time: {why}")

    def tell(self, sentence: str) -> None:
        """Tells the log, once."""
        if sentence not in self._told:
            self._told.add(sentence)
            log.warning("%s", sentence)

    # --- Computing

    def _compute_alone(self, compute: Callable[[], Any]) -> Any:
        if self._pid != os.getpid():
            self._reset()  # forked
        with self._lock:
            self._computed_alone += 1
        return compute()

    def _compute(
        self, channel: Channel, leave: protocol.Compute, compute: Callable[[], Any]
    ) -> Any:
        encoded = None
        try:
            value = compute()
            encoded = self._encode(value, leave.room)
            return value
        finally:  # also where it raised: a process may wait
            try:
                channel.put_computed(leave.lease, encoded)
            except BROKEN:
                pass  # then no process waits

    def _encode(self, value: Any, room: int) -> Optional[bytes]:
        if room == 0:
            return None
        try:
            encoded = encode(value, self._allow_pickle)
        except UnencodableError as what:
            self.tell(
                f"samples of '{self._given[0]}' cannot be kept and are computed each time: {what} is "
                "not among what is kept (arrays, tensors, bytes, numbers, text, and tuples, lists "
                "and dicts of these); return one of these, or give allow_pickle=True"
            )
            return None
        return encoded if len(encoded) <= room else None
