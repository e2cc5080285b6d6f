"""Raw samples on their way through a DataLoader.

A view shows memory of the process that has read it: another process is given its bytes, and so is a
batch that PyTorch collates, as a view is a sequence of numbers to it.
"""

from __future__ import annotations

import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any


def _reduce(view: memoryview) -> tuple[type[bytes], tuple[bytes]]:
    return bytes, (bytes(view),)


def _list_of_bytes(batch: list[memoryview], *, collate_fn_map: Any = None) -> list[bytes]:
    return [bytes(view) for view in batch]


def let_torch_collate_views() -> None:
    """Where PyTorch has been imported; cheap, for each read."""
    collate = sys.modules.get("torch.utils.data._utils.collate")
    by_type = getattr(collate, "default_collate_fn_map", None)
    if by_type is not None:
        by_type.setdefault(memoryview, _list_of_bytes)


# Of queues and pipes between processes, also PyTorch's. They pickle on a thread of their own: what
# fails there never arrives, and the other side waits.
ForkingPickler.register(memoryview, _reduce)
