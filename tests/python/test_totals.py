"""What `./dev test` says at its end, from what the runners said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CTEST = """\
100% tests passed, 0 tests failed out of 40

The following tests did not run:
\t207 - Sampler.Large/2_15  # GetParam() = "2.15" (Skipped)
"""
FAILED_CTEST = """\
95% tests passed, 2 tests failed out of 40

The following tests FAILED:
\t  3 - Plan.IsRight (Failed)
"""
PYTEST = """\
SKIPPED [3] tests/python/test_a.py:12: could not import 'spdl': No module named 'spdl'
=========== 1 failed, 10 passed, 3 skipped, 5 deselected, 1 error in 32.61s (0:00:32) ============
"""
SLOW_CTEST = """\
 11/40 Test  #12: Sampler.Large/2  # GetParam() = 7 ......................   Passed   12.34 sec
 12/40 Test #130: chart ..................................................***Failed    5.00 sec
 13/40 Test #131: Plan.IsRight ...........................................   Passed    4.99 sec
"""
SLOW_PYTEST = """\
71.20s call     test_gone.py::test_a_store[s3]
9.00s setup    test_gone.py::test_a_store[s3]
3.20s call     test_gone.py::test_a_node
"""
QUIET_PYTEST = "282 passed, 2 warnings in 332.83s (0:05:32)\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "steps.tsv").write_text("build\t12\tpassed\nunit tests\t3\tpassed\n")
    (tmp_path / "skips.txt").write_text("# comment\nSampler\\.Large  a minute\nNo module named 'spdl'  PyPI\n")
    return folder


def totals(logs: Path, code: int = 0) -> tuple[int, list[str]]:
    files = [logs, logs.parent / "skips.txt", logs.parent / "kept" / "runs.tsv"]
    program = [sys.executable, "-m", "harness.totals"]
    done = subprocess.run(
        [*program, *files, "ci", str(code)], capture_output=True, text=True, timeout=60, check=False, cwd=TESTS
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_runners_are_added_up(logs: Path) -> None:
    (logs / "dev.log").write_text(CTEST)
    (logs / "python.log").write_text(QUIET_PYTEST)
    code, lines = totals(logs)
    assert (code, lines[-1]) == (0, "321 passed, 0 failed, 1 skipped")
    assert [line.split() for line in lines if line.endswith(" s  passed")] == [
        ["build", "12", "s", "passed"],
        ["unit", "tests", "3", "s", "passed"],
    ]
    (record,) = (logs.parent / "kept" / "runs.tsv").read_text().splitlines()
    assert record.split("\t")[2:] == ["ci", "15", "321", "0", "1"]


def test_the_slowest_tests_are_named(logs: Path) -> None:
    (logs / "dev.log").write_text(SLOW_CTEST + CTEST)
    (logs / "python.log").write_text(SLOW_PYTEST + QUIET_PYTEST)
    _, lines = totals(logs)
    assert [line.split() for line in lines if line.startswith("slow: ")] == [
        ["slow:", "71.2", "s", "python:", "test_gone.py::test_a_store[s3]"],
        ["slow:", "12.3", "s", "dev:", "Sampler.Large/2", "#", "GetParam()", "=", "7"],
        ["slow:", "5.0", "s", "dev:", "chart"],
    ]


def test_failures_and_errors_are_failures(logs: Path) -> None:
    (logs / "dev.log").write_text(FAILED_CTEST)
    (logs / "python.log").write_text(PYTEST)
    code, lines = totals(logs)
    assert (code, lines[-1]) == (1, "48 passed, 4 failed, 3 skipped")


def test_a_skip_that_nobody_allows_is_a_failure(logs: Path) -> None:
    (logs / "dev.log").write_text(CTEST.replace("Sampler.Large", "Sampler.Small"))
    code, lines = totals(logs)
    assert (code, lines[-1]) == (1, "39 passed, 1 failed, 1 skipped")
    assert any("does not allow: Sampler.Small" in line for line in lines)


def test_an_end_before_anything_is_counted_is_a_failure(logs: Path) -> None:
    code, lines = totals(logs, 2)
    assert (code, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped")


def test_failed_tests_are_not_counted_twice(logs: Path) -> None:
    (logs / "dev.log").write_text(FAILED_CTEST)
    code, lines = totals(logs, 1)
    assert (code, lines[-1]) == (1, "38 passed, 2 failed, 0 skipped")
