"""From the log of the store and what the ranks wrote down to figures. Nothing here does I/O.

A *delivery* is one sample handed to one rank in one epoch. It was a *miss* if the store was read
for it: each GET belongs to the first delivery of that sample after it that has none yet, since the
sample may be staged for the next epoch before another rank has read it in this one. So a GET too
many makes a later delivery a miss, or, if none follows, is a store request all the same.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

TENTHS = 10


@dataclass(frozen=True)
class Request:
    time: float  # seconds since 1970, when the store had answered
    method: str
    status: int
    body_bytes: int
    path: str  # decoded, without the leading slash


@dataclass(frozen=True)
class Delivery:
    time: float  # seconds since 1970
    epoch: int
    place: float  # in the epoch: 0 is its beginning, 1 its end
    sample: int


@dataclass(frozen=True)
class StoreReads:
    requests: int
    body_bytes: int


Read = tuple[float, int, int]  # of the store: time, sample, bytes

ESCAPED = re.compile(rb"\\x([0-9A-F]{2})")


def parse_access_log(text: str) -> list[Request]:
    """Lines of `$msec $request_method $status $body_bytes_sent $uri`, as store.py sets it."""
    requests = []
    for line in text.splitlines():
        time, method, status, body_bytes, uri = line.split(" ", 4)
        raw = ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), uri.encode("ascii"))
        path = raw.decode("utf-8", "surrogateescape").removeprefix("/")
        requests.append(Request(float(time), method, int(status), int(body_bytes), path))
    return requests


def sample_reads(requests: Sequence[Request], paths: Sequence[str]) -> list[Read]:
    """Every GET of a sample, in order of time.

    HEADs ask for sizes while the dataset is indexed, and the listing is no sample: neither counts.
    """
    numbers = {path: number for number, path in enumerate(paths)}
    reads = [
        (request.time, numbers[request.path], request.body_bytes)
        for request in requests
        if request.method == "GET" and request.path in numbers
    ]
    return sorted(reads)


def store_reads(reads: Sequence[Read]) -> StoreReads:
    return StoreReads(len(reads), sum(body_bytes for _, _, body_bytes in reads))


def find_misses(reads: Sequence[Read], deliveries: Sequence[Delivery]) -> list[bool]:
    """Whether each delivery was a miss."""
    waiting: dict[int, list[tuple[float, int]]] = {}  # by sample: (time, index) in order of time
    for index, delivery in enumerate(deliveries):
        waiting.setdefault(delivery.sample, []).append((delivery.time, index))
    for times in waiting.values():
        times.sort()
    missed = [False] * len(deliveries)
    for time, sample, _ in sorted(reads):
        times = waiting.get(sample, [])
        first = bisect.bisect_left(times, (time, -1))
        if first < len(times):
            missed[times.pop(first)[1]] = True
    return missed


def hit_ratio_by_tenth(deliveries: Sequence[Delivery], missed: Sequence[bool]) -> list[float]:
    """Hit ratio by tenth of the epoch, over the epochs after the first, which finds an empty cache.

    With a single epoch, of that one.
    """
    warm = 1 if any(delivery.epoch > 0 for delivery in deliveries) else 0
    hits, counts = [0] * TENTHS, [0] * TENTHS
    for delivery, miss in zip(deliveries, missed, strict=True):
        if delivery.epoch < warm:
            continue
        tenth = min(int(delivery.place * TENTHS), TENTHS - 1)
        counts[tenth] += 1
        hits[tenth] += not miss
    return [hit / count if count else 0.0 for hit, count in zip(hits, counts, strict=True)]


def requests_by_progress(
    reads: Sequence[Read], deliveries: Sequence[Delivery], epochs: int
) -> list[int]:
    """Store requests so far at each tenth of each epoch's deliveries: 10 * epochs + 1 counts."""
    delivered = sorted(delivery.time for delivery in deliveries)
    requested = [time for time, _, _ in reads]
    steps = TENTHS * epochs
    counts = [0]
    for step in range(1, steps):
        until = delivered[max(len(delivered) * step // steps - 1, 0)]
        counts.append(bisect.bisect_right(requested, until))
    return [*counts, len(requested)]


def bound_bytes(total_bytes: int, cached_bytes: int, epochs: int) -> int:
    """The least that any cache of that size reads in so many shuffled epochs.

    All of it once, then for each epoch what did not fit at the end of the one before: a sample
    that is not resident there has a store read between its uses before and after.
    """
    return total_bytes + (epochs - 1) * max(total_bytes - cached_bytes, 0)


def predicted_hit_ratio(policy: str, cached_share: float, epochs: int) -> float:
    """Closed forms for one job that shuffles samples of one size, with c the share that fits.

    Once warm: a kept subset hits c, whether planned (Optimal) or what came first (Pin); LRU hits
    c + (1-c) ln(1-c), since a sample at places u and v of two epochs has reuse distance
    1 - u (1-v); None hits nothing. The first epoch misses all, so E epochs have (E-1)/E of that.
    """
    c = min(cached_share, 1.0)
    warm = {
        "Optimal": c,
        "Pin": c,
        "LRU": c + (1 - c) * math.log(1 - c) if c < 1 else 1.0,
        "None": 0.0,
    }[policy]
    return warm * (epochs - 1) / epochs
