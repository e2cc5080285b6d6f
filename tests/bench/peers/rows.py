"""From what was measured of each way to rows and figures. Nothing here does I/O."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.figures import Figure, Goal, at_most
from bench.peers.crew import Pass
from bench.peers.loaders import SHARD_LOADERS

OURS = "optcache"
OURS_TAR = "optcache, tar"
CPU_PEER = "s3torchconnector"
# HTTP's headers pass the link, too: .6 kB an answer, beside 112 kB of data.
HEADERS = 1.01
LATE_AT_MOST = 1.03
CORES = 2
CPU_AT_MOST = 0.6  # of them, so that a loop is not limited by the processors
ONCE = 1.0005  # 1.000: of two that ask at nearly one time either may be first


@dataclass(frozen=True)
class Row:
    """One way in one setting."""

    way: str
    setting: str
    share: float  # of the data that may be kept
    compute: float  # seconds of an epoch; 0: the loop only reads
    samples: int
    data_bytes: int
    passes: Sequence[Pass]
    peak_cache: int
    hedges: int = 0  # second requests for late reads, among the GETs
    rate: float = 0.0  # bytes a second of the link; 0: any

    @property
    def bytes_later(self) -> float:
        """Bytes an epoch after the first / data set; what is more than all data once is later."""
        read = sum(one.counts.bytes for one in self.passes)
        return (read / self.data_bytes - 1) / (len(self.passes) - 1)

    @property
    def gets(self) -> int:
        return sum(one.counts.gets for one in self.passes)

    @property
    def gets_later(self) -> float:
        """GETs beyond one a sample, hedges apart: those of later epochs, whenever they are made."""
        return self.gets - self.hedges - self.samples

    @property
    def seconds_later(self) -> float:
        """Of an epoch after the first: the median."""
        return statistics.median(one.seconds for one in self.passes[1:])

    @property
    def cpu_first(self) -> float:
        """CPU seconds a GB of the epoch that finds nothing cached."""
        return self.passes[0].counts.cpu_seconds / (self.data_bytes / 1e9)

    @property
    def cpu_later(self) -> float:
        """CPU seconds of an epoch after the first."""
        return statistics.fmean(one.counts.cpu_seconds for one in self.passes[1:])

    @property
    def cpu_later_a_gb(self) -> float:
        return self.cpu_later / (self.data_bytes / 1e9)

    @property
    def cpu_share(self) -> float:
        """Of CORES cores, in the epochs after the first."""
        later = self.passes[1:]
        used = sum(one.counts.cpu_seconds for one in later)
        return used / (CORES * sum(one.seconds for one in later))

    @property
    def link_seconds(self) -> float:
        """In which the link carries what an epoch after the first reads."""
        return self.bytes_later * self.data_bytes / self.rate

    @property
    def cache(self) -> float:
        """The most that was kept / data set."""
        return self.peak_cache / self.data_bytes

    def words(self) -> str:
        epochs = " ".join(f"{one.seconds:.2f}" for one in self.passes)
        requests = sum(one.counts.requests for one in self.passes)
        return (
            f"{self.setting}: {self.way}: bytes later {self.bytes_later:.3f}, GETs {self.gets} "
            f"({self.hedges} hedges) of {requests} requests, epochs {epochs} s, "
            f"CPU {self.cpu_first:.2f} first, "
            f"{self.cpu_later_a_gb:.2f} s/GB later, cache {self.cache:.3f}"
        )


def figures_of(rows: Sequence[Row]) -> list[Figure]:
    figures: list[Figure] = []
    for setting in dict.fromkeys(row.setting for row in rows):
        of_setting = {row.way: row for row in rows if row.setting == setting}
        if OURS in of_setting:
            figures += _figures_of_setting(setting, of_setting)
    return figures


def _figures_of_setting(setting: str, rows: dict[str, Row]) -> list[Figure]:
    ours = rows[OURS]
    peers = [row for way, row in rows.items() if way != OURS]

    def figure(
        what: str, value: Callable[[Row], float], unit: str = "", goal: Goal | None = None
    ) -> Figure:
        others = "; ".join(f"{row.way} {value(row):.3g}" for row in peers)
        return Figure(f"{setting}: {what}", value(ours), unit, others, goal)

    figures = [
        figure(
            "bytes an epoch after the first / data set",
            lambda row: row.bytes_later,
            goal=at_most((1 - ours.share) * HEADERS + (HEADERS - 1)),
        ),
        figure("GETs, all epochs / samples", lambda row: row.gets / row.samples),
        figure(
            "most bytes kept / data set",
            lambda row: row.cache,
            goal=at_most(ours.share * 1.02),
        ),
    ]
    if ours.compute:
        late = at_most(LATE_AT_MOST)
        figures += [
            figure("epoch after the first / compute", lambda row: row.seconds_later / row.compute, goal=late),
            figure("compute of an epoch", lambda row: row.compute, "s"),
            figure("bytes of an epoch after the first / bandwidth", lambda row: row.link_seconds, "s"),
            figure(
                "epoch after the first / the larger of these two",
                lambda row: row.seconds_later / max(row.compute, row.link_seconds),
                goal=late,
            ),
            figure(
                f"CPU of {CORES} cores, epochs after the first",
                lambda row: row.cpu_share,
                goal=at_most(CPU_AT_MOST),
            ),
        ]
        return figures
    shards = [row.seconds_later for way, row in rows.items() if way in SHARD_LOADERS]
    beside = at_most(min(shards)) if shards and "ms" in setting else None
    figures.append(figure("an epoch after the first", lambda row: row.seconds_later, "s", beside))
    cpu = rows.get(CPU_PEER)
    figures += [
        figure(
            "CPU a GB, first epoch",
            lambda row: row.cpu_first,
            "s",
            # Later ones of a peer that keeps nothing, so that starting its workers is no part of it.
            at_most(cpu.cpu_later_a_gb) if cpu else None,
        ),
        figure(
            "CPU a GB, epochs after the first",
            lambda row: row.cpu_later_a_gb,
            "s",
            at_most(cpu.cpu_later_a_gb) if cpu else None,
        ),
    ]
    if ours.share >= 1:
        figures.append(figure("GETs after the first epoch, hedges apart", _later, goal=at_most(0)))
    return figures


def _later(row: Row) -> float:
    return row.gets_later


@dataclass(frozen=True)
class Cold:
    """Epochs of which the first finds nothing cached."""

    gets: int  # of the first
    later: int
    hedges: int
    samples: int


def cold_figures(jobs: Cold, whole: Cold, count: int, ranks: int) -> list[Figure]:
    return [
        _cold_figure(f"{count} jobs of own seeds started together cold", jobs, count),
        Figure("the same jobs, their last epoch: GETs a sample", jobs.later / jobs.samples),
        _cold_figure(f"{ranks} ranks without a sampler, each reads all", whole, ranks),
    ]


def _cold_figure(what: str, cold: Cold, readers: int) -> Figure:
    return Figure(
        f"{what}: GETs a sample, hedges apart",
        (cold.gets - cold.hedges) / cold.samples,
        "",
        f"with {cold.hedges} hedges {cold.gets / cold.samples:.4f}; {readers} each on its own",
        at_most(ONCE),
    )
