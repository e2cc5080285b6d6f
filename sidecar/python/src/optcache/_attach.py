"""A DataLoader whose order the sidecar is told."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import weakref
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar, Union, cast

import torch.utils.data
from torch.utils.data import IterableDataset, Sampler

from . import _deprecated
from . import _protocol as protocol
from ._attachment import Attachment, Unannounced, attachment_to
from ._known_orders import Lister
from ._orders import Numbering, dataset_under, order_of
from ._progress import Progress, State
from ._samplers import Items, Order, base_seed
from ._several import Attachments, Several, Source
from ._sidecar_stats import SidecarStats, added, stats_of
from ._store import Store
from ._torchdata import AnnouncedIteration, StatefulIteration, has_state, is_stateful
from .dataset import Dataset

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AttachedBatchSampler(Sampler[Any]):
    """A DataLoader's batch sampler that tells the sidecar of each iteration.

    Gives the batches of the one it wraps, equal and in the same order, as lists that know their place
    (IndexBatch). Has all its other attributes.
    """

    def __init__(
        self,
        inner: Any,
        order: Order,
        attachment: Union[Attachment, Unannounced, Attachments],
        batches_ahead: int,
        progress: Progress,
    ) -> None:
        self._inner = inner
        self._order = order
        self._attachment: Any = attachment  # which makes its places
        self._start = 0
        self._batches_ahead = batches_ahead
        self.progress = progress

    def __iter__(self) -> Iterator[Any]:
        return self.progress.counted(self._announced())

    def _announced(self) -> Iterator[Any]:
        start, self._start = self._start, 0
        skipped = self.progress.begin()
        what, batches = self._order.begin(start)
        if skipped:
            what = what.rest(sum(map(self._reads, itertools.islice(batches, skipped))))
        yield from self._told(what, batches)

    def _told(self, what: protocol.Pass, batches: Iterator[Any]) -> Iterator[Any]:
        """The batches, with their places, of a pass that begins with the first of them."""
        left = self.progress.batches_left()
        tag = self._attachment.begin(self._order.recipe, what)
        looked = False
        for number, batch in enumerate(itertools.islice(batches, left)):
            tag = self._attachment.refresh(self._order.recipe, tag)
            tagged = self._tag(batch, tag)
            yield tagged
            tag = self._attachment.after(tag, tagged)
            if number == self._batches_ahead:  # the workers are busy
                looked = True
                self._look_ahead()
        if not looked:
            self._look_ahead()
        if left is not None:  # a loop that leaves the loader there has asked for these, too
            for _ in itertools.islice(batches, self._batches_ahead):
                pass

    def _look_ahead(self) -> None:
        ids = self._order.look_ahead()
        if ids is not None:
            self._attachment.look_ahead(self._order.recipe, ids)

    def _reads(self, batch: Any) -> int:
        return _length(batch if self._order.items is None else self._order.samples(batch))

    def _tag(self, batch: Any, tag: Any) -> Any:
        if type(batch) is not list or not all(isinstance(index, Integral) for index in batch):
            return batch
        if self._order.items is not None:
            parts = [self._order.samples([index]) for index in batch]
            samples = list(itertools.chain.from_iterable(parts))
            if self._order.followed:
                self._attachment.follow(self._order.recipe, tag, samples)
            ends = list(itertools.accumulate(map(len, parts)))
            return self._attachment.placed(batch, tag, samples, ends)
        mapped = None if self._order.mapping is None else self._order.samples(batch)
        if mapped is None and not set(map(type, batch)) <= {int}:  # numpy's, which stay as they are
            mapped = list(map(operator.index, batch))
        if self._order.followed:
            self._attachment.follow(self._order.recipe, tag, batch if mapped is None else mapped)
        return self._attachment.placed(batch, tag, mapped)

    def __len__(self) -> int:
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # before __init__, while being copied
            raise AttributeError(name)
        return getattr(self._inner, name)

    def start_at(self, index: int) -> None:
        """The next iteration begins at that index of the rank's list."""
        self._order.check_start(index)
        self._start = index


