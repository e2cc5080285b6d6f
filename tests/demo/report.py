"""What the demo shows in the end: a table, demo.json and demo.png."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Setup:
    samples: int
    total_bytes: int
    capacity_bytes: int  # what the plan may fill, over all nodes
    resident_bytes: int  # the same with the sidecars' arenas and the nodes' transit reserves
    epochs: int
    ranks: int
    nodes: int


@dataclass(frozen=True)
class PolicyResult:
    name: str
    store_requests: int
    store_bytes: int
    bound_bytes: int  # for capacity_bytes
    bound_all_bytes: int  # for resident_bytes
    planned_store_bytes: int
    hit_ratio_predicted: float
    hit_ratio_observed: float
    hit_ratio_by_tenth: tuple[float, ...]  # of the epochs after the first
    requests_by_progress: tuple[int, ...]  # store requests so far, at each tenth of each epoch
    moved_bytes: int
    epoch_seconds: tuple[float, ...]
    delivered: int
    mismatches: int
    order_equal: bool


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:,.1f}"


# (heading, what stands below it), in the order of the table.
COLUMNS: tuple[tuple[str, Callable[[PolicyResult], str]], ...] = (
    ("policy", lambda r: r.name),
    ("store requests", lambda r: f"{r.store_requests:,}"),
    ("read MB", lambda r: _megabytes(r.store_bytes)),
    ("bound MB", lambda r: _megabytes(r.bound_bytes)),
    ("read/bound", lambda r: f"{r.store_bytes / r.bound_bytes:.4f}"),
    ("hits predicted", lambda r: f"{r.hit_ratio_predicted:.3f}"),
    ("observed", lambda r: f"{r.hit_ratio_observed:.3f}"),
    ("first tenth", lambda r: f"{r.hit_ratio_by_tenth[0]:.3f}"),
    ("last tenth", lambda r: f"{r.hit_ratio_by_tenth[-1]:.3f}"),
    ("moved MB", lambda r: _megabytes(r.moved_bytes)),
    ("epoch s", lambda r: f"{sum(r.epoch_seconds) / len(r.epoch_seconds):.1f}"),
)


def table(setup: Setup, results: Sequence[PolicyResult]) -> str:
    rows = [[heading for heading, _ in COLUMNS]]
    rows += [[cell(result) for _, cell in COLUMNS] for result in results]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = []
    for row in rows:
        numbers = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join([*lines, "", *_notes(setup, results)])


def _notes(setup: Setup, results: Sequence[PolicyResult]) -> list[str]:
    share = setup.capacity_bytes / setup.total_bytes
    beside = setup.resident_bytes / setup.total_bytes - share
    notes = [
        f"{setup.samples:,} samples, {_megabytes(setup.total_bytes)} MB, read by {setup.ranks} "
        f"ranks in {setup.epochs} epochs. {setup.nodes} nodes hold {share:.1%} of it, arenas and",
        f"transit reserves {beside:.1%} more. Bound: the least that any cache of the nodes' size "
        "can read.",
        "Hit ratios count the cold first epoch; those by tenth of the epoch do not.",
    ]
    if any(result.store_bytes < result.bound_bytes for result in results):
        notes.append("Below 1: arenas and reserves hold samples over an epoch's end, too.")
    return notes


def write_json(setup: Setup, results: Sequence[PolicyResult], path: Path) -> None:
    document: dict[str, Any] = {
        "samples": setup.samples,
        "totalBytes": setup.total_bytes,
        "capacityBytes": setup.capacity_bytes,
        "residentBytes": setup.resident_bytes,
        "epochs": setup.epochs,
        "ranks": setup.ranks,
        "nodes": setup.nodes,
        "policies": [_policy_json(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def _policy_json(result: PolicyResult) -> dict[str, Any]:
    return {
        "name": result.name,
        "storeRequests": result.store_requests,
        "storeBytes": result.store_bytes,
        "boundBytes": result.bound_bytes,
        "boundAllBytes": result.bound_all_bytes,
        "plannedStoreBytes": result.planned_store_bytes,
        "hitRatioPredicted": round(result.hit_ratio_predicted, 6),
        "hitRatioObserved": round(result.hit_ratio_observed, 6),
        "hitRatioFirstTenth": round(result.hit_ratio_by_tenth[0], 6),
        "hitRatioLastTenth": round(result.hit_ratio_by_tenth[-1], 6),
        "movedBytes": result.moved_bytes,
        "epochSeconds": [round(seconds, 3) for seconds in result.epoch_seconds],
        "delivered": result.delivered,
        "mismatches": result.mismatches,
        "orderEqual": result.order_equal,
    }
