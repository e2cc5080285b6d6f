"""A loader that reads several datasets: each is told its part of the order."""

from __future__ import annotations

import array
import dataclasses
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

from . import _protocol as protocol
from ._attachment import attachment_to
from ._batches import IndexBatch, MixedBatch
from ._recipes import order_crc
from ._store import Store
from .dataset import Dataset

# What a loader can be announced to read: samples of the sidecar, or computed ones.
Source = Union[Dataset, Store]

Places = tuple[protocol.Tag, ...]  # one for each source


class Several:
    """Several sources as one: the samples of each are numbered on from those of the one before.

    Attributes:
        sources: the sources.
        name: of all of them.
        version: names the samples as they are now.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.name = " and ".join(source.name for source in sources)
        self.version = " and ".join(
            source.name if isinstance(source, Store) else source.version for source in sources
        )

    def __len__(self) -> int:
        return sum(map(len, self.sources))


class _Part:
    """One of the sources, and its samples among all."""

    def __init__(self, source: Source, loader: str, first: int) -> None:
        self.attachment = attachment_to(source, loader)
        self._first = first
        self._size = len(source)

    def recipe(self, recipe: protocol.Recipe) -> protocol.Recipe:
        return dataclasses.replace(recipe, size=self._size, pass_reads=0)

    def of(self, ids: Iterable[int]) -> array.array[int]:
        """Those of this source, as its own numbers."""
        first, end = self._first, self._first + self._size
        return array.array("I", [index - first for index in ids if first <= index < end])

    def of_pass(self, what: protocol.Pass, reads: Optional[int]) -> protocol.Pass:
        """What a pass reads of this source, if it reads so much; None: its whole list."""
        if what.trace is None:
            return protocol.Pass(what.epoch, 0, 0)
        ids = what.trace[:reads]
        now = self.of(ids[what.start : what.start + what.length])
        return protocol.Pass(
            what.epoch,
            start=len(self.of(ids[: what.start])),
            length=len(now),
            crc=order_crc(now),
            trace=self.of(ids),
            ahead=tuple(self.of(following[:reads]) for following in what.ahead),
        )


class Attachments:
    """Announces the passes of one loader to each of its sources, as an Attachment does to one. Their
    orders come as lists: what a rank reads of each source.
    """

    def __init__(self, several: Several, loader: str) -> None:
        self._identities = [source.identity for source in several.sources]
        self._ends = list(itertools.accumulate(map(len, several.sources)))
        firsts = [0, *self._ends]
        self._parts = [
            _Part(source, loader, first) for source, first in zip(several.sources, firsts)
        ]

    def attach(self, recipe: protocol.Recipe) -> None:
        """Raises as that of an Attachment; then none is attached."""
        try:
            for part in self._parts:
                part.attachment.attach(part.recipe(recipe))
        except BaseException:
            self.detach()
            raise

    def begin(self, recipe: protocol.Recipe, what: protocol.Pass) -> Places:
        reads = recipe.pass_reads or None
        return tuple(
            part.attachment.begin(part.recipe(recipe), part.of_pass(what, reads))
            for part in self._parts
        )

    def refresh(self, recipe: protocol.Recipe, places: Places) -> Places:
        return tuple(
            part.attachment.refresh(part.recipe(recipe), place)
            for part, place in zip(self._parts, places)
        )

    def placed(
        self,
        indices: Sequence[int],
        places: Places,
        samples: Optional[Sequence[int]],
        ends: Optional[list[int]] = None,
    ) -> MixedBatch:
        of_parts: list[list[int]] = [[] for _ in places]
        where = []
        for sample in indices if samples is None else samples:
            number = bisect_right(self._ends, sample)
            first = self._ends[number - 1] if number else 0
            where.append((number, len(of_parts[number])))
            of_parts[number].append(sample - first)
        parts = [
            IndexBatch(ids, identity, place, ids)
            for ids, identity, place in zip(of_parts, self._identities, places)
        ]
        return MixedBatch(indices, parts, where)

    def after(self, places: Places, batch: Any) -> Places:
        if not isinstance(batch, MixedBatch):
            return places
        return tuple(
            place._replace(first=place.first + len(part))
            for place, part in zip(places, batch.parts)
        )

    def look_ahead(self, recipe: protocol.Recipe, ids: array.array[int]) -> None:
        ids = ids[: recipe.pass_reads or None]
        for part in self._parts:
            part.attachment.look_ahead(part.recipe(recipe), part.of(ids))

    def follow(self, recipe: protocol.Recipe, places: Places, ids: list[int]) -> None:
        for part, place in zip(self._parts, places):
            own = part.of(ids)
            if own:
                part.attachment.follow(part.recipe(recipe), place, list(own))

    def detach(self) -> None:
        for part in self._parts:
            part.attachment.detach()
