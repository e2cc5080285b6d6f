"""An object of a dataset as an open file."""

from __future__ import annotations

import errno
import io
import os
from typing import Any, Optional

from .dataset import Dataset


class ObjectFile(io.BufferedReader):
    """What the file system's `open` returns. May be pickled: the copy opens the path again and
    stands at the same position.

    Attributes:
        fs: the file system.
        path: the path in it.
        details: what `fs.info` says of the path.
        size: in bytes.
    """

    def __init__(self, fs: Any, dataset: Dataset, details: dict[str, Any]) -> None:
        super().__init__(_RawObject(dataset, details))
        self.fs = fs
        self.path = details["name"]
        self.details = details
        self.size = details["size"]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _opened_again, (self.fs, self.path, self.tell())


def _opened_again(fs: Any, path: str, position: int) -> Any:
    file = fs.open(path, "rb")
    file.seek(position)
    return file


class _RawObject(io.RawIOBase):
    """The bytes where the sidecar has laid them. The first read asks for them, and they stay there
    until the file is closed.

    A view of a sample is good only in the process that asked for it. After a fork, a child asks for
    the sample again.
    """

    mode = "rb"

    def __init__(self, dataset: Dataset, details: dict[str, Any]) -> None:
        self.name = details["name"]
        self._dataset = dataset
        self._index: int = details["index"]
        self._size: int = details["size"]
        self._at = 0
        self._view: Optional[memoryview] = None
        self._pid = 0  # of the process that asked for the view

    def _sample(self) -> memoryview:
        if self._view is None or self._pid != os.getpid():
            self._view = memoryview(self._dataset[self._index])
            self._pid = os.getpid()
        return self._view

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, "cannot seek to a place before the beginning", self.name)
        self._at = base + offset
        return self._at

    def readinto(self, into: Any) -> int:
        part = self._sample()[self._at : self._at + len(into)]
        into[: len(part)] = part
        self._at += len(part)
        return len(part)

    def readall(self) -> bytes:
        part = bytes(self._sample()[self._at :])
        self._at += len(part)
        return part

    def close(self) -> None:
        self._view = None  # its memory is the sidecar's
        super().close()
