"""Which order a loader has: PyTorch's own samplers, those of frameworks, or a list."""

from __future__ import annotations

import array
import dataclasses
import itertools
from typing import Any, NamedTuple, Optional, Union

from torch.utils.data import ConcatDataset, DataLoader, Subset

from . import _protocol as protocol
from ._frameworks import framework_order
from ._image_folder import ImageFolder
from ._known_orders import Lister
from ._recipes import BASE_SEEDS, Ranges, ranges_of, ranges_text, recipe_text, signed
from ._samplers import Items, Order, base_seed, torch_order
from ._several import Several, Source
from ._torchdata import DrawnOrder, draws_when_begun
from ._traces import Mapping, TracedOrder
from .computed import store_under
from .dataset import Dataset

_KINDS = ("sequential", "torch-distributed", "torch-random")


class Numbering(NamedTuple):
    """Samples of our dataset in the order in which another dataset has them.

    Attributes:
        ids: sample by index.
        ranges: the same, if they are few ranges.
    """

    ids: array.array[int]
    ranges: Optional[Ranges]


def dataset_under(outer: Any) -> Optional[tuple[Union[Source, Several], Optional[Numbering]]]:
    """Our dataset under a loader's, or several, and how that one numbers it (None: equally); None if it
    is not made of ours alone.
    """
    sources: dict[str, Source] = {}
    ids = _under(outer, sources)
    if ids is None:
        return None
    found = list(sources.values())
    ours = found[0] if len(found) == 1 else Several(found)
    if isinstance(ids, range) and ids == range(len(ours)):
        return ours, None
    return ours, Numbering(array.array("I", ids), ranges_of(ids))


_Ids = Union[range, "array.array[int]"]


def _under(outer: Any, sources: dict[str, Source]) -> Optional[_Ids]:
    """The samples of a dataset, as numbers of Several of the sources, to which those of it are added."""
    if type(outer) is Subset:
        ids = _under(outer.dataset, sources)
        return None if ids is None else array.array("I", (ids[int(i)] for i in outer.indices))
    if type(outer) is ConcatDataset:
        parts = [_under(part, sources) for part in outer.datasets]
        known = [part for part in parts if part is not None]
        return _concatenated(known) if len(known) == len(parts) else None
    own = _own(outer)
    if own is None:
        return None
    source, chosen = own
    source = sources.setdefault(source.identity, source)
    before = itertools.takewhile(lambda it: it is not source, sources.values())
    first = sum(map(len, before))
    if chosen is None:
        return range(first, first + len(source))
    return array.array("I", (first + i for i in chosen))


def _own(outer: Any) -> Optional[tuple[Source, Optional[array.array[int]]]]:
    """The source of a dataset that is one of ours, and which of its samples that has; None: all."""
    computed = store_under(outer)
    if isinstance(outer, ImageFolder) and computed is outer.kept:
        return outer.data if computed is None else computed, outer.ids
    if computed is not None:
        return computed, None
    return (outer, None) if isinstance(outer, Dataset) else None


def _concatenated(parts: list[_Ids]) -> _Ids:
    together = parts[0]
    for part in parts[1:]:
        adjacent = isinstance(together, range) and isinstance(part, range) and together.stop == part.start
        if adjacent:
            together = range(together.start, part.stop)  # type: ignore[union-attr]
        else:
            together = array.array("I", together)
            together.extend(array.array("I", part))
    return together


def order_of(
    loader: DataLoader[Any],
    ours: Union[Source, Several],
    numbering: Optional[Numbering],
    declared: bool,
    trace: Union[Lister, bool, None],
    pass_reads: int,
    items: Optional[Items] = None,
) -> Order:
    """How the order of a loader is told.

    Args:
        numbering: of the loader's dataset; None: that of ours.
        declared: as for torch_order.
        trace: the owner's lists, or word that a copy of the batch sampler may be iterated.
        pass_reads: this many indices of the rank's list are read in each iteration; 0: that is not
            known.
        items: what each index of the loader's dataset is made of.
    """
    batch_sampler: Any = loader.batch_sampler
    sampler = getattr(batch_sampler, "sampler", loader.sampler)
    size = len(ours) if numbering is None else len(numbering.ids)
    mapping = None if numbering is None else numbering.ids.__getitem__
    order = None
    whole = numbering is None or numbering.ranges is not None
    if trace is None and items is None and whole and not isinstance(ours, Several):
        order = torch_order(loader, sampler, size, declared)
        order = order or framework_order(batch_sampler, sampler, size)
    if order is None:
        order = _traced_order(loader, sampler, size, trace, mapping, items)
        numbering = None
    else:
        order.mapping = mapping
    if pass_reads > 0:
        order.read_only(pass_reads)
    if numbering is not None and numbering.ranges is not None:
        order.recipe = _within(order.recipe, numbering.ranges)
    return order


def _traced_order(
    loader: Any,
    sampler: Any,
    size: int,
    trace: Union[Lister, bool, None],
    mapping: Optional[Mapping],
    items: Optional[Items],
) -> TracedOrder:
    batch_sampler = loader.batch_sampler
    seeded = base_seed(loader, sampler) == protocol.BASE_SEED_EVERY_PASS
    if trace is not None or not draws_when_begun(batch_sampler, sampler):
        return TracedOrder(batch_sampler, sampler, size, trace, mapping, seeded, items)
    order = DrawnOrder(batch_sampler, sampler, size, None, mapping, seeded, items)
    order.begins_twice = loader.num_workers > 0 and not loader.persistent_workers
    return order


def _within(recipe: protocol.Recipe, ranges: Ranges) -> protocol.Recipe:
    """The recipe for an order of those samples."""
    text = recipe.order or recipe_text(
        _KINDS[recipe.kind],
        size=recipe.size,
        seed=signed(recipe.seed),
        world=recipe.world,
        shuffle=recipe.shuffle,
        drop_last=recipe.drop_last,
        modern_randperm=recipe.modern_randperm,
        base_seed=BASE_SEEDS[recipe.base_seed],
        tail_permutation=recipe.tail_permutation,
    )
    return dataclasses.replace(recipe, order=f"{text} subset={ranges_text(ranges)}")
