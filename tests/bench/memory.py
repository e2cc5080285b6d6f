"""What node and sidecar take while a job reads, beside the sum of what they are allowed.

  node:     capacity and 10 % of it for index and allocator, transit reserve, manifest, plan
  sidecar:  arena, manifest

and for each its base: what the process takes before anybody reads.
"""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most
from bench.readers import Rank, Readers
from bench.scene import RESERVE_SHARE, Made, scene
from harness.cluster import Metrics

MACHINES = 2
SHARE = 0.6
ARENA_BYTES = 64 << 20
EPOCHS = 3
LOOKS = 40  # at the processes' memory, during the job
OVERHEAD = 0.10  # of the capacity
PLAN_BYTES = 22  # a sample, beside the manifest


def run(context: Context) -> list[Figure]:
    samples = 200 if context.quick else 3000
    made = Made(samples, bytes_each=110_000, machines=MACHINES, share=SHARE, arena=ARENA_BYTES)
    ranks = [Rank(rank, rank, MACHINES, samples, EPOCHS) for rank in range(MACHINES)]
    with scene(context, made) as it:
        base_node, base_sidecar = _most(it.cluster.node_metrics()), _most(it.cluster.sidecar_metrics())
        node = sidecar = 0.0
        with Readers(it.cluster, ranks, context.folder / "ranks") as readers:
            for look in range(1, LOOKS + 1):
                readers.read(until=look * ranks[0].batches() // LOOKS)
                node = max(node, _most(it.cluster.node_metrics()))
                sidecar = max(sidecar, _most(it.cluster.sidecar_metrics()))
            readers.times()
    memory = made.budget.memory
    node_budget = memory * (1 + OVERHEAD + RESERVE_SHARE) + samples * PLAN_BYTES + base_node
    sidecar_budget = made.budget.arena + base_sidecar
    return [
        _figure("node", node, node_budget, base_node, f"capacity {_mib(memory)}"),
        _figure("sidecar", sidecar, sidecar_budget, base_sidecar, f"arena {_mib(made.budget.arena)}"),
    ]


def _figure(name: str, taken: float, budget: float, base: float, what: str) -> Figure:
    return Figure(
        f"{name}: resident memory / budget",
        taken / budget,
        "",
        f"{_mib(taken)} of {_mib(budget)}; {what}, base {_mib(base)}",
        at_most(1),
    )


def _most(processes: list[Metrics]) -> float:
    return max(metrics["process_resident_memory_bytes"] for metrics in processes)


def _mib(count: float) -> str:
    return f"{count / 2**20:.1f} MiB"
