"""What a rank reads in each epoch, where PyTorch does not say it."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any, Callable, Optional

from . import _protocol as protocol
from ._recipes import recipe_text

Lister = Callable[[int], Optional[Sequence[int]]]

_RANDPERM_MAX = 214_748_363  # from there on, PyTorch draws 64 bits
_SPDL_SEED_MAX = 2**62  # so that a recipe can say it with any epoch added


def is_called(thing: Any, module: str, name: str) -> bool:
    """Is it of the class of that name, in a module of that name's beginning?"""
    kind = type(thing)
    return kind.__name__ == name and f"{kind.__module__}.".startswith(f"{module}.")


def deals_of_torchdata(batch_sampler: Any) -> bool:
    """Is it the batch sampler of torchdata's StatefulDataLoader? It deals as PyTorch's does, and its
    iterations have a state.
    """
    return is_called(batch_sampler, "torchdata.stateful_dataloader", "BatchSampler")


class Shuffle:
    """All samples, in another order in each epoch: the order of PyTorch's DistributedSampler with this
    seed. It needs no PyTorch. The sidecar computes it too, so it knows all epochs ahead.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def indices(self, epoch: int, size: int, rank: int = 0, world_size: int = 1) -> list[int]:
        """What a rank reads in an epoch of a dataset of that size."""
        order = _randperm(size, self.seed + epoch)
        missing = -size % world_size
        order += (order * (missing // size + 1))[:missing] if missing else []
        return order[rank::world_size]

    def __repr__(self) -> str:
        return f"Shuffle(seed={self.seed})"


def _randperm(size: int, seed: int) -> list[int]:
    """torch.randperm by a generator of that seed."""
    if size > _RANDPERM_MAX:
        raise ValueError(f"Shuffle takes at most {_RANDPERM_MAX:,} samples, and there are {size:,}")
    draw = _mersenne_twister(seed).getrandbits
    order = list(range(size))
    for at in range(size - 1):
        other = at + draw(32) % (size - at)
        order[at], order[other] = order[other], order[at]
    return order


def _mersenne_twister(seed: int) -> random.Random:
    """As PyTorch seeds it; Python mixes the bits of a seed first."""
    state = [seed & 0xFFFFFFFF]
    for number in range(1, 624):
        last = state[-1]
        state.append((1_812_433_253 * (last ^ last >> 30) + number) & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, (*state, 624), None))
    return generator


class KnownOrder:
    """The lists of one rank, which are handed over.

    Attributes:
        recipe: what the sidecar is told.
        replayed: the sidecar computes the lists itself.
        common: each rank reads this many ids at least, and what some read beyond is not predicted;
            None: all.
        ended: why there is no list of an epoch.
        epoch_length: of each whole epoch, where keys have numbers; else 0.
    """

    replayed = False
    common: Optional[int] = None
    ended = "the function has returned None for it"
    epoch_length = 0

    def __init__(self, size: int, rank: int, world_size: int, lists: Lister) -> None:
        self.recipe = protocol.Recipe(
            known=False, size=size, world=world_size, rank=rank, order="trace"
        )
        self.indices = lists

    def number_of(self, key: Any) -> Optional[int]:
        """Of a key of grain's, counted from the first of epoch 0 on, if the key says it."""
        return key.number if isinstance(key, NumberedKey) else None


class ReplayedOrder(KnownOrder):
    """The lists of a recipe."""

    replayed = True

    def __init__(self, recipe: protocol.Recipe, lists: Lister) -> None:
        self.recipe = recipe
        self.indices = lists


def known_order(order: Any, size: int, rank: int, world_size: int) -> KnownOrder:
    """The order that a user names. Raises TypeError if it is none."""
    if isinstance(order, Shuffle):
        shuffle = order
        recipe = protocol.Recipe(
            known=True,
            size=size,
            kind=protocol.TORCH_DISTRIBUTED,
            seed=shuffle.seed,
            world=world_size,
            rank=rank,
            shuffle=True,
        )
        return ReplayedOrder(recipe, lambda epoch: shuffle.indices(epoch, size, rank, world_size))
    for name in ("DistributedRandomSampler", "DistributedDeterministicSampler"):
        if is_called(order, "spdl.source", name):
            return _spdl_order(order, size)
    if is_called(order, "grain", "IndexSampler"):
        return _grain_order(order, size)
    if is_called(order, "grain", "SequentialSampler"):
        return _grain_sequential_order(order, size)
    if is_called(order, "spdl.source", "_ShuffleAndIterate"):
        raise TypeError(
            "announce: embed_shuffle is not an order: give the sampler that it was given; each iteration is "
            "another epoch without it"
        )
    if callable(order):
        return KnownOrder(size, rank, world_size, order)
    is_list = hasattr(order, "__len__") and hasattr(order, "__getitem__")
    if is_list and not isinstance(order, (str, bytes)):
        only: Sequence[int] = order
        listed = KnownOrder(size, rank, world_size, lambda epoch: None if epoch else only)
        listed.ended = (
            "a list is the order of epoch 0 alone; to read more epochs, give announce() a function or a Shuffle"
        )
        return listed
    raise TypeError(
        f"announce: {type(order).__name__} is not an order: give a list of indices, a function that "
        "returns the list of an epoch, optcache.Shuffle, a sampler of SPDL, or grain's IndexSampler or "
        "SequentialSampler"
    )


