"""What metrics cost: counting a sample, and a node's page with many datasets."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.cluster import parse_metrics
from harness.processes import last_lines, stop, wait_until

from bench.context import Context
from bench.figures import Figure, at_most

COUNT_GOAL_NS = 100.0
PAGE_GOAL_KIB = 10.0  # a dataset: with a hundred, about a MiB a scrape
SCRAPE_GOAL_MS = 10.0  # with a hundred datasets: a thousandth of a core, each 10 s
FILES = 8
START_SECONDS = 300.0

DATASET = """\
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {{name: set-{number}}}
spec:
  source: {{file: {{path: "{path}"}}}}
  cache: {{capacity: "{capacity}"}}
---
apiVersion: optcache.io/v1alpha1
kind: CachePlan
metadata: {{name: set-{number}}}
spec: {{dataset: set-{number}, retention: Optimal}}
"""


def run(context: Context) -> list[Figure]:
    samples = 1_000_000 if context.quick else 50_000_000
    context.say("counting")
    counted = {one["batch"]: one["ns"] for one in context.ask("bench_metrics", f"--samples={samples}")}
    figures = [
        Figure("counting a sample, streams in turns sample by sample", counted[1], "ns", "", at_most(COUNT_GOAL_NS)),
        Figure("counting a sample, in batches of 64", counted[64], "ns", "", at_most(COUNT_GOAL_NS)),
    ]
    pages = {}
    for datasets in (1, 10) if context.quick else (1, 10, 100):
        context.say(f"{datasets} datasets")
        pages[datasets] = page_of_node(context.within(f"d{datasets}"), datasets, 20 if context.quick else 200)
    for datasets, page in pages.items():
        figures += [
            Figure(f"page of a node, {datasets} datasets", page["bytes"] / 1024, "KiB", f"{page['series']} series"),
            Figure(
                f"CPU of a scrape of a node, {datasets} datasets", page["cpu_ms"], "ms", "",
                at_most(SCRAPE_GOAL_MS) if datasets == 100 else None,
            ),
        ]
    few, many = pages[min(pages)], pages[max(pages)]
    more = max(pages) - min(pages)
    figures.append(
        Figure(
            "page of a node, each further dataset", (many["bytes"] - few["bytes"]) / more / 1024, "KiB",
            f"{(many['series'] - few['series']) / more:.0f} series", at_most(PAGE_GOAL_KIB),
        )
    )
    return figures


def page_of_node(context: Context, datasets: int, scrapes: int) -> dict[str, float]:
    """Of `optcache up` with so many, each of a few small files."""
    with cache(context, datasets) as url:
        text = read(url)
        before = parse_metrics(text)["process_cpu_seconds_total"]
        for _ in range(scrapes):
            text = read(url)
        used = parse_metrics(text)["process_cpu_seconds_total"] - before
    series = sum(1 for line in text.splitlines() if line and not line.startswith("#"))
    return {"bytes": float(len(text)), "series": float(series), "cpu_ms": used / scrapes * 1e3}


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as page:
        text: str = page.read().decode()
    return text


@contextmanager
def cache(context: Context, datasets: int) -> Iterator[str]:
    """Yields where the node's page is."""
    configuration = context.folder / "datasets.yaml"
    documents = []
    for number in range(datasets):
        folder = context.folder / "data" / f"{number:03}" / "class"
        folder.mkdir(parents=True)
        for name in range(FILES):
            (folder / f"{name}.bin").write_bytes(os.urandom(1024))
        documents.append(DATASET.format(number=number, path=folder.parent, capacity=FILES * 1024))
    configuration.write_text("---\n".join(documents))
    log = context.folder / "optcache-up.log"
    state = context.folder / "state"
    command: list[str | Path] = [context.programs / "optcache", "up", "-f", configuration]
    command += ["--memory", "64Mi", "--arena", "16Mi", "--overflow", "16Mi", "--state", state]
    command += ["--socket-dir", context.folder, "--port", "0"]
    with open(log, "wb") as output:
        up = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        found: list[str] = []

        def ready() -> bool:
            if up.poll() is not None:
                raise OSError(f"optcache up ends at once:\n{last_lines(log)}")
            status = ask_status(context, state)
            members = status.get("members", [])
            if len(status.get("datasets", [])) != datasets or not members:
                return False
            if any(member["applied"] != status["version"] for member in members):
                return False
            found.append(members[0]["metrics"])
            return read(found[0]).count("\noptcache_cache_bytes{") == datasets

        wait_until(ready, f"{datasets} datasets are served", START_SECONDS)
        yield found[0]
    finally:
        stop(up)


def ask_status(context: Context, state: Path) -> dict[str, Any]:
    """Nothing in it while nobody answers."""
    words = ("status", "--state", state, "--output", "json")
    command: list[str | Path] = [context.programs / "optcache", *words]
    asked = subprocess.run(command, capture_output=True, check=False, timeout=60)
    answer: dict[str, Any] = json.loads(asked.stdout) if asked.returncode == 0 else {}
    return answer
