"""Orders that no recipe says: handed over as lists, or followed batch by batch."""

from __future__ import annotations

import array
import contextlib
import copy
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional, Union

import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from . import _protocol as protocol
from ._samplers import Order, order_crc

Lister = Callable[[int], Optional[Sequence[int]]]
Mapping = Callable[[int], int]

# Their iterations only draw random numbers.
_DRAWN_AHEAD = (
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


class TracedOrder(Order):
    """What an iteration reads is handed over as a list when it begins, and the next one's too if it
    is known. Lists come from the user, or from a copy of the sampler, which itself notices nothing.
    Where there is none, each batch is told when it is asked for.
    """

    def __init__(
        self,
        batch_sampler: Any,
        sampler: Any,
        size: int,
        given: Union[Lister, bool, None],
        mapping: Optional[Mapping],
    ) -> None:
        super().__init__(batch_sampler, sampler, size)
        self._given = given if callable(given) else None
        self._copied = given is True or (
            type(sampler) in _DRAWN_AHEAD and type(batch_sampler) is BatchSampler
        )
        self.mapping = mapping
        self.recipe = protocol.Recipe(
            known=False, size=size, world=self.recipe.world, rank=self.recipe.rank, order="trace"
        )

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        what = self._describe(start)
        # A copy of a sampler that goes on in the middle would list only what is left.
        lists = None if start > 0 and self._given is None else self._lists(self._passes)
        self.followed = lists is None
        self._passes += 1
        if lists is not None:
            ids, ahead = lists
            end = min(start + (what.length or len(ids)), len(ids))
            crc = order_crc(ids[start:end])
            length = max(end - start, 0)
            what = protocol.Pass(what.epoch, start, length, crc, trace=ids, ahead=ahead)
        return what, iter(self._batches())

    def _lists(
        self, number: int
    ) -> Optional[tuple[array.array[int], Optional[array.array[int]]]]:
        """Of that pass and, if it is known, of the next; None: that pass's is not known."""
        if self._given is not None:
            ids, ahead = self._given(number), self._given(number + 1)
        elif self._copied:
            ids, ahead = self._draw()
        else:
            return None
        if not ids:
            return None
        return self._as_ids(ids), self._as_ids(ahead) if ahead else None

    def _as_ids(self, indices: Sequence[int]) -> array.array[int]:
        return array.array("I", self.samples(indices))

    def _draw(self) -> tuple[Optional[Sequence[int]], Optional[Sequence[int]]]:
        expected = self._length()
        if not 0 < expected <= protocol.TRACE_MAX:
            return None, None
        with _same_randomness():
            try:
                copied = _copy_of(self._batch_sampler)
                ids = _flat(copied, expected)
            except Exception:  # whatever an unknown sampler may raise: then it is followed
                self._copied = False
                return None, None
            if ids is None or not self._goes_on():
                return ids, None
            return ids, self._draw_next(copied, expected)

    def _goes_on(self) -> bool:
        """Does the next iteration depend on nothing but the sampler's own generator?"""
        return getattr(self._sampler, "generator", None) is not None

    def _draw_next(self, copied: Any, expected: int) -> Optional[Sequence[int]]:
        try:
            return _flat(copied, expected)
        except Exception:
            return None


def _flat(batches: Any, expected: int) -> Optional[list[int]]:
    """The indices of an iteration; None if there are more than expected."""
    ids = list(itertools.islice((int(i) for batch in batches for i in batch), expected + 1))
    return ids if len(ids) <= expected else None


def _copy_of(batch_sampler: Any) -> Any:
    """A copy that shares no state, but the dataset, with the original."""
    memo: dict[int, Any] = {}
    for thing in _within(batch_sampler):
        if isinstance(thing, torch.Generator):
            generator = torch.Generator()
            generator.set_state(thing.get_state())
            memo[id(thing)] = generator
    for holder in (batch_sampler, getattr(batch_sampler, "sampler", None)):
        known = type(holder) in _DRAWN_AHEAD  # and changes none of these
        for name in ("dataset", "data_source", "indices", "weights")[: 4 if known else 2]:
            data = getattr(holder, name, None)
            if data is not None:
                memo[id(data)] = data
    return copy.deepcopy(batch_sampler, memo)


def _within(holder: Any, depth: int = 3) -> Iterator[Any]:
    for thing in getattr(holder, "__dict__", {}).values():
        yield thing
        if depth > 1:
            yield from _within(thing, depth - 1)


@contextlib.contextmanager
def _same_randomness() -> Iterator[None]:
    """The random numbers that are drawn within are drawn again after it."""
    of_torch, of_python = torch.get_rng_state(), random.getstate()
    try:
        import numpy
    except ImportError:
        numpy = None  # type: ignore[assignment]
    of_numpy = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(of_torch)
        random.setstate(of_python)
        if numpy is not None and of_numpy is not None:
            numpy.random.set_state(of_numpy)
