"""A plugin of pytest: which tests belong to which ring, and what a run leaves behind.

`pytest -p harness.rings`. Tests that are marked `long` run with OPTCACHE_LONG=1 alone; without it they
are not selected, so that a skipped test is always one that misses something. A failed test shows the ends
of the logs of its processes. With `--cases FILE` a table of all cases with their seconds ends the run, and
is appended to FILE, so that growth is seen; `--part K/N` divides the cases by the seconds in it. With
`--order SEED` the modules run in another order, and so do the cases of each.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import parts, records
from harness.case_logs import logs_of
from harness.processes import last_lines

LOG_LINES = 50  # of each process
_base = pytest.StashKey[Path]()
_begins = pytest.StashKey[dict[str, float]]()  # when the first test of each module began


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rings")
    group.addoption("--part", metavar="K/N", type=_part, help="the K-th of N parts of the tests")
    group.addoption("--order", metavar="SEED", help="a random order")
    group.addoption("--cases", metavar="FILE", type=Path, help="appends the seconds of each case")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_begins] = {}
    config.addinivalue_line("markers", "long: takes minutes, or a quiet machine: ./dev test --long")
    if file := config.getoption("--cases"):
        config.pluginmanager.register(_Cases(file))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = [item for item in items if _is_long() or not item.get_closest_marker("long")]
    if part := config.getoption("--part"):
        file = config.getoption("--cases")
        names = [item.nodeid for item in chosen]
        mine = {*parts.part(names, parts.newest_seconds(file, records.this_commit()) if file else {}, *part)}
        chosen = [item for item in chosen if item.nodeid in mine]
    if seed := config.getoption("--order"):
        chosen = _shuffled(chosen, seed)
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def _shuffled(items: list[pytest.Item], seed: str) -> list[pytest.Item]:
    """Module by module, since tests of one share what is slow to start."""
    chance = random.Random(seed)
    modules: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        modules[item.path].append(item)
    shuffled = chance.sample([*modules], len(modules))
    return [item for module in shuffled for item in chance.sample(modules[module], len(modules[module]))]


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--order")
    return f"--order {seed}" if seed else None


@pytest.fixture(scope="session", autouse=True)
def _base_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    request.config.stash[_base] = tmp_path_factory.getbasetemp()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[_begins].setdefault(str(item.path), time.time())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """The ends of the logs of the processes that a failed test has used."""
    outcome: Any = yield
    report = outcome.get_result()
    base = item.config.stash.get(_base, None)
    if report.failed and base:
        own = getattr(item, "funcargs", {}).get("tmp_path")
        for name, log in logs_of(base, own, item.config.stash[_begins][str(item.path)]):
            report.sections.append((name, last_lines(log, LOG_LINES)))


class _Cases:
    """Seconds of each case, its fixtures included."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: dict[str, float] = defaultdict(float)
        self._results: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.when == "call" or report.outcome != "passed":
            self._results[report.nodeid] = report.outcome

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("seconds of each case")
        slowest_first = sorted(self._seconds.items(), key=lambda each: -each[1])
        rows = [(f"{seconds:.1f}", self._results.get(case, ""), case) for case, seconds in slowest_first]
        for seconds, result, case in rows:
            terminalreporter.write_line(f"{seconds:>8} s  {result:8} {case}")
        records.append(self._file, rows)


def _is_long() -> bool:
    return os.environ.get("OPTCACHE_LONG") == "1"


def _part(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise ValueError(text)
    return int(number), int(parts)
