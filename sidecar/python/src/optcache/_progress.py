"""How far a training loop has read of a loader: to be saved with a checkpoint, and to go on from.

A loader asks its batch sampler for batches before it gives them out: `workers * prefetch_factor` of
them when an iteration begins, and one more for each that it gives out, also when there are no more.
So the number of times that the batch sampler was asked says how many the loop has got.

What is saved counts the samples of all ranks from the front of the epoch's order, so that a job of
another number of ranks can go on there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Optional, TypedDict

import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from ._samplers import Order

log = logging.getLogger("optcache")

_REPEATS = (SequentialSampler, DistributedSampler)
_REPEATS_BY_GENERATOR = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)


class State(TypedDict):
    """What is saved.

    Attributes:
        epoch: of the next batch.
        samples: of that epoch that all ranks together have read, from the front of its order.
        generator: the sampler's, before the epoch drew from it; None: it has none.
        drawn: whether an epoch is to be drawn from the generator before this one.
        known: whether the cache knew the order.
    """

    epoch: int
    samples: int
    generator: Optional[torch.Tensor]
    drawn: bool
    known: bool


class Progress:
    """Of one loader. Not thread-safe: the training loop's."""

    def __init__(
        self,
        order: Order,
        batch_sampler: Any,
        batches_ahead: int,
        limit_batches: Optional[int],
        seeds_workers: bool,
    ) -> None:
        """Args:
            batches_ahead: that the loader asks for before it gives the first one out.
            limit_batches: that are read of each iteration; None: all.
            seeds_workers: the loader draws a seed from the sampler's generator before each iteration.
        """
        self._order = order
        self._batch_sampler = batch_sampler
        self._sampler: Any = getattr(batch_sampler, "sampler", None)
        self._ahead = batches_ahead
        self._limit = limit_batches
        self._seeds_workers = seeds_workers
        self._loaded: Optional[State] = None
        self._epoch: Optional[int] = None  # of the present iteration; None: there was none yet
        self._before = 0  # batches that another process has read of it
        self._asked = 0
        self._drawn_from = self._generator_state()

    # --- While it is read

    def begin(self) -> int:
        """The first batch of an iteration is asked for: how many of its batches another process has
        read. Sets the sampler's generator to what it was then.
        """
        loaded, self._loaded = self._loaded, None
        self._before = 0
        self._asked = 1  # for the first batch, now
        if loaded is not None and self._is_of(loaded):
            self._go_on(loaded)
        self._epoch = self._next_epoch()
        self._drawn_from = self._generator_state()
        return self._before

    def counted(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches of the iteration that begins."""
        return _Counted(self, batches)

    def ask(self) -> None:
        self._asked += 1

    # --- To be saved

    def state(self) -> State:
        """Raises ValueError if the order cannot be repeated."""
        self._check()
        if self._loaded is not None:
            return self._loaded
        state: State = {
            "epoch": self._next_epoch() if self._epoch is None else self._epoch,
            "samples": 0,
            "generator": self._drawn_from,
            "drawn": False,
            "known": self._order.recipe.known,
        }
        batches = self._before + max(self._asked - self._ahead, 0)
        if self._epoch is not None and batches >= self._batches_of_epoch():
            state["epoch"] += 1
            state["drawn"] = self._drawn_from is not None
        else:
            state["samples"] = batches * self._batch_size() * self._world()
        return state

    def load(self, state: State) -> None:
        """The next iteration goes on there. Raises ValueError if the order cannot be repeated, or it is
        no such state.
        """
        self._check()
        if not isinstance(state, dict) or state.keys() != State.__annotations__.keys():
            raise ValueError("load_state_dict: this is not what state_dict() of a loader has returned")
        if (state["generator"] is None) != (self._drawn_from is None):
            raise ValueError("load_state_dict: this is the state of a loader with another sampler")
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(state["epoch"])
        self._loaded = state

    # --- Within

    def _check(self) -> None:
        kind = type(self._sampler)
        if type(self._batch_sampler) is BatchSampler:
            if kind in _REPEATS:
                return
            if kind in _REPEATS_BY_GENERATOR:
                if self._drawn_from is not None:
                    return
                raise ValueError(
                    f"state_dict: the {kind.__name__} has no generator of its own, so its order cannot "
                    "be repeated: give it one, generator=torch.Generator().manual_seed(...)"
                )
            raise ValueError(
                f"state_dict: whether a {kind.__name__} repeats its order is not known: save what it "
                "keeps itself, and say where it goes on by attach(start=) and start_at()"
            )
        raise ValueError(
            f"state_dict: {type(self._batch_sampler).__name__} deals batches in its own way: save what "
            "it keeps itself"
        )

    def _is_of(self, loaded: State) -> bool:
        epoch = getattr(self._sampler, "epoch", loaded["epoch"])
        if epoch == loaded["epoch"]:
            return True
        log.warning(
            "what was loaded is of epoch %s, and the sampler is at epoch %s: this epoch begins at the "
            "front. Begin with the epoch that state_dict() says",
            loaded["epoch"],
            epoch,
        )
        return False

    def _go_on(self, loaded: State) -> None:
        generator = getattr(self._sampler, "generator", None)
        if loaded["generator"] is not None and generator is not None:
            generator.set_state(loaded["generator"].cpu())
            if loaded["drawn"]:
                for _ in self._batch_sampler:
                    pass
                if self._seeds_workers:  # as the loader has for this epoch, before the state was set
                    torch.empty((), dtype=torch.int64).random_(generator=generator)
        self._order.go_on(loaded["epoch"], loaded["known"])
        # A whole batch: what another number of ranks has read of it is read twice.
        self._before = loaded["samples"] // self._world() // self._batch_size()

    def _next_epoch(self) -> int:
        epoch = getattr(self._sampler, "epoch", None)
        return epoch if isinstance(epoch, int) else self._order.passes

    def _generator_state(self) -> Optional[torch.Tensor]:
        generator = getattr(self._sampler, "generator", None)
        return generator.get_state() if isinstance(generator, torch.Generator) else None

    def _batches_of_epoch(self) -> int:
        whole = len(self._batch_sampler)
        return whole if self._limit is None else min(whole, self._limit)

    def _batch_size(self) -> int:
        return int(self._batch_sampler.batch_size)

    def _world(self) -> int:
        return int(self._order.recipe.world)


class _Counted:
    def __init__(self, progress: Progress, batches: Iterator[Any]) -> None:
        self._progress = progress
        self._batches = batches

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Any:
        self._progress.ask()
        return next(self._batches)
