"""The demo's figures: store bytes against bound and plan, with real images and PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from bench.context import REPOSITORY, Context
from bench.figures import Figure, at_least, at_most
from harness.processes import last_lines

DEMO_MINUTES = 4.0
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
    figures = figures_of(json.loads((context.out / "demo.json").read_text()))
    return [
        *figures,
        Figure("demo: failed checks", float(demo.returncode != 0), goal=at_most(0)),
        Figure("demo: whole time", minutes, "min", goal=at_most(DEMO_MINUTES)),
    ]


def figures_of(demo: dict[str, Any]) -> list[Figure]:
    """Of a demo.json."""
    policies = {policy["name"]: policy for policy in demo["policies"]}
    optimal = policies.pop("Optimal")
    read = optimal["storeBytes"]
    others = ", ".join(
        f"{name} {policy['storeBytes'] / policy['boundBytes']:.4f}"
        for name, policy in policies.items()
    )
    observed = 1 - optimal["storeRequests"] / optimal["delivered"]
    drift = abs(optimal["hitRatioPredicted"] - observed)
    tenths = abs(optimal["hitRatioFirstTenth"] - optimal["hitRatioLastTenth"])
    wrong = optimal["mismatches"] + (0 if optimal["orderEqual"] else 1)
    return [
        Figure(
            "demo: store bytes / bound", read / optimal["boundBytes"], "", others, at_most(1.005)
        ),
        Figure(
            "demo: store bytes / planned",
            read / optimal["plannedStoreBytes"],
            goal=at_most(1.002),
        ),
        Figure(
            "demo: store bytes / bound with all that can lie in memory",
            read / optimal["boundAllBytes"],
            goal=at_least(1),
        ),
        Figure(
            "demo: |predicted - observed hit ratio|",
            drift,
            "",
            f"predicted {optimal['hitRatioPredicted']:.4f}, observed {observed:.4f}",
            at_most(0.005),
        ),
        Figure("demo: |first - last tenth's hit ratio|", tenths, goal=at_most(0.03)),
        Figure("demo: wrong samples and orders", float(wrong), goal=at_most(0)),
    ]
