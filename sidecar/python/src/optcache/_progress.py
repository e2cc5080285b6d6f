"""How far a training loop has read of a loader: to be saved with a checkpoint, and to go on from.

A loader asks its batch sampler for batches before it gives them out: `workers * prefetch_factor` of
them when an iteration begins, and one more for each that it gives out, also when there are no more.
So the number of times that the batch sampler was asked says how many the loop has got.

What is saved counts the samples from the front of the epoch's order. DistributedSampler deals one
order to all ranks, so its state counts the samples of all of them, and a job of another number of
ranks can go on there. With another sampler each rank reads a list of its own, and the state is of that
rank.
"""

from __future__ import annotations

import itertools
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

from . import _protocol as protocol
from ._samplers import Order, draw_seed, place_in_job, size_of

log = logging.getLogger("optcache")

_REPEATS = (SequentialSampler, DistributedSampler)
_REPEATS_BY_GENERATOR = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_VERSION = 1


class State(TypedDict):
    """What is saved. A later release may add keys, which this one ignores, as long as `version` stays.

    Attributes:
        version: of this format.
        epoch: of the next batch.
        samples: of that epoch that have been read, from the front of its order: by all ranks together
            where the sampler deals one order to them, else by this rank.
        generator: the sampler's state, from which this epoch or the one before is drawn; None: it has
            no generator.
        drawn: this many indices are to be drawn from the generator before this epoch.
        known: whether the cache knew the order.
        sampler: its class.
        size: samples that the sampler chooses from.
        seed: of the sampler or its generator; None: it does not shuffle.
        rank: whose state this is; None: that of all ranks.
        dataset: names the samples as they were.
    """

    version: int
    epoch: int
    samples: int
    generator: Optional[torch.Tensor]
    drawn: int
    known: bool
    sampler: str
    size: int
    seed: Optional[int]
    rank: Optional[int]
    dataset: str