class StatefulBatchSampler(AttachedBatchSampler):
    """The same for torchdata's StatefulDataLoader, which saves the state of an iteration, if it has one,
    and goes on from it.

    An iteration of the batch sampler begins when the loader makes one of this, as without us: torchdata's
    RandomSampler draws at that moment.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        if has_state(self._inner):  # newer releases of Python look for this in the object itself
            self.state_dict = self._inner.state_dict
            self.load_state_dict = self._inner.load_state_dict

    def __iter__(self) -> Any:
        begun = iter(self._inner)
        return StatefulIteration(self, begun) if has_state(begun) else AnnouncedIteration(self, begun)

    def announced(self, begun: Any, index: int) -> Iterator[Any]:
        """The batches of an iteration that is at that index of the rank's list."""
        start, self._start = self._start, 0
        self._order.begun = begun
        what, batches = self._order.begin(start + index)
        return self._told(what, batches)

    def drawn(self, begun: Any, draw: Callable[[], Iterable[int]]) -> Iterator[Any]:
        """The batches of an iteration that leaves out the indices which `draw` draws."""
        self._order.begun = begun
        what, batches = self._order.begin(0)
        return self._told(what.rest(len(self._order.samples(draw()))), batches)


def _length(batch: Any) -> int:
    try:
        return len(batch)
    except TypeError:
        return 1


@_deprecated.arguments("name", passes=("epochs", 0), batches_per_pass=("limit_batches", 0))
def attach(
    loader: torch.utils.data.DataLoader[T],
    *,
    name: str = "train",
    dataset: Optional[torch.utils.data.Dataset[Any]] = None,
    start: Optional[int] = None,
    epochs: Optional[int] = None,
    limit_batches: Optional[int] = None,
    trace: Union[Lister, bool, None] = None,
    samples: Optional[Items] = None,
) -> Attached[T]:
    """Tells the sidecar what a DataLoader reads and when, so that samples are there before they are
    asked for. Returns the same loader; what it gives, and in which order, does not change.

        loader = attach(DataLoader(train, batch_size=256, sampler=DistributedSampler(train)))

    The orders of PyTorch's samplers that have a seed of their own are predicted, and those of
    Accelerate, torchdata, Megatron and SPDL. What PyTorch's other samplers draw is handed over as a
    list when a pass begins, what you give as `trace` as well. With all others, each batch is told
    when the loader asks for it. docs/user/samplers.md says which is which.

        loader.optcache.detach()         # otherwise done when the loader dies
        loader.optcache.state_dict()     # where the loop is: saved with a checkpoint
        loader.optcache.load_state_dict(state)  # the next iteration goes on there
        loader.optcache.start_at(5120)   # the same for a sampler that goes on in the middle by itself:
                                         # of a loader that was attached with start=, see there

    Args:
        loader: with batches, over an optcache.Dataset, an ImageFolder of this module, or what
            optcache.cached has made. A cached dataset is announced alone, also where it is around
            one of ours: of that, only what is not kept is read.
        name: tells the loaders of one job apart: "train", "validation". A loader whose name was
            given to a later one takes another name, with a warning. Where another job of this
            machine reads by that name, the sidecar puts a number behind it.
        dataset: where the loader's own dataset is something around ours that hands indices on as
            they are: ours.
        start: where the first iteration begins in the rank's list; given, even as 0, it is also
            your word that a sampler which derives from DistributedSampler reads that one's list
            from there on.
        epochs: how many iterations follow, if you know: the cache keeps and stages nothing for one
            that does not come. None: not known.
        limit_batches: each iteration ends after this many batches of this rank, counted from the
            front of the rank's list: what `itertools.islice(loader, n)` reads, or Lightning with
            limit_train_batches. The cache keeps and stages nothing of the rest. None: iterations
            read their whole list, unless two in a row end early at the same place.
        trace: a function that is given the number of an iteration, from 0 on, and says what it will
            read, as a list of indices of the loader's dataset, or None; it is asked for the two
            iterations that follow, too. Or True, your word that iterating a copy of the loader's
            batch sampler has no effect on anything else.
        samples: where an item of the loader's dataset is made of several samples of `dataset`, an
            image and its caption for example: a function that is given the item's index and returns
            the numbers of these samples, in the order in which they are read.

    Raises:
        TypeError: the loader's dataset is not ours, or is an IterableDataset.
        ValueError: the loader has no batches or is attached already, iterations cannot begin at
            `start`, or `epochs` or `limit_batches` is not a number of them.
        OptcacheError: the sidecar refuses, for example because other ranks have another seed.
    """
    if isinstance(loader.dataset, IterableDataset):
        raise TypeError(
            "attach: an IterableDataset decides itself what it reads, so its order cannot be announced: "
            "use a dataset with indices"
        )
    if loader.batch_sampler is None:
        raise ValueError("attach: the loader has batch_size=None. Set a batch size, for example batch_size=1")
    if isinstance(loader.batch_sampler, AttachedBatchSampler):
        raise ValueError("attach: this loader is attached already")
    if epochs is not None and not 0 < operator.index(epochs) <= protocol.PASSES_MAX:
        raise ValueError(f"attach: epochs={epochs} is not a number of epochs")
    ours, numbering = _dataset_of(loader, dataset)
    if samples is not None and dataset is None:
        raise TypeError("attach: samples= names samples of dataset=. Set dataset=, too")
    if samples is not None and isinstance(ours, Several):
        raise TypeError(
            f"attach: samples= names samples of one dataset, and dataset= is made of several: {ours.name}"
        )
    if samples is not None and isinstance(ours, Store):
        raise TypeError(
            "attach: samples= names samples of dataset=, and this dataset keeps computed samples: give "
            "the optcache dataset that the items are made of"
        )
    if samples is not None and limit_batches is not None:
        raise ValueError(
            "attach: limit_batches= cannot be used with samples=, because the number of samples that an "
            "iteration reads is not known"
        )
    pass_reads = _samples_in(loader, limit_batches)
    order = order_of(loader, ours, numbering, start is not None, trace, pass_reads, samples)
    order.recipe = dataclasses.replace(
        order.recipe, passes=epochs or 0, behind=_samples_ahead(loader, samples)
    )
    told_as = name + order.suffix
    attachment = Attachments(ours, told_as) if isinstance(ours, Several) else attachment_to(ours, told_as)
    ahead = _batches_ahead(loader)
    seeded = base_seed(loader, getattr(loader.batch_sampler, "sampler", loader.sampler))
    version = ours.name if isinstance(ours, Store) else ours.version
    refusal = _why_no_state(loader)
    progress = Progress(order, loader.batch_sampler, version, ahead, limit_batches, seeded, refusal)
    made = StatefulBatchSampler if is_stateful(loader) else AttachedBatchSampler
    sampler = made(loader.batch_sampler, order, attachment, ahead, progress)
    if start is not None:
        sampler.start_at(start)
    attachment.attach(order.recipe)
    # The loader forbids this, to those who would change what it reads.
    reader = getattr(loader, "base_dataloader", loader)  # Accelerate's loaders hold another
    object.__setattr__(reader, "batch_sampler", sampler)
    detach = weakref.finalize(loader, attachment.detach)
    object.__setattr__(loader, "optcache", LoaderControl(sampler, detach, ours))
    return cast("Attached[T]", loader)


