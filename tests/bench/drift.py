"""Ranks that drift apart by 4 % of an epoch: what that costs in hit ratio."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, scene

RANKS = 4
SHARE = 0.3
EPOCHS = 4
LEAD = 0.04  # of an epoch, between the first and the last
LOSS = 0.001


def run(context: Context) -> list[Figure]:
    in_step = _hit_ratio(context, "in-step", 0.0)
    apart = _hit_ratio(context, "apart", LEAD)
    return [
        Figure(
            f"ranks {LEAD:.0%} of an epoch apart: hit ratio lost",
            in_step - apart,
            "",
            f"in step {in_step:.4f}, apart {apart:.4f}",
            at_most(LOSS),
        )
    ]


def _hit_ratio(context: Context, name: str, lead: float) -> float:
    samples = 800 if context.quick else 16_000
    made = Made(samples, bytes_each=4096, machines=RANKS, share=SHARE)
    ranks = [Rank(rank, rank, RANKS, samples, EPOCHS) for rank in range(RANKS)]
    behind = lead * ranks[0].batches_of_epoch()
    lags = [round(behind * rank / (RANKS - 1)) for rank in range(RANKS)]
    with scene(context.within(name), made) as it:
        log_begin = it.store.log_size()
        with Readers(it.cluster, ranks, context.folder / f"ranks-{name}") as readers:
            readers.read(lags=lags)
            readers.times()
        return 1 - len(it.reads(log_begin)) / (EPOCHS * samples)
