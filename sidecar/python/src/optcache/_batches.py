"""Indices that know where in a pass they stand, on their way through a DataLoader to a worker."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional, Protocol, Union

from ._protocol import Tag
from .errors import SampleError

if TYPE_CHECKING:
    _IntList = list[int]
else:
    _IntList = list

Sample = Union[memoryview, bytes]


class Named(Protocol):
    """What a batch may be of: a Dataset, or a Store."""

    identity: str


class Readable(Named, Protocol):
    """What the samples of a batch are read from: a Dataset."""

    def read_batch(self, batch: IndexBatch) -> list[Sample]: ...


# The batch that this thread iterates over, and which of its samples those of the present index are.
_current = threading.local()


def current_sample(dataset: Readable, index: int) -> Optional[Sample]:
    """The sample, with its whole batch, if it is the one that this thread's batch is at, or one of
    those.
    """
    if getattr(_current, "batch", None) is None:
        return None
    found = current_samples(dataset, [index])
    return None if found is None else found[0]


def current_samples(dataset: Readable, indices: Sequence[int]) -> Optional[list[Sample]]:
    """The samples, with their whole batch, if they are those that this thread's batch is at, or some of
    them.
    """
    batch: Optional[IndexBatch] = getattr(_current, "batch", None)
    if batch is None or batch.samples is None or batch.dataset != dataset.identity:
        return None
    begin, end = _current.at, _current.end
    try:
        places = [batch.samples.index(index, begin, end) for index in indices]
    except ValueError:
        return None
    found = []
    for at in places:
        sample = batch.sample(dataset, at)
        if sample is None:
            return None
        found.append(sample)
    return found


def current_tag(dataset: Named, indices: Sequence[int]) -> Optional[Tag]:
    """The place of these samples, if they are this thread's whole batch."""
    batch: Optional[IndexBatch] = getattr(_current, "batch", None)
    if batch is None or batch.dataset != dataset.identity or batch.samples is None:
        return None
    if batch.samples != list(indices):  # of whatever kind they are: an array is compared in its own way
        return None
    _current.batch = None
    return batch.tag


def with_places(dataset: Named, indices: Sequence[int]) -> Sequence[int]:
    """The indices, each with its place, if they are a batch of that dataset or this thread's whole one."""
    tag = None if isinstance(indices, IndexBatch) else current_tag(dataset, indices)
    return indices if tag is None else IndexBatch(indices, dataset.identity, tag)


def place_of(identity: str, index: int) -> Optional[Tag]:
    """The place of an index of that dataset, if it knows its own, or this thread's batch is at it."""
    batch: Any = getattr(_current, "batch", None)
    at: int = getattr(_current, "at", 0)
    if type(index) is BatchIndex:
        batch, at = index._batch, index._at
    elif batch is None or at >= len(batch.samples) or batch.samples[at] != index:
        return None
    return batch.tag._replace(first=batch.tag.first + at) if batch.dataset == identity else None


class IndexBatch(_IntList):
    """The indices of a batch: a list like any other, with the batch's place in its pass.

    Datasets that are given the whole list (`__getitems__`) read it in one round trip. Where a
    DataLoader or a dataset around ours asks for one index after the other, the first of them fetches
    all: iterating gives ints that remember their batch. The fetched samples live as long as the
    batch does.

    Where the indices are those of a Subset or the like, whose own list turns them into samples and so
    forgets what they remember, the dataset under it asks `current` instead.

    Attributes:
        dataset: identity of the dataset that the indices are of, or the samples.
        tag: the place of the first.
        samples: what the indices stand for; None: themselves. Given as well where they are of another
            type than int, which they keep.
        ends: where the samples of each index end, if it stands for several; None: for one each.
    """

    def __init__(
        self,
        indices: Iterable[int],
        dataset: str,
        tag: Tag,
        samples: Optional[list[int]] = None,
        ends: Optional[list[int]] = None,
    ) -> None:
        super().__init__(indices)
        self.dataset = dataset
        self.tag = tag
        self.samples = samples
        self.ends = ends
        self._samples: Optional[list[Sample]] = None
        self._failed = False

    def reads(self) -> int:
        """How many samples it stands for."""
        return len(self) if self.samples is None else len(self.samples)

    def stands_for_itself(self) -> bool:
        return self.samples is None or self.samples == list(super().__iter__())

    def __iter__(self) -> Iterator[int]:
        if self.samples is not None:
            return self._iterate_mapped()
        return (BatchIndex(index, self, at) for at, index in enumerate(super().__iter__()))

    def _iterate_mapped(self) -> Iterator[int]:
        begin = 0
        try:
            for at, index in enumerate(super().__iter__()):
                end = at + 1 if self.ends is None else self.ends[at]
                _current.batch, _current.at, _current.end = self, begin, end
                yield index
                begin = end
        finally:
            _current.at = _current.end = len(self.samples or ())
            if self._samples is not None:  # fetched: the whole is not asked for
                _current.batch = None

    def __reduce__(self) -> tuple[Any, ...]:
        ours = (list(super().__iter__()), self.dataset, self.tag, self.samples, self.ends)
        return IndexBatch, ours

    def sample(self, dataset: Readable, at: int) -> Optional[Sample]:
        """The sample of the index at place `at`, fetching the whole batch the first time; None if
        one of the batch cannot be read: each is then read alone, and only that one fails.
        """
        if self._samples is None and not self._failed:
            try:
                self._samples = dataset.read_batch(self)
            except SampleError:
                self._failed = True
        return None if self._samples is None else self._samples[at]


class MixedBatch(_IntList):
    """The indices of a batch of several datasets: a list like any other. While it is iterated over, the
    dataset that an index is of finds the sample in its own part, which it fetches as a whole.

    Attributes:
        parts: the samples of each dataset.
        where: for each index its part and its place in that.
    """

    def __init__(
        self,
        indices: Iterable[int],
        parts: list[IndexBatch],
        where: list[tuple[int, int]],
    ) -> None:
        super().__init__(indices)
        self.parts = parts
        self.where = where

    def __iter__(self) -> Iterator[int]:
        try:
            for index, (number, at) in zip(super().__iter__(), self.where):
                _current.batch, _current.at, _current.end = self.parts[number], at, at + 1
                yield index
        finally:
            _current.batch = None

    def __reduce__(self) -> tuple[Any, ...]:
        return MixedBatch, (list(super().__iter__()), self.parts, self.where)


class BatchIndex(int):
    """An int that remembers its batch; copied to another process, an int."""

    _batch: IndexBatch
    _at: int

    def __new__(cls, index: int, batch: IndexBatch, at: int) -> BatchIndex:
        self = super().__new__(cls, index)
        self._batch = batch
        self._at = at
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)

    def sample(self, dataset: Readable) -> Optional[Sample]:
        """The sample, with its whole batch; None if it is to be read alone."""
        if self._batch.dataset != dataset.identity:
            return None
        return self._batch.sample(dataset, self._at)
