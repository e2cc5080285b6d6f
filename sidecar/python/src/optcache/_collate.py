"""Raw samples on their way through a DataLoader.

A view shows memory of the process that has read it: another process is given its bytes, and so is a
batch that PyTorch collates, as a view is a sequence of numbers to it. For the same reason PyTorch
would make a list of numbers of a view in a batch that it pins: there, a view stays what it is.
"""

from __future__ import annotations

import functools
import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable

_LEAVES_VIEWS = "_optcache_leaves_views"


def _reduce(view: memoryview) -> tuple[type[bytes], tuple[bytes]]:
    return bytes, (bytes(view),)


def _list_of_bytes(batch: list[memoryview], *, collate_fn_map: Any = None) -> list[bytes]:
    return [bytes(view) for view in batch]


def let_torch_have_views() -> None:
    """Where PyTorch has been imported; cheap, for each read."""
    collate = sys.modules.get("torch.utils.data._utils.collate")
    by_type = getattr(collate, "default_collate_fn_map", None)
    if by_type is not None:
        by_type.setdefault(memoryview, _list_of_bytes)
    pins = sys.modules.get("torch.utils.data._utils.pin_memory")
    pin_memory = getattr(pins, "pin_memory", None)
    if pin_memory is not None and not hasattr(pin_memory, _LEAVES_VIEWS):
        # PyTorch has no map of types here; it calls itself for what is in a batch by this name.
        setattr(pins, "pin_memory", _leaving_views(pin_memory))


def _leaving_views(pin_memory: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(pin_memory)
    def pin(data: Any, *device: Any, **named: Any) -> Any:
        return data if isinstance(data, memoryview) else pin_memory(data, *device, **named)

    setattr(pin, _LEAVES_VIEWS, True)
    return pin


# Of queues and pipes between processes, also PyTorch's. They pickle on a thread of their own: what
# fails there never arrives, and the other side waits.
ForkingPickler.register(memoryview, _reduce)
