"""The benchmark of faults: a fault that a job did not read through is no figure."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torchvision")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.part_faults import Fault, failing, longest_wait  # noqa: E402
from harness.errors import HarnessError  # noqa: E402

PARTS: Any = None
NOTHING = Fault("nothing", lambda parts: None, goal_seconds=1.0)


def test_waits_before_the_fault_do_not_count() -> None:
    moments = [0.0, 9.0, 10.0, 14.0, 15.0]
    assert longest_wait("it", moments, failed=9.5, mended=11.0) == 4.0
    assert longest_wait("it", moments, failed=14.5, mended=14.5) == 1.0


def test_a_wait_into_which_the_fault_fell_counts_as_a_whole() -> None:
    assert longest_wait("it", [0.0, 9.0, 10.0], failed=8.9, mended=9.5) == 9.0


@pytest.mark.parametrize("moments", [[], [1.0, 2.0], [1.0, 2.0, 3.0]])
def test_a_job_that_ends_before_the_fault_does_is_no_figure(moments: list[float]) -> None:
    with pytest.raises(HarnessError, match="it: the job ended before the fault did"):
        longest_wait("it", moments, failed=1.5, mended=3.0)


def test_a_fault_is_mended_while_the_job_reads() -> None:
    done: list[str] = []
    fault = replace(NOTHING, fail=lambda parts: done.append("fail"), mend=lambda parts: done.append("mend"))
    with failing(fault, PARTS) as mended:
        assert mended.result() > 0
        assert done == ["fail", "mend"]


def refuse(parts: object) -> None:
    raise HarnessError("it cannot be mended")


def test_what_keeps_a_fault_from_being_mended_is_raised() -> None:
    with pytest.raises(HarnessError, match="cannot be mended"), failing(replace(NOTHING, mend=refuse), PARTS):
        pass


def test_a_fault_is_mended_where_the_job_fails_too() -> None:
    done: list[str] = []
    fault = replace(NOTHING, mend=lambda parts: done.append("mend"))
    with pytest.raises(ValueError, match="the job"), failing(fault, PARTS):
        raise ValueError("the job")
    assert done == ["mend"]
