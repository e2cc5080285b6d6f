"""For SPDL: a source of samples that are read ahead.

    from optcache.spdl import Source
    source = Source(ds, DistributedRandomSampler(len(ds), rank=0, world_size=1), batch_size=32)
    pipeline = PipelineBuilder().add_source(source).pipe(decode).add_sink(2).build(num_threads=8)

It imports nothing of SPDL.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Optional

from ._announce import announced
from ._sidecar_stats import SidecarStats


class Source:
    """Batches of an announced order, with their samples: `(indices, samples)`. Each iteration is an
    epoch. Threads read some batches ahead, and the batches come in their order.

    `shuffle(epoch)` says which epoch comes next, as of SPDL's samplers. Without it, each iteration is the
    epoch after the one before.
    """

    def __init__(
        self,
        dataset: Any,
        order: Any,
        *,
        batch_size: int,
        num_threads: int = 4,
        name: str = "train",
        rank: int = 0,
        world_size: int = 1,
        epochs: Optional[int] = None,
    ) -> None:
        """Announces the order.

        Args:
            num_threads: this many batches are read at a time, and as many wait to be taken.
            dataset, order, batch_size, name, rank, world_size, epochs: as of optcache.announce.

        Raises as optcache.announce; ValueError, too, if `num_threads` is less than 1.
        """
        if num_threads < 1:
            raise ValueError(f"Source: num_threads={num_threads} is less than 1")
        self._dataset = dataset
        self._num_threads = num_threads
        self._under_way = 2 * num_threads  # batches
        self._order = announced(
            dataset, order, self._under_way, batch_size, name, rank, world_size, epochs
        )

    def shuffle(self, seed: int) -> None:
        """The next iteration reads the epoch of that number. A sampler's own seed is added."""
        self._order.epoch = seed

    def __iter__(self) -> Iterator[tuple[list[int], list[Any]]]:
        under_way: collections.deque[Future[tuple[list[int], list[Any]]]] = collections.deque()
        with ThreadPoolExecutor(self._num_threads, "optcache") as threads:
            try:
                for batch in self._order:
                    under_way.append(threads.submit(self._read, batch))
                    if len(under_way) == self._under_way:
                        yield under_way.popleft().result()
                while under_way:
                    yield under_way.popleft().result()
            finally:
                for one in under_way:
                    one.cancel()

    def _read(self, batch: list[int]) -> tuple[list[int], list[Any]]:
        whole = getattr(self._dataset, "__getitems__", None)  # not of one that `cached` has decorated
        samples = [self._dataset[index] for index in batch] if whole is None else whole(batch)
        return [int(index) for index in batch], samples

    def stats(self) -> Optional[SidecarStats]:
        """What the cache gave, as `loader.optcache.stats()` of a DataLoader."""
        return self._order.stats()

    def close(self) -> None:
        """Tells the sidecar that this order is no longer read."""
        self._order.close()
