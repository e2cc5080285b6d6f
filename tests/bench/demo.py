"""The demo's figures: times against their limit, store bytes against bound and plan."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from bench.context import REPOSITORY, Context
from bench.figures import Figure, at_least, at_most
from harness.processes import last_lines

sys.path.append(str(REPOSITORY / "tests" / "demo"))

import timing  # noqa: E402
from report import PolicyResult, Setup, read_json, store_factor, time_factor  # noqa: E402

DEMO_MINUTES = 4.0
# Of an epoch's time beside its limit. Without a plan, it is what theory says: no more than overhead.
TIME_GOALS = {"Optimal": at_most(1.03), "None": at_most(1.1), "LRU": at_most(1.1)}
WAIT_SECONDS = 0.5  # where the store has bandwidth to spare
DEMO_SECONDS_MAX = 1800.0


def run(context: Context) -> list[Figure]:
    began = time.monotonic()
    log = context.folder / "demo.log"
    with open(log, "wb") as words:
        demo = subprocess.run(
            [
                sys.executable,
                REPOSITORY / "tests" / "demo" / "demo.py",
                *("--out", context.out),
                *(["--quick"] if context.quick else []),
            ],
            stdout=words,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=DEMO_SECONDS_MAX,
        )
    minutes = (time.monotonic() - began) / 60
    if demo.returncode != 0:
        # Samples, orders and budgets are checked by the demo itself.
        context.say(f"the demo ends with status {demo.returncode}:\n{last_lines(log)}")
    figures = figures_of(*read_json(context.out / "demo.json"))
    return [
        *figures,
        Figure("demo: failed checks", float(demo.returncode != 0), goal=at_most(0)),
        Figure("demo: whole time", minutes, "min", goal=at_most(DEMO_MINUTES)),
    ]


def figures_of(setup: Setup, results: Sequence[PolicyResult]) -> list[Figure]:
    """Of a demo.json."""
    optimal = next(result for result in results if result.name == "Optimal")
    others = [result for result in results if result.name != "Optimal"]
    peers = ", ".join(
        f"{result.name} {result.store_bytes / result.bound_bytes:.4f}" for result in others
    )
    read = optimal.store_bytes
    tenths = optimal.hit_ratio_by_tenth
    wrong = optimal.mismatches + (0 if optimal.order_equal else 1)
    return [
        *_times(setup, results),
        Figure("demo: store bytes / bound", read / optimal.bound_bytes, "", peers, at_most(1.005)),
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
    cores = setup.free.cores_used / setup.cores
    yield Figure("demo: cores in use with the data in memory / cores", cores, goal=at_most(0.6))
    for result in results:
        factor, store = time_factor(setup, result), store_factor(setup, result)
        yield Figure(
            f"demo: epoch / max(compute, store), {result.label}",
            factor / timing.limit(store),
            "",
            f"epoch {factor:.3f}, store {store:.3f} of the loop with its data in memory",
            TIME_GOALS.get(result.name),
        )
        if result.name == "Optimal":
            longest = result.times.longest_wait_seconds
            wide = result.store_share > min(other.store_share for other in results)
            goal = at_most(WAIT_SECONDS) if wide else None
            yield Figure(f"demo: longest wait, {result.label}", longest, "s", goal=goal)
