"""The command `optcache` of a wheel that brings the programs (`./dev wheel`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    # The program finds the others beside itself, and behaves as a plugin of kubectl by the name it is given.
    os.execv(Path(__file__).with_name("_bin") / "optcache", sys.argv)
