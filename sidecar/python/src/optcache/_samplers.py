"""What a DataLoader's sampler will read: told ahead where it can be, without changing it."""

from __future__ import annotations

import array
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional

import torch
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from . import _protocol as protocol
from ._known_orders import deals_of_torchdata
from ._recipes import BASE_SEEDS, order_crc, recipe_text, signed

Batches = Iterable[Any]
Items = Callable[[int], Sequence[int]]


def _torch_version() -> tuple[int, int]:
    numbers = re.findall(r"\d+", torch.__version__)
    return int(numbers[0]), int(numbers[1])


def deals_in_turn(batch_sampler: Any) -> bool:
    """Does it make batches of its sampler's indices as they come?"""
    return type(batch_sampler) is BatchSampler or deals_of_torchdata(batch_sampler)


def modern_randperm() -> bool:
    return _torch_version() >= (2, 7)


class Order:
    """A loader's order, pass after pass. This one cannot be replayed.

    Attributes:
        recipe: what the sidecar is told.
        followed: is each batch told when it is asked for?
        mapping: the sample that an index of the loader's dataset is; None: the one of that number.
        items: the samples of which an index of the loader's dataset is made; None: of one, by mapping.
        begun: the iteration of the batch sampler that the next call of `begin` is about; None: it makes
            one.
    """

    followed = False
    mapping: Optional[Callable[[int], int]] = None
    items: Optional[Items] = None
    begun: Optional[Any] = None
    _resumes = True  # may iterations begin elsewhere than at the front?

    def __init__(self, batch_sampler: Any, sampler: Any, size: int) -> None:
        self._batch_sampler = batch_sampler
        self._sampler = sampler
        self._passes = 0
        self.recipe = self._make_recipe(size)

    def _make_recipe(self, size: int) -> protocol.Recipe:
        if isinstance(self._sampler, DistributedSampler):
            rank, world = int(self._sampler.rank), int(self._sampler.num_replicas)
        else:
            rank, world = place_in_job()
        return protocol.Recipe(known=False, size=size, world=world, rank=rank)

    @property
    def suffix(self) -> str:
        """For the loader's name, where each rank of the job reads a list of its own."""
        return ""

    def read_only(self, reads: int) -> None:
        """Each iteration reads this many indices of the rank's list, and leaves the rest."""
        self.recipe = dataclasses.replace(self.recipe, pass_reads=reads)

    def samples(self, indices: Iterable[int]) -> list[int]:
        """The samples that indices of the loader's dataset are, or are made of."""
        if self.items is not None:
            indices = itertools.chain.from_iterable(map(self.items, indices))
        return list(indices if self.mapping is None else map(self.mapping, indices))

    def _crc(self, indices: Sequence[int]) -> int:
        return order_crc(indices if self.mapping is None else self.samples(indices))

    def check_start(self, index: int) -> None:
        """Raises ValueError if an iteration cannot begin at that index of the rank's list."""
        if index < 0:
            raise ValueError(f"an iteration cannot begin at index {index}")
        if index > 0 and not self._resumes:
            raise ValueError(
                f"a {type(self._sampler).__name__} begins each iteration at the front, not at index "
                f"{index}: take a sampler made from DistributedSampler that goes on there, and attach "
                "its loader with start="
            )

    @property
    def passes(self) -> int:
        """Iterations that have begun, here and in the processes that this one goes on from."""
        return self._passes

    def go_on(self, passes: int, known: bool, left_early: bool) -> None:
        """Other processes have begun `passes` iterations, and `known` says whether they knew the order.
        The sampler is where the next one begins; `left_early` says whether the one before was not
        drawn to its end.
        """
        self._passes = passes

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        """Called when an iteration begins: what it reads, and its batches."""
        what = self._describe(start)
        self._passes += 1
        return what, iter(self._batches())

    def look_ahead(self) -> Optional[array.array[int]]:
        """Called while an iteration is read: the list of one more of those that follow, if it is
        known and was not told when this one began.
        """
        return None

    def _describe(self, start: int) -> protocol.Pass:
        epoch = getattr(self._sampler, "epoch", self._passes)
        epoch = epoch if isinstance(epoch, int) and epoch >= 0 else self._passes
        return protocol.Pass(epoch=epoch, start=start, length=self._length())

    def _batches(self) -> Batches:
        begun, self.begun = self.begun, None
        batches: Batches = self._batch_sampler if begun is None else begun
        return batches

    def _length(self) -> int:
        """Samples of an iteration; 0 if that cannot be known."""
        try:
            batches = len(self._batch_sampler)
            size = int(self._batch_sampler.batch_size)
        except (AttributeError, TypeError, ValueError, NotImplementedError):
            return 0
        whole = batches * size
        try:
            return whole if self._batch_sampler.drop_last else min(whole, len(self._sampler))
        except (AttributeError, TypeError, NotImplementedError):
            return whole


