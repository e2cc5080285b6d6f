"""Indices that know where in a pass they stand, on their way through a DataLoader to a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional, Union

from ._protocol import Tag
from .errors import SampleError

if TYPE_CHECKING:
    from .dataset import Dataset

    _IntList = list[int]
else:
    _IntList = list

Sample = Union[memoryview, bytes]


class IndexBatch(_IntList):
    """The indices of a batch: a list like any other, with the batch's place in its pass.

    Datasets that are given the whole list (`__getitems__`) read it in one round trip. Where a
    DataLoader or a dataset around ours asks for one index after the other, the first of them fetches
    all: iterating gives ints that remember their batch. The fetched samples live as long as the
    batch does.

    Attributes:
        dataset: name of the dataset that the indices are of.
        tag: the place of the first.
    """

    def __init__(self, indices: Iterable[int], dataset: str, tag: Tag) -> None:
        super().__init__(indices)
        self.dataset = dataset
        self.tag = tag
        self._samples: Optional[list[Sample]] = None
        self._failed = False

    def __iter__(self) -> Iterator[int]:
        for at, index in enumerate(super().__iter__()):
            yield BatchIndex(index, self, at)

    def __reduce__(self) -> tuple[Any, ...]:
        return IndexBatch, (list(super().__iter__()), self.dataset, self.tag)

    def sample(self, dataset: Dataset, at: int) -> Optional[Sample]:
        """The sample of the index at place `at`, fetching the whole batch the first time; None if
        one of the batch cannot be read: each is then read alone, and only that one fails.
        """
        if self._samples is None and not self._failed:
            try:
                self._samples = dataset.__getitems__(self)
            except SampleError:
                self._failed = True
        return None if self._samples is None else self._samples[at]


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

    def sample(self, dataset: Dataset) -> Optional[Sample]:
        """The sample, with its whole batch; None if it is to be read alone."""
        if self._batch.dataset != dataset.name:
            return None
        return self._batch.sample(dataset, self._at)
