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
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from . import _protocol as protocol
from ._known_orders import Lister
from ._recipes import order_crc
from ._samplers import Items, Order, deals_in_turn, draw_seed

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
    """What an iteration reads is handed over as a list when it begins, and so are the lists of the
    two that follow, if they are known. Lists come from the user, or from a copy of the sampler,
    which itself notices nothing. Where there is none, each batch is told when it is asked for.
    """

    def __init__(
        self,
        batch_sampler: Any,
        sampler: Any,
        size: int,
        given: Union[Lister, bool, None],
        mapping: Optional[Mapping],
        seeds_workers: bool = False,
        items: Optional[Items] = None,
    ) -> None:
        super().__init__(batch_sampler, sampler, size)
        self.items = items
        self._given = given if callable(given) else None
        self._copied = given is True or (
            type(sampler) in _DRAWN_AHEAD and deals_in_turn(batch_sampler)
        )
        self._drawn: Optional[_Drawn] = None
        self._told_next = False
        self._seeds_workers = seeds_workers
        self.mapping = mapping
        self.recipe = protocol.Recipe(
            known=False, size=size, world=self.recipe.world, rank=self.recipe.rank, order="trace"
        )

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        what = self._describe(start)
        # A copy of a sampler that goes on in the middle would list only what is left.
        known = start == 0 or self._given is not None
        ids = self._list(self._passes, 0) if known else None
        self.followed = ids is None
        self._passes += 1
        if ids is not None:
            end = min(start + (what.length or len(ids)), len(ids))
            crc = order_crc(ids[start:end])
            length = max(end - start, 0)
            following = self._list(self._passes, 1)
            ahead = () if following is None else (following,)
            what = protocol.Pass(what.epoch, start, length, crc, trace=ids, ahead=ahead)
        self._told_next = bool(what.ahead)
        return what, iter(self._batches())

    def _length(self) -> int:
        return 0 if self.items is not None else super()._length()

    def look_ahead(self) -> Optional[array.array[int]]:
        return self._list(self._passes + 1, 2) if self._told_next else None

    def _list(self, number: int, ahead: int) -> Optional[array.array[int]]:
        """Of that pass, which is this many after the one that begins or is read; None: not known."""
        if self._given is not None:
            given = self._given(number)
            return self._as_ids(given) if given else None
        if not self._copied:
            return None
        try:
            with _same_randomness():
                return self._draw(ahead)
        except Exception:  # whatever an unknown sampler may raise: then it is followed
            self._copied = ahead > 0
            self._drawn = None
            return None

    def _draw(self, ahead: int) -> Optional[array.array[int]]:
        expected = super()._length()  # indices
        if not 0 < expected <= protocol.TRACE_MAX:
            return None
        if ahead == 0:
            known = self._drawn if type(self._sampler) in _DRAWN_AHEAD else None
            if known is None or not known.begin(self._batch_sampler):
                repeats = known is not None and known.epoch == getattr(self._sampler, "epoch", None)
                self._drawn = _Drawn(
                    self._batch_sampler, expected, self._as_ids, self._seeds_workers, repeats
                )
        elif self._drawn is None or not self._drawn.goes_on:
            return None
        assert self._drawn is not None
        return self._drawn.list(ahead)

    def _as_ids(self, indices: Sequence[int]) -> array.array[int]:
        return array.array("I", self.samples(indices))


class _Drawn:
    """The iterations of a copy of a batch sampler, from the one that it is about to make on.

    Attributes:
        epoch: of that one, if the sampler is a DistributedSampler: each next one is likely to be of the
            next epoch, or of the same where set_epoch is not called.
        goes_on: the iterations that follow are all alike, or depend on the epoch alone, or on the
            sampler's own generator.
    """

    def __init__(
        self,
        batch_sampler: Any,
        expected: int,
        as_ids: Callable[[Sequence[int]], array.array[int]],
        seeds_workers: bool,
        repeats: bool,
    ) -> None:
        sampler = getattr(batch_sampler, "sampler", None)
        self.epoch: Optional[int] = sampler.epoch if type(sampler) is DistributedSampler else None
        alike = self.epoch is not None or type(sampler) is SequentialSampler
        self.goes_on = alike or getattr(sampler, "generator", None) is not None
        self._step = 0 if repeats else 1  # of epochs
        self._copy = _copy_of(batch_sampler)
        self._expected = expected
        self._as_ids = as_ids
        self._seeds_workers = seeds_workers
        self._made_of = _parts_of(batch_sampler)
        self._lists: list[Optional[array.array[int]]] = []
        self._states = [_state_of(self._copy)]  # of its generator before each list, and the next

    def list(self, ahead: int) -> Optional[array.array[int]]:
        """Of the iteration that is this many after the first; None: it is longer than expected."""
        while len(self._lists) <= ahead:
            if self.epoch is not None:
                self._copy.sampler.set_epoch(self.epoch + self._step * len(self._lists))
            ids = _flat(self._copy, self._expected)
            self._lists.append(None if ids is None else self._as_ids(ids))
            if self._seeds_workers:
                draw_seed(self._copy.sampler.generator)
            self._states.append(_state_of(self._copy))
        return self._lists[ahead]

    def begin(self, batch_sampler: Any) -> bool:
        """The sampler makes its next iteration. False: that one is not what was drawn, since the
        sampler is another by now, or its generator has given numbers to others.
        """
        if len(self._states) < 2 or not _same(_parts_of(batch_sampler), self._made_of):
            return False
        if self.epoch is not None:
            if batch_sampler.sampler.epoch != self.epoch + self._step:
                return False
            self.epoch += self._step
        else:
            now = _state_of(batch_sampler)
            if now is None or self._states[1] is None or not torch.equal(now, self._states[1]):
                return False
        del self._lists[0], self._states[0]
        return True


def _state_of(batch_sampler: Any) -> Optional[torch.Tensor]:
    generator = getattr(getattr(batch_sampler, "sampler", None), "generator", None)
    return generator.get_state() if isinstance(generator, torch.Generator) else None


def _parts_of(batch_sampler: Any) -> list[tuple[Any, Any]]:
    """What the iterations of a sampler of PyTorch's depend on, but for its epoch or its generator's
    state, and how often it was changed, where that is counted.
    """
    return [
        (thing, getattr(thing, "_version", None))
        for holder in (batch_sampler, getattr(batch_sampler, "sampler", None))
        for name, thing in getattr(holder, "__dict__", {}).items()
        if name != "epoch"
    ]


def _same(parts: list[tuple[Any, Any]], others: list[tuple[Any, Any]]) -> bool:
    return len(parts) == len(others) and all(
        one is other and version == other_version
        for (one, version), (other, other_version) in zip(parts, others)
    )


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
