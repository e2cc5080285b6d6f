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


class DataSource:
    """A dataset as grain's RandomAccessDataSource. grain asks for one record after the other and does
    not say where in an epoch it is. The announced order says it: a record that is asked for again is
    that of the next epoch. Loop over a DataLoader of grain once, with `num_epochs` of its sampler: a
    second loop starts the sampler over, and reads outside the plan.

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
            order: grain's IndexSampler or SequentialSampler, that of the DataLoader, or an order of
                optcache.announce.
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
        self._warned = False  # of reads outside the order

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, record_key: Any) -> Any:
        return self._dataset[self._placed(int(record_key))]

    def _placed(self, index: int) -> int:
        order = self._order
        if order is None:
            return index
        with self._lock:
            placed = self._take(order, index)
            if placed is None and self._begin_next(order, index):
                placed = self._take(order, index)
            warn = placed is None and not self._warned
            self._warned = self._warned or warn
        if warn:
            log.warning(
                "sample %d of %r is read outside the announced order, and so may others be. If your "
                "program loops over a DataLoader of grain again, its sampler starts over: loop once, and "
                "set num_epochs of the sampler",
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
