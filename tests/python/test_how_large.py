"""`optcache simulate --until`: what docs/user/how-large.md and --help show, word for word, and the
least capacity found again one by one."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, find_program

PAGE = ROOT / "docs" / "user" / "how-large.md"
RUN_S = 300
FILES = 40


def optcache(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [find_program("optcache"), *map(str, words)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=RUN_S, check=False
    )


def done(folder: Path, *words: object) -> str:
    ended = optcache(folder, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a dataset `images`, and its manifest."""
    (tmp_path / "images").mkdir()
    for number in range(FILES):
        (tmp_path / "images" / f"{number}.jpg").write_bytes(b"x" * (100 + 37 * number))
    done(tmp_path, "manifest", "build", "--source", "images", "-o", "images.manifest")
    return tmp_path


def test_examples_of_the_user_page(folder: Path) -> None:
    page = PAGE.read_text()
    ran = 0
    for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            program, *words = shlex.split(command)
            if "suggest" in words:  # of a cache that runs: tests/integration/test_plan_suggest.py
                continue
            assert program == "optcache"
            said = done(folder, *words)
            assert output in ("", said)
            ran += 1
    assert ran == 5
    assert (folder / "curve.svg").read_text().count("<circle") == 1
    # What the page tells to write is what the first example found.
    (written,) = re.findall(r"capacity: ([\d.]+)%\}", page)
    assert re.search(rf"^optimal +{re.escape(written)} %", page, re.MULTILINE)


def test_help_shows_commands_that_work(folder: Path) -> None:
    lines = re.findall(r"^ {4}(optcache .*--until.*)$", done(folder, "simulate", "--help"), re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        words = shlex.split(line)[1:]
        small = [] if "--manifest" in words else ["--samples", 500, "--epochs", 4]
        done(folder, *words, *small)


@pytest.mark.parametrize("sizes", ["equal", "lognormal"])
def test_a_thousandth_less_does_not_reach_the_goal(tmp_path: Path, sizes: str) -> None:
    """By the costs that the comparison of policies prints at one capacity."""
    words = ["simulate", "--samples", 300, "--epochs", 5, "--sizes", sizes, "--policies", "optimal"]

    def cost(capacity: float) -> float:
        text = done(tmp_path, *words, "--capacity", f"{capacity:.3f}", "--output", "json")
        reads = json.loads(text)["policies"]["optimal"]
        return float(reads["storeReads"] * 0.25 + reads["storeBytes"] / 2**30 * 3)

    goal = (cost(0.2) + cost(0.7)) / 2
    until = ["--until", f"cost={goal}", "--price-per-request", 0.25, "--price-per-gib", 3, "--output", "json"]
    found = json.loads(done(tmp_path, *words, *until))["policies"]["optimal"]
    assert 0.2 < found["capacity"] < 0.7
    assert found["cost"] == pytest.approx(cost(found["capacity"])) and found["cost"] <= goal
    assert cost(found["capacity"] - 0.001) > goal


def test_an_only_epoch_counts(tmp_path: Path) -> None:
    words = ["--samples", 500, "--store-bandwidth", 0.7, "--until", "waiting=2%"]
    more = done(tmp_path, "simulate", *words, "--epochs", 2)
    assert "first epoch is left out" in more and "no capacity" not in more
    only = done(tmp_path, "simulate", *words, "--epochs", 1)
    assert "first epoch" not in only and "100 % does not reach the goal" in only
    assert "Of its 500 store reads, 500 are the first of their sample" in only


def test_a_capacity_is_not_taken_beside_a_goal(tmp_path: Path) -> None:
    ended = optcache(tmp_path, "simulate", "--until", "waiting=2%", "--capacity", "0.3")
    assert ended.returncode == 2
    assert "--capacity" in ended.stderr
