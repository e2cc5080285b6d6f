"""What the runners of a `./dev test` said, in sum: `python -m harness.totals LOGS SKIPS RECORD NAME CODE`.

Prints a table of the steps with their seconds, the slowest tests, tests that were skipped though SKIPS does
not name them, and as the last line `N passed, N failed, N skipped`. Such a skip counts as a failure, and so does a CODE
that is not 0 (the exit code of the whole run) where no test failed. Exit status 1 if anything failed.

A line for the run called NAME is appended to the file RECORD: time, commit, NAME, seconds, passed, failed
and skipped, with tabs between them.

LOGS is a folder with the outputs of ctest and pytest (`-rs --durations=20`), and with `steps.tsv`: name, seconds and
`passed` or `failed` of each step. A line of SKIPS is a regular expression, two blanks and the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import records

CTEST_TOTAL = re.compile(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)$", re.MULTILINE)
CTEST_SKIP = re.compile(r"^\s+\d+ - (.*) \((?:Skipped|Disabled)\)$", re.MULTILINE)
CTEST_TIME = re.compile(r"^ *\d+/\d+ Test +#\d+: (.+?) \.+.* ([\d.]+) sec", re.MULTILINE)
PYTEST_TIME = re.compile(r"^([\d.]+)s call +(\S.*)$", re.MULTILINE)
SLOWEST = 20
SLOW_SECONDS = 5.0
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


def slowest(texts: dict[str, str]) -> list[tuple[float, str, str]]:
    """At most SLOWEST tests of SLOW_SECONDS and more, each with its log, the slowest first."""
    taken = [
        (float(seconds), log, name)
        for log, text in texts.items()
        for seconds, name in [
            *((seconds, name) for name, seconds in CTEST_TIME.findall(text)),
            *PYTEST_TIME.findall(text),
        ]
    ]
    return sorted((test for test in taken if test[0] >= SLOW_SECONDS), reverse=True)[:SLOWEST]


def allowed(path: Path) -> list[re.Pattern[str]]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [re.compile(line.split("  ")[0]) for line in lines]


def main() -> int:
    logs, skips_file, record, name, code = sys.argv[1:]
    folder, expected = Path(logs), allowed(Path(skips_file))
    totals = Totals()
    surprises: list[str] = []
    texts = {log.stem: log.read_text(errors="replace") for log in sorted(folder.glob("*.log"))}
    for text in texts.values():
        add(totals, text)
        for what, count in skips(text):
            if not any(pattern.search(what) for pattern in expected):
                surprises.append(what)
                totals.failed += count
    steps = [line.split("\t") for line in (folder / "steps.tsv").read_text().splitlines()]
    width = max((len(step) for step, _, _ in steps), default=0)
    print()
    for step, taken, result in steps:
        print(f"{step:{width}}  {int(taken):5} s  {result}")
    seconds = sum(int(taken) for _, taken, _ in steps)
    print(f"{'all':{width}}  {seconds:5} s")
    for duration, log, test in slowest(texts):
        print(f"slow: {duration:6.1f} s  {log}: {test}")
    for what in surprises:
        print(f"skipped, which {skips_file} does not allow: {what}")
    # What ended before its runner could count is a failure, too.
    if int(code) and not totals.failed:
        totals.failed = 1
    records.append(Path(record), [(name, seconds, totals.passed, totals.failed, totals.skipped)])
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
