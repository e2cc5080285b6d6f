"""What the plugin of pytest adds to each run: parts, orders, and logs where a test fails."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import parts

TESTS = Path(__file__).resolve().parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """run(files, word...): pytest with the plugin over modules of these names and texts."""

    def start(files: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "cases"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "harness.rings", "-v"]
        return subprocess.run(
            [*command, f"--basetemp={tmp_path / 'base'}", *words, "."],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(TESTS)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return start


WITH_LOGS = """
import pytest

@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "server.log").write_text("".join(f"line {n} of the server\\n" for n in range(60)))
    return folder

def test_passes(server, tmp_path):
    (tmp_path / "other.log").write_text("of another test")

def test_fails(server, tmp_path):
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "node.log").write_text("of the node")
    assert False
"""


def test_a_failed_test_shows_the_logs_that_it_shares_with_others(run: Run) -> None:
    shown = run({"test_it.py": WITH_LOGS}).stdout
    assert "of the node" in shown
    assert "line 59 of the server" in shown and "line 10 of the server" in shown
    assert "line 9 of the server" not in shown  # the last 50
    assert "of another test" not in shown


def test_a_failed_fixture_shows_its_logs(run: Run) -> None:
    text = """
import pytest

@pytest.fixture(scope="module")
def server(tmp_path_factory):
    (tmp_path_factory.mktemp("server") / "server.log").write_text("cannot listen")
    raise RuntimeError("it does not start")

def test_it(server): pass
"""
    assert "cannot listen" in run({"test_it.py": text}).stdout


def _ran(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line.split()[0] for line in done.stdout.splitlines() if " PASSED" in line]


def test_each_test_runs_in_one_part_and_in_any_order(run: Run) -> None:
    files = {f"test_{name}.py": "\n".join(f"def test_{n}(): pass" for n in range(4)) for name in "abc"}
    whole = _ran(run(files))
    assert len(whole) == 12
    assert sorted(sum((_ran(run(files, f"--part={k}/3")) for k in (1, 2, 3)), [])) == whole
    shuffled = _ran(run(files, "--order=7"))
    assert sorted(shuffled) == whole and shuffled != whole
    assert shuffled == _ran(run(files, "--order=7"))
    modules = [case.split("::")[0] for case in shuffled]
    assert [*dict.fromkeys(modules)] == [module for n, module in enumerate(modules) if n % 4 == 0]


def test_parts_take_about_as_long() -> None:
    seconds = {"a": 600.0, "b": 10.0, "c": 20.0, "d": 300.0, "e": 290.0}
    cases = ["e", "d", "c", "b", "a", "f"]  # of f nothing is known
    chosen = [parts.part(cases, seconds, number, 2) for number in (1, 2)]
    assert chosen == [["c", "b", "a"], ["e", "d", "f"]]


def test_the_newest_seconds_of_a_case_count(tmp_path: Path) -> None:
    record = tmp_path / "cases.tsv"
    rows = ["9.0\tpassed\ta", "7.0\tpassed\ta", "1.0\tfailed\ta", "3.5\tpassed\tb"]
    record.write_text("".join(f"2026-01-01T00:00:00Z\tc0ffee\t{row}\n" for row in rows) + "cut off")
    assert parts.newest_seconds(record, "beef") == {"a": 7.0, "b": 3.5}
    assert parts.newest_seconds(record, "c0ffee") == {}  # what this commit's other parts have appended
    assert parts.newest_seconds(tmp_path / "none", "beef") == {}
