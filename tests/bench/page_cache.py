"""Files that do not fit into memory beside the cache: a folder, and a control group with a limit.

The node holds SHARE of the files. The group has the memory that docs/memory.md gives the programs,
and some for the ranks: pages of files find room only in what those leave.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.context import Context
from bench.figures import Figure, at_least
from bench.readers import Rank, Readers
from bench.scene import Made
from harness.cgroup import MemoryGroup
from harness.cluster import Cluster, ClusterOptions
from harness.usage import BASE_BYTES, NODE_SHARE

SHARE = 0.75
SAMPLES = 16_000
QUICK_SAMPLES = 400
EPOCHS = 4  # the first one is cold
ARENA_BYTES = 32 << 20
RANKS_BYTES = 512 << 20  # PyTorch, `optcache up` and this process
KEEP_PAGES = "libbench_keep_pages.so"
TITLE = "files beyond memory"


@dataclass(frozen=True)
class Outcome:
    pace: float  # samples a second of an epoch's last tenth / its first tenth, in the worst warm epoch
    hits: float  # of the warm epochs
    cached: float  # pages of files at the end / bytes of the files


def run(context: Context) -> list[Figure]:
    made = Made(
        QUICK_SAMPLES if context.quick else SAMPLES,
        bytes_each=65_536,
        machines=1,
        share=SHARE,
        arena=ARENA_BYTES,
    )
    data = context.folder / "data"
    made.write(data)
    context.say(f"{made.samples} files of {made.bytes_each} B, a node with room for {SHARE:.0%}")
    ours = _measure(context.within("ours"), made, data)
    context.say("the same, and kept samples stay in the page cache")
    with _preloaded(context.programs / KEEP_PAGES):
        peer = _measure(context.within("peer"), made, data)
    return figures_of(ours, peer)


def figures_of(ours: Outcome, peer: Outcome) -> list[Figure]:
    """The peer leaves kept samples in the page cache."""

    def beside(value: float) -> str:
        return f"{value:.3f} if kept samples stay in the page cache"

    return [
        Figure(
            f"{TITLE}: pace of the last tenth / first tenth, worst warm epoch",
            ours.pace,
            peer=beside(peer.pace),
            goal=at_least(0.95),
        ),
        Figure(
            f"{TITLE}: hit ratio of the warm epochs",
            ours.hits,
            peer=beside(peer.hits),
            goal=at_least(SHARE - 0.01),
        ),
        Figure(f"{TITLE}: pages of files at the end / files", ours.cached, peer=beside(peer.cached)),
    ]


def outcome_of(
    epochs: Sequence[Sequence[float]], reads: float, cached_bytes: int, data_bytes: int
) -> Outcome:
    """Of when each sample of each epoch was there; `reads` of the store are those of all epochs."""
    samples, warm = len(epochs[0]), epochs[1:]
    return Outcome(
        pace=min(_pace(times) for times in warm),
        hits=1 - (reads - samples) / (len(warm) * samples),  # the cold epoch reads all
        cached=cached_bytes / data_bytes,
    )


def _pace(times: Sequence[float]) -> float:
    tenth = len(times) // 10
    return (times[tenth] - times[0]) / (times[-1] - times[-1 - tenth])


def _measure(context: Context, made: Made, data: Path) -> Outcome:
    _forget(data, made.paths)
    sockets = context.folder / "sockets"
    sockets.mkdir()
    options = ClusterOptions(
        programs=context.programs,
        base_url=str(data),
        listing="",
        machines=1,
        budget=made.budget,
        state=context.folder / "state",
        sockets=sockets,
    )
    rank = Rank(machine=0, rank=0, world=1, samples=made.samples, epochs=EPOCHS)
    limit = NODE_SHARE * made.budget.memory + ARENA_BYTES + 2 * BASE_BYTES + RANKS_BYTES
    with (
        MemoryGroup(int(limit)) as group,
        Cluster(options, "Optimal", context.folder) as cluster,
        Readers(cluster, [rank], context.folder / "ranks") as readers,
    ):
        readers.read()
        reads = cluster.metrics_of("sidecar-0")["optcache_store_reads_total"]
        cached = group.cached_bytes()
        (epochs,) = readers.times()
    return outcome_of(epochs, reads, cached, made.samples * made.bytes_each)


def _forget(root: Path, paths: Sequence[str]) -> None:
    """Takes the files out of the page cache, where they are since they were written or read."""
    for path in paths:
        with (root / path).open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def _preloaded(library: Path) -> Iterator[None]:
    """Into all programs that are started meanwhile."""
    os.environ["LD_PRELOAD"] = str(library)
    try:
        yield
    finally:
        del os.environ["LD_PRELOAD"]
