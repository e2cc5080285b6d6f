"""Samplers of frameworks: known by name, so that nothing is imported which is not there."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Optional

import torch
from torch.utils.data import BatchSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from . import _protocol as protocol
from ._known_orders import is_called, spdl_length, spdl_recipe
from ._recipes import recipe_text, signed
from ._samplers import DistributedOrder, Order, deals_in_turn, modern_randperm


class ReplayedOrder(Order):
    """Begins where its sampler says, and can list what the rank will read without the sampler
    noticing.
    """

    _resumes = False

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        epoch, start, ids = self._will_read()
        whole = max(self._rank_length() - start, 0)
        ids = ids[:whole]  # what some ranks read beyond is not predicted
        self._passes += 1
        what = protocol.Pass(epoch=epoch, start=start, length=len(ids), crc=self._crc(ids))
        return what, iter(self._batches())

    def _will_read(self) -> tuple[int, int, list[int]]:
        """Epoch, where in the rank's list this iteration begins, and what it reads from there on."""
        raise NotImplementedError

    def _rank_length(self) -> int:
        """Of the rank's list."""
        raise NotImplementedError


class AccelerateOrder(ReplayedOrder):
    """Hugging Face Accelerate: SeedableRandomSampler or plain order, dealt by BatchSamplerShard."""

    def _make_recipe(self, size: int) -> protocol.Recipe:
        dealer = self._batch_sampler
        sharded = hasattr(dealer, "num_processes")
        self._world = int(dealer.num_processes) if sharded else 1
        rank = int(dealer.process_index) if sharded else 0
        split = sharded and bool(dealer.split_batches)
        self._block = int(dealer.batch_size) // (self._world if split else 1) if sharded else 1
        self._cut = sharded and (bool(dealer.drop_last) or not dealer.even_batches)
        self._shuffles = not isinstance(self._sampler, SequentialSampler)
        self._size = size
        text = recipe_text(
            "torch-distributed",
            size=size,
            seed=signed(int(self._sampler.initial_seed)) if self._shuffles else None,
            world=self._world,
            shuffle=self._shuffles,
            drop_last=self._cut,
            modern_randperm=modern_randperm(),
            block=self._block,
        )
        return protocol.Recipe(known=True, size=size, world=self._world, rank=rank, order=text)

    def _will_read(self) -> tuple[int, int, list[int]]:
        if self._shuffles:
            epoch = int(self._sampler.epoch)
            generator = torch.Generator()
            generator.manual_seed(int(self._sampler.initial_seed) + epoch)
            order = torch.randperm(self._size, generator=generator).tolist()
        else:
            epoch, order = 0, list(range(self._size))
        dealer = self._batch_sampler
        if not hasattr(dealer, "num_processes"):
            return epoch, 0, order[: self._length()]
        inner = dealer.batch_sampler
        again = type(dealer)(
            BatchSampler(order, inner.batch_size, inner.drop_last),
            dealer.num_processes,
            dealer.process_index,
            split_batches=dealer.split_batches,
            even_batches=dealer.even_batches,
        )
        return epoch, 0, [index for batch in again for index in batch]

    def _rank_length(self) -> int:
        rounds, rest = divmod(self._size, self._world * self._block)
        return (rounds + (1 if rest and not self._cut else 0)) * self._block


