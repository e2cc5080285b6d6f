"""What a benchmark is given, and how it asks one of our programs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM_SECONDS = 900.0


@dataclass(frozen=True)
class Context:
    programs: Path  # the folder of the optcache programs, release build
    folder: Path  # the benchmark's own, empty; its path is short
    out: Path  # for what is worth keeping
    quick: bool  # sizes at which everything is run, and nothing measured well
    say: Callable[[str], None]  # told in a few words what is going on

    def within(self, name: str) -> Context:
        """The same with a folder of its own below this one's."""
        folder = self.folder / name
        folder.mkdir()
        return dataclasses.replace(self, folder=folder)

    def ask(self, program: str, *arguments: str) -> Any:
        """Runs a benchmark program; what it prints is JSON."""
        done = subprocess.run(
            [self.programs / program, *arguments],
            capture_output=True,
            check=False,
            timeout=PROGRAM_SECONDS,
        )
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip()
            raise HarnessError(f"{program} ends with status {done.returncode}: {words}")
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            first = next(iter(done.stdout.decode(errors="replace").splitlines()), "nothing")
            raise HarnessError(f"{program} does not print JSON ({error}): {first[:200]}") from error
