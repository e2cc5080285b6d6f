"""Which order a loader has: PyTorch's own samplers, those of frameworks, or a list."""

from __future__ import annotations

import array
import dataclasses
from typing import Any, NamedTuple, Optional, Union

from torch.utils.data import ConcatDataset, DataLoader, Subset

from . import _protocol as protocol
from ._frameworks import framework_order
from ._image_folder import ImageFolder
from ._known_orders import Lister
from ._recipes import Ranges, ranges_of, ranges_text, recipe_text, signed
from ._samplers import Items, Order, base_seed, torch_order
from ._store import Store
from ._traces import TracedOrder
from .computed import store_under
from .dataset import Dataset

_KINDS = ("sequential", "torch-distributed", "torch-random")


# What a loader can be announced to read: samples of the sidecar, or computed ones.
Source = Union[Dataset, Store]


class Numbering(NamedTuple):
    """Samples of our dataset in the order in which another dataset has them.

    Attributes:
        ids: sample by index.
        ranges: the same, if they are few ranges.
    """

    ids: array.array[int]
    ranges: Optional[Ranges]


def dataset_under(outer: Any) -> Optional[tuple[Source, Optional[Numbering]]]:
    """Our dataset under a loader's, and how that one numbers it (None: equally); None if it is not
    made of one of ours alone.
    """
    found = _under(outer)
    if found is None:
        return None
    ours, ids = found
    return ours, None if ids is None else Numbering(ids, ranges_of(ids))


def _under(outer: Any) -> Optional[tuple[Source, Optional[array.array[int]]]]:
    computed = store_under(outer)
    if isinstance(outer, ImageFolder) and computed is outer.kept:
        return outer.data if computed is None else computed, outer.ids
    if computed is not None:
        return computed, None
    if isinstance(outer, Dataset):
        return outer, None
    if type(outer) is Subset:
        found = _under(outer.dataset)
        if found is None:
            return None
        ours, ids = found
        indices = array.array("I", map(int, outer.indices))
        return ours, indices if ids is None else array.array("I", (ids[i] for i in indices))
    if type(outer) is ConcatDataset:
        parts = [_under(part) for part in outer.datasets]
        if any(part is None or part[0].name != parts[0][0].name for part in parts):  # type: ignore[index]
            return None
        all_ids = array.array("I")
        for ours, ids in parts:  # type: ignore[misc]
            all_ids.extend(range(len(ours)) if ids is None else ids)
        return ours, all_ids
    return None


def order_of(
    loader: DataLoader[Any],
    ours: Source,
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
    if trace is None and items is None and (numbering is None or numbering.ranges is not None):
        order = torch_order(loader, sampler, size, declared)
        order = order or framework_order(batch_sampler, sampler, size)
    if order is None:
        seeded = base_seed(loader, sampler) == protocol.BASE_SEED_EVERY_PASS
        order = TracedOrder(batch_sampler, sampler, size, trace, mapping, seeded, items)
        numbering = None
    else:
        order.mapping = mapping
    if pass_reads > 0:
        order.read_only(pass_reads)
    if numbering is not None and numbering.ranges is not None:
        order.recipe = _within(order.recipe, numbering.ranges)
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
        base_seed=("every-pass", "first-pass", "never")[recipe.base_seed],
        tail_permutation=recipe.tail_permutation,
    )
    return dataclasses.replace(recipe, order=f"{text} subset={ranges_text(ranges)}")
