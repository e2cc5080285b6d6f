"""The shared memory in which the sidecar lays samples, mapped for reading."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_MAP_FAILED = ctypes.c_void_p(-1).value


class Arena:
    """A read-only mapping of `size` bytes of the memory file `fd`, which may be closed afterwards.

    The mapping lives as long as anything made by `exporter` is in use. Python's own mmap cannot
    serve here: nothing tells when the last view of one part of it has died.
    """

    def __init__(self, fd: int, size: int) -> None:
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        if address == _MAP_FAILED:
            code = ctypes.get_errno()
            raise OSError(code, f"map the sidecar's arena of {size} bytes: {os.strerror(code)}")
        self.size = size
        self._address: int = address
        self._type = type("ArenaBytes", (ctypes.c_char * size,), {})
        # Not at exit: views may still be in use then.
        weakref.finalize(self, _libc.munmap, address, size).atexit = False

    def exporter(self) -> Any:
        """A new object whose buffer is the whole arena. It dies with its last view."""
        made = self._type.from_address(self._address)  # type: ignore[attr-defined]
        made.arena = self  # not of the type, which is part of a cycle: it waits for the collector
        return made
