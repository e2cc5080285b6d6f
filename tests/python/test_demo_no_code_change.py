"""The figures of `./dev demo --no-code-change`, and that its ranks are what it says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "demo"), str(Path(__file__).parents[1])]

pytest.importorskip("torch")

import no_code_change  # noqa: E402
import sources  # noqa: E402
from harness.dataset import Dataset  # noqa: E402
from no_code_change import Reads  # noqa: E402


def test_the_table_compares_with_the_bound() -> None:
    runs = [Reads("boto3", 4000, 4000, 5_000_000, 4_000_000)]
    runs.append(Reads("boto3, optcache", 4000, 3200, 4_010_000, 4_000_000))
    lines = no_code_change.table(runs).splitlines()
    assert lines[0].split() == [
        *("run", "reads", "GETs", "GETs/reads"),
        *("read", "MB", "bound", "MB", "read/bound"),
    ]
    assert lines[2].split() == ["boto3", "4,000", "4,000", "1.000", "5.0", "4.0", "1.2500"]
    assert lines[3].split()[1:] == ["optcache", "4,000", "3,200", "0.800", "4.0", "4.0", "1.0025"]


def test_an_order_that_was_not_followed_is_told() -> None:
    name = "optcache_unpredicted_reads_total"
    told = list(no_code_change.unknown_reads([{name: 0.0}, {name: 3.0}, {}]))
    assert told == ["sidecar 1 did not know 3 reads in advance"]


def test_samples_are_numbered_as_keys_are_sorted() -> None:
    dataset = Dataset(Path(), ("b/a.png", "b/a/c.png", "b-a/x.png"), (1, 2, 3))
    assert no_code_change.by_key(dataset).paths == ("b-a/x.png", "b/a.png", "b/a/c.png")
    assert no_code_change.by_key(dataset).sizes == (3, 1, 2)


def test_its_ranks_do_not_know_the_cache() -> None:
    rank = no_code_change.RANK_PROGRAM.read_text()
    assert not re.search("optcache", rank, re.IGNORECASE)
    assert f'BUCKET = "{sources.BUCKET}"' in rank
    assert f'PREFIX = "{sources.PREFIX}"' in rank
