"""Lines for the person who waits for a process: in the log, and where that person looks."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import Optional

from ._text import visible

log = logging.getLogger("optcache")


def tell(sentence: str) -> None:
    """Logs a warning, and writes it to standard error unless the log does.

    A program whose log goes to a file, or shows errors alone, would otherwise stand still without a
    word. A program that sets the level of the logger "optcache" above WARNING gets neither.
    A launcher that gives ranks a number mixes their lines: each then names its rank.
    """
    rank = os.environ.get("RANK")
    if rank:
        sentence = f"rank {rank}: {sentence}"
    log.warning("%s", sentence)
    if log.level <= logging.WARNING and not _log_is_on_stderr():
        with contextlib.suppress(OSError, ValueError, AttributeError):  # it is closed, or None
            sys.stderr.write(f"optcache: {visible(sentence)}\n")
            sys.stderr.flush()


def _log_is_on_stderr() -> bool:
    if not log.isEnabledFor(logging.WARNING):
        return False
    if not log.hasHandlers():
        return True  # by Python's handler of last resort
    logger: Optional[logging.Logger] = log
    while logger is not None:
        for handler in logger.handlers:
            stream = getattr(handler, "stream", None)
            if stream in (sys.stderr, sys.__stderr__) and handler.level <= logging.WARNING:
                return True
        logger = logger.parent if logger.propagate else None
    return False
