"""Several jobs on one dataset, each with a seed of its own: store reads beside those of an oracle
that knows how the jobs' reads interleave in truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.context import Context
from bench.figures import Figure, at_least, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, deliveries, scene
from harness.oracle import fewest_reads

SHARE = 0.3
MACHINES = 2
BEYOND_ORACLE = 1.02
OF_FOUR = 0.615


@dataclass(frozen=True)
class Jobs:
    name: str
    paces: Sequence[int]  # of each job: batches that it reads while a job of pace 1 reads one
    epochs: int = 6  # of a job of pace 1
    pass_seconds: float = 30.0  # of the fastest: of a dataset this small it would be over in four
    hits: float = 0.0  # the least hit ratio after the first epoch; 0: no goal


CASES = (
    Jobs("2 jobs", (1, 1)),
    Jobs("2 jobs, one twice as fast", (1, 2), epochs=4),
    Jobs("2 jobs, one ten times as fast", (1, 10), epochs=2, pass_seconds=10.0),
    Jobs("4 jobs", (1, 1, 1, 1), hits=OF_FOUR),
)


def run(context: Context) -> list[Figure]:
    return [figure for number, case in enumerate(CASES) for figure in _run(context, number, case)]


def _run(context: Context, number: int, jobs: Jobs) -> list[Figure]:
    samples = 800 if context.quick else 16_000
    made = Made(samples, bytes_each=4096, machines=MACHINES, share=SHARE)
    ranks = [
        Rank(machine, machine, MACHINES, samples, jobs.epochs * pace, stream=f"job-{job}", seed=job)
        for job, pace in enumerate(jobs.paces)
        for machine in range(MACHINES)
    ]
    paces = [pace for pace in jobs.paces for _ in range(MACHINES)]
    folder = f"jobs-{number}"
    with scene(context.within(folder), made) as it:
        log_begin = it.store.log_size()
        with Readers(it.cluster, ranks, context.folder / f"ranks-{number}") as readers:
            steps = ranks[0].batches_of_epoch() / max(paces)  # of a pass of the fastest
            seconds = 4 if context.quick else jobs.pass_seconds
            readers.read(paces=paces, step_seconds=seconds / steps)
            times = readers.times()
        store_reads = it.reads(log_begin)
    delivered = sorted(deliveries(ranks, times), key=lambda delivery: delivery.time)
    samples_read = (delivery.sample for delivery in delivered)
    sizes = [made.bytes_each] * samples
    program = context.programs / "optcache"
    oracle = fewest_reads(program, context.folder, samples_read, sizes, SHARE).requests
    figures = [
        Figure(
            f"{jobs.name}: store reads / those of MIN that knows how they interleave",
            len(store_reads) / oracle,
            "",
            f"{len(store_reads)} and {oracle}; of never evicting {_of_pin(samples, jobs)}",
            at_most(BEYOND_ORACLE),
        )
    ]
    if jobs.hits > 0:
        first = max(of_epoch[0][-1] for of_epoch in times)  # when the first epoch is over
        after = [delivery for delivery in delivered if delivery.time > first]
        missed = [read for read in store_reads if read[0] > first]
        figures.append(
            Figure(
                f"{jobs.name}: hit ratio after the first epoch",
                1 - len(missed) / len(after),
                "",
                f"{SHARE} at most if nothing is ever evicted",
                at_least(jobs.hits),
            )
        )
    return figures


def _of_pin(samples: int, jobs: Jobs) -> int:
    """Store reads of a cache that keeps the first samples that come, and never evicts."""
    passes = jobs.epochs * sum(jobs.paces)
    return passes * samples - int(SHARE * samples) * (passes - 1)