class LoaderControl:
    """What `loader.optcache` can do."""

    def __init__(
        self,
        sampler: AttachedBatchSampler,
        detach: Callable[[], Any],
        dataset: Union[Source, Several],
    ) -> None:
        self._sampler = sampler
        self._detach = detach
        self._dataset = dataset

    def start_at(self, index: int) -> None:
        """Says that the next iteration begins at that index of the rank's list.

        Raises ValueError if the loader's sampler always begins at the front, as far as is known: one
        that does not is attached with start=.
        """
        self._sampler.start_at(index)

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is, to be saved with a checkpoint: the batches that it has got count as read.
        `state_dict()["epoch"]` is the epoch with which to begin again.

        Raises ValueError if the order cannot be repeated: PyTorch's SequentialSampler and
        DistributedSampler repeat theirs, and its other samplers with a generator of their own.
        """
        return dict(self._sampler.progress.state())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on where the loop was: it leaves out the batches that were read, and
        reads nothing of them. The job may have another number of ranks, or batches of another size:
        then a part of a batch of each rank is read twice.

        Raises ValueError as `state_dict`, or if this is the state of another order: of another sampler,
        seed or number of samples, or of a rank whose generator has another seed.
        """
        self._sampler.progress.load(cast(State, state))

    def stats(self) -> Optional[SidecarStats]:
        """What the cache gave: the counts of the sidecar since it started, of all loaders, ranks and
        workers that read this loader's dataset through it, or its datasets together. In a cluster, these are the processes of
        this pod: other pods have sidecars of their own. `optcache.stats()` counts for this process.

        None if no sidecar serves the dataset now, or if the loader reads computed samples, which have
        a `stats()` of their own. Waits no longer than one read does.
        """
        of = self._dataset
        return added([stats_of(it) for it in (of.sources if isinstance(of, Several) else [of])])

    def detach(self) -> None:
        """Tells the sidecar that the loader reads no more."""
        self._detach()


