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
Split = list["array.array[int]"]  # samples of each source

_LISTS_KEPT = 3  # of the present pass and two that follow


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
    """One of the sources."""

    def __init__(self, source: Source, loader: str) -> None:
        self.attachment = attachment_to(source, loader)
        self._size = len(source)

    def recipe(self, recipe: protocol.Recipe) -> protocol.Recipe:
        return dataclasses.replace(recipe, size=self._size, pass_reads=0)


class Attachments:
    """Announces the passes of one loader to each of its sources, as an Attachment does to one. Their
    orders come as lists: what a rank reads of each source.
    """

    def __init__(self, several: Several, loader: str) -> None:
        self._identities = [source.identity for source in several.sources]
        self._ends = list(itertools.accumulate(map(len, several.sources)))
        self._parts = [_Part(source, loader) for source in several.sources]
        self._split_last: list[tuple[array.array[int], Split]] = []  # lists, and what each is

    def attach(self, recipe: protocol.Recipe) -> None:
        """Raises as that of an Attachment; then none is attached."""
        try:
            for part in self._parts:
                part.attachment.attach(part.recipe(recipe))
        except BaseException:
            self.detach()
            raise

    def begin(self, recipe: protocol.Recipe, what: protocol.Pass) -> Places:
        passes = self._of_pass(what, recipe.pass_reads or None)
        return tuple(
            part.attachment.begin(part.recipe(recipe), own)
            for part, own in zip(self._parts, passes)
        )

    def _of_pass(self, what: protocol.Pass, reads: Optional[int]) -> list[protocol.Pass]:
        """What a pass reads of each source, if it reads so much; None: its whole list."""
        if what.trace is None:
            return [protocol.Pass(what.epoch, 0, 0) for _ in self._parts]
        ids = what.trace[:reads]
        traces = self._split_once(ids)
        ahead = [self._split_once(following[:reads]) for following in what.ahead]
        begins = list(map(len, self._split(ids[: what.start])))
        whole = what.start == 0 and what.length >= len(ids)
        nows = traces if whole else self._split(ids[what.start : what.start + what.length])
        return [
            protocol.Pass(what.epoch, begin, len(now), order_crc(now), trace, following)
            for begin, now, trace, following in zip(
                begins, nows, traces, zip(*ahead) if ahead else itertools.repeat(())
            )
        ]

    def _split_once(self, ids: array.array[int]) -> Split:
        """A list that was split a short while ago, as one that was told ahead, is not split again."""
        found = next((it for it in self._split_last if it[0] == ids), None)
        found = found or (ids, self._split(ids))
        self._split_last = [*(it for it in self._split_last if it is not found), found][-_LISTS_KEPT:]
        return found[1]

    def _split(self, ids: Iterable[int]) -> Split:
        """Those of each source, as its own numbers."""
        parts = [array.array("I") for _ in self._ends]
        firsts = [0, *self._ends]
        for index in ids:
            number = bisect_right(self._ends, index)
            parts[number].append(index - firsts[number])
        return parts

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
        for part, own in zip(self._parts, self._split_once(ids)):
            part.attachment.look_ahead(part.recipe(recipe), own)

    def follow(self, recipe: protocol.Recipe, places: Places, ids: list[int]) -> None:
        for part, place, own in zip(self._parts, places, self._split(ids)):
            if own:
                part.attachment.follow(part.recipe(recipe), place, list(own))

    def detach(self) -> None:
        for part in self._parts:
            part.attachment.detach()
