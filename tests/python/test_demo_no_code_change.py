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


def test_more_than_the_bound_and_the_arenas_fails() -> None:
    def told(store_bytes: int) -> list[str]:
        reads = Reads("boto3, optcache", 4000, 3200, store_bytes, 4_000_000)
        return list(no_code_change.too_much(reads, 500_000))

    assert told(4_580_000) == []
    (why,) = told(4_680_000)
    assert why == "4.7 MB were read of the store; 1.02 times the bound, and the arenas, are 4.6 MB"


class Library:
    """Stands for boto3."""

    def __init__(self, version: str) -> None:
        self.__version__ = version

    def client(self, *words: str, **named: str) -> tuple[tuple[str, ...], dict[str, str]]:
        return words, named


@pytest.mark.parametrize(
    ("version", "named"),
    [
        ("1.26.27", {"endpoint_url": "http://127.0.0.1:4104"}),
        ("1.28.0", {}),
        ("1.43.117", {}),
        ("2.0", {}),
    ],
)
def test_its_ranks_name_the_endpoint_only_to_an_old_boto3(
    version: str, named: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3")
    import boto3_rank

    monkeypatch.setattr(boto3_rank, "boto3", Library(version))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:4104")
    assert boto3_rank.client() == (("s3",), named)


def test_samples_are_numbered_as_keys_are_sorted() -> None:
    dataset = Dataset(Path(), ("b/a.png", "b/a/c.png", "b-a/x.png"), (1, 2, 3))
    assert no_code_change.by_key(dataset).paths == ("b-a/x.png", "b/a.png", "b/a/c.png")
    assert no_code_change.by_key(dataset).sizes == (3, 1, 2)


def test_its_ranks_do_not_know_the_cache() -> None:
    rank = no_code_change.RANK_PROGRAM.read_text()
    assert not re.search("optcache", rank, re.IGNORECASE)
    assert f'BUCKET = "{sources.BUCKET}"' in rank
    assert f'PREFIX = "{sources.PREFIX}"' in rank
