"""The datasets that this process reads by URL.

fsspec makes a file system for each thread; a dataset is opened once for all of them.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from typing import Any, Optional

from ._endpoint import endpoint_at, with_patience
from ._names import Entry, Names
from ._sources import sources_or_none
from .dataset import Dataset
from .errors import SampleError

# Views of a part are in use together, and take room in the sidecar's memory.
_PART_SAMPLES = 256
_PART_BYTES = 16 << 20


class UrlDataset:
    """A dataset as URLs call it. Thread-safe; may be used after a fork.

    Attributes:
        prefix: what its paths begin with.
        dataset: reads its samples.
    """

    def __init__(self, prefix: str, dataset: Dataset) -> None:
        """Raises OSError with EOPNOTSUPP if the samples have no paths."""
        if len(dataset) and dataset.manifest.key(0) is not None:
            raise OSError(
                errno.EOPNOTSUPP,
                "the samples of this dataset are groups of members of tar archives, which have no "
                "paths: index it with format TarFiles, or read it with optcache.WebDataset",
                dataset.name,
            )
        self.prefix = prefix
        self.dataset = dataset
        self._names: Optional[Names] = None

    @property
    def names(self) -> Names:
        """Samples by path."""
        if self._names is None:
            with _building:  # a second for a million samples: once, not in each thread
                self._names = self._names or Names(self.dataset.manifest)
        return self._names

    def describe(self, entry: Entry) -> dict[str, Any]:
        """The entry as fsspec has it."""
        name = f"{self.prefix}/{entry.path}" if entry.path else self.prefix
        if entry.sample is None:
            return folder(name)
        manifest = self.dataset.manifest
        found = {
            "name": name,
            "size": manifest.size(entry.sample),
            "type": "file",
            "index": entry.sample,
        }
        modified_ns = manifest.modified_ns(entry.sample)
        if modified_ns:
            found["mtime"] = modified_ns / 1e9
        etag = manifest.etag(entry.sample)
        if etag:
            found["ETag"] = etag
        return found

    def read(self, wanted: list[tuple[str, int]], raises: bool) -> Iterator[tuple[str, Any]]:
        """Views of the samples, or what is wrong with each, by the paths that come with them. The
        caller lets go of a view before it takes the next: they come in parts, a round trip each.

        Raises OptcacheError for what is not of one sample: that the sidecar is away, for example.
        """
        indices = [index for _, index in wanted]
        for part in self.dataset.manifest.parts(indices, _PART_SAMPLES, _PART_BYTES):
            yield from self._read_part(wanted[part], raises)

    def _read_part(self, part: list[tuple[str, int]], raises: bool) -> list[tuple[str, Any]]:
        failed: dict[int, SampleError] = {}
        while True:
            good = [index for _, index in part if index not in failed]
            try:
                samples = iter(self.dataset.__getitems__(good))
            except SampleError as error:
                if raises or error.index is None:
                    raise
                # Its frames, and those of its cause, have views of the others.
                error.__context__ = None
                failed[error.index] = error.with_traceback(None)
            else:
                return [(path, failed[i] if i in failed else next(samples)) for path, i in part]


def folder(name: str) -> dict[str, Any]:
    """A folder as fsspec has it."""
    return {"name": name, "size": 0, "type": "directory"}


_opened: dict[tuple[str, str, str], UrlDataset] = {}  # by socket, full name and prefix
_served: dict[str, tuple[str, ...]] = {}  # full names, by socket
_building = threading.Lock()


def _after_fork_in_child() -> None:
    global _building
    _building = threading.Lock()  # a thread of the parent may have had it


os.register_at_fork(after_in_child=_after_fork_in_child)


def find(path: str, socket: Optional[str]) -> tuple[UrlDataset, str]:
    """The dataset of a path without its protocol, and the path in it.

    Raises:
        FileNotFoundError: there is no such dataset, or several of that name.
        OSError: its samples have no paths.
        OptcacheError: as of Dataset.
    """
    at = endpoint_at(socket).path
    parts = path.split("/")
    name, count = _choose(parts, served_names(socket))
    if not name:  # the sidecar may have started again, with others
        _served.pop(at, None)
        name, count = _choose(parts, served_names(socket))
    if not name:
        raise FileNotFoundError(errno.ENOENT, _why_none(parts[0], served_names(socket)), path)
    prefix = "/".join(parts[:count])
    opened = _opened.get((at, name, prefix))
    if opened is None:
        # Two threads may open it at once; one of the two stays.
        opened = _opened.setdefault((at, name, prefix), UrlDataset(prefix, Dataset(name, at)))
    return opened, "/".join(parts[count:])


def _choose(parts: list[str], names: tuple[str, ...]) -> tuple[str, int]:
    """The full name of the dataset, or none, and of how many parts it is. A namespace and a name
    count before a name alone.
    """
    full = "/".join(parts[:2])
    if full in names:
        return full, 2
    found = _namesakes(parts[0], names)
    usual = os.environ.get("OPTCACHE_DATASET") or ""
    if usual in found:
        return usual, 1
    return (found[0] if len(found) == 1 else ""), 1


def _namesakes(name: str, names: tuple[str, ...]) -> list[str]:
    return [full for full in names if full.partition("/")[2] == name]


def _why_none(name: str, names: tuple[str, ...]) -> str:
    found = _namesakes(name, names)
    if found:
        return f"there are several datasets {name}: write one of {', '.join(found)}"
    return f"there is no dataset {name} here: the sidecar serves {', '.join(names) or 'none'}"


def served_names(socket: Optional[str]) -> tuple[str, ...]:
    """The full names of the datasets that the sidecar serves, in its order."""
    endpoint = endpoint_at(socket)
    at = endpoint.path
    names = _served.get(at)
    if names is None:
        served = sources_or_none(at)
        if served is None:  # a sidecar that is on its way writes its list before it answers
            with_patience(endpoint, endpoint.channel)
            served = sources_or_none(at)
        # Where there is no list, the sidecar tells the name of its only dataset.
        found = [Dataset(socket=at).name] if served is None else [entry.name for entry in served]
        names = _served[at] = tuple(n if "/" in n else f"local/{n}" for n in found)
    return names


def forget(socket: Optional[str]) -> None:
    """Opens the sidecar's datasets again when they are next asked for."""
    at = endpoint_at(socket).path
    _served.pop(at, None)
    for key in list(_opened):
        if key[0] == at:
            _opened.pop(key, None)
