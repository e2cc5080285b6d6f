"""docs/user/several-jobs.md, word for word; what it does on a cluster is tried in tests/cluster."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "user" / "several-jobs.md"
READS = 20_000
ALONE = 15_200  # of the store, if each job has a cache of its own
SECONDS = 100


def test_two_jobs_on_this_machine(programs: Path, tmp_path: Path) -> None:
    page = PAGE.read_text()
    block, _ = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    script, count = re.subn("optcache up ", "optcache up --port 0 ", block)  # others may be up
    assert count == 1
    # Its python3 is this one.
    path = [programs, Path(sys.executable).parent, os.environ["PATH"]]
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": ":".join(map(str, path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            output, errors = shell.communicate(timeout=SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)  # what it started, if it failed
    assert shell.returncode == 0, errors
    heads, row, *_ = output.splitlines()
    store_reads = dict(zip(re.split("  +", heads), re.split("  +", row)))["STORE READS"]
    assert f"{READS:,} reads in all" in page and f"it would be {ALONE:,}" in page
    # "About 10,000"; each second until the plan is there costs a few hundred more.
    assert 9_500 <= int(store_reads.replace(",", "")) <= 12_000
