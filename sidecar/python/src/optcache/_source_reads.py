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
from ._source_keys import keys_of
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

    def fetch(
        self, place: Place, begin: int, length: int, fresh: bool = False, came: bytes = b""
    ) -> bytes:
        """Raises SourceFaltersError if it may be read later, OSError if not, and ValueError if it is not
        the file that was indexed. There is no cache that `fresh` would pass, and nothing has come
        before: a file is read again from its begin.
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
    if served.with_keys is not None:
        keys = keys_of(served)
        return HttpSource(served.with_keys.url, served.ca_file, keys) if keys else None
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
    return SourceReads(source, manifest, indices).read()


class SourceReads:
    """Reads of samples from their source. What has come is kept while the rest is tried again.
    Not thread-safe.
    """

    def __init__(self, source: Source, manifest: Manifest, indices: Sequence[int]) -> None:
        self._source = source
        self._manifest = manifest
        self._indices = indices
        self._reads: list[_Read] = []
        self._most_bytes = 0  # that had come after a try

    def read(self) -> list[bytes]:
        """The samples, by one more try of those that have not come. Raises as read_samples does."""
        if not self._reads:
            self._reads = [_Read(self._source, self._manifest, i) for i in self._indices]
        tries = [_pool().submit(r.try_once) for r in self._reads if r.sample is None]
        try:
            concurrent.futures.wait(tries, return_when=concurrent.futures.FIRST_EXCEPTION)
        finally:
            begun = [one for one in tries if not one.cancel()]
        while (left := [one for one in begun if not one.done()]) and not any(map(_is_final, begun)):
            concurrent.futures.wait(left, return_when=concurrent.futures.FIRST_EXCEPTION)
        self._raise_first([one for one in begun if one.done()])
        return [r.sample for r in self._reads if r.sample is not None]

    def _raise_first(self, tries: Sequence[concurrent.futures.Future[None]]) -> None:
        """What ends the read counts more than what passes."""
        failures = [failure for failure in (one.exception() for one in tries) if failure]
        faltering = [f for f in failures if isinstance(f, SourceFaltersError)]
        if len(faltering) < len(failures):
            raise next(f for f in failures if not isinstance(f, SourceFaltersError))
        if not faltering:
            return
        have = sum(r.have for r in self._reads)
        first = faltering[0]
        first.progressed = have > self._most_bytes
        first.retry_after_s = max(f.retry_after_s for f in faltering)
        self._most_bytes = max(have, self._most_bytes)
        raise first


def _is_final(one: concurrent.futures.Future[None]) -> bool:
    """Whether it has failed in a way that does not pass."""
    failure = one.exception() if one.done() else None
    return failure is not None and not isinstance(failure, SourceFaltersError)


class _Read:
    """Of one sample, by any number of tries."""

    def __init__(self, source: Source, manifest: Manifest, index: int) -> None:
        self.sample: Optional[bytes] = None
        self._source = source
        self._manifest = manifest
        self._index = index
        self._came = b""  # of its bytes in the object
        self._fresh = False  # what came wrong may have been damaged on its way

    @property
    def have(self) -> int:
        """The bytes that have come."""
        return len(self._came if self.sample is None else self.sample)

    def try_once(self) -> None:
        """Raises as read_samples does."""
        place = self._manifest.place(self._index)
        digest = self._manifest.sample_digest(self._index)
        try:
            while True:
                sample = self._fetch(place)
                if digest is None or hashlib.sha256(sample).digest() == digest:
                    self.sample = sample
                    return
                if self._fresh:
                    break
                self._fresh = True
        except SourceFaltersError as falters:
            self._came = falters.came
            raise
        except OSError as error:
            why = f"cannot be read instead: {error.strerror or error}"
            raise self._error(place, why, "unavailable") from error
        except ValueError as error:
            raise self._error(place, str(error), "conflict") from None
        raise self._error(place, "has other bytes than were indexed", "data_loss")

    def _error(self, place: Place, why: str, code: str) -> SampleError:
        sample = f"sample {self._index} of {self._manifest.name}"
        where = self._source.where(place.path)
        return SampleError(
            f"{sample}: the sidecar does not answer, and {where} {why}", code, self._index
        )

    def _fetch(self, place: Place) -> bytes:
        """One read of the object, which has all members of the sample in a row."""
        members = self._manifest.members(self._index)
        begin = members[0].offset
        length = members[-1].offset + members[-1].size - begin
        came, self._came = self._came, b""
        data = b""
        if length or not place.size:
            data = self._source.fetch(place, begin, length, self._fresh, came)
        key = self._manifest.key(self._index)
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
