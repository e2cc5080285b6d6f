"""Runs one command to its end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

END_S = 60.0


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


def run(command: Sequence[str | Path], folder: Path, seconds: float = END_S) -> Ended:
    """In `folder`. subprocess.TimeoutExpired if it does not end; it is killed then."""
    ended = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


def running_in(folder: Path) -> list[str]:
    """The command lines that name `folder`, of all processes there are."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            if any(str(folder).encode() in word for word in words):
                found.append(b" ".join(words).decode(errors="replace"))
    return found
