"""Files that grow by a line a run on this machine, so that times and failures can be compared over many."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from pathlib import Path


def append(file: Path, rows: Iterable[tuple[object, ...]]) -> None:
    """Each row after the time and the commit of this folder, with tabs between; makes the file if need be."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    commit = this_commit()
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", encoding="utf-8") as out:
        out.writelines("\t".join(map(str, (now, commit, *row))) + "\n" for row in rows)


def this_commit() -> str:
    """Of this folder, as rows name it."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
