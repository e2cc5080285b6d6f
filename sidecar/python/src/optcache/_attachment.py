"""A loader's standing word with the sidecar: which order it reads, and which pass it is in."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

from . import _protocol as protocol
from ._batches import IndexBatch
from ._channel import Channel
from ._endpoint import with_patience
from ._faults import BROKEN, RefusedError
from ._job import job
from ._store import Store
from .dataset import Dataset
from .errors import OptcacheError

log = logging.getLogger("optcache")

_RETRY_S = 1.0

_Place = tuple[str, str, str, int]  # socket, dataset, loader's name, rank

# Who reads there in this process: who attached last.
_holders: weakref.WeakValueDictionary[_Place, Attachment] = weakref.WeakValueDictionary()


def attachment_to(source: Union[Dataset, Store], loader: str) -> Union[Attachment, Unannounced]:
    if isinstance(source, Store) and not source.available():
        return Unannounced(source.identity)
    return Attachment(source, loader)


class _Placing:
    """Gives the batches of a loader their places."""

    def __init__(self, identity: str) -> None:
        self._identity = identity  # of what the loader reads

    def placed(
        self,
        indices: Sequence[int],
        place: protocol.Tag,
        samples: Optional[list[int]],
        ends: Optional[list[int]] = None,
    ) -> IndexBatch:
        """A batch that stands at that place; the arguments are those of IndexBatch."""
        return IndexBatch(indices, self._identity, place, samples, ends)

    def after(self, place: protocol.Tag, batch: Any) -> protocol.Tag:
        """The place behind a batch that stands there."""
        if isinstance(batch, IndexBatch):
            reads = batch.reads()
        else:
            reads = len(batch) if hasattr(batch, "__len__") else 1
        return place._replace(first=place.first + reads)


class Unannounced(_Placing):
    """Stands for an Attachment where no sidecar keeps what the loader reads."""

    def attach(self, recipe: protocol.Recipe) -> None:
        pass

    def begin(self, recipe: protocol.Recipe, what: protocol.Pass) -> protocol.Tag:
        return protocol.Tag(0, recipe.rank, 0, what.start)

    def refresh(self, recipe: protocol.Recipe, tag: protocol.Tag) -> protocol.Tag:
        return tag

    def look_ahead(self, recipe: protocol.Recipe, ids: array.array[int]) -> None:
        pass

    def follow(self, recipe: protocol.Recipe, tag: protocol.Tag, ids: list[int]) -> None:
        pass

    def detach(self) -> None:
        pass


class Attachment(_Placing):
    """Announces the passes of one loader over a connection of its own.

    What the sidecar refuses (ranks that disagree on their seed, for example) is an OptcacheError in
    the training process. A sidecar that has gone is no error here: it is told again when it is back.
    Thread-safe, though a loader is used by one thread at a time.
    """

    def __init__(self, dataset: Union[Dataset, Store], loader: str) -> None:
        super().__init__(dataset.identity)
        self._dataset = dataset
        self._loader = loader
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._over = False  # the loader is gone, and the sidecar has not been told yet
        self._channel: Optional[Channel] = None
        self._told: Optional[protocol.Recipe] = None  # what the sidecar knows
        self._stream = 0
        self._rank = 0
        self._first_pass = 0
        self._passes_from: Optional[int] = None  # the first pass of this loader
        self._last_pass = -1
        self._handed_over: dict[int, array.array[int]] = {}  # lists, by pass
        self._unfollowed = -1  # the pass whose batches are not told
        self._current: Optional[protocol.Pass] = None
        self._try_again_at = 0.0

    def attach(self, recipe: protocol.Recipe) -> None:
        """Raises OptcacheError if the sidecar refuses, SidecarUnavailableError if it stays away and
        the samples cannot be had without it.
        """
        with self._alone():
            self._rank = recipe.rank
            _holders[self._place(self._loader)] = self
            ours = self._dataset

            def tell() -> Optional[Channel]:
                return self._tell(recipe)

            # One that is away is told when it is back.
            instead = (lambda: None) if ours.goes_on_alone else None
            with_patience(ours.endpoint, tell, instead, ours.wait)

    def begin(self, recipe: protocol.Recipe, what: protocol.Pass) -> protocol.Tag:
        """A pass begins; the place of its first batch."""
        with self._alone():
            self._current = what
            self._last_pass += 1
            self._announce(recipe, what)
            return protocol.Tag(self._stream, recipe.rank, self._last_pass, what.start)

    def refresh(self, recipe: protocol.Recipe, tag: protocol.Tag) -> protocol.Tag:
        """Looks whether the sidecar was started again, and tells it then what it needs to know.

        Args:
            tag: the place of the next batch.
        """
        channel = self._channel
        if channel is not None and channel.alive():
            return tag
        with self._alone():
            current = self._current
            if current is None or time.monotonic() < self._try_again_at:
                return tag
            start = max(current.start, tag.first - recipe.behind)
            length = max(current.length - (start - current.start), 0)
            rest = dataclasses.replace(current, start=start, length=length, crc=None)
            self._announce(recipe, rest)
            return tag._replace(stream=self._stream, pass_number=self._last_pass)

    def detach(self) -> None:
        """The loader is gone. Does nothing in a forked process. Waits for no lock: the garbage
        collector calls it at any moment, also within this object's own code, which then sees to it
        in its end.
        """
        if self._pid == os.getpid():
            self._over = True
            self._end_if_over()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        finally:
            self._end_if_over()

    def _end_if_over(self) -> None:
        # The thread that holds the lock looks again after giving it up.
        while self._over and self._lock.acquire(blocking=False):
            try:
                self._over = False
                self._end()
            finally:
                self._lock.release()

    def _end(self) -> None:
        if _holders.get(self._place(self._loader)) is self:
            del _holders[self._place(self._loader)]
        channel, self._channel = self._channel, None
        if channel is None or self._told is None:
            return
        try:
            channel.detach(self._stream, self._told.rank)
        except BROKEN:
            pass  # gone as well
        channel.close()

    def _place(self, loader: str) -> _Place:
        return self._dataset.endpoint.path, self._dataset.name, loader, self._rank

    def _keep_name(self) -> None:
        """Takes another name if ours was given to a later loader. One that is made again for each
        epoch inherits it: the one before reads no more and does not come here.
        """
        if _holders.setdefault(self._place(self._loader), self) is self:
            return
        given = self._loader
        names = (f"{given}-{number}" for number in itertools.count(2))
        self._loader = next(name for name in names if self._place(name) not in _holders)
        _holders[self._place(self._loader)] = self
        self._told = None
        log.warning(
            "two loaders of %s are attached as '%s'. The earlier one is now attached as '%s'. Give each "
            "loader its own name: attach(loader, name=...)",
            self._dataset.name,
            given,
            self._loader,
        )

    def _go_by(self, name: str) -> None:
        """Another job reads by the name that was said: the sidecar has given us this one."""
        if name == self._loader:
            return
        said, self._loader = self._loader, name
        log.info(
            "another job reads %s as '%s', so this job reads it as '%s'", self._dataset.name, said, name
        )
        if _holders.get(self._place(said)) is self:
            del _holders[self._place(said)]
        _holders[self._place(name)] = self

    def _announce(self, recipe: protocol.Recipe, what: protocol.Pass) -> None:
        self._keep_name()
        try:
            try:
                self._begin_pass(recipe, what)
            except RefusedError as refused:
                if refused.code != "not_found":
                    raise
                self._told = None  # another process attached as this loader, and has ended
                self._begin_pass(recipe, what)
        except RefusedError as refused:
            if refused.code != "unavailable":
                raise OptcacheError(str(refused), refused.code) from None
            self._lose(refused)
        except BROKEN as broken:
            self._lose(broken)

    def _begin_pass(self, recipe: protocol.Recipe, what: protocol.Pass) -> None:
        channel = self._tell(recipe)
        self._last_pass = max(self._last_pass, self._first_pass)
        self._hand_over(channel, recipe, self._last_pass, what.trace)
        channel.begin_pass(self._stream, recipe.rank, self._last_pass, what)
        for number, ids in enumerate(what.ahead, self._last_pass + 1):
            self._hand_over(channel, recipe, number, ids)

    def _hand_over(
        self,
        channel: Channel,
        recipe: protocol.Recipe,
        number: int,
        ids: Optional[array.array[int]],
    ) -> None:
        """The list of a pass, unless the sidecar has just that one."""
        if not ids or channel.version < 2 or self._handed_over.get(number) == ids:
            return
        try:
            channel.trace(self._stream, recipe.rank, number, 0, len(ids), ids)
        except RefusedError as refused:
            if refused.code in ("not_found", "unavailable"):
                raise
            log.warning("the sidecar does not use the list of pass %s: %s", number, refused)
        self._handed_over = {n: i for n, i in self._handed_over.items() if n >= number - 2}
        self._handed_over[number] = ids

    def look_ahead(self, recipe: protocol.Recipe, ids: array.array[int]) -> None:
        """What one more of the iterations that follow will read."""
        with self._alone():
            channel, current = self._channel, self._current
            if channel is None or current is None:
                return
            self._current = dataclasses.replace(current, ahead=(*current.ahead, ids))
            try:
                self._hand_over(channel, recipe, self._last_pass + len(current.ahead) + 1, ids)
            except RefusedError as refused:
                log.info("a list is not handed over: %s", refused)
            except BROKEN as broken:
                self._lose(broken)

    def follow(self, recipe: protocol.Recipe, tag: protocol.Tag, ids: list[int]) -> None:
        """Tells of a batch that is asked for next. What the sidecar does not take is read as it is
        asked for.
        """
        with self._alone():
            channel = self._channel
            if channel is None or channel.version < 2 or self._unfollowed == tag.pass_number:
                return
            try:
                words = array.array("I", ids)
                channel.trace(self._stream, recipe.rank, tag.pass_number, tag.first, 0, words)
            except RefusedError:
                self._unfollowed = tag.pass_number  # it has not heard the beginning
            except BROKEN as broken:
                self._lose(broken)

    def _lose(self, why: Exception) -> None:
        log.info("the pass is not announced: %s", why)
        self._dataset.endpoint.note(why)
        self._channel = None
        self._try_again_at = time.monotonic() + _RETRY_S

    def _tell(self, recipe: protocol.Recipe) -> Channel:
        """The connection, on which the sidecar has been told of the loader."""
        channel, endpoint = self._channel, self._dataset.endpoint
        if channel is None or not channel.alive() or endpoint.away:
            channel = endpoint.connect()
            self._told = None
        channel.bear_silence(endpoint.silence_s)
        if self._told == recipe:
            return channel
        if self._told is not None:
            channel.detach(self._stream, self._told.rank)
        handle = self._dataset.open_on(channel)
        attached = channel.attach(handle, self._loader, recipe, self._passes_from, job())
        self._channel = channel
        self._told = recipe
        self._handed_over = {}
        self._stream, self._first_pass = attached.stream, attached.first_pass
        self._go_by(attached.loader or self._loader)
        if self._passes_from is None:
            self._passes_from = self._first_pass
        return channel
