"""What a scene of the demo shows in the end: a table, and a JSON file. picture.py draws it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import timing
from harness.errors import HarnessError
from timing import Times

MEGABYTE = 1_000_000
FILES = {"one": "demo", "sweep": "sweep"}  # what the files of a scene are called


@dataclass(frozen=True)
class Free:
    """The loop with its data in memory."""

    times: Times
    cores_used: float  # by all of its processes


@dataclass(frozen=True)
class Setup:
    scene: str
    samples: int
    total_bytes: int
    capacity_bytes: int  # what the plan may fill, over all nodes
    resident_bytes: int  # the same with the sidecars' arenas and the nodes' transit reserves
    epochs: int
    first_epoch: int  # that times are of, counted from 0
    jobs: int
    ranks: int  # of each job
    nodes: int
    cores: int  # of this machine
    step_seconds: float  # a sleep after each batch, which stands for the GPU's work
    free: Free
    source: str = "http"  # or "s3"

    @property
    def epoch_bytes(self) -> int:
        """That all jobs together read in an epoch."""
        return self.jobs * self.total_bytes

    @property
    def free_seconds(self) -> float:
        """Of an epoch when data is free."""
        return timing.epoch_seconds(self.free.times, self.first_epoch)

    @property
    def demand(self) -> float:
        """Bytes a second that all jobs read when data is free."""
        return self.epoch_bytes / self.free_seconds


@dataclass(frozen=True)
class PolicyResult:
    name: str
    store_share: float  # what the store delivers, as a share of Setup.demand
    times: Times
    epoch_link_bytes: float  # that the store sends in an epoch that counts, with HTTP's headers
    cores_used: float  # by all processes, in the epochs that count
    store_requests: int
    second_requests: int  # of these, for reads that were late: requests, but no misses
    store_bytes: int
    bound_bytes: int  # for capacity_bytes
    bound_all_bytes: int  # for resident_bytes
    planned_store_bytes: int  # by the plan, or by theory
    hit_ratio_predicted: float
    hit_ratio_observed: float
    hit_ratio_by_tenth: tuple[float, ...]  # of the epochs after the first
    requests_by_progress: tuple[int, ...]  # store requests so far, at each tenth of each epoch
    moved_bytes: int
    delivered: int
    mismatches: int
    order_equal: bool

    @property
    def label(self) -> str:
        return f"{self.name}, store {self.store_share:.2f}"


def time_factor(setup: Setup, result: PolicyResult) -> float:
    """An epoch that counts, in epochs of the free loop."""
    return timing.epoch_seconds(result.times, setup.first_epoch) / setup.free_seconds


def store_factor(setup: Setup, result: PolicyResult) -> float:
    return timing.store_factor(result.epoch_link_bytes, setup.epoch_bytes, result.store_share)


def limit_factor(setup: Setup, result: PolicyResult) -> float:
    """The time of an epoch beside the most that computing or the store takes."""
    return time_factor(setup, result) / timing.limit(store_factor(setup, result))


def _megabytes(count: float) -> str:
    return f"{count / MEGABYTE:,.1f}"


# (heading, what stands below it), in the order of the table.
Columns = tuple[tuple[str, Callable[[Setup, PolicyResult], str]], ...]
TIMES: Columns = (
    ("epoch/free", lambda s, r: f"{time_factor(s, r):.2f}"),
    ("bytes/store", lambda s, r: f"{store_factor(s, r):.2f}"),
    ("x limit", lambda s, r: f"{limit_factor(s, r):.2f}"),
    ("waiting", lambda s, r: f"{r.times.waiting_share:.1%}"),
)
READS: Columns = (
    ("requests", lambda s, r: f"{r.store_requests:,}"),
    ("read MB", lambda s, r: _megabytes(r.store_bytes)),
)
BOUND: Columns = (("read/bound", lambda s, r: f"{r.store_bytes / r.bound_bytes:.4f}"),)
HITS: Columns = (
    ("predicted", lambda s, r: f"{r.hit_ratio_predicted:.3f}"),
    ("hit ratio", lambda s, r: f"{r.hit_ratio_observed:.3f}"),
)
COLUMNS: dict[str, Columns] = {
    "one": (
        ("policy", lambda s, r: r.label),
        *TIMES,
        ("longest s", lambda s, r: f"{r.times.longest_wait_seconds:.2f}"),
        *READS,
        *BOUND,
        *HITS,
    ),
    "sweep": (
        ("policy", lambda s, r: r.name),
        ("seconds", lambda s, r: f"{sum(r.times.epoch_seconds):.1f}"),
        *TIMES,
        *READS,
        ("theory MB", lambda s, r: _megabytes(r.planned_store_bytes)),
        *BOUND,
        *HITS,
    ),
}


def table(setup: Setup, results: Sequence[PolicyResult]) -> str:
    columns = COLUMNS[setup.scene]
    rows = [[heading for heading, _ in columns]]
    rows += [[cell(setup, result) for _, cell in columns] for result in results]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        numbers = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join([*lines, "", *_notes(setup, results)])


def _notes(setup: Setup, results: Sequence[PolicyResult]) -> list[str]:
    notes = _notes_of_one(setup, results) if setup.jobs == 1 else _notes_of_sweep(setup, results)
    if setup.source == "s3":
        notes.append("The store is versitygw, a server of S3. Bytes are those of whole objects.")
    if any(result.store_bytes < result.bound_bytes for result in results):
        notes.append("Below 1: arenas and reserves hold samples, too.")
    if late := sum(result.second_requests for result in results):
        notes.append(
            f"{late:,} requests were second ones, for reads that were late. They are no misses."
        )
    return notes


def _notes_of_one(setup: Setup, results: Sequence[PolicyResult]) -> list[str]:
    return [
        f"{setup.ranks} ranks read {setup.samples:,} samples, {_megabytes(setup.total_bytes)} MB, "
        f"in each of {setup.epochs} epochs. {setup.nodes} nodes hold {_held(setup):.1%} of the bytes,",
        f"arenas and transit reserves {_beside(setup):.1%} more. A sleep of "
        f"{1000 * setup.step_seconds:.0f} ms a batch stands for the GPU.",
        f"With its data in memory, the loop takes {setup.free_seconds:.2f} s an "
        f"epoch: the ranks read {_megabytes(setup.demand)} MB/s, wait",
        f"{setup.free.times.waiting_share:.1%} of the time and use {_cores(setup, results)}.",
        "store: what the store delivers, as a share of these MB/s, over all connections together.",
        f"epoch/free: the time of {_counted(setup)}, in epochs of that loop. 1 is the limit "
        "of compute, and bytes/store that",
        "of the store: the bytes that it sends in an epoch, over its bandwidth and the time of that "
        "loop. x limit: beside the larger one.",
        "read/bound: beside the least that any cache of the nodes' size can read. Hit ratios count "
        "the first epoch, too.",
    ]


def _notes_of_sweep(setup: Setup, results: Sequence[PolicyResult]) -> list[str]:
    share = results[0].store_share
    return [
        f"{setup.jobs} jobs run at the same time. Each has its own seed, and reads "
        f"{setup.samples:,} samples, {_megabytes(setup.total_bytes)} MB, in each of "
        f"{setup.epochs} epochs.",
        f"They share a cache that holds {_held(setup):.1%} of the bytes, arena and transit reserve "
        f"{_beside(setup):.1%} more. A sleep of {1000 * setup.step_seconds:.0f} ms a batch stands",
        "for the GPU, which decodes the images, too.",
        f"With their data in memory, the jobs take {setup.free_seconds:.2f} s an epoch: together "
        f"they read {_megabytes(setup.demand)} MB/s, wait {setup.free.times.waiting_share:.1%} of the "
        "time",
        f"and use {_cores(setup, results)}.",
        f"The store delivers {share:.0%} of that, {_megabytes(share * setup.demand)} MB/s, over all "
        "connections together.",
        f"seconds: from the first job's begin to the last job's end. epoch/free: {_counted(setup)}, in "
        "epochs with the data in memory. 1 is the",
        "limit of compute, and bytes/store that of the store: the bytes that it sends in an epoch, "
        "over its bandwidth and the time of such an",
        "epoch. x limit: beside the larger one. theory, predicted: by optcache simulate, of jobs "
        "that take turns. read/bound: beside the least",
        "that any cache of that size can read, while jobs take turns as these did. Reads and hit "
        "ratios count the first epoch, too.",
    ]


def _counted(setup: Setup) -> str:
    """The first epoch finds an empty cache, so its bytes take the store longer than the mean says."""
    return "an epoch after the first" if setup.first_epoch else "an epoch"


def _held(setup: Setup) -> float:
    return setup.capacity_bytes / setup.total_bytes


def _beside(setup: Setup) -> float:
    return setup.resident_bytes / setup.total_bytes - _held(setup)


def _cores(setup: Setup, results: Sequence[PolicyResult]) -> str:
    most = max(result.cores_used for result in results)
    return f"{setup.free.cores_used:.2f} of {setup.cores} cores (with the cache at most {most:.2f})"


def write_json(setup: Setup, results: Sequence[PolicyResult], path: Path) -> None:
    document = asdict(setup) | {"policies": [asdict(result) for result in results]}
    path.write_text(json.dumps(_renamed(document, _camel), indent=2) + "\n")


def read_json(path: Path) -> tuple[Setup, list[PolicyResult]]:
    """What write_json has written."""
    try:
        return _results_of(_renamed(json.loads(path.read_text()), _snake))
    except (KeyError, TypeError) as error:
        raise HarnessError(
            f"{path} is of another version of the demo ({error}): run ./dev demo again"
        ) from error


def _results_of(document: dict[str, Any]) -> tuple[Setup, list[PolicyResult]]:
    policies, free = document.pop("policies"), document.pop("free")
    setup = Setup(**document, free=Free(_times(free.pop("times")), **free))
    return setup, [
        PolicyResult(times=_times(policy.pop("times")), **_with_tuples(policy))
        for policy in policies
    ]


def _times(document: dict[str, Any]) -> Times:
    return Times(**_with_tuples(document))


def _with_tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(it) if isinstance(it, list) else it for key, it in document.items()}


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {rename(key): _renamed(it, rename) for key, it in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renamed(it, rename) for it in value]
    return round(value, 6) if isinstance(value, float) else value


def _camel(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda match: "_" + match[0].lower(), name)
