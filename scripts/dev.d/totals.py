"""What the runners of a `./dev test` said, in sum: `totals.py LOGS SKIPS RECORD NAME`.

Prints a table of the steps with their seconds, tests that were skipped though SKIPS does not name them,
and as the last line `N passed, N failed, N skipped`. Such a skip counts as a failure. Exit status 1 if
anything failed.

A line for the run called NAME is appended to the file RECORD: time, commit, NAME, seconds, passed, failed
and skipped, with tabs between them.

LOGS is a folder with the outputs of ctest and pytest (`-rs`), and with `steps.tsv`: name, seconds and
`passed` or `failed` of each step. A line of SKIPS is a regular expression, two blanks and the reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CTEST_TOTAL = re.compile(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)$", re.MULTILINE)
CTEST_SKIP = re.compile(r"^\s+\d+ - (.*) \((?:Skipped|Disabled)\)$", re.MULTILINE)
PYTEST_TOTAL = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s\b.*$", re.MULTILINE)
PYTEST_SKIP = re.compile(r"^SKIPPED \[(\d+)\] (.*)$", re.MULTILINE)


@dataclass
class Totals:
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def skips(text: str) -> Iterator[tuple[str, int]]:
    """What was skipped, with how many tests that stands for."""
    for name in CTEST_SKIP.findall(text):
        yield name, 1
    for count, what in PYTEST_SKIP.findall(text):
        yield what, int(count)


def add(totals: Totals, text: str) -> None:
    for failed, total in CTEST_TOTAL.findall(text):
        # ctest counts a skipped test as passed.
        totals.passed += int(total) - int(failed) - len(CTEST_SKIP.findall(text))
        totals.failed += int(failed)
    for line in PYTEST_TOTAL.findall(text):
        counts = {name.rstrip("s"): int(count) for count, name in re.findall(r"(\d+) ([a-z]+)", line)}
        totals.passed += counts.get("passed", 0)
        totals.failed += counts.get("failed", 0) + counts.get("error", 0)
    totals.skipped += sum(count for _, count in skips(text))


def allowed(path: Path) -> list[re.Pattern[str]]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [re.compile(line.split("  ")[0]) for line in lines]


def record(path: Path, name: str, seconds: int, totals: Totals) -> None:
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    counts = (totals.passed, totals.failed, totals.skipped)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write("\t".join(map(str, (now, commit, name, seconds, *counts))) + "\n")


def main() -> int:
    logs, expected = Path(sys.argv[1]), allowed(Path(sys.argv[2]))
    totals = Totals()
    surprises: list[str] = []
    for log in sorted(logs.glob("*.log")):
        text = log.read_text(errors="replace")
        add(totals, text)
        for what, count in skips(text):
            if not any(pattern.search(what) for pattern in expected):
                surprises.append(what)
                totals.failed += count
    steps = [line.split("\t") for line in (logs / "steps.tsv").read_text().splitlines()]
    width = max((len(name) for name, _, _ in steps), default=0)
    print()
    for name, seconds, result in steps:
        print(f"{name:{width}}  {int(seconds):5} s  {result}")
    print(f"{'all':{width}}  {sum(int(seconds) for _, seconds, _ in steps):5} s")
    for what in surprises:
        print(f"skipped, which {sys.argv[2]} does not allow: {what}")
    # A step that ended before its runner could count is a failure, too.
    if not totals.failed and any(result == "failed" for _, _, result in steps):
        totals.failed = 1
    record(Path(sys.argv[3]), sys.argv[4], sum(int(seconds) for _, seconds, _ in steps), totals)
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
