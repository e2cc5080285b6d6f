"""What 1,000 nodes and 8 jobs on 10 M samples say: messages and bytes, counted at the real service."""

from __future__ import annotations

from typing import Any

from bench.context import Context
from bench.figures import Figure

NODES = 1000
JOBS = 8
SAMPLES = 10_000_000
KINDS = ("report", "state", "inventory", "base")


def run(context: Context) -> list[Figure]:
    nodes, samples = (50, 100_000) if context.quick else (NODES, SAMPLES)
    sizes = ["--nodes", str(nodes), "--jobs", str(JOBS), "--samples", str(samples)]
    *phases, between = context.ask("bench_scale", *sizes)
    figures = [figure for phase in phases for figure in _coordinator(phase, nodes)]
    moves, asked = between["moves"], between["asked"]
    return [
        *figures,
        Figure(
            "between nodes, a pass of all jobs: messages a node, no two in one",
            between["messages"],
            peer=f"{between['reads']:,} reads, {asked:,} asked elsewhere, {moves:,} moved",
        ),
        Figure("the same: without payloads", between["bytes"] / 1e6, "MB a node"),
    ]


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
    ]
