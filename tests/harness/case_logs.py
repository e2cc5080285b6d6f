"""The logs of the processes that a test has used, for the report of its failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

LOGS_MAX = 20


def logs_of(base: Path, own: Path | None, since: float) -> Iterator[tuple[str, Path]]:
    """The logs in the test's `own` folder, then those that it shares with others, with their names.

    `base` is the folder of pytest's session. pytest names the folders of single tests in it `test_…`; the
    others belong to fixtures of modules and of the session. Of these, a log counts that was written after
    `since` (seconds of the epoch); the newest come first. At most LOGS_MAX in all.
    """
    found = sorted(own.rglob("*.log")) if own else []
    shared = [
        (log.stat().st_mtime, log)
        for folder in base.iterdir()
        if folder.is_dir() and not folder.is_symlink() and not folder.name.startswith("test_")
        for log in folder.rglob("*.log")
    ]
    found += [log for written, log in sorted(shared, reverse=True) if written >= since]
    for log in found[:LOGS_MAX]:
        yield str(log.relative_to(own if own and log.is_relative_to(own) else base)), log
