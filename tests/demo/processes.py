"""How the demo ends what it started: by process id, politely first."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

GRACE_SECONDS = 15.0


def stop(process: subprocess.Popen[bytes], grace_seconds: float = GRACE_SECONDS) -> int:
    """SIGTERM, and after `grace_seconds` SIGKILL to the whole group that the process leads.

    The process was started with start_new_session=True. Returns its exit status.
    """
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log file, indented, for a message."""
    lines = log.read_text(errors="replace").splitlines()[-count:] if log.exists() else []
    return "\n".join(f"    {line}" for line in lines)
