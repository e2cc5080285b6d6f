"""The benchmark of SPDL: its arithmetic, and its clock of the interpreter's lock."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.spdl import Row, figures_of, memory_of, row_of  # noqa: E402
from bench.spdl_rank import interpreter_lock  # noqa: E402


def test_the_first_and_the_last_epoch_count_for_no_rate() -> None:
    seconds = (100.0, 2.0, 3.0, 50.0)
    epochs = [{"samples": 10, "seconds": it, "lock": 0.5} for it in seconds]
    assert row_of("spdl", epochs, 7) == Row("spdl", 20 / 5.0, 7, 0.05)


def test_figures_are_medians_of_the_rounds() -> None:
    rows = [Row("spdl", rate, 1_000_000, 2e-6) for rate in (1.0, 9.0, 3.0)]
    figures = figures_of(rows, bound=4.0)
    assert [(figure.value, figure.unit) for figure in figures] == [
        (3.0, "1/s"),
        (1.0, "MB"),
        (pytest.approx(2.0), "us/sample"),
    ]


def test_memory_of_processes_that_have_ended_is_none() -> None:
    assert memory_of([os.getpid(), 2**22 + 1]) == pytest.approx(memory_of([os.getpid()]), rel=0.5)
    assert memory_of([2**22 + 1]) == 0


def test_the_lock_is_that_of_threads_which_compute() -> None:
    """The clock goes on until others have had the lock for a while, however busy the machine is."""
    go_on = threading.Event()

    def compute() -> None:
        while not go_on.is_set():
            sum(range(1000))

    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel does not count how long a thread is ready")
    begin, longest = time.monotonic(), 0.0
    with interpreter_lock() as waited:
        other = threading.Thread(target=compute)
        other.start()
        try:
            while longest < 0.02 and time.monotonic() < begin + 120:
                time.sleep(0.001)
                longest = max(longest, waited())
        finally:
            go_on.set()
            other.join()
    assert 0.02 <= longest <= time.monotonic() - begin
