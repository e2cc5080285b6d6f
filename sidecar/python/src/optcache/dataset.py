"""A dataset as a sequence of bytes, read through the sidecar."""

from __future__ import annotations

import array
import functools
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

from . import _deprecated
from . import _protocol as protocol
from ._batches import (
    BatchIndex,
    IndexBatch,
    Sample,
    current_sample,
    current_samples,
    current_tag,
    with_places,
)
from ._channel import Channel
from ._collate import let_torch_have_views
from ._endpoint import endpoint_at, with_patience
from ._faults import SampleFailedError, SourceFaltersError
from ._manifest import Manifest
from ._names import Names
from ._source_keys import why_kept
from ._source_reads import FileSource, Source, SourceReads, source_of
from ._sources import PATIENCE_S, Served, named, sources_or_none
from ._stats import counters
from ._text import visible
from .computed import kept, read_kept, resolve, stats_of
from .errors import OptcacheError, SampleError

if TYPE_CHECKING:
    import torch.utils.data

    _Base = torch.utils.data.Dataset[Any]
else:  # PyTorch need not be there, and is not imported
    _Base = object


class Dataset(_Base):
    """The samples of a dataset, in the order of its manifest.

        ds = optcache.Dataset()
        len(ds), ds[0], ds[-1], ds.__getitems__([3, 1, 4])

    A sample is a read-only memoryview of its bytes where the sidecar has laid them: nothing is
    copied, and the bytes stay as they are for as long as anything refers to the view (a slice of it,
    numpy.frombuffer or torch.frombuffer of it). Its memory is the sidecar's: who keeps samples for
    long, or hands them to another process, takes `copy=True` and gets bytes.

    Thread-safe. May be pickled, and used after a fork: each thread and process has a connection of
    its own. Views do not outlive a fork: the parent's may be overwritten in the child.

    To a type checker it is a torch.utils.data.Dataset.

    Attributes:
        name: the dataset's full name.
        identity: tells it from other datasets, also those of this name that other sidecars serve.
        endpoint: the sidecar.
        transform: as given.
        kept: where what `transform` makes is kept; None: nowhere.
        wait: as given.
        notice: what the sidecar wants known of this run: that its results are not for use, as
            headspace is measured. Warned of when the dataset is opened; usually empty.
    """

    def __init__(
        self,
        name: Optional[str] = None,
        socket: Optional[str] = None,
        copy: bool = False,
        transform: Optional[Callable[[Sample], Any]] = None,
        computed: Union[bool, str] = False,
        wait: Optional[float] = None,
    ) -> None:
        """Opens a dataset.

        Args:
            name: which, without its namespace where no other is called so; None: what
                OPTCACHE_DATASET says, or the only one that the sidecar has.
            socket: the sidecar's socket; None: what OPTCACHE_SOCKET says.
            copy: give bytes instead of views.
            transform: makes of a sample's bytes what is given out.
            computed: keep what `transform` makes, as optcache.cached does, for all processes of the
                machine; what is random in it is drawn once. Its name there, or True: one of the
                dataset and of what `transform` is, with its settings.
            wait: seconds to wait for a sidecar that is away, where the samples cannot be read
                without it, or for a dataset that is being indexed. None: what OPTCACHE_WAIT says;
                else 10 for a sidecar that was never there, 300 otherwise. A line on standard error
                says every 10 s what it waits for.

        Raises:
            ValueError: `computed` without `transform`, or True where that cannot be pickled; or
                `wait` is no number of seconds.
            SidecarUnavailableError: no sidecar answers, or the dataset is not indexed in time.
            OptcacheError: the sidecar knows no such dataset, or the name is needed.
        """
        if wait is not None and not wait >= 0:
            raise ValueError(f"Dataset: wait={wait} is not a number of seconds")
        self.endpoint = endpoint_at(socket)
        self.wait = wait
        self._copy = copy
        usual = os.environ.get("OPTCACHE_DATASET") or ""
        self._wanted: str = name or usual
        self._manifest: Optional[Manifest] = None
        self._names: Optional[Names] = None
        self._digest = b""  # not known yet
        self._served: Optional[Served] = None  # where it lies, as the sidecar says
        self._source: Optional[Source] = None  # to be read while the sidecar is away
        self._advice = ""  # what messages say where there is none
        self.notice = ""
        self._digest = self.manifest.digest
        self.name = self.manifest.name
        self.identity = f"{self.endpoint.path} {self.version}"
        # The files are those of one dataset; others may have the same paths.
        root = os.environ.get("OPTCACHE_FALLBACK_ROOT") or ""
        given = bool(root) and usual in (self._wanted, self.name)
        self._wanted = self.name
        self._served = self._listed()
        self._source = FileSource(root) if given else source_of(self._served)
        self._advice = "" if self._source is not None else why_kept(self._served)
        if self.goes_on_alone:
            self.endpoint.hurry()
        if self.notice:
            warnings.warn(f"optcache: {visible(self.notice)}.", stacklevel=2)
        self.transform = transform
        if computed and transform is None:
            raise ValueError("Dataset: computed= keeps the results of transform=. Set transform=, too")
        self.kept = kept(self, computed, self.version, transform, socket)

    # --- As a sequence

    def __len__(self) -> int:
        return len(self.manifest)

    def __getitem__(self, index: int) -> Any:
        """One sample's bytes, or what `transform` makes of them.

        Raises:
            IndexError: there is no such sample.
            SampleError: the sample cannot be read; says which object and why.
            SidecarUnavailableError: the sidecar has gone and did not come back.
        """
        if self.transform is None:
            return self._sample(index)
        make = self.transform
        if self.kept is None:
            return make(self._sample(index))
        return read_kept(self.kept, index, lambda at: make(self._sample(at)), self.name)

    def _sample(self, index: int) -> Sample:
        if type(index) is BatchIndex:
            sample = index.sample(self)
            if sample is not None:
                return sample
        else:
            sample = current_sample(self, index)
            if sample is not None:
                return sample
        return self._samples([index], None)[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Many samples in one round trip, in the order of `indices`; raises as for one. Kept ones are
        had one by one.
        """
        if self.kept is not None:
            return [self[index] for index in with_places(self.kept, indices)]
        samples = self._batch(indices)
        return samples if self.transform is None else list(map(self.transform, samples))

    def _batch(self, indices: Sequence[int]) -> list[Any]:
        if isinstance(indices, IndexBatch):
            ours = indices.dataset == self.identity and indices.stands_for_itself()
            return self._samples(indices, indices.tag if ours else None)
        tag = current_tag(self, indices)
        samples = current_samples(self, indices) if tag is None else None
        return self._samples(indices, tag) if samples is None else samples

    def read_batch(self, batch: IndexBatch) -> list[Sample]:
        """The samples of a batch of ours."""
        return self._samples(batch if batch.samples is None else batch.samples, batch.tag)

    def stats(self) -> dict[str, Any]:
        """Counts of what is kept, by all processes that share it: see optcache.cached. Raises
        ValueError if it is a dataset without `computed=`.
        """
        return stats_of(self.kept, self.name)

    if not TYPE_CHECKING:  # which has it of PyTorch's

        def __add__(self, other: Any) -> Any:
            """PyTorch's ConcatDataset of both."""
            from torch.utils.data import ConcatDataset

            return ConcatDataset([self, other])

    # --- What is known of the samples

    @property
    def classes(self) -> list[str]:
        """The names of the classes, by number; empty if the dataset has none."""
        return self.manifest.classes

    def path(self, index: int) -> str:
        """The object's path below the root of the dataset's source."""
        return self.manifest.path(self._resolve(index))

    def paths(self) -> list[str]:
        """The paths of all samples, in their order: much faster than `path` for one after the other."""
        return list(self.manifest.paths())

    def index(self, path: str) -> int:
        """The number of the sample whose object has this path: the inverse of `path`. The first call
        reads all paths.

        Raises KeyError if there is none.
        """
        names = self._names = self._names or Names(self.manifest)
        index = names.find(path)
        if index is None:
            raise KeyError(f"{self.name} has no object {path}")
        return index

    def index_of(self, path: str) -> int:
        """The old name of `index`."""
        _deprecated.warn("Dataset.index_of() is now Dataset.index()")
        return self.index(path)

    def size(self, index: int) -> int:
        """The sample's length in bytes."""
        return self.manifest.size(self._resolve(index))

    def target(self, index: int) -> int:
        """The number of the sample's class, an index into `classes`."""
        return self.manifest.target(self._resolve(index))

    @property
    def manifest(self) -> Manifest:
        """The list of samples."""
        if self._manifest is None:
            served = self._served or self._listed()
            instead = None
            if served is not None and served.manifest and source_of(served) is not None:
                self.endpoint.hurry()
                instead = functools.partial(self._open_alone, served)
            advice = why_kept(served)
            with_patience(self.endpoint, self._open, instead, self.wait, advice=advice)
        assert self._manifest is not None
        return self._manifest

    @property
    def goes_on_alone(self) -> bool:
        """Whether this process can read the samples without the sidecar."""
        return self._source is not None

    @property
    def version(self) -> str:
        """Names the samples as they are now; another one when the dataset is indexed again."""
        return f"{self.name}@{self._digest.hex()[:16]}"

    def __repr__(self) -> str:
        return f"<optcache.Dataset {self.name}: {len(self):,} samples>"

    # --- Copies in other processes

    def __getstate__(self) -> dict[str, Any]:
        return {
            "socket": self.endpoint.path,
            "name": self.name,
            "copy": self._copy,
            "digest": self._digest,
            "notice": self.notice,
            "served": self._served,
            "source": self._source,
            "advice": self._advice,
            "wait": self.wait,
            "transform": self.transform,
            "kept": self.kept,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.endpoint = endpoint_at(state["socket"])
        self.name = self._wanted = state["name"]
        self._copy = state["copy"]
        self._digest = state["digest"]
        self.identity = f"{self.endpoint.path} {self.version}"
        self.notice = state["notice"]
        self._served = state["served"]
        self._source = state["source"]
        self._advice = state["advice"]
        self.wait = state["wait"]
        self.endpoint.seen = True  # by the process that this comes from
        if self.goes_on_alone:
            self.endpoint.hurry()
        self.transform = state["transform"]
        self.kept = state["kept"]
        self._manifest = None
        self._names = None

    # --- Reading

    def _resolve(self, index: int) -> int:
        return resolve(index, len(self), self.name)

    def _ids(self, indices: Sequence[int]) -> array.array[int]:
        try:
            ids = array.array("I", indices)
        except OverflowError:  # negative, or far too large
            ids = array.array("I", map(self._resolve, indices))
        last = max(ids, default=-1)
        if last >= len(self):
            self._resolve(last)  # which raises
        return ids

    def _samples(self, indices: Sequence[int], tag: Optional[protocol.Tag]) -> list[Sample]:
        ids = self._ids(indices)
        views: list[memoryview] = []
        for part in self.manifest.parts(ids, protocol.IDS_MAX, protocol.BYTES_MAX):
            place = tag._replace(first=tag.first + part.start) if tag else None
            views += self._fetch(ids[part], place)
        if self._copy:
            return [bytes(view) for view in views]
        let_torch_have_views()
        return views  # type: ignore[return-value]

    def _fetch(self, ids: array.array[int], tag: Optional[protocol.Tag]) -> list[memoryview]:
        if not ids:
            return []

        def get() -> list[memoryview]:
            channel = self.endpoint.channel()
            return channel.get(self.handle_on(channel), ids, tag)

        instead = None
        if self._source is not None:
            reads = SourceReads(self._source, self.manifest, ids)
            instead = functools.partial(self._read_source, reads)
        patience_s = self._served.patience_s if self._served is not None else PATIENCE_S
        try:
            return with_patience(
                self.endpoint, get, instead, self.wait, patience_s, self._advice
            )
        except SampleFailedError as failed:
            index = ids[failed.position]
            raise SampleError(
                f"sample {index} of {self.name} ({self.path(index)}): {failed}", failed.code, index
            ) from None

    def _open(self) -> None:
        self.open_on(self.endpoint.channel())

    def handle_on(self, channel: Channel) -> int:
        """As `open_on`, but opens it once only."""
        handle = channel.handles.get(self._wanted)
        return self.open_on(channel) if handle is None else handle

    def open_on(self, channel: Channel) -> int:
        """Opens the dataset on a connection; what the sidecar calls it there.

        Raises OptcacheError if it is not the same any more.
        """
        opened, descriptor = channel.open(self._wanted)
        try:
            self.notice = opened.notice
            if self._digest and opened.digest != self._digest:
                raise OptcacheError(
                    f"the dataset {opened.name} was indexed again while it was in use: start the job "
                    "again to read the new one",
                    "conflict",
                )
            if self._manifest is None:
                self._manifest = Manifest.from_descriptor(
                    descriptor, opened.manifest_bytes, opened.digest, opened.name
                )
        finally:
            os.close(descriptor)
        return opened.handle

    def _read_source(self, reads: SourceReads) -> list[memoryview]:
        self.endpoint.tell_begin(str(self._source))
        views = [memoryview(sample) for sample in reads.read()]
        counters.add(samples=len(views), fallbacks=len(views))
        self.endpoint.count_direct(len(views))
        return views

    def _listed(self) -> Optional[Served]:
        """What the sidecar says of where the dataset lies."""
        served = sources_or_none(self.endpoint.path)
        return named(served, self._wanted) if served else None

    def _open_alone(self, served: Served) -> None:
        """Reads the manifest's file. Raises SourceFaltersError if it is not the right one."""
        try:
            if self._digest and self._digest != served.digest:
                raise ValueError(f"{served.manifest} is another manifest than that of the job")
            self._manifest = Manifest.from_file(served.manifest, served.digest, served.name)
        except (OSError, ValueError) as why:
            raise SourceFaltersError(str(why)) from why
