"""What ranks of train.py wrote down, against what PyTorch and the files say. Nothing here does I/O.

A line of a rank's log is JSON, or something that another program said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from torch.utils.data.distributed import DistributedSampler


@dataclass
class Rank:
    rank: int = -1
    cached: bool = False
    done: bool = False
    began_at: float = 0.0  # of its process, in seconds of Unix time
    imported_at: float = 0.0  # seconds since the process began, as all times from here on
    met_at: float = 0.0  # when all ranks were connected
    batch_times: list[float] = field(default_factory=list)
    batch_sizes: list[int] = field(default_factory=list)
    epoch_times: list[float] = field(default_factory=list)
    # By epoch, in order of delivery.
    samples: list[list[int]] = field(default_factory=list)
    digests: list[list[str]] = field(default_factory=list)

    @property
    def first_batch_seconds(self) -> float:
        """From the beginning of the first epoch to its first batch."""
        return self.batch_times[0] - self.epoch_times[0]


def read_rank(log: str) -> Rank:
    rank = Rank()
    for line in log.splitlines():
        record = _parse(line)
        if record is None:
            continue
        event, at = record["event"], record["at"]
        if event == "imported":
            rank.rank, rank.cached, rank.imported_at = record["rank"], record["cached"], at
            rank.began_at = record.get("began", 0.0)
        elif event == "met":
            rank.met_at = at
        elif event == "epoch":
            rank.samples.append([])
            rank.digests.append([])
            rank.epoch_times.append(at)
        elif event == "batch":
            rank.samples[-1] += record["ids"]
            rank.digests[-1] += record["sha256"]
            rank.batch_times.append(at)
            rank.batch_sizes.append(len(record["ids"]))
        elif event == "done":
            rank.done = True
    return rank


def deliveries(ranks: Sequence[Rank]) -> list[int]:
    """The samples of all ranks as they came to them, as far as a batch's time tells."""
    found = []
    for rank in ranks:
        read = iter(sample for epoch in rank.samples for sample in epoch)
        for at, size in zip(rank.batch_times, rank.batch_sizes, strict=True):
            found += [(rank.began_at + at, next(read)) for _ in range(size)]
    return [sample for _, sample in sorted(found, key=lambda delivery: delivery[0])]


def _parse(line: str) -> Optional[dict[str, Any]]:
    if not line.startswith('{"event"'):
        return None
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None  # the rank was killed in the middle of it
    return record if isinstance(record, dict) else None


def wrong_bytes(ranks: Sequence[Rank], digests: Sequence[str]) -> Iterator[str]:
    for rank in ranks:
        for epoch, (samples, got) in enumerate(zip(rank.samples, rank.digests, strict=True)):
            bad = [sample for sample, digest in zip(samples, got, strict=True) if digest != digests[sample]]
            if bad:
                yield f"rank {rank.rank}, epoch {epoch}: {len(bad)} samples have wrong bytes: {bad[:5]}"


def wrong_orders(
    ranks: Sequence[Rank], samples: int, world: int, epochs: Optional[int], seed: int = 0
) -> Iterator[str]:
    """None lost, none doubled, none out of order: by PyTorch's own word.

    `epochs` None: the ranks still read, and so the last epoch of each is not read to its end.
    """
    if sorted(rank.rank for rank in ranks) != list(range(world)):
        yield f"the ranks are {sorted(rank.rank for rank in ranks)}, and should be {world}"
    for rank in ranks:
        if epochs is not None and (not rank.done or len(rank.samples) != epochs):
            yield f"rank {rank.rank} read {len(rank.samples)} of {epochs} epochs to the end"
            continue
        sampler: DistributedSampler[Any] = DistributedSampler(
            range(samples), num_replicas=world, rank=rank.rank, seed=seed
        )
        for epoch, got in enumerate(rank.samples):
            sampler.set_epoch(epoch)
            is_read = epochs is None and epoch == len(rank.samples) - 1
            if got != list(sampler)[: len(got) if is_read else None]:
                yield f"rank {rank.rank}, epoch {epoch}: not the order of DistributedSampler"


def digests_of(contents: Iterator[bytes]) -> list[str]:
    return [hashlib.sha256(content).hexdigest() for content in contents]


@dataclass(frozen=True)
class StoreReads:
    requests: int
    body_bytes: int


def store_reads(log: str, sizes: Mapping[str, int]) -> StoreReads:
    """What was read of samples: lines of nginx as containers/store sets them."""
    bodies = []
    for line in log.splitlines():
        fields = line.split(" ")
        if len(fields) < 6 or fields[1] != "GET" or fields[2] not in ("200", "206"):
            continue
        if " ".join(fields[4:-1]) in sizes:
            bodies.append(int(fields[3]))
    return StoreReads(len(bodies), sum(bodies))
