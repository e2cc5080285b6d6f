"""The bound that clients of the S3 endpoint are compared with."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.s3_clients import Layout  # noqa: E402


def test_all_are_read_once_and_then_what_has_no_room() -> None:
    layout = Layout(Path(), [1000] * 10)
    assert layout.bound(1) == 10
    assert layout.bound(5) == 10 + 4 * 7, "a quarter of the capacity for transit is too little for one"


def test_the_smallest_are_the_most_that_can_be_kept() -> None:
    assert Layout(Path(), [1, 1, 8, 30, 60]).bound(2) == 5 + 2
    assert Layout(Path(), [1, 1, 8, 25, 65]).bound(2) == 5 + 1, "one more in the reserve for transit"
