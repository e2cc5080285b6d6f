#!/usr/bin/env python3
"""Measure every figure that the project promises, with its goal and, if it has one, its peer."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from bench.context import Context
from bench.figures import Figure, table
from harness.errors import HarnessError

# Name: what it measures. The module of that name in this folder has run(context).
BENCHMARKS = {
    "plan": "cost of a plan: time per read, memory per sample",
    "scale": "traffic of a thousand nodes with the coordinator and each other: messages, bytes",
    "orders": "cost of an order, beside a plain loop",
    "manifest": "cost of a manifest of ten million samples: time, memory",
    "s3": "cost of indexing a bucket of a million objects",
    "s3_clients": "client libraries of S3 with the endpoint: requests to the store, beside the bound",
    "stores": "a training loop that reads a bucket, beside other ways to read it",
    "archives": "tar shards of 256 MB in a bucket, beside webdataset: requests, bytes",
    "spdl": "a pipeline of SPDL, beside SPDL's own reading of the same server",
    "small": "small samples: processor time, beside plain PyTorch and a plain loop",
    "handoff": "one sample for a training process, beside open and read",
    "disk": "samples on the disk of a node, beside one file per sample",
    "page_cache": "a folder that memory cannot hold: pace within an epoch, hit ratio; as root",
    "wire": "samples from node to sidecar, beside memcached",
    "image_folder": "a loader that only decodes, beside plain torchvision",
    "faults": "the longest wait of a trainer when something fails",
    "cold": "four streams that start together: store reads",
    "restart": "ranks that come back on other machines: store reads",
    "drift": "ranks that drift apart: hit ratio",
    "jobs": "several jobs on one dataset: store reads, beside an oracle's",
    "computed": "computed samples: how often they are computed, beside the bound and lru_cache",
    "hedge": "late reads that are requested again: the tail of read times, and its cost in requests",
    "webhook": "time that a pod waits for the injector",
    "metrics": "cost of metrics: counting a sample, a page with many datasets",
    "memory": "memory that the programs use, beside their budgets",
    "kubernetes": "on a real Kubernetes: times until ready, the operator among a thousand machines",
    "demo": "the demo: times, store bytes and hit ratios, beside limit, bound and plan",
}
MORE = """\
verdicts:
  met, not met   the figure, or its whole 95 % interval, reaches or misses its goal
  not resolved   the goal lies inside the interval: the figure is too noisy to tell

The exit status is 1 if a benchmark could not run. A goal that is not met is no error.
"""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench",
        description=__doc__,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="benchmarks to run; all if none is given")
    add("--list", action="store_true", help="print the names of all benchmarks")
    add("--quick", action="store_true", help="use small sizes: check that everything runs, and give no figures")
    add("--output", choices=("table", "json"), default="table", help="format of the output")
    add("--out", type=Path, default=Path("bench-out"), help="folder for results (default: bench-out)")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark {name!r}, there are: {', '.join(BENCHMARKS)}")
    return arguments


def machine() -> dict[str, Any]:
    """What a reader of the figures must know of where they come from."""
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.datetime.now().isoformat(timespec="seconds"),
        "cpu": cpu or platform.machine(),
        "cores": os.cpu_count(),
        "memoryGiB": round(memory / 2**30, 1),
        "load": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
    }


class Progress:
    """Lines on standard error: when, which benchmark, what it does."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def say(self, name: str, what: str) -> None:
        seconds = time.monotonic() - self._began
        print(f"{seconds:5.0f} s  {name}: {what}", file=sys.stderr, flush=True)


def measure(
    names: Sequence[str], quick: bool, out: Path, progress: Progress
) -> tuple[dict[str, list[Figure]], dict[str, str]]:
    """By name, the figures, and why those that are missing could not be measured."""
    figures: dict[str, list[Figure]] = {}
    failures: dict[str, str] = {}
    for name in names:
        progress.say(name, BENCHMARKS[name])
        folder = Path(tempfile.mkdtemp(prefix=f"optcache-bench-{name}-"))
        context = Context(
            programs=Path(os.environ["OPTCACHE_BIN_DIR"]),
            folder=folder,
            out=out.resolve(),
            quick=quick,
            say=lambda what, name=name: progress.say(name, what),  # type: ignore[misc]
        )
        try:
            figures[name] = importlib.import_module(f"bench.{name}").run(context)
        except (HarnessError, OSError, subprocess.SubprocessError) as error:
            failures[name] = str(error)
            progress.say(name, f"FAILED: {error}")
        except KeyboardInterrupt:
            failures[name] = "interrupted; everything it started is stopped"
            break  # what has been measured is worth reporting
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return figures, failures


def interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    arguments = parse_arguments()
    if arguments.list:
        for name, what in BENCHMARKS.items():
            print(f"{name:<13} {what}")
        return 0
    if "OPTCACHE_BIN_DIR" not in os.environ:
        print("bench: where are the programs? Run ./dev bench, which builds them", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, interrupt)  # so that what was started is stopped then, too
    where = machine()
    if arguments.output == "table":
        words = "{cpu}, {cores} cores, {memoryGiB} GiB, load {load}, {date}"
        print(words.format(**where), flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    names = arguments.names or list(BENCHMARKS)
    figures, failures = measure(names, arguments.quick, arguments.out, Progress())
    document = {
        "machine": where,
        "quick": arguments.quick,
        "figures": [
            {"bench": name, **figure.document()}
            for name, some in figures.items()
            for figure in some
        ],
        "failures": failures,
    }
    text = json.dumps(document, indent=2)
    (arguments.out / "bench.json").write_text(text + "\n")
    if arguments.output == "json":
        print(text)
    else:
        print(table([figure for some in figures.values() for figure in some]))
        for name, why in failures.items():
            print(f"FAILED: {name}: {why}")
        if arguments.quick:
            print("--quick: sizes at which these are no figures")
        print(f"\n{arguments.out / 'bench.json'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
