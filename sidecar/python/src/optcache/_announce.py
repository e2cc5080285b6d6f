"""Orders that are announced without PyTorch."""

from __future__ import annotations

import array
import dataclasses
import operator
import threading
import weakref
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Optional, Union

from . import _protocol as protocol
from ._attachment import attachment_to
from ._batches import BatchIndex, IndexBatch
from ._known_orders import known_order
from ._recipes import order_crc
from ._sidecar_stats import SidecarStats, stats_of
from ._store import Store
from .computed import store_under
from .dataset import Dataset

_BATCHES_UNDER_WAY = 16  # that threads may read out of order
_LISTS_KEPT = 3  # of the present epoch and two that follow


def announce(
    dataset: Any,
    order: Any,
    *,
    batch_size: Optional[int] = None,
    name: str = "train",
    rank: int = 0,
    world_size: int = 1,
    epochs: Optional[int] = None,
) -> AnnouncedOrder:
    """Tells the sidecar which samples are read, and when, so that they are there before you ask for
    them. Needs no PyTorch; a DataLoader takes `optcache.torch.attach` instead.

        with optcache.announce(ds, optcache.Shuffle(seed=7)) as reads:
            for epoch in range(90):
                for index in reads:
                    train(ds[index])

    Args:
        dataset: an optcache.Dataset, or what optcache.cached has made.
        order: a list or an array of indices, for one epoch; a function that is given the number of an
            epoch and returns its indices on this rank, or None after the last epoch; a Shuffle; or a
            sampler of SPDL, or grain's IndexSampler or SequentialSampler. A function is called once for each epoch, up to two epochs ahead.
        batch_size: give lists of this many indices. `ds.__getitems__` reads a list in one round trip.
        name: tells the orders of one job apart: "train", "validation".
        rank: of this process in its job. Samplers of SPDL and grain say it themselves.
        world_size: how many ranks the job has. Samplers of SPDL and grain say it themselves.
        epochs: how many epochs follow, if you know: the cache keeps and stages nothing for an epoch
            that does not come. None: not known.

    Raises:
        TypeError: the dataset is not ours, or `order` is none of these.
        ValueError: a number is out of its range.
        OptcacheError: the sidecar refuses, for example because other ranks have another seed.
    """
    return announced(dataset, order, _BATCHES_UNDER_WAY, batch_size, name, rank, world_size, epochs)


def announced(
    dataset: Any,
    order: Any,
    batches_under_way: int,
    batch_size: Optional[int],
    name: str,
    rank: int,
    world_size: int,
    epochs: Optional[int],
) -> AnnouncedOrder:
    """As announce, where this many batches may be read out of order."""
    ours: Union[Dataset, Store, None] = store_under(dataset)
    if ours is None and isinstance(dataset, Dataset):
        ours = dataset
    if ours is None:
        raise TypeError(
            f"announce: {type(dataset).__name__} is not an optcache dataset: give an optcache.Dataset, "
            "or what optcache.cached has made"
        )
    if batch_size is not None and operator.index(batch_size) < 1:
        raise ValueError(f"announce: batch_size={batch_size} is less than 1")
    if not 0 <= operator.index(rank) < operator.index(world_size):
        raise ValueError(f"announce: rank={rank} is not a rank of world_size={world_size}")
    if epochs is not None and not 0 < operator.index(epochs) <= protocol.PASSES_MAX:
        raise ValueError(f"announce: epochs={epochs} is not a number of epochs")
    behind = (batch_size or 1) * batches_under_way
    return AnnouncedOrder(ours, order, behind, batch_size, name, rank, world_size, epochs)


