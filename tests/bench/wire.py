"""Node to sidecar: processor time of both sides, beside memcached's."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most


def run(context: Context) -> list[Figure]:
    sizes = ["--gigabytes", "0.2"] if context.quick else ["--gigabytes", "1", "--rounds", "9"]
    results = {
        (result["name"], result["batch"]): result["cpu_s_gb"]
        for result in context.ask("bench_wire", "--output", "json", *sizes)
    }
    figures = []
    for batch in sorted({batch for _, batch in results}):
        ours, theirs = results["optcache", batch], results["memcached", batch]
        figures.append(
            Figure(
                f"wire: CPU / memcached's, {batch} samples a request",
                ours / theirs,
                "",
                f"optcache {ours:.3f} s/GB with CRC, memcached {theirs:.3f} without",
                at_most(1.0),
            )
        )
    return figures
