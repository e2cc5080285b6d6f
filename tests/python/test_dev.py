"""`./dev VERB --help` is text: nothing is installed or built for it. A suite that fails hides no other."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERBS = (
    "bench",
    "build",
    "check",
    "check --all",
    "ci",
    "cluster",
    "cluster demo",
    "cluster test",
    "cluster up",
    "demo",
    "fmt",
    "generate",
    "test",
    "test --long",
    "test frameworks",
    "up",
    "wheel",
)
NOT_FOR_TEXT = ("apt-get", "sudo", "cmake", "ninja", "ctest", "pip", "go")


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_text_alone(verb: str, tmp_path: Path) -> None:
    called = tmp_path / "called"
    for name in NOT_FOR_TEXT:
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "$0 $*" >>{called}\nexit 1\n')
        program.chmod(0o755)
    done = subprocess.run(
        ["bash", ROOT / "dev", *verb.split(), "--help"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) > 100
    assert not called.exists(), called.read_text()


TENTHS = """\
source <(sed -n '/^tenths() {/,/^}/p' '%s')
tenths
"""


def test_a_build_into_a_log_shows_each_tenth_at_once() -> None:
    said = [f"{100 * n // 400:3}%, {n} of 400 Building {n}.o" for n in range(1, 401)]
    with subprocess.Popen(
        ["bash", "-c", TENTHS % (ROOT / "dev")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as shown:
        assert shown.stdin is not None and shown.stdout is not None
        watchdog = threading.Timer(300, shown.kill)
        watchdog.start()
        for line in (said[0], "a.cc:1: warning"):
            shown.stdin.write(f"{line}\n")
            assert shown.stdout.readline() == f"{line}\n", "while the build goes on"
        shown.stdin.write("\n".join(said[1:]))  # and the last line has no end
        shown.stdin.close()
        rest = shown.stdout.read().splitlines()
        watchdog.cancel()
    assert rest == [said[40 * tenth - 1] for tenth in range(1, 11)]


FRAMEWORKS = """\
set -euo pipefail
cd {folder}
source {root}/scripts/dev.d/steps.sh
source {root}/scripts/dev.d/tests.sh
use_programs() {{ true; }}
step frameworks frameworks
"""
PYTHON = """\
#!/bin/sh
echo "$*" >>called
case "$*" in *"$FAILS"*) exit 1 ;; esac
"""
SUITES = ("python", "frameworks", "tar", "s3_endpoint", "fsspec")


@pytest.mark.parametrize("fails", [None, "-c", *SUITES])
def test_each_suite_of_frameworks_runs_whichever_fails(fails: str | None, tmp_path: Path) -> None:
    program = tmp_path / ".venv-frameworks" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(PYTHON)
    program.chmod(0o755)
    part = {None: "no such suite", "-c": " -c import ", "python": "tests/python"}.get(fails)
    done = subprocess.run(
        ["bash", "-c", FRAMEWORKS.format(folder=tmp_path, root=ROOT)],
        env={**os.environ, "FAILS": part or f"integration/test_{fails}.py"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    called = (tmp_path / "called").read_text().splitlines()
    assert (done.returncode == 0) is (fails is None), done.stdout + done.stderr
    assert len(called) == (1 if fails == "-c" else 1 + len(SUITES)), "what is missing is told first"
