"""What a sidecar has delivered of a dataset, and what that saved its store."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional, Union

from . import _protocol as protocol
from ._faults import BROKEN, RefusedError
from ._store import Store
from .dataset import Dataset


@dataclasses.dataclass(frozen=True)
class SidecarStats:
    """Counts since the sidecar started, of one dataset: all loaders, ranks and workers that read it
    through this sidecar. docs/user/what-it-saves.md has the definitions.

    Attributes:
        samples: samples that training processes got.
        bytes: bytes of those.
        hits: those samples that a node had, of this machine or of another one.
        hit_bytes: bytes of those.
        store_requests: requests that the sidecar sent to the store, with retries, second requests for
            late reads, and samples that no process has asked for yet.
        store_bytes: bytes that came for those.
        saved_requests: requests that the same reads would have sent without a cache, less
            `store_requests`. Below 0 while the sidecar reads ahead.
        saved_bytes: likewise of bytes.
        waited_seconds: time from each request of a process for samples to the answer, added up over
            all workers.
        saved_cost: the price of `saved_requests` and `saved_bytes` by `spec.cost` of the Dataset, in
            its currency; None if the Dataset has no prices.
    """

    samples: int
    bytes: int
    hits: int
    hit_bytes: int
    store_requests: int
    store_bytes: int
    saved_requests: int
    saved_bytes: int
    waited_seconds: float
    saved_cost: Optional[float] = None

    @property
    def hit_ratio(self) -> float:
        """The share of the samples that did not come from the store; 0 before the first sample."""
        return self.hits / self.samples if self.samples else 0.0


def added(stats: Sequence[Optional[SidecarStats]]) -> Optional[SidecarStats]:
    """Of several datasets together; None if one is. What was saved has a price if all have prices."""
    known = [dataclasses.astuple(it) for it in stats if it is not None]
    if len(known) < len(stats):
        return None
    sums: list[Any] = [None if None in column else sum(column) for column in zip(*known)]
    return SidecarStats(*sums)


def stats_of(dataset: Union[Dataset, Store]) -> Optional[SidecarStats]:
    """None: no sidecar serves the dataset now, or it is one of computed samples. Waits no longer than
    one read does.

    Raises OptcacheError if the sidecar serves another version of the dataset.
    """
    if isinstance(dataset, Store):
        return None
    for _ in range(2):  # a connection may have ended unnoticed
        try:
            channel = dataset.endpoint.channel()
            return _stats(channel.read_counts(dataset.handle_on(channel)))
        except RefusedError as refused:
            if refused.code in ("not_found", "unavailable"):
                return None
            raise
        except BROKEN as broken:
            dataset.endpoint.note(broken)
    return None


def _stats(reads: protocol.Reads) -> SidecarStats:
    hits = reads.node_samples + reads.peer_samples
    hit_bytes = reads.node_bytes + reads.peer_bytes
    return SidecarStats(
        samples=hits + reads.store_samples,
        bytes=hit_bytes + reads.store_sample_bytes,
        hits=hits,
        hit_bytes=hit_bytes,
        store_requests=reads.store_requests,
        store_bytes=reads.store_bytes,
        saved_requests=reads.uncached_requests - reads.store_requests,
        saved_bytes=reads.uncached_bytes - reads.store_bytes,
        waited_seconds=reads.wait_us / 1e6,
        saved_cost=reads.saved_cost,
    )
