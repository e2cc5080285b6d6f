"""What samples on a disk cost: as segments, and as a plain file a sample, in the same run."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure, at_most

MEGABYTES = {110_000: 512, 10_000: 128}  # of samples of so many bytes on average
AMPLIFICATION = 1.05


def run(context: Context) -> list[Figure]:
    figures = []
    for mean, megabytes in MEGABYTES.items():
        result = context.ask(
            "bench_disk",
            *("--folder", str(context.folder)),
            *("--megabytes", str(16 if context.quick else megabytes)),
            *("--mean", str(mean)),
        )
        ours, files = result["segments"], result["files"]
        size = f"samples of {mean // 1000} KB"
        figures.append(
            Figure(
                f"{size}: bytes written / bytes of samples",
                ours["amplification"],
                goal=at_most(AMPLIFICATION),
                peer=f"a file a sample {files['amplification']:.3f}",
            )
        )
        for what, name, unit in (
            ("CPU to write a GB", "write_cpu_s_a_gb", "s"),
            ("CPU to read a GB", "read_cpu_s_a_gb", "s"),
            ("CPU to remove a GB", "remove_cpu_s_a_gb", "s"),
            ("written a second", "write_mb_a_s", "MB"),
            ("samples read a second, by 4 threads", "reads_a_s", ""),
        ):
            peer = f"a file a sample {files[name]:.4g}"
            figures.append(Figure(f"{size}: {what}", ours[name], unit, peer=peer))
    return figures
