"""`./dev VERB --help` is text: nothing is installed or built for it."""

from __future__ import annotations

import os
import subprocess
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
