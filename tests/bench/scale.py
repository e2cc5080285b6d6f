"""What 1,000 nodes and 8 jobs on 10 M samples say: messages and bytes, counted at the real service.

Also how another revision of their CachePlan is rolled out, on a clock that goes on by what deriving a plan takes; and the
same on three nodes.
"""

from __future__ import annotations

from typing import Any

from bench.context import Context
from bench.figures import Figure

NODES = 1000
JOBS = 8
SAMPLES = 10_000_000
FEW = (3, 2, 1_281_167)  # nodes, jobs, samples
KINDS = ("report", "state", "inventory", "base")


def run(context: Context) -> list[Figure]:
    nodes, samples = (50, 100_000) if context.quick else (NODES, SAMPLES)
    context.say(f"{nodes} nodes")
    *phases, between = _simulate(context, nodes, JOBS, samples)
    figures = [figure for phase in phases for figure in _coordinator(phase, nodes)]
    moves, asked = between["moves"], between["asked"]
    figures += [
        Figure(
            "between nodes, a pass of all jobs: messages a node, no two in one",
            between["messages"],
            peer=f"{between['reads']:,} reads, {asked:,} asked elsewhere, {moves:,} moved",
        ),
        Figure("the same: without payloads", between["bytes"] / 1e6, "MB a node"),
    ]
    few, jobs, samples = FEW
    context.say(f"{few} nodes")
    *phases, _ = _simulate(context, few, jobs, samples)
    figures += [
        Figure(f"{few} nodes, {jobs} jobs, {samples:,} samples: {one.name}", one.value, one.unit, one.peer)
        for phase in phases
        if phase["writes"]
        for one in _rollout(phase)
    ]
    return figures


def _simulate(context: Context, nodes: int, jobs: int, samples: int) -> list[dict[str, Any]]:
    sizes = ["--nodes", str(nodes), "--jobs", str(jobs), "--samples", str(samples)]
    phases: list[dict[str, Any]] = context.ask("bench_scale", *sizes)
    return phases


def _coordinator(phase: dict[str, Any], nodes: int) -> list[Figure]:
    name, seconds = phase["phase"], phase["seconds"]
    messages = sum(phase[kind]["messages"] for kind in KINDS)
    sent = {kind: phase[kind]["bytes_out"] / 1e6 for kind in KINDS}
    got = sum(phase[kind]["bytes_in"] for kind in KINDS) / 1e6
    parts = ", ".join(f"{kind} {phase[kind]['messages']:,}" for kind in KINDS)
    return [
        Figure(f"{name}, {seconds:.0f} s: messages a node", messages / nodes, peer=parts),
        Figure(f"{name}: the coordinator gets", got, "MB", f"{got / seconds:.1f} MB/s"),
        Figure(
            f"{name}: the coordinator sends",
            sum(sent.values()),
            "MB",
            f"{phase['versions']} states of {phase['state_bytes'] / 1e3:.0f} kB, "
            f"a base of {phase['base_bytes'] / 1e6:.1f} MB: {sent['state']:,.0f} and "
            f"{sent['base']:,.0f} MB",
        ),
        Figure(f"{name}: the coordinator's CPU", phase["cpu_s"], "s", f"of {seconds:.0f} s"),
        *(_rollout(phase) if phase["writes"] else []),
    ]


def _rollout(phase: dict[str, Any]) -> list[Figure]:
    """Of a phase in which another revision is rolled out."""
    name, operator = phase["phase"], phase["operator_cpu_s"]
    return [
        Figure(f"{name}: time", phase["seconds"], "s", f"deriving a plan takes {phase['derive_s']:.2f} s"),
        Figure(f"{name}: the CachePlan's status is written", phase["writes"], "times"),
        Figure(f"{name}: CPU of the leader's looks", operator, "s", "one a second"),
    ]
