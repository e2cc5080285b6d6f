"""For grain: a data source whose order the sidecar is told.

    from optcache.grain import DataSource
    sampler = grain.IndexSampler(len(ds), shuffle=True, seed=7, num_epochs=3)
    loader = grain.DataLoader(data_source=DataSource(ds, sampler), sampler=sampler)

It imports nothing of grain.
"""

from __future__ import annotations

import array
import logging
import threading
from typing import Any, Optional

from . import _protocol as protocol
from ._announce import AnnouncedOrder, announce
from ._batches import BatchIndex
from ._sidecar_stats import SidecarStats

log = logging.getLogger("optcache")

# Threads read out of order: an epoch begins at most this many reads before the end of the one before.
_EARLY_MAX = 1024
# Where keys say their places, not more than a share of the epoch: what a loop that begins again reads
# first is not of the one before. The threads of grain are 16 by default.
_EARLY_SHARE = 8
_EARLY_LEAST = 32


class DataSource:
    """A dataset as grain's RandomAccessDataSource. grain asks for one record after the other, and the
    sampler that the order was made of says where in which epoch that is: you may loop over the
    DataLoader again, or go on in the middle of an epoch. With another order, a record that is asked for
    again is that of the next epoch.

    Thread-safe. A copy in another process, as of grain's workers, reads outside the plan.
    """

    def __init__(
        self,
        dataset: Any,
        order: Any,
        *,
        name: str = "train",
        rank: int = 0,
        world_size: int = 1,
        epochs: Optional[int] = None,
    ) -> None:
        """Announces the order.

        Args:
            order: grain's IndexSampler or SequentialSampler, the very one of the DataLoader, or an
                order of optcache.announce.
            dataset, name, rank, world_size, epochs: as of optcache.announce.

        Raises as optcache.announce.
        """
        self._dataset = dataset
        self._order: Optional[AnnouncedOrder] = announce(
            dataset, order, name=name, rank=rank, world_size=world_size, epochs=epochs
        )
        self._lock = threading.Lock()
        self._begun: list[_Epoch] = []  # the present epoch, and the one before
        self._next: Optional[_Epoch] = None
        self._next_number = 0
        self._passes: list[_Pass] = []  # where keys say their places: the last ones, in order
        self._looking = False  # a thread draws lists of epochs that follow
        self._warned = False  # of reads outside the order

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, record_key: Any) -> Any:
        order, index = self._order, int(record_key)
        if order is not None:
            where = order.place_of(record_key)
            if where is not None:
                index = self._at(order, index, *where)
            elif not self._passes:  # else it is a read beside the loop
                index = self._placed(order, index)
        return self._dataset[index]

    def _at(self, order: AnnouncedOrder, index: int, number: int, place: int) -> int:
        """The index at that place of an epoch of that number."""
        with self._lock:
            found = (it for it in reversed(self._passes) if it.number == number and it.reads(place))
            known = next(found, None)
            present = known or self._begin(order, number, place)
            present.take(place)
            if present is self._passes[-1]:
                present.tag = order.refresh(present.tag._replace(first=place))
            placed = order.placed(index, present.tag._replace(first=place))
            if known is None and not self._looking:
                self._looking = True
                threading.Thread(target=self._look_ahead, args=(order,), daemon=True).start()
        return placed

    def _begin(self, order: AnnouncedOrder, number: int, place: int) -> _Pass:
        """Threads read out of order, so a loop that goes on there may read some places before it, too."""
        length = len(order.list_of(number) or ())
        early = min(_EARLY_MAX, max(length // _EARLY_SHARE, _EARLY_LEAST))
        start = max(place - early, 0)
        tag = order.begin(number, start, draws_ahead=False)
        begun = _Pass(number, length, start, early, tag)
        kept = 1 + _EARLY_MAX // max(begun.left, 1)
        self._passes = [*self._passes[-kept:], begun]
        return begun

    def _look_ahead(self, order: AnnouncedOrder) -> None:
        """Tells the lists of the two epochs after the last that has begun. It takes long to draw them,
        so no read waits for it: it has a thread of its own.
        """
        looked: Optional[_Pass] = None
        while True:
            with self._lock:
                begun = self._passes[-1]
                self._looking = begun is not looked
                if not self._looking:
                    return
            looked = begun
            try:
                self._tell_following(order, begun)
            except Exception as why:  # the read that begins that epoch says so
                log.debug("lists of epochs after %d are not known: %s", begun.number, why)

    def _tell_following(self, order: AnnouncedOrder, begun: _Pass) -> None:
        for following in (begun.number + 1, begun.number + 2):
            order.list_of(following)
            with self._lock:
                if self._passes[-1] is not begun:
                    return
                order.look_ahead(following)

    def _placed(self, order: AnnouncedOrder, index: int) -> int:
        with self._lock:
            placed = self._take(order, index)
            if placed is None and self._begin_next(order, index):
                placed = self._take(order, index)
            warn = placed is None and not self._warned
            self._warned = self._warned or warn
        if warn:
            log.warning(
                "sample %d of %r is read outside the announced order, and so may others be: give the "
                "sampler of your DataLoader as the order, or a function that returns what each epoch reads",
                index,
                self._dataset,
            )
        return index if placed is None else placed

    def _take(self, order: AnnouncedOrder, index: int) -> Optional[BatchIndex]:
        for epoch in self._begun:
            place = epoch.take(index)
            if place is not None:
                tag = epoch.tag._replace(first=place)
                if epoch is self._begun[-1]:
                    tag = epoch.tag = order.refresh(tag)
                return order.placed(index, tag)
        return None

    def _begin_next(self, order: AnnouncedOrder, index: int) -> bool:
        """Begins the next epoch, if that may be the one that the index is of."""
        if self._begun and self._begun[-1].left > _EARLY_MAX:
            return False
        if self._next is None:
            ids = order.list_of(self._next_number)
            if ids is None:
                return False
            self._next = _Epoch(ids)
        if not self._next.has(index):
            return False
        self._next.tag = order.begin(self._next_number)
        self._begun = [*self._begun[-1:], self._next]
        self._next = None
        self._next_number += 1
        order.look_ahead(self._next_number + 1)  # which may fail
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {"dataset": self._dataset}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._dataset = state["dataset"]
        self._order = None

    def __repr__(self) -> str:
        return f"DataSource({self._dataset!r})"

    def stats(self) -> Optional[SidecarStats]:
        """What the cache gave, as `loader.optcache.stats()` of a DataLoader."""
        return None if self._order is None else self._order.stats()

    def close(self) -> None:
        """Tells the sidecar that this order is no longer read. Reads go on, outside the plan."""
        order, self._order = self._order, None
        if order is not None:
            order.close()


class _Pass:
    """Which places of an epoch were read."""

    def __init__(
        self, number: int, length: int, start: int, early: int, tag: protocol.Tag
    ) -> None:
        self.number = number
        self.left = length - start
        self.tag = tag
        self._early = early
        self._first = start + early if start > 0 else 0  # where it began, or before
        self._front = start  # behind the last place that was read
        self._taken = bytearray(length)

    def reads(self, place: int) -> bool:
        """Is it this pass that reads that place, and not a later loop? A loop reads its places one after
        the other, so what it has left out is what a thread has still to read.
        """
        early = _EARLY_MAX if place >= self._first else self._early
        return self.left > 0 and place >= self._front - early and not self._taken[place]

    def take(self, place: int) -> None:
        self.left -= not self._taken[place]
        self._taken[place] = True
        self._front = max(self._front, place + 1)


class _Epoch:
    """The places of an epoch's samples that were not read yet."""

    def __init__(self, ids: array.array[int]) -> None:
        self.left = len(ids)
        self.tag = protocol.Tag(0, 0, 0, 0)
        self._first: dict[int, int] = {}  # place by index
        self._after = array.array("q", bytes(8 * len(ids)))  # where the same index comes again, or -1
        for place in range(len(ids) - 1, -1, -1):
            self._after[place] = self._first.get(ids[place], -1)
            self._first[ids[place]] = place

    def has(self, index: int) -> bool:
        return index in self._first

    def take(self, index: int) -> Optional[int]:
        """The first place of that index; None: all of its places were read."""
        place = self._first.pop(index, None)
        if place is not None:
            self.left -= 1
            if self._after[place] >= 0:
                self._first[index] = self._after[place]
        return place
