"""What the demo is doing, while it does it."""

from __future__ import annotations

import sys
import time


class ProgressLine:
    """Drawn over and over on a terminal; elsewhere a line a phase, without percentages."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._last = ""

    def say(self, what: str, detail: str) -> None:
        phase = f"{what}: {detail if self._terminal else detail.split(',')[0]}"
        if phase == self._last:
            return
        self._last = phase
        text = f"{time.monotonic() - self._began:5.0f} s  {phase}"
        print(f"\r\033[K{text}" if self._terminal else text, end="", file=sys.stderr)
        print("" if self._terminal else "\n", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