def spdl_recipe(sampler: Any, size: int, seed: int = 0) -> protocol.Recipe:
    """Of a DistributedRandomSampler without weights, that is given seed + epoch."""
    world, draws = int(sampler._world_size), int(sampler._num_draws)
    text = recipe_text(
        "spdl-random", size=size, seed=seed or None, world=world, drop_last=True, draws=draws
    )
    rank = int(sampler._rank)
    return protocol.Recipe(known=True, size=size, world=world, rank=rank, order=text)


def spdl_length(sampler: Any) -> int:
    """What each rank reads at least of a DistributedRandomSampler."""
    return int(sampler._num_draws) // int(sampler._world_size)


def _spdl_order(sampler: Any, size: int) -> KnownOrder:
    """SPDL's samplers: epoch n is what `shuffle(seed + n)` gives, of the seed that it has now."""
    seed = getattr(sampler, "_seed", 0)
    if not hasattr(seed, "__index__") or not 0 <= seed <= _SPDL_SEED_MAX:
        raise ValueError(
            f"announce: {type(sampler).__name__} has the seed {seed}: give it one from 0 to {_SPDL_SEED_MAX}"
        )

    def lists(epoch: int) -> list[int]:
        again = copy.copy(sampler)
        if hasattr(again, "shuffle"):
            again.shuffle(seed + epoch)
        return list(map(int, again))

    if getattr(sampler, "_n", None) == size and getattr(sampler, "_weights", 0) is None:
        order: KnownOrder = ReplayedOrder(spdl_recipe(sampler, size, int(seed)), lists)
        order.common = spdl_length(sampler)
        return order
    return KnownOrder(size, int(sampler._rank), int(sampler._world_size), lists)


class NumberedKey(int):
    """A record key that remembers where in its sampler's order it is; copied to another process, an int."""

    number: int

    def __new__(cls, key: int, number: int) -> NumberedKey:
        self = super().__new__(cls, key)
        self.number = number
        return self

    def __mod__(self, other: int) -> int:  # grain takes keys modulo the length of its source
        return self if 0 <= self < other else int(self) % other

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


class NumberedKeys:
    """The record keys of grain's IndexSampler, for the sampler itself: each remembers its number."""

    def __init__(self, keys: Any) -> None:
        self._keys: Any = keys._keys if isinstance(keys, NumberedKeys) else keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, number: int) -> NumberedKey:
        return NumberedKey(self._keys[number], number)

    def plain(self, numbers: range) -> list[int]:
        """Many keys, in one go where grain can do that."""
        if hasattr(self._keys, "_getitems"):
            return list(map(int, self._keys._getitems(numbers)))
        return [int(self._keys[number]) for number in numbers]


def _grain_order(sampler: Any, size: int) -> KnownOrder:
    """grain's IndexSampler, as its DataLoader asks it: record `i * shard_count + shard_index`."""
    shard, count = int(sampler._shard_options.shard_index), int(sampler._shard_options.shard_count)
    length = int(sampler._num_records) // count
    if not sampler._shard_options.drop_remainder:
        length += shard < int(sampler._num_records) % count
    reads = len(sampler) // count
    # sampler[i] makes a random generator as well: ten times as slow.
    keys = sampler._record_keys = NumberedKeys(sampler._record_keys)

    def lists(epoch: int) -> Optional[list[int]]:
        first, end = epoch * length, min((epoch + 1) * length, reads)
        return keys.plain(range(first, end)) if first < end else None

    known = KnownOrder(size, shard, count, lists)
    known.epoch_length = length
    known.ended = "grain's IndexSampler ends before it; raise its num_epochs"
    return known


class _SequentialOrder(KnownOrder):
    """Of grain's SequentialSampler, whose keys are their places."""

    keys = range(0)

    def number_of(self, key: Any) -> Optional[int]:
        return self.keys.index(int(key)) if int(key) in self.keys else None


def _grain_sequential_order(sampler: Any, size: int) -> KnownOrder:
    """grain's SequentialSampler, as its DataLoader asks it: one epoch."""
    shard, count = int(sampler._shard_options.shard_index), int(sampler._shard_options.shard_count)
    only = range(shard, len(sampler) // count * count, count)
    known = _SequentialOrder(size, shard, count, lambda epoch: None if epoch else only)
    known.epoch_length = len(only)
    known.keys = only
    known.ended = "grain's SequentialSampler is the order of epoch 0 alone; take an IndexSampler"
    return known
