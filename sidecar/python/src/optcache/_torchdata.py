"""torchdata's StatefulDataLoader: it saves the states of iterations, and goes on from them."""

from __future__ import annotations

import array
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, Optional, Protocol

import torch
from torch.utils.data.distributed import DistributedSampler

from . import _protocol as protocol
from ._known_orders import deals_of_torchdata, is_called
from ._samplers import Order, draw_seed
from ._traces import TracedOrder


def is_stateful(loader: Any) -> bool:
    """Is it a StatefulDataLoader, or does it deal batches as one?"""
    reader = getattr(loader, "base_dataloader", loader)  # of Accelerate's
    return deals_of_torchdata(loader.batch_sampler) or any(
        kind.__name__ == "StatefulDataLoader" and kind.__module__.startswith("torchdata.")
        for kind in type(reader).__mro__
    )


def has_state(thing: Any) -> bool:
    return hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")


def draws_when_begun(batch_sampler: Any, sampler: Any) -> bool:
    """Is it torchdata's RandomSampler, of which an iteration is one permutation?"""
    return (
        deals_of_torchdata(batch_sampler)
        and is_called(sampler, "torchdata.stateful_dataloader", "RandomSampler")
        and not sampler.replacement
        and sampler.num_samples <= len(sampler.data_source)
        and sampler.generator.device.type == "cpu"
    )


class DrawnOrder(TracedOrder):
    """torchdata's RandomSampler. Each iteration has its permutation from its begin on, so its list is
    known, also where it goes on in the middle. Those that follow are drawn from a copy of the generator.

    Attributes:
        begins_twice: the loader makes two iterations for a pass, and reads the second. A seed for its
            workers is drawn after the first.
    """

    begins_twice = False

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        if self.begun is None:
            self.begun = iter(self._batch_sampler)
        self._list_now = self.begun.sampler_iter.perm
        self._lists_ahead: list[array.array[int]] = []
        self._generator = torch.Generator()
        self._generator.set_state(self._sampler.generator.get_state())
        what, batches = super().begin(0)
        return what.rest(len(self.samples(self._list_now[:start]))), batches

    def _list(self, number: int, ahead: int) -> Optional[array.array[int]]:
        if not 0 < Order._length(self) <= protocol.TRACE_MAX:
            return None
        if ahead == 0:
            return self._as_list(self._list_now)
        while len(self._lists_ahead) < ahead:
            self._lists_ahead.append(self._as_list(self._draw_next()))
        return self._lists_ahead[ahead - 1]

    def _as_list(self, permutation: list[int]) -> array.array[int]:
        return self._as_ids(permutation[: Order._length(self)])

    def _draw_next(self) -> list[int]:
        drawn = self._permutation()
        if self._seeds_workers:
            draw_seed(self._generator)
        return self._permutation() if self.begins_twice else drawn

    def _permutation(self) -> list[int]:
        size = len(self._sampler.data_source)
        return list(torch.randperm(size, generator=self._generator).tolist())


def _epoch_of(begun: Any) -> Optional[int]:
    """Of an iteration of torchdata's batch sampler that has drawn its list; None: that is drawn later."""
    if not is_called(begun, "torchdata.stateful_dataloader", "_BatchSamplerIterator"):
        return None
    return int(begun.sampler.epoch) if type(begun.sampler) is DistributedSampler else None


@contextlib.contextmanager
def _at_epoch(begun: Any, epoch: Optional[int]) -> Iterator[None]:
    """Its sampler is at that epoch for a moment."""
    if epoch is None:
        yield
        return
    now, begun.sampler.epoch = begun.sampler.epoch, epoch
    try:
        yield
    finally:
        begun.sampler.epoch = now


class Teller(Protocol):
    """Announces iterations: StatefulBatchSampler."""

    def announced(self, begun: Any, index: int) -> Iterator[Any]: ...

    def drawn(self, begun: Any, draw: Any) -> Iterator[Any]: ...


class AnnouncedIteration:
    """The batches of an iteration of a batch sampler, which is announced when the first is asked for: with
    the epoch of when it was made, where its list is of then.
    """

    def __init__(self, teller: Teller, begun: Any) -> None:
        self._teller = teller
        self._begun = begun
        self._epoch = _epoch_of(begun)
        self._batches: Optional[Iterator[Any]] = None

    def __iter__(self) -> AnnouncedIteration:
        return self

    def __next__(self) -> Any:
        if self._batches is None:
            index = getattr(self._begun, "samples_yielded", 0)
            with _at_epoch(self._begun, self._epoch):
                self._batches = self._teller.announced(self._begun, index)
        return next(self._batches)


class StatefulIteration(AnnouncedIteration):
    """One that has a state: that of the batch sampler's iteration, as without us."""

    def state_dict(self) -> Any:
        return self._begun.state_dict()

    def load_state_dict(self, state: Any) -> None:
        begun = self._begun
        drawn = is_called(begun, "torchdata.stateful_dataloader", "_BatchSamplerIterator")
        if not drawn or has_state(begun.sampler) or has_state(begun.sampler_iter):
            begun.load_state_dict(state)
            self._batches = None
            return
        # What was read is drawn again, so the order is looked at before that.
        read = state["samples_yielded"]
        begun.load_state_dict({**state, "samples_yielded": 0})

        def draw() -> list[int]:
            begun.samples_yielded = read
            return list(itertools.islice(begun.sampler_iter, read))

        self._batches = self._teller.drawn(begun, draw)

    def update_state_dict(self) -> None:
        if hasattr(self._begun, "update_state_dict"):
            self._begun.update_state_dict()
