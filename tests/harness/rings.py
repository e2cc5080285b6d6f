"""A plugin of pytest: which tests belong to which ring, and what a failed one leaves in the output.

`pytest -p harness.rings`. Tests that are marked `long` run with OPTCACHE_LONG=1 alone; without it they
are not selected, so that a skipped test is always one that misses something.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.processes import last_lines

LOG_LINES = 50  # of each process
LOGS_MAX = 20


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes minutes, or a quiet machine: ./dev test --long")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("OPTCACHE_LONG") == "1":
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """The ends of the logs of all processes that a failed test has started in its folder."""
    outcome: Any = yield
    report = outcome.get_result()
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and isinstance(folder, Path):
        for log in sorted(folder.rglob("*.log"))[:LOGS_MAX]:
            report.sections.append((str(log.relative_to(folder)), last_lines(log, LOG_LINES)))
