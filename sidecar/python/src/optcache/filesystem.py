"""A read-only file system for fsspec: the objects of a dataset by their paths, through the cache.

    import fsspec, optcache.filesystem
    fs = fsspec.filesystem("optcache")
    fs.ls("optcache://imagenet/train")
    with fsspec.open("optcache://imagenet/train/n01440764/10026.JPEG") as file:
        file.read()

A URL is optcache://DATASET/PATH, or optcache://NAMESPACE/DATASET/PATH. A name without a namespace is
the dataset of that name in OPTCACHE_DATASET, else what the sidecar calls so. Importing this module
tells fsspec of it; where the package is installed with pip, fsspec finds it by itself.

Reads in an order that was not announced are cached by what is known of them, which is less than
of a loader that `optcache.torch.attach` has announced.
"""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any, NoReturn, Optional, Union

import fsspec
from fsspec.spec import AbstractFileSystem

from ._names import Entry, Names
from .dataset import Dataset
from .errors import OptcacheError

_SAMPLES_AT_ONCE = 256


class OptcacheFileSystem(AbstractFileSystem):
    """Folders and objects of the datasets that a sidecar serves. Thread-safe.

    What a dataset has is what its manifest says: it does not change while the file system is in use,
    and objects beside it are not there. `info` has, beyond fsspec's own keys, `index`: the sample's
    number in optcache.Dataset.

    Raises FileNotFoundError, IsADirectoryError and the like as files do; OSError with EROFS for
    whatever would write; optcache.SampleError for objects that cannot be read;
    optcache.SidecarUnavailableError without a sidecar.
    """

    protocol = "optcache"
    root_marker = ""

    def __init__(self, socket: Optional[str] = None, **options: Any) -> None:
        """Opens nothing yet.

        Args:
            socket: the sidecar's socket; None: what OPTCACHE_SOCKET says.
            options: fsspec's own.
        """
        super().__init__(**options)
        self._socket = socket
        self._lock = threading.Lock()
        self._opened: dict[str, _Opened] = {}

    # --- What there is

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """Of a folder or an object: name, size, type; of an object also index and mtime."""
        opened, inner = self._at(path)
        index = opened.names.find(inner)
        if index is not None:
            return opened.describe(Entry(inner, index))
        if opened.names.has_folder(inner):
            return opened.describe(Entry(inner, None))
        raise FileNotFoundError(errno.ENOENT, "the dataset has no such object", path)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """What a folder has, by name; of an object itself."""
        stripped = self._strip_protocol(path)
        if not stripped:  # the datasets: of several, the sidecar says the names
            found = [_folder(Dataset(socket=self._socket).name)]
        else:
            found = self._list(stripped)
        return found if detail else [entry["name"] for entry in found]

    def _list(self, path: str) -> list[dict[str, Any]]:
        opened, inner = self._at(path)
        entries = list(opened.names.list(inner))
        if not entries:
            return [self.info(path)]
        return list(map(opened.describe, entries))

    def modified(self, path: str) -> datetime:
        """When the object was written, as the source says; 1970 if it does not."""
        opened, index = self._sample(path)
        nanoseconds = opened.dataset.manifest.modified_ns(index)
        return datetime.fromtimestamp(nanoseconds / 1e9, timezone.utc)

    created = modified

    def ukey(self, path: str) -> str:
        """Another one when the dataset was indexed again."""
        opened, index = self._sample(path)
        return f"{opened.dataset.version}/{index}"

    # --- Reading

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Optional[int] = None,
        autocommit: bool = True,
        cache_options: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> io.BufferedReader:
        if mode != "rb":
            self._refuse_to_write(path)
        opened, index = self._sample(path)
        return _ObjectFile(_SampleFile(opened.dataset[index], path), self.info(path))

    def cat_file(
        self, path: str, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any
    ) -> bytes:
        """An object's bytes, or those of a range; negative positions count from its end."""
        opened, index = self._sample(path)
        return bytes(opened.dataset[index][start:end])

    def cat_ranges(
        self,
        paths: Sequence[str],
        starts: Union[int, None, Sequence[Optional[int]]],
        ends: Union[int, None, Sequence[Optional[int]]],
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Ranges of many objects, in few round trips; objects named several times are read once."""
        begins = starts if isinstance(starts, Sequence) else [starts] * len(paths)
        stops = ends if isinstance(ends, Sequence) else [ends] * len(paths)
        if not len(paths) == len(begins) == len(stops):
            raise ValueError("cat_ranges: there must be as many starts and ends as paths")
        samples = self._samples(list(dict.fromkeys(paths)), on_error != "return")
        found: list[Any] = []
        for path, start, end in zip(paths, begins, stops):
            sample = samples[path]
            found.append(sample if isinstance(sample, Exception) else bytes(sample[start:end]))
        return found

    def cat(
        self,
        path: Union[str, list[str]],
        recursive: bool = False,
        on_error: str = "raise",
        **kwargs: Any,
    ) -> Any:
        """One object's bytes, or those of many by path, in few round trips."""
        paths = self.expand_path(path, recursive=recursive)
        files = [one for one in paths if recursive is False or not self.isdir(one)]
        if len(files) == 1 and isinstance(path, str) and files[0] == self._strip_protocol(path):
            if on_error == "raise":
                return self.cat_file(files[0])
        found: dict[str, Any] = {}
        for one, sample in self._samples(files, on_error == "raise").items():
            if isinstance(sample, Exception):
                if on_error == "return":
                    found[one] = sample
            else:
                found[one] = bytes(sample)
        return found

    def get_file(self, rpath: str, lpath: Any, **kwargs: Any) -> None:
        """Copies an object to a local file, or makes a local folder for a folder."""
        if hasattr(lpath, "write"):
            lpath.write(self.cat_file(rpath))
        elif self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
            with open(lpath, "wb") as file:
                file.write(self.cat_file(rpath))

    def _samples(self, paths: list[str], raises: bool) -> dict[str, Any]:
        """Views of the objects, or what went wrong with each, by path."""
        found: dict[str, Any] = {}
        wanted: dict[str, tuple[_Opened, dict[str, int]]] = {}
        for path in paths:
            try:
                opened, index = self._sample(path)
                wanted.setdefault(opened.prefix, (opened, {}))[1][path] = index
            except (OSError, OptcacheError) as error:
                if raises:
                    raise
                found[path] = error
        for opened, by_path in wanted.values():
            names = list(by_path)
            for begin in range(0, len(names), _SAMPLES_AT_ONCE):
                part = names[begin : begin + _SAMPLES_AT_ONCE]
                found.update(zip(part, opened.read([by_path[n] for n in part], raises)))
        return {path: found[path] for path in paths}

    # --- Writing, which there is none of

    def _refuse_to_write(self, path: Any, *_: Any, **__: Any) -> NoReturn:
        raise OSError(
            errno.EROFS, "optcache:// is read-only: write to the dataset's own store", str(path)
        )

    mkdir = makedirs = rmdir = rm = rm_file = _rm = touch = _refuse_to_write
    cp_file = mv = pipe_file = put_file = _refuse_to_write

    # --- Which dataset

    def _sample(self, path: str) -> tuple[_Opened, int]:
        opened, inner = self._at(path)
        index = opened.names.find(inner)
        if index is not None:
            return opened, index
        if opened.names.has_folder(inner):
            raise IsADirectoryError(errno.EISDIR, "this is a folder of the dataset", path)
        raise FileNotFoundError(errno.ENOENT, "the dataset has no such object", path)

    def _at(self, path: str) -> tuple[_Opened, str]:
        """The dataset of a URL or path, and the path in it."""
        parts = self._strip_protocol(path).split("/")
        with self._lock:
            for count in (1, 2):
                opened = self._opened.get("/".join(parts[:count]))
                if opened is not None:
                    return opened, "/".join(parts[count:])
            return self._open_one_of(parts, path)

    def _open_one_of(self, parts: list[str], path: str) -> tuple[_Opened, str]:
        why = ""
        for count in (1, 2)[: len(parts)]:
            prefix = "/".join(parts[:count])
            name = _full_name(prefix)
            try:
                opened = _Opened(prefix, Dataset(name, self._socket))
            except OptcacheError as error:
                # Not one of that name, or several.
                if error.code not in ("not_found", "invalid_argument"):
                    raise
                why = why or str(error)
            else:
                # What stands first may be the namespace of another dataset: no short names here.
                whole = opened.dataset.name
                if _qualified(whole) != _qualified(name):
                    why = why or f"there is no dataset {name}, but {whole}"
                    continue
                self._opened[prefix] = opened
                return opened, "/".join(parts[count:])
        raise FileNotFoundError(errno.ENOENT, why, path)


class _Opened:
    """A dataset as URLs call it."""

    def __init__(self, prefix: str, dataset: Dataset) -> None:
        self.prefix = prefix
        self.dataset = dataset
        self.names = Names(dataset.manifest)

    def describe(self, entry: Entry) -> dict[str, Any]:
        name = f"{self.prefix}/{entry.path}" if entry.path else self.prefix
        if entry.sample is None:
            return _folder(name)
        manifest = self.dataset.manifest
        return {
            "name": name,
            "size": manifest.size(entry.sample),
            "type": "file",
            "index": entry.sample,
            "mtime": manifest.modified_ns(entry.sample) / 1e9,
        }

    def read(self, indices: list[int], raises: bool) -> list[Any]:
        try:
            return self.dataset.__getitems__(indices)
        except OptcacheError:
            if raises:
                raise
        return [self._read_one(index) for index in indices]

    def _read_one(self, index: int) -> Any:
        try:
            return self.dataset[index]
        except OptcacheError as error:
            return error


class _ObjectFile(io.BufferedReader):
    """What `open` gives. Callers of fsspec look for `size` and `details` in it."""

    def __init__(self, file: _SampleFile, details: dict[str, Any]) -> None:
        super().__init__(file)
        self.details = details
        self.size = details["size"]


class _SampleFile(io.RawIOBase):
    """The bytes of a sample where they lie, as a file."""

    def __init__(self, sample: Any, name: str) -> None:
        self.name = name
        self._sample = memoryview(sample)
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._sample)}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, "there is nothing before the beginning", self.name)
        self._at = base + offset
        return self._at

    def readinto(self, into: Any) -> int:
        part = self._sample[self._at : self._at + len(into)]
        into[: len(part)] = part
        self._at += len(part)
        return len(part)


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def _qualified(name: str) -> str:
    return name if "/" in name else f"local/{name}"


def _full_name(name: str) -> str:
    """OPTCACHE_DATASET, if that is a dataset of this name in some namespace."""
    usual = os.environ.get("OPTCACHE_DATASET") or ""
    return usual if usual.partition("/")[2] == name else name


fsspec.register_implementation("optcache", OptcacheFileSystem, clobber=True)
