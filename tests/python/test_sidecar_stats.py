"""`loader.optcache.stats()`, against the server of these tests, which says that other nodes had all samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, list_source

import optcache

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from optcache.torch import SidecarStats, attach  # noqa: E402


def lengths(batch: list[bytes]) -> list[int]:
    return [len(sample) for sample in batch]


def loader_of(data: optcache.Dataset, workers: int = 0) -> Any:
    loader = DataLoader(data, batch_size=8, num_workers=workers, collate_fn=lengths)
    return attach(loader, name="train")


def test_counts_what_the_workers_read(server: Server, contents: list[bytes]) -> None:
    here = optcache.stats().samples
    loader = loader_of(optcache.Dataset(), workers=2)
    before = loader.optcache.stats()
    assert (before.samples, before.hit_ratio, before.saved_requests) == (0, 0.0, -3)
    for _ in loader:
        during = loader.optcache.stats()
        assert 0 < during.samples <= len(contents)
    total = sum(map(len, contents))
    assert loader.optcache.stats() == SidecarStats(
        samples=len(contents),
        bytes=total,
        hits=len(contents),
        hit_bytes=total,
        store_requests=3,
        store_bytes=3000,
        saved_requests=len(contents) - 3,
        saved_bytes=total - 3000,
        waited_seconds=1.5,
        saved_cost=0.25,
    )
    assert loader.optcache.stats().hit_ratio == 1.0
    assert optcache.stats().samples == here, "that is of this process, which read nothing"


def test_still_counts_when_the_loader_has_ended(server: Server, contents: list[bytes]) -> None:
    loader = loader_of(optcache.Dataset())
    assert len(list(loader)) == len(contents) // 8
    loader.optcache.detach()
    assert loader.optcache.stats().samples == len(contents)


def test_a_sidecar_that_was_started_again_counts_from_its_start(
    server: Server, contents: list[bytes]
) -> None:
    loader = loader_of(optcache.Dataset())
    assert len(list(loader)) == len(contents) // 8
    server.kill()
    server.start()
    assert loader.optcache.stats().samples == 0


def test_there_are_none_without_a_sidecar(server: Server) -> None:
    list_source(server)
    loader = loader_of(optcache.Dataset())
    server.kill()
    assert loader.optcache.stats() is None
    assert sum(len(batch) for batch in loader) == 200  # read from the folder
    assert loader.optcache.stats() is None


def test_another_list_of_samples_is_an_error(
    serve: Callable[..., Server], samples: Path, images: Path
) -> None:
    server = serve(samples)
    loader = loader_of(optcache.Dataset())
    server.kill()
    server.folder = images
    server.start()
    with pytest.raises(optcache.OptcacheError, match="indexed again"):
        loader.optcache.stats()


def test_computed_samples_have_stats_of_their_own(server: Server) -> None:
    data = optcache.cached([b"one", b"two"] * 8, name="words", max_bytes="1Mi")
    assert loader_of(data).optcache.stats() is None
