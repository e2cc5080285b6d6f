"""The shared memory in which the sidecar lays samples, mapped for reading, and whose views are in use."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any, Callable

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


class _BatchRef(weakref.ref):  # type: ignore[type-arg]
    """Knows what to release when the last view of a batch has died."""

    __slots__ = ("release", "batch")
    release: Callable[[int], None]
    batch: int


# Every batch with views in use, by id. Keeps what releases it, and so the connection: the sidecar
# takes a batch back when that closes.
_live: dict[int, _BatchRef] = {}


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

    def lend(self, batch: int, release: Callable[[int], None]) -> memoryview:
        """A view of the whole arena. `release(batch)` is called when the last view that is made of it
        has died, wherever that is.
        """
        exporter = self.exporter()
        ref = _BatchRef(exporter, _on_batch_dead)
        ref.release = release
        ref.batch = batch
        _live[id(ref)] = ref
        return memoryview(exporter).toreadonly().cast("B")


def _on_batch_dead(ref: Any) -> None:
    # Called wherever the last view dies, also within this module's own code: takes no lock that
    # it would have to wait for.
    _live.pop(id(ref), None)
    ref.release(ref.batch)


def live_batches() -> int:
    """How many batches have views in use in this process; for tests."""
    return len(_live)


os.register_at_fork(after_in_child=_live.clear)  # the batches are the parent's to release