class AnnouncedOrder:
    """The indices of one epoch after the other: each iteration is an epoch. An index knows its place
    in the epoch, and so does a list of them. Read the samples in any thread of this process.

    Attributes:
        epoch: the number of the epoch that the next iteration reads. You may set it.
    """

    def __init__(
        self,
        ours: Union[Dataset, Store],
        order: Any,
        behind: int,
        batch_size: Optional[int],
        name: str,
        rank: int,
        world_size: int,
        epochs: Optional[int],
    ) -> None:
        self.epoch = 0
        self._ours = ours
        self._order = known_order(order, len(ours), rank, world_size)
        self._batch_size = batch_size
        self._recipe = dataclasses.replace(self._order.recipe, passes=epochs or 0, behind=behind)
        self._lists: dict[int, Optional[array.array[int]]] = {}
        self._listing = threading.Lock()
        self._told = -1  # the last epoch whose list was told
        self._attachment = attachment_to(ours, name)
        self._attachment.attach(self._recipe)
        self._detach = weakref.finalize(self, self._attachment.detach)

    def __iter__(self) -> Iterator[Any]:
        epoch = self.epoch
        tag = self.begin(epoch)
        self.epoch = epoch + 1
        size = self._batch_size or 1
        ids = self.list_of(epoch)
        assert ids is not None
        for first in range(0, len(ids), size):
            tag = self.refresh(tag._replace(first=first))
            if self._batch_size is None:
                yield self.placed(ids[first], tag)
            else:
                yield IndexBatch(ids[first : first + size], self._ours.identity, tag)
            if first == 0:
                self.look_ahead(epoch + 2)

    def begin(self, epoch: int, start: int = 0, draws_ahead: bool = True) -> protocol.Tag:
        """Tells the sidecar that an epoch begins, at that place of its list. Where its sample stands.

        Args:
            draws_ahead: tell the list of the next epoch, too, where it takes time to get that.
        """
        if not self._detach.alive:
            raise ValueError("this order is closed: announce it again")
        ids = self.list_of(epoch)
        if ids is None:
            raise ValueError(f"the order of epoch {epoch} is not known: {self._order.ended}")
        common = len(ids) if self._order.common is None else self._order.common
        what = protocol.Pass(epoch, 0, common, order_crc(ids[:common]))
        self._told = epoch
        if not self._order.replayed and ids:
            following = self.list_of(epoch + 1) if draws_ahead else self._lists.get(epoch + 1)
            what = dataclasses.replace(what, trace=ids, ahead=(following,) if following else ())
            self._told += len(what.ahead)
        with self._listing:
            near = range(epoch, epoch + _LISTS_KEPT)
            self._lists = {number: of for number, of in self._lists.items() if number in near}
        return self._attachment.begin(self._recipe, what.rest(start))

    def place_of(self, key: Any) -> Optional[tuple[int, int]]:
        """The epoch of a key of grain's and its place there, if the key says them."""
        if self._order.epoch_length == 0:
            return None
        number = self._order.number_of(key)
        return None if number is None else divmod(number, self._order.epoch_length)

    def placed(self, index: int, tag: protocol.Tag) -> BatchIndex:
        """An index that stands there."""
        return BatchIndex(index, IndexBatch([index], self._ours.identity, tag), 0)

    def refresh(self, tag: protocol.Tag) -> protocol.Tag:
        """The same place, at a sidecar that has been started again, too. A closed order stays closed."""
        if not self._detach.alive:
            return tag
        return self._attachment.refresh(self._recipe, tag)

    def look_ahead(self, epoch: int) -> None:
        """Tells the list of that epoch, if it is known."""
        if self._order.replayed or not self._detach.alive or not self.list_of(epoch - 1):
            return
        ids = self.list_of(epoch)
        if ids and epoch == self._told + 1:
            self._attachment.look_ahead(self._recipe, ids)
            self._told = epoch

    def list_of(self, epoch: int) -> Optional[array.array[int]]:
        """What this rank reads in that epoch; None: the order has no such epoch."""
        with self._listing:
            if epoch not in self._lists:
                indices = self._order.indices(epoch)
                self._lists[epoch] = None if indices is None else self._checked(indices, epoch)
            return self._lists[epoch]

    def _checked(self, indices: Sequence[int], epoch: int) -> array.array[int]:
        size = len(self._ours)
        if not hasattr(indices, "__len__"):
            indices = list(indices)  # of a generator, which gives them once
        try:
            ids = array.array("I", indices)
            if max(ids, default=0) < size:
                return ids
        except OverflowError:
            pass
        except TypeError:
            kind = next((type(it) for it in indices if not hasattr(it, "__index__")), type(indices))
            raise TypeError(f"the order of epoch {epoch} has a {kind.__name__}, and not indices alone") from None
        wrong = next(index for index in indices if not 0 <= index < size)
        raise IndexError(
            f"the order of epoch {epoch} has the index {wrong}, and {self._ours.name} has {size:,} "
            "samples, numbered from 0"
        )

    def stats(self) -> Optional[SidecarStats]:
        """What the cache gave, as `loader.optcache.stats()` of a DataLoader."""
        return stats_of(self._ours)

    def close(self) -> None:
        """Tells the sidecar that this order is no longer read."""
        self._detach()

    def __enter__(self) -> AnnouncedOrder:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
