"""A read-only file system for fsspec: the objects of a dataset by their paths, through the cache.

    import fsspec
    fs = fsspec.filesystem("optcache")
    fs.ls("optcache://imagenet/train")
    with fsspec.open("optcache://imagenet/train/n01440764/10026.JPEG") as file:
        file.read()

A URL is optcache://NAMESPACE/DATASET/PATH, or optcache://DATASET/PATH where the sidecar serves one
dataset of that name, or OPTCACHE_DATASET has that name. fsspec finds the file system by the package's
entry point, or by an import of this module. docs/user/fsspec.md says what reads cost.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import Any, NoReturn, Optional, Union

import fsspec
from fsspec.callbacks import NoOpCallback
from fsspec.spec import AbstractFileSystem

from ._names import Entry
from ._object_file import ObjectFile
from ._url_datasets import UrlDataset, folder, forget, served_names
from ._url_datasets import find as find_dataset

_NO_CALLBACK = NoOpCallback()


class OptcacheFileSystem(AbstractFileSystem):
    """Folders and objects of the datasets that a sidecar serves. Thread-safe.

    What a dataset has is what its manifest says: it does not change while the file system is in
    use, and objects beside it are not there. After a fork, a child may use the file system, and files
    that its parent has opened.

    Raises:
        FileNotFoundError, IsADirectoryError: as for files.
        OSError: EROFS for what would write; EOPNOTSUPP for a dataset whose samples have no paths.
        optcache.SampleError: an object cannot be read.
        optcache.SidecarUnavailableError: there is no sidecar.
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

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        return stripped.lstrip("/") if isinstance(stripped, str) else stripped

    def invalidate_cache(self, path: Optional[str] = None) -> None:
        """Opens the datasets again when they are next used: a sidecar that has started again may
        serve a newer index.
        """
        forget(self._socket)
        super().invalidate_cache(path)

    # --- What there is

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """Name, size and type of a folder or an object; of an object also `index`, and `mtime` and
        `ETag` where the source has them.
        """
        stripped = self._strip_protocol(path)
        if not stripped:
            return folder(stripped)
        try:
            opened, inner = self._at(stripped)
        except FileNotFoundError:
            if self._above_datasets(stripped):
                return folder(stripped)
            raise
        index = opened.names.find(inner)
        if index is not None or opened.names.has_folder(inner):
            return opened.describe(Entry(inner, index))
        raise self._missing(opened, path)

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Whether there is such a folder or object. Raises what `info` raises but
        FileNotFoundError: without a sidecar the answer is not known.
        """
        return self._type(path) is not None

    def isfile(self, path: str) -> bool:
        """Whether this is an object; raises as `exists` does."""
        return self._type(path) == "file"

    def isdir(self, path: str) -> bool:
        """Whether this is a folder; raises as `exists` does."""
        return self._type(path) == "directory"

    def _type(self, path: str) -> Optional[str]:
        try:
            return str(self.info(path)["type"])
        except FileNotFoundError:
            return None

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """What a folder has, by name; of an object itself. The root has the namespaces of the
        datasets that the sidecar serves.
        """
        found = self._list(self._strip_protocol(path))
        return found if detail else [entry["name"] for entry in found]

    def _list(self, path: str) -> list[dict[str, Any]]:
        if not path:
            return self._above_datasets(path)
        try:
            opened, inner = self._at(path)
        except FileNotFoundError:
            names = self._above_datasets(path)
            if names:
                return names
            raise
        entries = list(opened.names.list(inner))
        return list(map(opened.describe, entries)) if entries else [self.info(path)]

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
    ) -> ObjectFile:
        if set(mode) != set("rb"):
            self._refuse_to_write(path)
        opened, index = self._sample(path)
        entry = Entry(opened.dataset.path(index), index)
        return ObjectFile(self, opened.dataset, opened.describe(entry))

    def cat_file(
        self, path: str, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any
    ) -> bytes:
        """An object's bytes, or those of a range; negative positions count from its end. All of the
        object is read for any range.
        """
        opened, index = self._sample(path)
        return bytes(opened.dataset[index][start:end])

    def cat_ranges(
        self,
        paths: Sequence[str],
        starts: Union[int, None, Iterable[Optional[int]]],
        ends: Union[int, None, Iterable[Optional[int]]],
        max_gap: Optional[int] = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Ranges of many objects, in few round trips; an object that is named several times is read
        once.
        """
        begins = list(starts) if isinstance(starts, Iterable) else [starts] * len(paths)
        stops = list(ends) if isinstance(ends, Iterable) else [ends] * len(paths)
        if not len(paths) == len(begins) == len(stops):
            raise ValueError("cat_ranges: there must be as many starts and ends as paths")
        places: dict[str, list[int]] = {}
        for at, path in enumerate(paths):
            places.setdefault(path, []).append(at)
        found: list[Any] = [None] * len(paths)
        for path, sample in self._read(list(places), on_error != "return"):
            failed = isinstance(sample, Exception)
            for at in places[path]:
                found[at] = sample if failed else bytes(sample[begins[at] : stops[at]])
            del sample  # see UrlDataset.read
        return found

    def cat(
        self,
        path: Union[str, list[str]],
        recursive: bool = False,
        on_error: str = "raise",
        start: Optional[int] = None,
        end: Optional[int] = None,
        **kwargs: Any,
    ) -> Any:
        """One object's bytes, or those of many by path, in few round trips; or a range of each.

        Whatever `on_error`, raises OptcacheError for what is not of one object: without a sidecar,
        an object that is left out would be taken for one that is not there.
        """
        paths = self.expand_path(path, recursive=recursive)
        files = [one for one in paths if recursive is False or not self.isdir(one)]
        if len(files) == 1 and isinstance(path, str) and files[0] == self._strip_protocol(path):
            return self.cat_file(files[0], start, end)
        found: dict[str, Any] = dict.fromkeys(files)  # in this order
        for one, sample in self._read(files, on_error == "raise"):
            if not isinstance(sample, Exception):
                found[one] = bytes(sample[start:end])
            elif on_error == "return":
                found[one] = sample
            else:
                del found[one]
            del sample  # see UrlDataset.read
        return found

    def get_file(
        self,
        rpath: str,
        lpath: Any,
        callback: Any = _NO_CALLBACK,
        outfile: Any = None,
        **kwargs: Any,
    ) -> None:
        """Copies an object to a local file, or makes a local folder for a folder."""
        if outfile is None and hasattr(lpath, "write"):
            outfile = lpath
        if outfile is None and self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        opened, index = self._sample(rpath)
        sample = opened.dataset[index]
        callback.set_size(len(sample))
        if outfile is None:
            os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
            with open(lpath, "wb") as file:
                file.write(sample)
        else:
            outfile.write(sample)
        callback.relative_update(len(sample))

    def _read(self, paths: list[str], raises: bool) -> Iterator[tuple[str, Any]]:
        """Views of the objects, or what is wrong with each, in any order: see UrlDataset.read."""
        wanted: dict[UrlDataset, list[tuple[str, int]]] = {}
        for path in paths:
            try:
                opened, index = self._sample(path)
            except OSError as error:
                if raises:
                    raise
                yield path, error
            else:
                wanted.setdefault(opened, []).append((path, index))
        for opened, objects in wanted.items():
            yield from opened.read(objects, raises)

    # --- Writing, which there is none of

    def _refuse_to_write(self, path: Any, *_: Any, **__: Any) -> NoReturn:
        raise OSError(
            errno.EROFS,
            "optcache:// is read-only. Write to the dataset's store by its own address, then index "
            "the dataset again",
            str(path),
        )

    mkdir = makedirs = rmdir = rm = rm_file = _rm = touch = _refuse_to_write
    cp_file = mv = pipe_file = put_file = _refuse_to_write

    # --- Which dataset

    def _sample(self, path: str) -> tuple[UrlDataset, int]:
        opened, inner = self._at(path)
        index = opened.names.find(inner)
        if index is not None:
            return opened, index
        if opened.names.has_folder(inner):
            raise IsADirectoryError(errno.EISDIR, "this is a folder of the dataset", path)
        raise self._missing(opened, path)

    @staticmethod
    def _missing(opened: UrlDataset, path: str) -> FileNotFoundError:
        why = f"the dataset {opened.dataset.name} has no such object"
        return FileNotFoundError(errno.ENOENT, why, path)

    def _at(self, path: str) -> tuple[UrlDataset, str]:
        return find_dataset(self._strip_protocol(path), self._socket)

    def _above_datasets(self, path: str) -> list[dict[str, Any]]:
        """What the root has, and a namespace; nothing if the path is neither."""
        if path.count("/"):
            return []
        names = served_names(self._socket)
        if path:
            return [folder(name) for name in names if name.startswith(path + "/")]
        return [folder(name) for name in dict.fromkeys(name.split("/")[0] for name in names)]


fsspec.register_implementation("optcache", OptcacheFileSystem, clobber=True)