class WholeOrder(Order):
    """A sampler that knows no ranks: each rank of a job reads the whole list."""

    _resumes = False

    @property
    def suffix(self) -> str:
        rank, world = place_in_job()
        return f".rank{rank}" if world > 1 else ""


class SequentialOrder(WholeOrder):
    """SequentialSampler: the dataset from front to back."""

    def _make_recipe(self, size: int) -> protocol.Recipe:
        return protocol.Recipe(known=True, size=size, kind=protocol.SEQUENTIAL)

    def _describe(self, start: int) -> protocol.Pass:
        length = self._length()
        crc = self._crc(range(start, start + length))
        return protocol.Pass(epoch=0, start=start, length=length, crc=crc)


class DistributedOrder(Order):
    """DistributedSampler: its list is made once and given to the batch sampler, as it would."""

    _resumes = False

    def _make_recipe(self, size: int) -> protocol.Recipe:
        sampler = self._sampler
        return protocol.Recipe(
            known=True,
            size=size,
            kind=protocol.TORCH_DISTRIBUTED,
            seed=int(sampler.seed),
            world=int(sampler.num_replicas),
            rank=int(sampler.rank),
            shuffle=bool(sampler.shuffle),
            drop_last=bool(sampler.drop_last),
            modern_randperm=modern_randperm(),
        )

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        ids = list(self._sampler)
        length = self._length()
        what = protocol.Pass(
            epoch=int(self._sampler.epoch),
            start=start,
            length=length,
            crc=self._crc(ids[:length]),
        )
        if self.begun is not None:
            return what, iter(self._batches())
        inner = self._batch_sampler
        return what, iter(BatchSampler(ids, inner.batch_size, inner.drop_last))


class DeclaredDistributedOrder(DistributedOrder):
    """A sampler made from DistributedSampler that begins late, by its owner's word.

    Its iteration is left alone, so there is no CRC to tell.
    """

    _resumes = True

    def check_start(self, index: int) -> None:
        super().check_start(index)
        if index > self._sampler.num_samples:
            raise ValueError(
                f"an iteration cannot begin at index {index}: the rank's list has "
                f"{self._sampler.num_samples} samples"
            )

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        length = max(int(self._sampler.num_samples) - start, 0)
        what = protocol.Pass(epoch=int(self._sampler.epoch), start=start, length=length)
        return what, iter(self._batches())


