"""Four streams on four machines that start together, nothing cached: one store read a sample."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, scene

STREAMS = 4
ONCE = 1.0005  # 1.000: of two streams that read a sample at nearly one time either may be first


def run(context: Context) -> list[Figure]:
    samples = 400 if context.quick else 32_000
    made = Made(samples, bytes_each=2048, machines=STREAMS, share=1.0)
    ranks = [
        Rank(machine, 0, 1, samples, epochs=1, stream=f"stream-{machine}", seed=machine)
        for machine in range(STREAMS)
    ]
    with scene(context, made) as it:
        log_begin = it.store.log_size()
        with Readers(it.cluster, ranks, context.folder / "ranks") as readers:
            readers.read()
            readers.times()
        reads = it.reads(log_begin)
    return [
        Figure(
            f"{STREAMS} streams started together cold: store reads a sample",
            len(reads) / samples,
            "",
            f"{STREAMS}.0000 each on its own",
            at_most(ONCE),
        )
    ]
