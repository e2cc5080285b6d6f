"""Samples read from their source by the training process itself, while no sidecar answers.

At most CONCURRENT_MAX reads of a process run at a time: a store sees the workers of all ranks, with
no cache before it.
"""

from __future__ import annotations

import concurrent.futures
import errno
import hashlib
import os
import threading
from collections.abc import Sequence
from typing import NamedTuple, Optional, Union

from ._faults import SourceFaltersError
from ._http_reads import HttpSource
from ._manifest import Manifest, Place
from ._members import pack
from ._sources import Served
from .errors import SampleError

CONCURRENT_MAX = 4
# What a mount says while its server is away (lib/storage/internal/source_file.cc has the same list),
# and what open() says while there are too many files.
_MOUNT_PASSES = (
    errno.EIO,
    errno.ESTALE,
    errno.ENETDOWN,
    errno.ENETUNREACH,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.EREMOTEIO,
    errno.ETIMEDOUT,
)
_PASSES = (*_MOUNT_PASSES, errno.EMFILE, errno.ENFILE)


class FileSource(NamedTuple):
    """A folder, local or mounted."""

    root: str

    def __str__(self) -> str:
        return f"files under {self.root}"

    def where(self, path: str) -> str:
        return os.path.join(self.root, path)

    def fetch(self, place: Place, begin: int, length: int, fresh: bool = False) -> bytes:
        """Raises SourceFaltersError if it may be read later, OSError if not, and ValueError if it is not
        the file that was indexed. There is no cache that `fresh` would pass.
        """
        try:
            return self._read(place, begin, length)
        except OSError as error:
            if error.errno not in _PASSES:
                raise
            raise SourceFaltersError(f"{self.where(place.path)}: {error.strerror}") from error

    def _read(self, place: Place, begin: int, length: int) -> bytes:
        with open(self.where(place.path), "rb") as file:
            found = os.fstat(file.fileno())
            if found.st_size != place.size:
                raise ValueError(
                    f"is another file: it has {found.st_size} bytes, the indexed one has {place.size}"
                )
            if not _same_time(place.modified_ns, found.st_mtime_ns):
                raise ValueError("was written at another time than the sample")
            file.seek(begin)
            data = file.read(length)
        if len(data) != length:
            raise ValueError("was cut while it was read")
        return data


Source = Union[FileSource, HttpSource]


def source_of(served: Optional[Served]) -> Optional[Source]:
    """Where this process can read the dataset; None: nowhere. A folder counts if it is there and
    may be read: another container may have none at that path, and another user.
    """
    if served is None:
        return None
    if served.url:
        return HttpSource(served.url, served.ca_file)
    readable = os.path.isdir(served.path) and os.access(served.path, os.R_OK | os.X_OK)
    return FileSource(served.path) if readable else None


def _same_time(indexed_ns: int, found_ns: int) -> bool:
    """Of the manifest and of a file; 0 is not known, and HTTP tells whole seconds."""
    if indexed_ns % 1_000_000_000 == 0:
        found_ns -= found_ns % 1_000_000_000
    return indexed_ns in (0, found_ns)


def read_samples(source: Source, manifest: Manifest, indices: Sequence[int]) -> list[bytes]:
    """The samples' bytes, by `indices`.

    Raises:
        SourceFaltersError: the store does not answer now.
        SampleError: one cannot be read, or is not the one that was indexed.
    """
    return list(_pool().map(lambda index: _read(source, manifest, index), indices))


def _read(source: Source, manifest: Manifest, index: int) -> bytes:
    place = manifest.place(index)
    without = (
        f"sample {index} of {manifest.name}: the sidecar does not answer, and "
        f"{source.where(place.path)}"
    )
    digest = manifest.sample_digest(index)
    try:
        for fresh in (False, True):  # what came wrong may have been damaged on its way
            sample = _fetch(source, manifest, index, place, fresh)
            if digest is None or hashlib.sha256(sample).digest() == digest:
                return sample
    except SourceFaltersError:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise SampleError(f"{without} cannot be read instead: {why}", "unavailable", index) from error
    except ValueError as error:
        raise SampleError(f"{without} {error}", "conflict", index) from None
    raise SampleError(f"{without} has other bytes than were indexed", "data_loss", index)


def _fetch(source: Source, manifest: Manifest, index: int, place: Place, fresh: bool) -> bytes:
    """One read of the object, which has all members of the sample in a row."""
    members = manifest.members(index)
    begin = members[0].offset
    length = members[-1].offset + members[-1].size - begin
    data = source.fetch(place, begin, length, fresh) if length or not place.size else b""
    key = manifest.key(index)
    if key is None:
        return data
    parts = [(m.name, data[m.offset - begin : m.offset - begin + m.size]) for m in members]
    return pack(key, parts)


_lock = threading.Lock()
_threads: Optional[concurrent.futures.ThreadPoolExecutor] = None


def _pool() -> concurrent.futures.ThreadPoolExecutor:
    global _threads
    with _lock:
        if _threads is None:
            _threads = concurrent.futures.ThreadPoolExecutor(CONCURRENT_MAX, "optcache-source")
        return _threads


def _after_fork_in_child() -> None:
    global _lock, _threads
    _lock, _threads = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork_in_child)