class RandomOrder(WholeOrder):
    """RandomSampler with a generator of its own, which is watched and never drawn from. With
    replacement and with num_samples, too.

    While its state is what a replay from the seed gives, so is the order. When other code has
    drawn from it, or a pass ended early that was not announced to, it is not, and never will be
    again.
    """

    def __init__(
        self, batch_sampler: Any, sampler: Any, size: int, base_seed: int
    ) -> None:
        self._generator: Any = sampler.generator
        self._base_seed = base_seed
        self._ends_early = False  # by announcement
        self._goes_on = False  # from where another process was
        self._expected: Optional[Any] = _fresh_state(self._generator.initial_seed())
        if not torch.equal(self._expected, self._generator.get_state()):
            self._expected = None
        super().__init__(batch_sampler, sampler, size)

    def _make_recipe(self, size: int) -> protocol.Recipe:
        return protocol.Recipe(
            known=self._expected is not None,
            size=size,
            kind=protocol.TORCH_RANDOM,
            seed=int(self._generator.initial_seed()),
            shuffle=True,
            modern_randperm=modern_randperm(),
            base_seed=self._base_seed,
            tail_permutation=_torch_version() >= (1, 12),
            order="" if self._is_permutation(size) else self._text(size),
        )

    def read_only(self, reads: int) -> None:
        super().read_only(reads)
        # The permutation is drawn at the pass's begin, and one more only after its last id.
        if self._is_permutation(self.recipe.size) and reads < self.recipe.size:
            self._ends_early = True
            self.recipe = dataclasses.replace(self.recipe, tail_permutation=False)

    def _is_permutation(self, size: int) -> bool:
        return not self._sampler.replacement and self._sampler.num_samples == size

    def _text(self, size: int) -> str:
        return recipe_text(
            "torch-random",
            size=size,
            seed=signed(int(self._generator.initial_seed())),
            modern_randperm=modern_randperm(),
            base_seed=BASE_SEEDS[self._base_seed],
            tail_permutation=_torch_version() >= (1, 12),
            replacement=bool(self._sampler.replacement),
            draws=int(self._sampler.num_samples),
        )

    def go_on(self, passes: int, known: bool, left_early: bool) -> None:
        super().go_on(passes, known, left_early)
        self._goes_on = known and self.recipe.known and (self._ends_early or not left_early)

    def _describe(self, start: int) -> protocol.Pass:
        if self._goes_on:
            self._goes_on = False
        elif self._expected is None or not self._as_predicted(self._expected):
            self._expected = None
            self.recipe = dataclasses.replace(self.recipe, known=False)
            return super()._describe(start)
        length = self._length()
        drawn, after = self._drawn()
        # Otherwise not before the pass is read to its end.
        self._expected = after if self._ends_early else None
        crc = self._crc(drawn[:length])
        return protocol.Pass(epoch=self._passes, start=start, length=length, crc=crc)

    def _drawn(self) -> tuple[list[int], Any]:
        """What the pass will draw, and the generator's state after that."""
        generator = _generator_in(self._generator.get_state())
        size = self.recipe.size
        if self._is_permutation(size):
            ids = torch.randperm(size, generator=generator).tolist()
        else:
            sampler = self._sampler
            ids = RandomSampler(range(size), sampler.replacement, sampler.num_samples, generator)
        return list(ids), generator.get_state()

    def _as_predicted(self, expected: Any) -> bool:
        """Is the generator where the last pass left it, the loader's own draw apart?"""
        generator = _generator_in(expected)
        if self._base_seed == protocol.BASE_SEED_EVERY_PASS or (
            self._base_seed == protocol.BASE_SEED_FIRST_PASS and self._passes == 0
        ):
            draw_seed(generator)
        return bool(torch.equal(generator.get_state(), self._generator.get_state()))

    def _batches(self) -> Batches:
        return self._watched(super()._batches())

    def _watched(self, batches: Batches) -> Batches:
        known = self.recipe.known and not self._ends_early
        yield from batches
        if known:
            self._expected = self._generator.get_state()


def place_in_job() -> tuple[int, int]:
    """Rank and world of torch.distributed."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _generator_in(state: Any) -> Any:
    generator = torch.Generator()
    generator.set_state(state)
    return generator


def _fresh_state(seed: int) -> Any:
    return torch.Generator().manual_seed(seed).get_state()


def draw_seed(generator: torch.Generator) -> None:
    """As a DataLoader does, for its workers."""
    torch.empty((), dtype=torch.int64).random_(generator=generator)


def torch_order(loader: Any, sampler: Any, size: int, declared: bool) -> Optional[Order]:
    """The order of one of PyTorch's own samplers over `size` samples; None if it is none of those.

    Args:
        declared: the owner says where iterations begin, and so that the sampler is, from there on,
            the one of PyTorch that it is made from.
    """
    batch_sampler = loader.batch_sampler
    if size_of(sampler) != size:
        return None
    if declared and isinstance(sampler, DistributedSampler):
        return DeclaredDistributedOrder(batch_sampler, sampler, size)
    if not deals_in_turn(batch_sampler):
        return None
    if type(sampler) is DistributedSampler:
        return DistributedOrder(batch_sampler, sampler, size)
    if type(sampler) is SequentialSampler:
        return SequentialOrder(batch_sampler, sampler, size)
    if type(sampler) is RandomSampler and _is_known_random(sampler, size):
        return RandomOrder(batch_sampler, sampler, size, base_seed(loader, sampler))
    return None


def size_of(sampler: Any) -> Optional[int]:
    """Of what it chooses from; None: it does not say."""
    source = getattr(sampler, "dataset", getattr(sampler, "data_source", None))
    try:
        return len(source)  # type: ignore[arg-type]
    except TypeError:
        return None


def _is_known_random(sampler: Any, size: int) -> bool:
    """Has it a generator that can be watched, and draws what a recipe can say?"""
    if sampler.generator is None or sampler.generator.device.type != "cpu":
        return False
    return sampler.replacement or sampler.num_samples == size or _torch_version() >= (1, 12)


def base_seed(loader: Any, sampler: Any) -> int:
    """When a loader draws its workers' seed from the sampler's generator."""
    generator = getattr(sampler, "generator", None)
    if generator is None or loader.generator is not generator:
        return protocol.BASE_SEED_NEVER
    if loader.persistent_workers:
        return protocol.BASE_SEED_FIRST_PASS
    return protocol.BASE_SEED_EVERY_PASS
