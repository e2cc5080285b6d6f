"""What an expensive dataset returns, computed once and kept for all processes of the machine."""

from __future__ import annotations

import functools
import hashlib
import operator
import pickle
import re
import weakref
from collections.abc import Sequence
from typing import Any, Callable, Optional, TypeVar, Union, cast, overload

from . import _deprecated
from ._batches import place_of, with_places
from ._store import Store

_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)(i?)B?")
_SCRIPTS = ("__main__", "__mp_main__")  # one module, under its names in parent and child
_STORE = "_optcache_store"

Name = Union[str, Callable[[Any], str]]
D = TypeVar("D")
Function = TypeVar("Function", bound=Callable[..., Any])

# Who has which name in this process.
_owners: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


@overload
def cached(
    *,
    name: Name,
    max_bytes: Union[int, str, None] = None,
    size: Optional[int] = None,
    allow_pickle: bool = False,
    socket: Optional[str] = None,
) -> Keeper: ...


@overload
def cached(
    dataset: D,
    *,
    name: Name,
    max_bytes: Union[int, str, None] = None,
    size: Optional[int] = None,
    allow_pickle: bool = False,
    socket: Optional[str] = None,
) -> D: ...


@_deprecated.arguments(maxsize=("max_bytes", None))
def cached(
    dataset: Any = None,
    *,
    name: Name,
    max_bytes: Union[int, str, None] = None,
    size: Optional[int] = None,
    allow_pickle: bool = False,
    socket: Optional[str] = None,
) -> Any:
    """Keeps what a dataset computes, so that it is computed once and not in every epoch.

        train = optcache.cached(Faces(), name="faces-224")     # a dataset with __len__
        loader = attach(DataLoader(train, sampler=...))        # says what will be read

        class Faces(torch.utils.data.Dataset):
            @optcache.cached(name="faces-224")                 # the same, as a decorator
            def __getitem__(self, index): ...

    The values lie in the sidecar's memory and are shared by the workers and ranks that read through
    it; which of them stay is decided by the order that `attach` announces. A value is None, bool,
    int, float, str, bytes, a NumPy array, a PyTorch tensor on the CPU, or a tuple, list or dict of
    these; each reader gets a copy of its own. Whatever is random in what is computed is drawn once:
    random augmentation does not belong here, but after it.

    Without a sidecar, or where it has no memory for this (`--computed`), everything is computed as
    if it were not for us, and one warning says so.

    Args:
        dataset: a dataset with indices from 0, or a function of an index; None: to decorate one.
        name: stands for what is computed: give another one when that changes. For a decorated
            method, it may be a function of the dataset.
        max_bytes: of all values together, as a number or as "4Gi"; None: what is free.
        size: how many samples there are; needed for a function.
        allow_pickle: pickle what has no other place; only where you trust all processes that use the
            sidecar.
        socket: the sidecar's; None: what OPTCACHE_SOCKET says.

    Returns:
        A dataset, or what the decorated function was; both have stats(). To a type checker it is of
        the type of what was given: `isinstance(train, optcache.Computed)` tells it of the rest.
    """
    limit = None if max_bytes is None else _bytes(max_bytes)
    keeper = Keeper(name, limit, size, allow_pickle, socket)
    if dataset is None:
        return keeper
    if hasattr(dataset, "__getitem__"):
        return Computed(dataset, keeper)
    if callable(dataset):
        return keeper(dataset)
    raise TypeError(f"cached: {type(dataset).__name__} is neither a dataset nor a function of an index")


def _bytes(quantity: Union[int, str]) -> int:
    match = _QUANTITY.fullmatch(str(quantity).strip())
    if match is None:
        raise ValueError(f'cached: max_bytes={quantity!r}: write bytes as a number or as "4Gi"')
    number, unit, binary = match.groups()
    count = int(float(number) * (1024 if binary else 1000) ** _UNITS[unit])
    if count < 1:
        raise ValueError(f"cached: max_bytes={quantity!r}: no sample would fit")
    return count


class Keeper:
    """How values are to be kept: a decorator, and what its functions' stores are made of."""

    def __init__(
        self,
        name: Name,
        max_bytes: Optional[int],
        size: Optional[int],
        allow_pickle: bool,
        socket: Optional[str],
    ) -> None:
        if not callable(name) and (not isinstance(name, str) or not name):
            raise ValueError("cached: name= must name what is computed, for example 'faces-224'")
        self.name = name
        self.max_bytes = max_bytes
        self.size = size
        self.allow_pickle = allow_pickle
        self.socket = socket

    def store(self, owner: Any, what: Any) -> Store:
        """Of the samples of `owner` (None: of a function alone), which `what` computes."""
        name = self.name(owner) if callable(self.name) else self.name
        size = self.size if self.size is not None or owner is None else len(owner)
        if size is None:
            raise ValueError(f"cached: the number of samples of '{name}' is not known: give size=")
        module = "__main__" if what.__module__ in _SCRIPTS else what.__module__
        described = f"{module}.{what.__qualname__}"
        return Store(name, described, size, self.max_bytes, self.allow_pickle, self.socket)

    def __call__(self, function: Function) -> Function:
        alone: list[Store] = []  # of a function that is no method

        def store_of(owner: Any) -> Store:
            kept = alone if owner is None else [owner.__dict__.get(_STORE)]
            found = kept[0] if kept else None
            if found is None:
                found = self._claimed(owner, function)
                if owner is None:
                    alone.append(found)
                else:
                    owner.__dict__[_STORE] = found
            return found

        @functools.wraps(function)
        def get(*args: Any) -> Any:
            *owner, index = args
            store = store_of(owner[0] if owner else None)
            return read_kept(store, index, lambda at: function(*owner, at))

        get.store_of = store_of  # type: ignore[attr-defined]
        get.stats = lambda owner=None: stats_of(store_of(owner))  # type: ignore[attr-defined]
        return cast(Function, get)

    def _claimed(self, owner: Any, function: Callable[..., Any]) -> Store:
        store = self.store(owner, function)
        if owner is not None and _is_another(store, owner):
            raise ValueError(
                f"cached: two datasets of this process are both '{store.name}': tell them apart by "
                "name=, which may be a function of the dataset"
            )
        return store


