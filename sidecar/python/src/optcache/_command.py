"""The command `optcache` of a wheel that brings the programs (`./dev wheel`)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    # Python ignores these signals, and what is executed would, too: `optcache status | head` ends by the first.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    # The program finds the others beside itself, and behaves as a plugin of kubectl by the name it is given.
    os.execv(Path(__file__).with_name("_bin") / "optcache", sys.argv)
