"""A measured figure, its goal and what became of it. Nothing here does I/O."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Goal:
    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}"


def at_most(limit: float) -> Goal:
    return Goal(limit)


def at_least(limit: float) -> Goal:
    return Goal(limit, at_least=True)


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str = ""  # empty: a ratio or a count
    peer: str = ""  # the same of something else, in the same run
    goal: Optional[Goal] = None
    interval: Optional[tuple[float, float]] = None  # where the value lies with CONFIDENCE

    @property
    def verdict(self) -> str:
        """`not resolved`: the goal lies inside the interval, or there is no value."""
        if self.goal is None:
            return ""
        low, high = self.interval or (self.value, self.value)
        best, worst = (high, low) if self.goal.at_least else (low, high)
        if self._reaches_goal(worst):
            return "met"
        if self._reaches_goal(best) or math.isnan(best):
            return "not resolved"
        return "not met"

    def _reaches_goal(self, value: float) -> bool:
        assert self.goal is not None
        return value >= self.goal.limit if self.goal.at_least else value <= self.goal.limit

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "value": None if math.isnan(self.value) else self.value,
            "unit": self.unit,
            "interval": self.interval,
            "peer": self.peer,
            "goal": str(self.goal or ""),
            "verdict": self.verdict,
        }


def ratio_interval(
    ours: Sequence[float], theirs: Sequence[float]
) -> tuple[float, tuple[float, float]]:
    """The ratio of two quantities measured in turns, pair by pair: its mean, and an interval.

    Of the logarithms of the pairs' ratios, by Student's t; there must be three pairs at least.
    """
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    mean = statistics.fmean(logs)
    half = _student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), (math.exp(mean - half), math.exp(mean + half))


def _student_t(freedom: int) -> float:
    """The two-sided quantile for CONFIDENCE: Fisher's expansion, within .01 from 5 degrees on."""
    z = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return math.fsum(term / float(freedom**power) for power, term in enumerate(terms))


def number(value: float) -> str:
    """Four decimals below ten, three digits above: as much as a figure means."""
    if math.isnan(value):
        return "-"
    if abs(value) < 10:
        return f"{value:.4f}"
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


HEADINGS = ("figure", "value", "unit", "95 % interval", "goal", "verdict", "peer in the same run")
NUMBERS = (1, 3)  # columns that are aligned at the right


def table(figures: Sequence[Figure]) -> str:
    rows: list[Sequence[str]] = [HEADINGS]
    rows += [
        (
            figure.name,
            number(figure.value),
            figure.unit,
            " to ".join(map(number, figure.interval or ())),
            str(figure.goal or ""),
            figure.verdict,
            figure.peer,
        )
        for figure in figures
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if column in NUMBERS else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
