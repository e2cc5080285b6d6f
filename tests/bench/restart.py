"""A job whose ranks come back on other machines after two epochs: store reads of its first pass."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, accounting, deliveries, scene

RANKS = 4
SHARE = 0.3
EPOCHS_BEFORE = 2
EPOCHS_AFTER = 2  # the first one counts; the plan keeps for the second, as in any job
TOLERANCE = 0.01


def run(context: Context) -> list[Figure]:
    samples = 800 if context.quick else 16_000
    made = Made(samples, bytes_each=4096, machines=RANKS, share=SHARE)
    before = [Rank(rank, rank, RANKS, samples, epochs=10) for rank in range(RANKS)]
    after = [
        Rank((rank + 1) % RANKS, rank, RANKS, samples, EPOCHS_AFTER, first_epoch=EPOCHS_BEFORE)
        for rank in range(RANKS)
    ]
    with scene(context, made) as it:
        with Readers(it.cluster, before, context.folder / "before") as readers:
            readers.read(until=EPOCHS_BEFORE * before[0].batches_of_epoch())
            readers.kill()
        log_begin = it.store.log_size()
        with Readers(it.cluster, after, context.folder / "after") as readers:
            readers.read()
            times = readers.times()
        reads = it.reads(log_begin)
    delivered = deliveries(after, times)
    missed = accounting.find_misses(reads, delivered)
    first = sum(
        miss for miss, one in zip(missed, delivered, strict=True) if one.epoch == EPOCHS_BEFORE
    )
    return [
        Figure(
            "restart on other machines: store reads of the first pass / ((1-c) N)",
            first / ((1 - SHARE) * samples),
            "",
            f"{1 / (1 - SHARE):.4f} with nothing cached",
            at_most(1 + TOLERANCE),
        )
    ]