class Progress:
    """Of one loader. Not thread-safe: the training loop's."""

    def __init__(
        self,
        order: Order,
        batch_sampler: Any,
        dataset: str,
        batches_ahead: int,
        limit_batches: Optional[int],
        base_seed: int,
        refusal: Optional[str] = None,
    ) -> None:
        """Args:
            dataset: names the samples as they are.
            batches_ahead: that the loader asks for before it gives the first one out.
            limit_batches: that are read of each iteration; None: all.
            base_seed: when the loader draws a seed from the sampler's generator: BASE_SEED_*.
            refusal: why it is not known where the loop is; None: it is.
        """
        self._order = order
        self._batch_sampler = batch_sampler
        self._sampler: Any = getattr(batch_sampler, "sampler", None)
        self._ahead = batches_ahead
        self._dataset = dataset
        self._limit = limit_batches
        self._base_seed = base_seed
        self._refusal = refusal
        self._seeded = False  # the loader has drawn its seed for the first iteration
        self._loaded: Optional[State] = None
        self._epoch: Optional[int] = None  # of the present iteration; None: there was none yet
        self._before = 0  # batches that another process has read of it
        self._asked = 0
        self._drawn_from: Optional[torch.Tensor] = None  # the present iteration

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
        self._seeded = True  # right after this
        return _Counted(self, batches)

    def ask(self) -> None:
        self._asked += 1

    def batches_left(self) -> Optional[int]:
        """Of an iteration that goes on where another process was: it ends where that one would have
        ended. None: where the batch sampler ends.
        """
        if self._before == 0 or self._limit is None:
            return None
        return max(self._limit - self._before, 0)

    # --- To be saved

    def state(self) -> State:
        """Raises ValueError if the order cannot be repeated."""
        self._check()
        if self._loaded is not None:
            return self._loaded
        generator = self._generator()
        state: State = {
            "version": _VERSION,
            "epoch": self._next_epoch() if self._epoch is None else self._epoch,
            "samples": 0,
            "generator": self._first_state() if self._epoch is None else self._drawn_from,
            "drawn": 0,
            "known": self._order.recipe.known,
            "sampler": type(self._sampler).__name__,
            "size": self._size(),
            "seed": self._seed(),
            "rank": None if generator is None else place_in_job()[0],
            "dataset": self._dataset,
        }
        batches = self._before + max(self._asked - self._ahead, 0)
        if self._epoch is not None and batches >= self._batches_of_epoch():
            state["epoch"] += 1
            state["drawn"] = 0 if generator is None else self._drawn_of_epoch()
        else:
            state["samples"] = batches * self._batch_size() * self._world()
        return state

    def load(self, state: State) -> None:
        """The next iteration goes on there. Raises ValueError if the order cannot be repeated, or it is
        no such state, or that of another order.
        """
        self._check()
        if not isinstance(state, dict) or not state.keys() >= State.__annotations__.keys():
            raise ValueError("load_state_dict: this is not a state that state_dict() of a loader returned")
        if state["version"] != _VERSION:
            raise ValueError(
                f"load_state_dict: the state has version {state['version']}, and this release of "
                f"optcache reads version {_VERSION}"
            )
        self._compare(state)
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(state["epoch"])
        self._loaded = state

    # --- Within

    def _check(self) -> None:
        if self._refusal is not None:
            raise ValueError(f"state_dict: {self._refusal}")
        kind = type(self._sampler)
        if type(self._batch_sampler) is BatchSampler:
            if kind in _REPEATS:
                return
            if kind in _REPEATS_BY_GENERATOR:
                if self._generator() is not None:
                    return
                raise ValueError(
                    f"state_dict: the {kind.__name__} has no generator of its own, so its order cannot "
                    "be repeated: give it one, generator=torch.Generator().manual_seed(...)"
                )
            raise ValueError(
                f"state_dict: it is not known whether a {kind.__name__} repeats its order: save its own "
                "state, and tell where it continues with attach(start=) and start_at()"
            )
        raise ValueError(
            f"state_dict: {type(self._batch_sampler).__name__} deals batches in its own way: save "
            "its own state"
        )

    def _compare(self, state: State) -> None:
        """Raises ValueError if it is of another order than this loader's."""
        kind, seed, rank = type(self._sampler).__name__, self._seed(), place_in_job()[0]
        with_generator = state["generator"] is not None
        if with_generator != (self._generator() is not None) or (
            with_generator and state["sampler"] != kind
        ):
            raise ValueError(
                f"load_state_dict: this is the state of a loader with another sampler, "
                f"{state['sampler']}, and this one has {kind}"
            )
        if state["size"] != self._size():
            raise ValueError(
                f"load_state_dict: this is the state of {state['size']} samples, and the loader has "
                f"{self._size()}, so its order is another one. To begin at the front of an "
                "epoch, load no state"
            )
        if state["seed"] != seed:
            if not with_generator:
                raise ValueError(
                    f"load_state_dict: this is the state of a sampler with seed={state['seed']}, and "
                    f"this one has seed={seed}, so its order is another one"
                )
            if state["rank"] != rank:
                raise ValueError(
                    f"load_state_dict: this is the state of rank {state['rank']}, whose generator has "
                    f"another seed, and this is rank {rank}. With generator=, each rank saves and "
                    "loads a state of its own"
                )
        if state["dataset"] != self._dataset:
            log.warning(
                "the loaded state is of the dataset %s, and the loader reads %s, which may have other "
                "samples",
                state["dataset"],
                self._dataset,
            )

    def _is_of(self, loaded: State) -> bool:
        epoch = getattr(self._sampler, "epoch", loaded["epoch"])
        if epoch == loaded["epoch"]:
            return True
        log.warning(
            "the loaded state is of epoch %s, and the sampler is at epoch %s: this epoch begins at the "
            "front. Begin with the epoch in the state",
            loaded["epoch"],
            epoch,
        )
        return False

    def _go_on(self, loaded: State) -> None:
        generator = self._generator()
        known = loaded["known"]
        if loaded["generator"] is not None and generator is not None:
            # The recipe that was announced has the seed of the present generator.
            known = known and loaded["seed"] == self._seed()
            generator.set_state(loaded["generator"].cpu())
            if loaded["drawn"]:
                for _ in itertools.islice(self._sampler, loaded["drawn"]):
                    pass
                if self._base_seed == protocol.BASE_SEED_EVERY_PASS:
                    draw_seed(generator)  # as the loader has, before the state was set
        left_early = 0 < loaded["drawn"] <= len(self._sampler)
        self._order.go_on(loaded["epoch"], known, left_early)
        # A whole batch: what another number of ranks has read of it is read twice.
        self._before = loaded["samples"] // self._world() // self._batch_size()

    def _next_epoch(self) -> int:
        epoch = getattr(self._sampler, "epoch", None)
        return epoch if isinstance(epoch, int) else self._order.passes

    def _generator(self) -> Optional[torch.Generator]:
        generator = getattr(self._sampler, "generator", None)
        return generator if isinstance(generator, torch.Generator) else None

    def _generator_state(self) -> Optional[torch.Tensor]:
        generator = self._generator()
        return None if generator is None else generator.get_state()

    def _first_state(self) -> Optional[torch.Tensor]:
        """From which the first epoch will be drawn: the loader draws a seed before it."""
        generator = self._generator()
        if generator is None:
            return None
        if self._seeded or self._base_seed == protocol.BASE_SEED_NEVER:
            return generator.get_state()
        copy = torch.Generator(device=generator.device)
        copy.set_state(generator.get_state())
        draw_seed(copy)
        return copy.get_state()

    def _drawn_of_epoch(self) -> int:
        """Indices that an epoch draws, with those for batches that are asked for and not given out."""
        whole, limit = len(self._sampler), self._limit
        if limit is not None and limit < len(self._batch_sampler):
            return min((limit + self._ahead) * self._batch_size(), whole + 1)
        return whole + 1  # and what is drawn at the end

    def _seed(self) -> Optional[int]:
        generator = self._generator()
        if generator is not None:
            return int(generator.initial_seed())
        if isinstance(self._sampler, DistributedSampler) and self._sampler.shuffle:
            return int(self._sampler.seed)
        return None

    def _size(self) -> int:
        size = size_of(self._sampler)
        return len(self._sampler) if size is None else size

    def _batches_of_epoch(self) -> int:
        whole = len(self._batch_sampler)
        return whole if self._limit is None else min(whole, self._limit)

    def _batch_size(self) -> int:
        return int(self._batch_sampler.batch_size)

    def _world(self) -> int:
        """Ranks to which the sampler deals one order."""
        sampler = self._sampler
        return int(sampler.num_replicas) if isinstance(sampler, DistributedSampler) else 1


class _Counted:
    def __init__(self, progress: Progress, batches: Iterator[Any]) -> None:
        self._progress = progress
        self._batches = batches

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Any:
        self._progress.ask()
        return next(self._batches)
