"""How long ranks waited for their batches, and for which faults."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from harness.chaos import CUT_OFF, STALLED, STORE, Span
from harness.checks import Records

# What a fault costs may come after its end: a process starts again, a read pauses between two tries.
AFTER_SECONDS = 5.0
# The user pages promise that no rank waits longer than this while the store answers.
PROMISED_SECONDS = 10.0
# A read that hangs, at the store or on its way, is tried again only after this time.
STALL_SECONDS = 20.0
HANGS = {STALLED, CUT_OFF}

Wait = tuple[float, float]  # when it ended, in seconds since 1970; how long it was


def all_waits(records: Records) -> list[Wait]:
    """Between two batches of a rank, longest first. All ranks wait for the last at each."""
    moments = [[step for epoch in epochs for step in epoch.steps] for epochs in records]
    found = [
        (later, later - earlier) for steps in moments for earlier, later in pairwise(steps)
    ]
    return sorted(found, key=lambda wait: -wait[1])


def _overlap(span: Span, wait: Wait, after: float) -> float:
    """Seconds of the wait that lie in the span, or so many seconds after it; negative: none."""
    ended, seconds = wait
    return min(span.ended + after, ended) - max(span.began, ended - seconds)


def table(spans: Sequence[Span], records: Records) -> str:
    """A line for each kind of fault. A wait counts for each that it fell into, or shortly after; for
    those of processes without the time in which the store was away beside them.
    """
    waits = all_waits(records)
    rows = [("fault", "count", "longest wait, s")]
    for kind in sorted({span.fault.kind for span in spans}):
        of_kind = [span for span in spans if span.fault.kind == kind]
        longest = max(
            (
                wait[1] if of_kind[0].fault.part == STORE else _answered(spans, wait)
                for wait in waits
                if _is_near(of_kind, wait)
            ),
            default=0.0,
        )
        rows.append((kind, str(len(of_kind)), f"{longest:.2f}"))
    beside = max((wait[1] for wait in waits if not _is_near(spans, wait)), default=0.0)
    rows.append(("no fault", "", f"{beside:.2f}"))
    over = sum(_answered(spans, wait) > PROMISED_SECONDS for wait in waits)
    return "\n".join(
        [
            *(f"{kind:<24} {count:>5} {longest:>16}" for kind, count, longest in rows),
            f"{len(records[0])} epochs; {over} waits over {PROMISED_SECONDS:.0f} s while the store answered",
        ]
    )


def _is_near(spans: Sequence[Span], wait: Wait) -> bool:
    return any(_overlap(span, wait, AFTER_SECONDS) >= 0 for span in spans)


def away(spans: Sequence[Span]) -> Iterator[Wait]:
    """The times in which the store was away, in order: none overlaps another."""
    times = sorted(
        (span.began, span.ended + (STALL_SECONDS if span.fault.how in HANGS else AFTER_SECONDS))
        for span in spans
        if span.fault.part == STORE
    )
    over = float("-inf")
    for began, ended in times:
        if ended > over:
            yield ended, ended - max(began, over)
            over = ended


def _answered(spans: Sequence[Span], wait: Wait) -> float:
    """Seconds of a wait in which the store answered, and nothing hung there."""
    ended, seconds = wait
    for until, lasted in away(spans):
        seconds -= max(min(until, ended) - max(until - lasted, ended - wait[1]), 0.0)
    return max(seconds, 0.0)


def limit_seconds(environment: Mapping[str, str] = os.environ) -> float:
    """The longest wait that a run may have; longer than promised only where a machine is shared."""
    return float(environment.get("OPTCACHE_CHAOS_WAIT_SECONDS") or PROMISED_SECONDS)


def too_long(spans: Sequence[Span], records: Records, limit: float) -> Iterator[str]:
    """A sentence for each wait of more than `limit` seconds while the store answered."""
    for wait in all_waits(records):
        if (answered := _answered(spans, wait)) > limit:
            near = [
                str(span.fault) for span in spans if _overlap(span, wait, AFTER_SECONDS) >= 0
            ]
            yield f"a rank waited {wait[1]:.1f} s, {answered:.1f} s of it while the store answered: {near}"
