"""What a process holds: memory, descriptors, arenas. From /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Limits of docs/memory.md.
NODE_SHARE = 1.17  # of its memory: 10 % for index and allocator, a sixteenth for what is not charged
SAMPLE_BYTES = 100  # of a sample: manifest and plan
BASE_BYTES = 32 << 20  # of a node or a sidecar without samples


@dataclass(frozen=True)
class Usage:
    own_bytes: int  # resident, without what is shared
    peak_bytes: int  # the most that ever was resident, with what is shared
    descriptors: int  # without those of batches that PyTorch hands over
    arenas: int  # mappings of memory files

    def __str__(self) -> str:
        return f"{self.own_bytes >> 20} MiB, {self.descriptors} descriptors, {self.arenas} arenas"


def usage_of(pid: int) -> Usage:
    """OSError if it has ended."""
    folder = Path(f"/proc/{pid}")
    status = (folder / "status").read_text()
    return Usage(
        own_bytes=_kilobytes(status, "RssAnon"),
        peak_bytes=_kilobytes(status, "VmHWM"),
        descriptors=sum(not _is_batch(path) for path in (folder / "fd").iterdir()),
        arenas=(folder / "maps").read_text().count("/memfd:"),
    )


def _is_batch(descriptor: Path) -> bool:
    """Whether PyTorch's workers hand a batch over in it: how many there are depends on the main process."""
    try:
        return os.readlink(descriptor).startswith("/dev/shm/torch_")
    except OSError:
        return True  # it has been closed


def _kilobytes(status: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise ProcessLookupError(f"no {name}: the process has ended")
    return int(found[1]) << 10


def processes_with(word: str) -> Iterator[int]:
    """Those that have it in their command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word in (folder / "cmdline").read_bytes().decode(errors="replace"):
                yield int(folder.name)
        except OSError:
            continue  # it has ended
