"""Samples without a transform go through a DataLoader, and to another process, as bytes.

A loader that waits longer than the deadline raises: a sample that is lost on its way hangs nothing.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Server

import optcache

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

COUNT = 12
DEADLINE_S = 120.0


def raw_batches(loader: DataLoader[Any]) -> Iterator[list[bytes]]:
    for batch in loader:
        assert type(batch) is list and {type(sample) for sample in batch} == {bytes}
        yield batch


@pytest.fixture
def some(server: Server) -> torch.utils.data.Subset[Any]:
    return torch.utils.data.Subset(optcache.Dataset(), range(COUNT))  # type: ignore[arg-type]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_worker_hands_over_what_it_has_read(
    some: torch.utils.data.Subset[Any], contents: list[bytes], start: str, persistent: bool
) -> None:
    loader = DataLoader(
        some,
        batch_size=4,
        num_workers=1,
        collate_fn=list,
        timeout=DEADLINE_S,
        multiprocessing_context=start,
        persistent_workers=persistent,
    )
    for _ in range(2):
        assert sum(raw_batches(loader), []) == contents[:COUNT]


@pytest.mark.parametrize("workers", [0, 1])
def test_default_collate_makes_a_list_of_them(
    some: torch.utils.data.Subset[Any], contents: list[bytes], workers: int
) -> None:
    loader = DataLoader(
        some, batch_size=4, num_workers=workers, timeout=DEADLINE_S if workers else 0
    )
    assert sum(raw_batches(loader), []) == contents[:COUNT]


@pytest.mark.parametrize("workers", [0, 1])
def test_default_collate_takes_them_within_a_sample(
    server: Server, contents: list[bytes], workers: int
) -> None:
    loader = DataLoader(
        optcache.Dataset(transform=lambda view: {"file": view, "bytes": len(view)}),  # type: ignore[arg-type]
        batch_size=4,
        num_workers=workers,
        timeout=DEADLINE_S if workers else 0,
    )
    batch = next(iter(loader))
    assert batch["file"] == contents[:4]
    assert batch["bytes"].tolist() == [len(sample) for sample in contents[:4]]


def test_a_queue_takes_a_view(server: Server, contents: list[bytes]) -> None:
    queue: multiprocessing.Queue[Any] = multiprocessing.Queue()
    queue.put(optcache.Dataset()[3])
    assert queue.get(timeout=DEADLINE_S) == contents[3]
