"""The README's "Your own data", word for word. What it installs is tried by tests/python/test_readme.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from harness.ports import free_port
from harness.processes import stop, wait_until
from PIL import Image

PAGE = Path(__file__).parents[2] / "README.md"
IMAGES, CLASSES, EPOCHS = 40, 2, 3
SECONDS = 300
# Port 0: another cache may be up. Only the programs are taken from the build.
OPTCACHE = """#!/bin/sh
[ "$1" != up ] || set -- "$@" --port 0
exec {programs}/optcache "$@"
"""
EXPORT = re.compile(r"^export OPTCACHE_SOCKET=.*$", re.MULTILINE)
INSTALLS = ("./dev wheel", "python3 -m venv ", "pip install ")


@pytest.fixture
def folder(programs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's: with images, with the README's files, and with what its commands find."""
    path = Path(tempfile.mkdtemp(prefix="oc-"))  # short, for sockets
    for number in range(IMAGES):
        image = path / "data" / f"class{number % CLASSES}" / f"{number}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), number, dtype=np.uint8)).save(image)
    (path / "dataset.yaml").write_text(block("yaml").replace("/data/train", str(path / "data")))
    (path / "train.py").write_text(block("python"))
    installed = path / ".venv" / "bin"
    installed.mkdir(parents=True)
    (installed / "activate").touch()
    (installed / "optcache").write_text(OPTCACHE.format(programs=programs))
    (installed / "optcache").chmod(0o755)
    places = [installed, Path(sys.executable).parent, os.environ["PATH"]]  # its python3 is this one
    monkeypatch.setenv("PATH", ":".join(map(str, places)))
    monkeypatch.setenv("XDG_STATE_HOME", str(path / "my state"))
    monkeypatch.setenv("PET_MASTER_PORT", str(free_port()))  # torchrun's own may be taken
    monkeypatch.setenv("TMPDIR", str(path))  # torchrun leaves logs there
    monkeypatch.delenv("OPTCACHE_SOCKET", raising=False)
    monkeypatch.chdir(path)
    yield path
    shutil.rmtree(path)


def block(language: str, having: str = "") -> str:
    section = PAGE.read_text().partition("## Your own data\n")[2].partition("\n## ")[0]
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    (found,) = (text for text in blocks if having in text)
    return found


def tell(export: str, words: str) -> str:
    """What a command of the README prints, in a shell as it describes."""
    shell = ["bash", "-c", f". .venv/bin/activate\n{export}\n{words}"]
    ran = subprocess.run(shell, capture_output=True, text=True, timeout=SECONDS, check=False)
    return ran.stdout + ran.stderr


def test_the_script_runs_as_printed_alone_and_by_torchrun(folder: Path) -> None:
    commands = block("sh", "pip install").splitlines()
    (start,) = (line for line in commands if not line.startswith(INSTALLS))
    log, state = folder / "up.log", folder / "my state" / "optcache"
    with log.open("wb") as said:
        up = subprocess.Popen(
            ["bash", "-c", f"exec {start}"], stdout=said, stderr=said, start_new_session=True
        )
    try:
        wait_until(lambda: EXPORT.search(log.read_text()) is not None, "the line is printed")
        wait_until((state / "sockets" / "machine-0.sock").is_socket, "the sidecar listens")
        (line,) = EXPORT.findall(log.read_text())
        script = re.sub(r"(?m)^export .*=\.\.\. .*$", lambda _: line, block("sh", "train.py"))
        ran = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, errors = (said.decode() for said in ran.communicate(timeout=SECONDS))
        finally:
            stop(ran)
        look = [line.partition("#")[0].strip() for line in block("sh", "optcache status").splitlines()]
        looks = {words: tell(line, words) for words in look}
    finally:
        status = stop(up)
    assert ran.returncode == 0, errors
    assert status == 0, log.read_text()
    lines = re.findall(r"rank (\d), epoch (\d): (\d+) images", out)
    seen = [tuple(map(int, line)) for line in lines]
    assert seen[:EPOCHS] == [(0, epoch, IMAGES) for epoch in range(EPOCHS)]
    halves = [(rank, epoch, IMAGES // 2) for rank in range(2) for epoch in range(EPOCHS)]
    assert sorted(seen[EPOCHS:]) == halves
    told = (state / "logs" / "sidecar-0.log").read_text()
    attached = set(re.findall(r"loader attached.*? rank=(\d+) .*?world=(\d+)", told))
    assert attached == {("0", "1"), ("0", "2"), ("1", "2")}
    assert "order unknown" not in told
    assert "default/photos" in looks["optcache status"]
    assert "Saved by the sidecars" in looks["optcache status"]
    assert "of a job local; no job is attached now" in looks["optcache explain job local"]
    assert re.search(r"^ok +sidecar-0: ", looks["optcache doctor"], re.MULTILINE)
    assert "OPTCACHE_SOCKET is not set" not in looks["optcache doctor"]
