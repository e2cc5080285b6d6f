"""What a list of ten million samples costs."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most

BYTES_A_SAMPLE = 64.0


def run(context: Context) -> list[Figure]:
    samples = 200_000 if context.quick else 10_000_000
    result = context.ask("bench_manifest", "--samples", str(samples))
    size = f"{samples / 1e6:g} M samples"
    return [
        Figure(
            f"manifest of {size}: memory a sample",
            result["bytes_a_sample"],
            "B",
            goal=at_most(BYTES_A_SAMPLE),
        ),
        Figure(f"manifest of {size}: build", result["build_s"], "s"),
        Figure(f"manifest of {size}: parse and check", result["parse_s"], "s"),
        Figure(f"manifest of {size}: path of a sample", result["path_ns"], "ns"),
    ]
