"""A sample as a file, for code that opens what it reads by its path."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ._batches import Sample


@contextlib.contextmanager
def path_of(sample: Sample) -> Iterator[str]:
    """A path at which this process, and those that it starts, can open the sample's bytes until the
    context ends. The file lies in memory; its path has no extension and says nothing of the sample.
    """
    with open(os.memfd_create("optcache-sample"), "wb") as file:
        file.write(sample)
        file.flush()
        yield f"/proc/{os.getpid()}/fd/{file.fileno()}"