class Computed:
    """A dataset whose samples are computed once; has all other attributes of the one it is around."""

    def __init__(self, dataset: Any, keeper: Keeper) -> None:
        self._dataset = dataset
        self._store = _shared(keeper, dataset, type(dataset))

    def __len__(self) -> int:
        return len(self._store)

    def __getitem__(self, index: int) -> Any:
        return read_kept(self._store, index, lambda at: self._dataset[at])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Those of `indices`, one by one, at their places if they are a whole batch."""
        return [self[index] for index in with_places(self._store, indices)]

    def stats(self) -> dict[str, Any]:
        """Counts of all processes that share these samples: see stats_of."""
        return stats_of(self._store)

    def store_of(self, owner: Any) -> Store:
        return self._store

    def __getattr__(self, name: str) -> Any:
        # What Python or PyTorch looks for in a dataset, __getitems__ for example, is ours to have.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __repr__(self) -> str:
        return f"<optcache.Computed {self._store.name}: {len(self):,} samples of {self._dataset!r}>"


def _shared(keeper: Keeper, dataset: Any, what: Any) -> Store:
    """The store of a dataset's samples, which `what` computes, with a word to the log where another
    has the same.
    """
    store = keeper.store(dataset, what)
    if _is_another(store, dataset):
        store.tell(
            f"two datasets of this process are both '{store.name}' and share their samples: "
            "if these are not the same, give them names of their own"
        )
    return store


def kept(
    dataset: Any, computed: Union[bool, str], of: str, made_by: Any, socket: Optional[str]
) -> Optional[Store]:
    """The store of a dataset of ours that has `computed=`; None: that is False.

    Args:
        computed: a name, or True: of the samples that are `of`, as `made_by` makes them: a function, or
            several, the first of which gives its name.

    Raises ValueError if it is True and `made_by` cannot be pickled.
    """
    if computed is False:
        return None
    name = computed
    if name is True:
        try:
            settings = hashlib.sha256(pickle.dumps(made_by, protocol=4)).hexdigest()
        except Exception as why:  # whatever their __reduce__ raises
            raise ValueError(
                "computed=True: the function that computes the samples cannot be pickled, so it cannot be "
                f"told from others ({why}): give a name, for example computed='faces-224'"
            ) from why
        name = f"{of}-{settings[:16]}"
    what = made_by[0] if isinstance(made_by, tuple) else made_by
    what = what if hasattr(what, "__qualname__") else type(what)
    return _shared(Keeper(str(name), None, None, False, socket), dataset, what)


def stats_of(store: Optional[Store], of: str = "") -> dict[str, Any]:
    """The counts of a store, by the names that OPT4TorchDataset gave them.

    Raises ValueError if there is none, of the dataset `of`.

    current: reads until now; hits, miss: of them, found and computed; hit_rate: hits of all reads;
    evict: values that gave way to others; size: values that are kept now; in bytes, capacity: for all
    of them, pool_utilized: of that in use, pool_free: the rest.
    """
    if store is None:
        raise ValueError(f"stats: no computed samples of {of} are kept")
    counts = store.counts()
    reads = counts.hits + counts.misses
    return {
        "current": reads,
        "size": counts.values,
        "capacity": counts.capacity,
        "hits": counts.hits,
        "miss": counts.misses,
        "evict": counts.evictions,
        "hit_rate": counts.hits / reads if reads else 0.0,
        "pool_free": counts.capacity - counts.bytes,
        "pool_utilized": counts.bytes,
    }


def store_under(dataset: Any) -> Optional[Store]:
    """The store of a dataset that `cached` is around or has decorated, or that has `computed=`; None:
    it is none of these.
    """
    if isinstance(dataset, Computed):
        return dataset.store_of(None)
    own = getattr(dataset, "kept", None)
    if isinstance(own, Store):
        return own
    store_of = getattr(getattr(type(dataset), "__getitem__", None), "store_of", None)
    return store_of(dataset) if store_of is not None else None


def _is_another(store: Store, owner: Any) -> bool:
    """Whether another dataset that is in use in this process has the same name."""
    try:
        return _owners.setdefault(store.name, owner) is not owner
    except TypeError:  # a list, for example, whose end cannot be seen
        return False


def read_kept(store: Store, index: Any, compute: Callable[[int], Any], of: str = "") -> Any:
    """The value of that sample, by `compute` of its index from 0 on if no process has it. IndexError
    names the dataset `of`, or the store.
    """
    at = resolve(index, len(store), of or store.name)
    return store.get(at, place_of(store.identity, index), lambda: compute(at))


def resolve(index: Any, count: int, name: str) -> int:
    """The index from 0 on; IndexError names the dataset."""
    at = operator.index(index)
    at = at + count if at < 0 else int(at)
    if not 0 <= at < count:
        raise IndexError(f"sample {index} of {name}: it has {count} samples, numbered from 0")
    return at
