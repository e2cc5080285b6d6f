"""The demo's figures: times against their limit, store bytes against bound, plan and theory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from bench.context import REPOSITORY, Context
from bench.figures import Figure, at_least, at_most
from harness.processes import last_lines

sys.path.append(str(REPOSITORY / "tests" / "demo"))

from report import (  # noqa: E402
    FILES,
    PolicyResult,
    Setup,
    limit_factor,
    read_json,
    store_factor,
    time_factor,
)

PROGRAM = REPOSITORY / "tests" / "demo" / "demo.py"
DEMO_MINUTES = 8.0
# Of the time of an epoch after the first beside its limit. Without a plan, it is what theory says: no
# more than overhead.
TIME_GOALS = {"Optimal": at_most(1.03), "None": at_most(1.1), "LRU": at_most(1.1)}
AT_REST = at_most(0.6)  # cores that a loop may use which the demo calls free
WAIT_SECONDS = 0.5  # where the store has bandwidth to spare
BEYOND_ORACLE = 1.02
DEMO_SECONDS_MAX = 1800.0


def run(context: Context) -> list[Figure]:
    for name in FILES.values():
        for left in (f"{name}.json", f"{name}.png"):  # by an earlier run
            (context.out / left).unlink(missing_ok=True)
    began = time.monotonic()
    log = context.folder / "demo.log"
    with open(log, "wb") as words:
        demo = subprocess.run(
            [
                sys.executable,
                PROGRAM,
                *("--out", context.out),
                *(["--quick"] if context.quick else []),
            ],
            stdout=words,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=DEMO_SECONDS_MAX,
        )
    minutes = (time.monotonic() - began) / 60
    failed = Figure("demo: failed checks", float(demo.returncode != 0), goal=at_most(0))
    if demo.returncode != 0:
        # It checks samples, orders and budgets itself. Times of a run that failed are no figures.
        context.say(f"the demo ends with status {demo.returncode}:\n{last_lines(log)}")
        return [failed]
    results = [read_json(context.out / f"{name}.json") for name in FILES.values()]
    return [
        *(figure for result in results for figure in figures_of(*result)),
        failed,
        Figure("demo: whole time", minutes, "min", goal=at_most(DEMO_MINUTES)),
    ]


def figures_of(setup: Setup, results: Sequence[PolicyResult]) -> list[Figure]:
    """Of a scene."""
    return (_of_one_job if setup.jobs == 1 else _of_several_jobs)(setup, results)


def _of_several_jobs(setup: Setup, results: Sequence[PolicyResult]) -> list[Figure]:
    optimal = next(result for result in results if result.name == "Optimal")
    hits = ", ".join(
        f"{result.name} {result.hit_ratio_observed:.3f} and {result.hit_ratio_predicted:.3f}"
        for result in results
    )
    wrong = optimal.mismatches + (0 if optimal.order_equal else 1)
    return [
        Figure("sweep: cores in use with the data in memory / cores", _cores(setup), goal=AT_REST),
        *(_time(setup, result, "sweep") for result in results),
        Figure(
            "sweep: store bytes / those of MIN that knows how the jobs interleave",
            optimal.store_bytes / optimal.bound_bytes,
            "",
            _beside_bound(results),
            at_most(BEYOND_ORACLE),
        ),
        Figure(
            "sweep: |theory's - observed hit ratio|",
            abs(optimal.hit_ratio_predicted - optimal.hit_ratio_observed),
            "",
            f"observed and by theory: {hits}",
            at_most(0.02),
        ),
        Figure("sweep: wrong samples and orders", float(wrong), goal=at_most(0)),
    ]


def _of_one_job(setup: Setup, results: Sequence[PolicyResult]) -> list[Figure]:
    optimal = next(result for result in results if result.name == "Optimal")
    read = optimal.store_bytes
    tenths = optimal.hit_ratio_by_tenth
    wrong = optimal.mismatches + (0 if optimal.order_equal else 1)
    return [
        *_times(setup, results),
        Figure("demo: store bytes / bound", read / optimal.bound_bytes, "", _beside_bound(results), at_most(1.005)),
        Figure(
            "demo: store bytes / planned", read / optimal.planned_store_bytes, goal=at_most(1.002)
        ),
        Figure(
            "demo: store bytes / bound with all that can lie in memory",
            read / optimal.bound_all_bytes,
            goal=at_least(1),
        ),
        Figure(
            "demo: |predicted - observed hit ratio|",
            abs(optimal.hit_ratio_predicted - optimal.hit_ratio_observed),
            "",
            f"predicted {optimal.hit_ratio_predicted:.4f}, "
            f"observed {optimal.hit_ratio_observed:.4f}",
            at_most(0.005),
        ),
        Figure(
            "demo: |first - last tenth's hit ratio|", abs(tenths[0] - tenths[-1]), goal=at_most(0.03)
        ),
        Figure("demo: wrong samples and orders", float(wrong), goal=at_most(0)),
    ]


def _times(setup: Setup, results: Sequence[PolicyResult]) -> Iterator[Figure]:
    """Of the epochs after the first. Nothing can be faster than the limit, so goals are above 1."""
    yield Figure("demo: cores in use with the data in memory / cores", _cores(setup), goal=AT_REST)
    for result in results:
        yield _time(setup, result, "demo")
        if result.name == "Optimal":
            longest = result.times.longest_wait_seconds
            wide = result.store_share > min(other.store_share for other in results)
            goal = at_most(WAIT_SECONDS) if wide else None
            yield Figure(f"demo: longest wait, {result.label}", longest, "s", goal=goal)


def _time(setup: Setup, result: PolicyResult, scene: str) -> Figure:
    epoch, store = time_factor(setup, result), store_factor(setup, result)
    return Figure(
        f"{scene}: epoch / max(compute, store), {result.label}",
        limit_factor(setup, result),
        "",
        f"epoch {epoch:.3f}, store {store:.3f} of the loop with its data in memory",
        TIME_GOALS.get(result.name),
    )


def _cores(setup: Setup) -> float:
    return setup.free.cores_used / setup.cores


def _beside_bound(results: Sequence[PolicyResult]) -> str:
    return ", ".join(
        f"{result.name} {result.store_bytes / result.bound_bytes:.4f}"
        for result in results
        if result.name != "Optimal"
    )
