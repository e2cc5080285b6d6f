"""Ends what was started here: by process id, politely first."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import HarnessError

GRACE_SECONDS = 20.0
POLL_SECONDS = 0.1


def stop(process: subprocess.Popen[bytes], grace_seconds: float = GRACE_SECONDS) -> int:
    """SIGTERM; once obeyed, or `grace_seconds` later, SIGKILL to what is left of its group.

    The process was started with start_new_session=True. Returns its exit status.
    """
    if process.returncode is None:
        os.kill(process.pid, signal.SIGTERM)  # its terminate() would collect one that has ended
        wait_for_end(process, grace_seconds)
        # Not waited for yet, so its id still names this group and no other.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def wait_for_end(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the process ends within `seconds`. Its exit status is not collected."""
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """For what happens in another process. HarnessError names `what` did not come true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise HarnessError(f"not within {seconds:.0f} s: {what}")
        time.sleep(POLL_SECONDS)


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log file, indented, for a message."""
    lines = log.read_text(errors="replace").splitlines()[-count:] if log.exists() else []
    return "\n".join(f"    {line}" for line in lines)
