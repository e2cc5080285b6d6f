"""A picture of each scene: the time that each policy needs, what it reads from the store, and its hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import timing

matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402  (the backend must be chosen first)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter  # noqa: E402
from report import PolicyResult, Setup, store_factor, time_factor  # noqa: E402

# Colours that differ for colour-blind readers as well. Pin is dashed and in front, since it may lie
# on Optimal.
STYLES = {
    "Optimal": {"color": "#0072b2", "linewidth": 3.2, "marker": "o", "markersize": 5.5},
    "Pin": {
        "color": "#e69f00",
        "linewidth": 2.0,
        "marker": "s",
        "markersize": 4,
        "dashes": (3, 2),
        "zorder": 3,
    },
    "LRU": {"color": "#cc79a7", "linewidth": 2.2, "marker": "^", "markersize": 5},
    "None": {"color": "#7f7f7f", "linewidth": 2.2, "marker": "D", "markersize": 3.5},
}
INK = "#333333"
SETTINGS = {
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
}


def draw(setup: Setup, results: Sequence[PolicyResult], path: Path) -> None:
    scene = _one_job if setup.jobs == 1 else _several_jobs
    with pyplot.rc_context(SETTINGS):
        figure = scene(setup, results)
        figure.savefig(path)
        pyplot.close(figure)


def _one_job(setup: Setup, results: Sequence[PolicyResult]) -> Figure:
    figure, (left, middle, right) = pyplot.subplots(
        1, 3, figsize=(15, 4.8), dpi=150, width_ratios=(1.3, 1, 1)
    )
    _draw_times(left, setup, results)
    left.set(title="Time of an epoch")
    throttled = [result for result in results if result.store_share == results[0].store_share]
    _draw_hit_ratios(middle, throttled)
    _draw_requests(right, setup, throttled)
    handles, labels = middle.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), bbox_to_anchor=(0.5, 0.09))
    caption = (
        f"{setup.samples:,} images, {_megabytes(setup.total_bytes)} · {setup.ranks} ranks · "
        f"{setup.nodes} nodes with room for {setup.capacity_bytes / setup.total_bytes:.0%} of the "
        "bytes · bound: the fewest bytes that any cache of that size can read\n"
        "store: its bandwidth, as a share of what the ranks read with the data in memory · light: "
        "waiting · black line: the limit with that store"
    )
    _finish(figure, caption, bottom=0.17)
    return figure


def _several_jobs(setup: Setup, results: Sequence[PolicyResult]) -> Figure:
    figure, (left, middle, right) = pyplot.subplots(
        1, 3, figsize=(12, 3.7), dpi=150, width_ratios=(1.35, 1, 0.85), sharey=True
    )
    _draw_times(left, setup, results)
    left.set_yticks(range(len(results)), [result.name for result in results])
    left.set(title=f"Time of {setup.jobs} jobs on one dataset")
    megabytes = [(result.store_bytes, result.planned_store_bytes) for result in results]
    _draw_bars(middle, results, megabytes, _megabytes)
    middle.set(title="Read from the store", xlabel="MB in all, by the log of the store")
    middle.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count / 1e6:,.0f}"))
    hits = [(result.hit_ratio_observed, result.hit_ratio_predicted) for result in results]
    _draw_bars(right, results, hits, "{:.0%}".format)
    right.set(title="Hit ratio", xlabel="of the reads of all jobs")
    right.xaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))
    caption = (
        f"{setup.jobs} jobs, each with its own seed, read the same {setup.samples:,} images "
        f"({_megabytes(setup.total_bytes)}) for {setup.epochs} epochs at the same time, through a cache "
        f"with room for {setup.capacity_bytes / setup.total_bytes:.0%} of the bytes.\n"
        f"The store delivers {results[0].store_share:.0%} of what the jobs read with the data in "
        "memory · light: waiting · black line: in the left panel the limit with that store, in the "
        "others theory"
    )
    _finish(figure, caption, bottom=0.1)
    return figure


def _finish(figure: Figure, caption: str, bottom: float) -> None:
    figure.text(0.5, 0.025, caption, ha="center", fontsize=9, color="#666666")
    figure.tight_layout(rect=(0, bottom, 1, 1), w_pad=3)


def _megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"


def _draw_times(axes: Axes, setup: Setup, results: Sequence[PolicyResult]) -> None:
    """A bar for each run: what it computes, and lighter what it waits. The limit is a line in it."""
    for row, result in enumerate(results):
        factor = time_factor(setup, result)
        waiting = factor * result.times.waiting_share
        color = STYLES[result.name]["color"]
        axes.barh(row, factor - waiting, color=color, height=0.62)
        axes.barh(row, waiting, left=factor - waiting, color=color, alpha=0.35, height=0.62)
        limit = timing.limit(store_factor(setup, result))
        axes.plot((limit, limit), (row - 0.31, row + 0.31), color=INK, linewidth=1.6)
        words = f" {factor:.2f}, waits {result.times.waiting_share:.0%}"
        axes.text(max(factor, limit), row, words, va="center", fontsize=9.5)
    widest = max(time_factor(setup, result) for result in results)
    axes.axvline(1, color="#888888", linewidth=1, linestyle="--", zorder=0)
    axes.set(xlim=(0, 1.45 * max(widest, 1)), ylim=(len(results) - 0.5, -0.5))
    axes.set_yticks(range(len(results)), [result.label for result in results])
    axes.set(xlabel=f"1 = with the data in memory{epochs_counted(setup)}")
    _like_bars(axes)


def epochs_counted(setup: Setup) -> str:
    """Nothing where all count."""
    return f" (epochs {setup.first_epoch + 1} on)" if setup.first_epoch else ""


def _like_bars(axes: Axes) -> None:
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")


def _draw_bars(
    axes: Axes,
    results: Sequence[PolicyResult],
    values: Sequence[tuple[float, float]],
    words: Callable[[float], str],
) -> None:
    """A bar for what was measured of each, and a line for what theory says."""
    for row, (result, (measured, theory)) in enumerate(zip(results, values, strict=True)):
        axes.barh(row, measured, color=STYLES[result.name]["color"], height=0.62)
        axes.plot((theory, theory), (row - 0.31, row + 0.31), color=INK, linewidth=1.6)
        axes.text(max(measured, theory), row, f" {words(measured)}", va="center", fontsize=9.5)
    axes.set(xlim=(0, 1.3 * max(max(pair) for pair in values) or 1))
    _like_bars(axes)


def _draw_hit_ratios(axes: Axes, results: Sequence[PolicyResult]) -> None:
    for result in results:
        tenths = len(result.hit_ratio_by_tenth)
        places = [100 * (tenth + 0.5) / tenths for tenth in range(tenths)]
        read = _megabytes(result.store_bytes)
        label = f"{result.name}: {read}, {result.store_bytes / result.bound_bytes:.3f} × bound"
        axes.plot(places, result.hit_ratio_by_tenth, label=label, **STYLES[result.name])
    top = max(max(result.hit_ratio_by_tenth) for result in results)
    axes.set(xlim=(0, 100), ylim=(-0.01, max(1.15 * top, 0.1)))
    axes.set(title="Hit ratio over an epoch", xlabel="position in the epoch (epochs 2 on)")
    axes.xaxis.set_major_formatter(PercentFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, decimals=0))


def _draw_requests(axes: Axes, setup: Setup, results: Sequence[PolicyResult]) -> None:
    for result in results:
        steps = len(result.requests_by_progress) - 1
        progress = [setup.epochs * step / steps for step in range(steps + 1)]
        every_epoch = max(steps // setup.epochs, 1)
        style: dict[str, Any] = {**STYLES[result.name], "markevery": every_epoch, "clip_on": False}
        axes.plot(progress, result.requests_by_progress, **style)
    axes.set(xlim=(0, setup.epochs), ylim=(0, None))
    axes.set(title="Requests to the store", xlabel="epochs read")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
