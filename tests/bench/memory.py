"""What node and sidecar take while a job reads, beside the limits that docs/memory.md names."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import Made, scene
from harness.cluster import Metrics
from harness.usage import BASE_BYTES, NODE_SHARE, SAMPLE_BYTES

MACHINES = 2
SHARE = 0.6
ARENA_BYTES = 64 << 20
EPOCHS = 3
LOOKS = 40  # at the processes' memory, during the job


def run(context: Context) -> list[Figure]:
    samples = 200 if context.quick else 3000
    made = Made(samples, bytes_each=110_000, machines=MACHINES, share=SHARE, arena=ARENA_BYTES)
    ranks = [Rank(rank, rank, MACHINES, samples, EPOCHS) for rank in range(MACHINES)]
    node = sidecar = 0.0
    with scene(context, made) as it:
        with Readers(it.cluster, ranks, context.folder / "ranks") as readers:
            for look in range(1, LOOKS + 1):
                readers.read(until=look * ranks[0].batches() // LOOKS)
                node = max(node, _most(it.cluster.node_metrics()))
                sidecar = max(sidecar, _most(it.cluster.sidecar_metrics()))
            readers.times()
    memory, program = made.budget.memory, samples * SAMPLE_BYTES + BASE_BYTES
    # The sidecar's overflow is not taken where samples fit the arena, nor counted here.
    return [
        _figure("node", node, NODE_SHARE * memory + program, f"memory {_mib(memory)}"),
        _figure("sidecar", sidecar, ARENA_BYTES + program, f"arena {_mib(ARENA_BYTES)}"),
    ]


def _figure(name: str, taken: float, limit: float, what: str) -> Figure:
    return Figure(
        f"{name}: resident memory / limit",
        taken / limit,
        "",
        f"{_mib(taken)} of {_mib(limit)}; {what}",
        at_most(1),
    )


def _most(processes: list[Metrics]) -> float:
    return max(metrics["process_resident_memory_bytes"] for metrics in processes)


def _mib(count: float) -> str:
    return f"{count / 2**20:.1f} MiB"