if TYPE_CHECKING:

    class Attached(torch.utils.data.DataLoader[T_co]):
        """What type checkers take a loader for that `attach` was given."""

        optcache: LoaderControl

else:
    Attached = torch.utils.data.DataLoader


class DataLoader(torch.utils.data.DataLoader[T_co]):
    """A loader that attaches itself when it is first iterated over, or asked for `optcache`.

    For frameworks that put a sampler of their own into loaders, as Lightning's Trainer does: they
    make the loader again from its arguments, and that one, with its sampler, is announced.

        DataLoader(train, batch_size=256, shuffle=True, num_workers=8)
        DataLoader(validation, batch_size=256, attach={"name": "validation"})
    """

    def __init__(
        self,
        dataset: torch.utils.data.Dataset[T_co],
        *args: Any,
        attach: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        """As torch.utils.data.DataLoader; `attach`: arguments for the function of that name."""
        self.attach = attach
        super().__init__(dataset, *args, **kwargs)

    @functools.cached_property
    def optcache(self) -> LoaderControl:
        self._attach()
        control: LoaderControl = self.__dict__["optcache"]
        return control

    def __iter__(self) -> Any:
        if not isinstance(self.batch_sampler, AttachedBatchSampler):
            self._attach()
        return super().__iter__()

    def _attach(self) -> None:
        attach(self, **(self.attach or {}))


def _dataset_of(
    loader: torch.utils.data.DataLoader[Any], given: Any
) -> tuple[Union[Source, Several], Optional[Numbering]]:
    """Our dataset under the loader's, or several, and how that one numbers it; None: equally."""
    outer = loader.dataset if given is None else given
    found = dataset_under(outer)
    if found is None:
        kind = type(outer).__name__
        made = "is not an optcache dataset, nor made of such alone by Subset and ConcatDataset"
        if given is not None:
            raise TypeError(
                f"attach: the {kind} that dataset= gives {made}. Give the optcache dataset that the "
                "loader's dataset reads"
            )
        raise TypeError(
            f"attach: the {kind} of the loader {made}. If it wraps an optcache dataset and "
            "passes indices on as they are, give dataset= with that dataset"
        )
    return found


def _why_no_state(loader: Any) -> Optional[str]:
    """Why it is not known where the loop of a loader is; None: it is."""
    kind = type(loader).__name__
    if hasattr(loader, "base_dataloader") or type(loader).__module__.startswith("accelerate."):
        return (
            f"a {kind} fetches batches before your loop gets them, so it is not known where your loop "
            "is. Count the batches yourself, and skip them with "
            "accelerate.skip_first_batches(loader, batches)"
        )
    if is_stateful(loader) and has_state(loader):
        return (
            f"a {kind} keeps a state of its own: save what loader.state_dict() returns, and load it with "
            "loader.load_state_dict()"
        )
    return None


def _batches_ahead(loader: torch.utils.data.DataLoader[Any]) -> int:
    """How many batches are asked for before the first is given out."""
    return int(loader.num_workers) * int(loader.prefetch_factor or 2)


def _samples_in(loader: torch.utils.data.DataLoader[Any], batches: Optional[int]) -> int:
    """How many samples of its rank's list a loader gives in these batches; 0: in all."""
    if batches is None:
        return 0
    size = getattr(loader.batch_sampler, "batch_size", None)
    if not isinstance(size, int):
        raise ValueError(
            f"attach: limit_batches={batches}, but the size of a batch is not known: "
            f"{type(loader.batch_sampler).__name__} has no batch_size"
        )
    if not 0 < operator.index(batches) * size <= protocol.PASS_READS_MAX:
        raise ValueError(f"attach: limit_batches={batches} is not a number of batches")
    sliced = getattr(loader.batch_sampler, "split_batches", False)  # Accelerate's, by rank
    return batches * size // (int(loader.batch_sampler.num_processes) if sliced else 1)


def _samples_ahead(loader: torch.utils.data.DataLoader[Any], items: Optional[Items]) -> int:
    """About how many samples may be with the workers."""
    batches = _batches_ahead(loader) + 1
    size = getattr(loader.batch_sampler, "batch_size", None)  # not all that people write have one
    if not isinstance(size, int):
        return batches
    return min(batches * size * (1 if items is None else len(items(0))), protocol.BEHIND_MAX)