class MegatronOrder(ReplayedOrder):
    """Megatron's samplers, which deal micro batches and go on where this many samples are consumed."""

    def _make_recipe(self, size: int) -> protocol.Recipe:
        dealer = self._batch_sampler
        self._micro = int(dealer.micro_batch_size)
        self._world = int(dealer.micro_batch_times_data_parallel_size) // self._micro
        self._size = int(dealer.total_samples)
        self._cyclic = "Random" in type(dealer).__name__
        text = recipe_text(
            "megatron-cyclic" if self._cyclic else "torch-distributed",
            size=self._size,
            seed=signed(int(getattr(dealer, "seed", 0))),
            world=self._world,
            shuffle=None if self._cyclic else False,
            drop_last=True,
            modern_randperm=modern_randperm(),
            block=self._micro,
            sharded=bool(getattr(dealer, "data_sharding", True)) if self._cyclic else None,
        )
        rank = int(dealer.data_parallel_rank)
        return protocol.Recipe(known=True, size=size, world=self._world, rank=rank, order=text)

    def _will_read(self) -> tuple[int, int, list[int]]:
        consumed, step = int(self._batch_sampler.consumed_samples), self._micro * self._world
        epoch, consumed = divmod(consumed, self._size // step * step) if self._cyclic else (0, consumed)
        ids = [index for batch in copy.copy(self._batch_sampler) for index in batch]
        return epoch, consumed // self._world, ids

    def _rank_length(self) -> int:
        return self._size // (self._micro * self._world) * self._micro

    def _length(self) -> int:
        return self._rank_length()


class SpdlOrder(ReplayedOrder):
    """SPDL's DistributedRandomSampler, without weights."""

    def _make_recipe(self, size: int) -> protocol.Recipe:
        return spdl_recipe(self._sampler, size)

    def _will_read(self) -> tuple[int, int, list[int]]:
        ids = [int(index) for index in self._sampler]
        return int(self._sampler._seed), 0, ids[: self._length()]

    def _rank_length(self) -> int:
        return spdl_length(self._sampler)


class ResumedOrder(DistributedOrder):
    """torchdata's StatefulDistributedSampler, which counts what it has given and can go on there."""

    def begin(self, start: int) -> tuple[protocol.Pass, Iterator[Any]]:
        sampler = self._sampler
        start = int(sampler.next_yielded or 0)
        length = max(self._length() - start, 0)
        whole: list[Any] = list(DistributedSampler.__iter__(sampler))
        ids = whole[start : start + length]
        self._passes += 1
        what = protocol.Pass(
            epoch=int(sampler.epoch), start=start, length=length, crc=self._crc(ids)
        )
        return what, iter(self._batches())


def framework_order(batch_sampler: Any, sampler: Any, size: int) -> Optional[Order]:
    """The order of a framework's sampler over `size` samples; None if it is of none we know."""
    if is_called(batch_sampler, "accelerate.data_loader", "BatchSamplerShard"):
        inner = batch_sampler.batch_sampler
        sampler = getattr(inner, "sampler", None)
        whole = type(inner) is BatchSampler and batch_sampler.batch_size
        if whole and (_is_seedable(sampler, size) or _is_plain(sampler, size)):
            return AccelerateOrder(batch_sampler, sampler, size)
        return None
    if type(batch_sampler).__module__.endswith("data_samplers"):
        names = ("MegatronPretrainingSampler", "MegatronPretrainingRandomSampler")
        if type(batch_sampler).__name__ in names and _is_whole_megatron(batch_sampler, size):
            return MegatronOrder(batch_sampler, batch_sampler, size)
        return None
    if not deals_in_turn(batch_sampler):
        return None
    if _is_seedable(sampler, size):
        return AccelerateOrder(batch_sampler, sampler, size)
    if is_called(sampler, "spdl.source", "DistributedRandomSampler"):
        if sampler._weights is None and sampler._n == size:
            return SpdlOrder(batch_sampler, sampler, size)
    stateful = is_called(sampler, "torchdata.stateful_dataloader", "StatefulDistributedSampler")
    if stateful and len(sampler.dataset) == size:
        return ResumedOrder(batch_sampler, sampler, size)
    return None


def _is_seedable(sampler: Any, size: int) -> bool:
    return (
        is_called(sampler, "accelerate.data_loader", "SeedableRandomSampler")
        and not sampler.replacement
        and len(sampler.data_source) == sampler.num_samples == size
    )


def _is_plain(sampler: Any, size: int) -> bool:
    return type(sampler) is SequentialSampler and len(sampler) == size


def _is_whole_megatron(dealer: Any, size: int) -> bool:
    step = int(dealer.micro_batch_times_data_parallel_size)
    padded = getattr(dealer, "pad_samples_to_global_batch_size", False)
    drops = getattr(dealer, "drop_last", True)
    aligned = int(dealer.consumed_samples) % step == 0
    return bool(aligned and drops and not padded and dealer.total_samples == size >= step)
