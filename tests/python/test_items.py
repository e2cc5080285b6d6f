"""Datasets whose items are made of several samples: `attach(loader, dataset=..., samples=...)`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy
import pytest
from conftest import Server

torch = pytest.importorskip("torch")

from test_orders import Unforeseen, crc, data, seeded  # noqa: E402
from torch.utils.data import DataLoader, Subset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import optcache  # noqa: E402
from optcache.torch import attach  # noqa: E402

__all__ = ["data"]  # a fixture

ITEMS = 40


class Captions(torch.utils.data.Dataset):  # type: ignore[misc, type-arg]
    """An item is an image and up to three captions, some of which other images have, too."""

    def __init__(self, files: optcache.Dataset, way: str) -> None:
        self.files = files
        self.way = way

    def made_of(self, index: int) -> list[int]:
        return [index, *(100 + (index + number) // 2 for number in range(index % 4))]

    def __len__(self) -> int:
        return ITEMS

    def __getitem__(self, index: int) -> tuple[int, list[bytes]]:
        ids = self.made_of(index)
        if self.way == "one by one":
            read = [self.files[number] for number in ids]
        elif self.way == "backwards":
            read = [self.files[number] for number in ids[::-1]][::-1]
        elif self.way == "some":
            read = [self.files[ids[0]], *self.files.__getitems__(ids[1:])]
        else:
            read = self.files.__getitems__(ids)
        return int(index), [bytes(it) for it in read]


def check(server: Server, captions: Captions, reading: Iterable[Any]) -> list[int]:
    """Reads an epoch: right items, one request a batch, at the places of its samples. The items."""
    known = server.mark()
    batches = list(reading)
    items = [index for batch in batches for index, _ in batch]
    for index, files in itertools.chain.from_iterable(batches):
        assert files == [bytes(captions.files[number]) for number in captions.made_of(index)]
    reads = [[n for i, _ in batch for n in captions.made_of(i)] for batch in batches]
    ends = [0, *itertools.accumulate(map(len, reads))]
    gets = sorted((g["first"], g["count"]) for g in server.of("get", after=known) if g["stream"])
    assert gets == list(zip(ends, map(len, reads)))
    (begun,) = server.of("pass", after=known)
    if "crc" in begun:
        assert (begun["length"], begun["crc"]) == (ends[-1], crc(list(itertools.chain(*reads))))
    return items


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("way", ["one by one", "backwards", "some", "all at once"])
def test_items_of_several_samples(
    data: optcache.Dataset, server: Server, way: str, workers: int
) -> None:
    captions = Captions(data, way)
    sampler = DistributedSampler(captions, num_replicas=2, rank=1, seed=5)
    loader = DataLoader(captions, 6, sampler=sampler, num_workers=workers, collate_fn=list)
    assert attach(loader, dataset=data, samples=captions.made_of, epochs=2) is loader
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert check(server, captions, loader) == list(sampler)
    assert server.of("attach")[0]["order"] == "trace"
    # The order of each pass, and as it begins those of the two that follow.
    assert [trace["pass"] for trace in server.of("trace")] == [3, 4, 5, 6]
    assert all(trace["length"] > 20 for trace in server.of("trace"))


def test_a_batch_of_items_may_be_read_at_once(data: optcache.Dataset, server: Server) -> None:
    """By a dataset with __getitems__, to which PyTorch 2 gives the indices of a batch."""
    captions = Captions(data, "")
    loader = attach(DataLoader(captions, 6), dataset=data, samples=captions.made_of)

    def read(indices: Sequence[int]) -> list[tuple[int, list[bytes]]]:
        made_of = [captions.made_of(index) for index in indices]
        files = iter(data.__getitems__([number for ids in made_of for number in ids]))
        return [(i, [bytes(next(files)) for _ in ids]) for i, ids in zip(indices, made_of)]

    assert check(server, captions, map(read, loader.batch_sampler)) == list(range(ITEMS))


def test_items_of_a_seeded_order_are_known_ahead(data: optcache.Dataset, server: Server) -> None:
    captions = Captions(data, "one by one")
    loader = DataLoader(captions, 6, shuffle=True, generator=seeded(3), collate_fn=list)
    attach(loader, dataset=data, samples=captions.made_of)
    for _ in range(3):
        check(server, captions, loader)
    passes, traces = server.of("pass"), server.of("trace")
    assert [trace["pass"] for trace in traces] == [3, 4, 5, 6, 7]
    assert [trace["crc"] for trace in traces[:3]] == [begun["crc"] for begun in passes]


def test_items_that_are_not_known_ahead_are_followed(
    data: optcache.Dataset, server: Server
) -> None:
    captions = Captions(data, "one by one")
    loader = DataLoader(captions, 8, sampler=Unforeseen(ITEMS), collate_fn=list)
    items = check(server, captions, attach(loader, dataset=data, samples=captions.made_of))
    read = [n for index in items for n in captions.made_of(index)]
    told = [(trace["first"], trace["count"]) for trace in server.of("trace")]
    assert sum(count for _, count in told) == len(read) and told[0][0] == 0
    assert server.of("pass")[0]["length"] == 0


def test_numbers_of_a_part(data: optcache.Dataset, server: Server) -> None:
    part = Subset(data, range(190, 200))
    source = [(bytes(part[n]), bytes(part[9 - n])) for n in range(5)]

    class Pairs(torch.utils.data.Dataset):  # type: ignore[misc, type-arg]
        def __len__(self) -> int:
            return 5

        def __getitem__(self, index: int) -> tuple[bytes, bytes]:
            return bytes(part[index]), bytes(part[9 - index])

    loader = DataLoader(Pairs(), 2, collate_fn=list)
    attach(loader, dataset=part, samples=lambda index: (index, 9 - index))
    assert [pair for batch in loader for pair in batch] == source
    (begun,) = server.of("pass")
    assert begun["crc"] == crc([190, 199, 191, 198, 192, 197, 193, 196, 194, 195])


def test_goes_on_in_the_middle(data: optcache.Dataset, server: Server) -> None:
    captions = Captions(data, "all at once")

    def make() -> Any:
        loader = DataLoader(captions, 6, collate_fn=list)
        return attach(loader, dataset=data, samples=captions.made_of)

    first = make()
    for _ in zip(range(3), first):
        pass
    late = make()
    late.optcache.load_state_dict(first.optcache.state_dict())
    known = server.mark()
    assert [index for batch in late for index, _ in batch] == list(range(18, ITEMS))
    (begun,) = server.of("pass", after=known)
    assert begun["start"] == sum(len(captions.made_of(index)) for index in range(18))
    assert begun["length"] == sum(len(captions.made_of(index)) for index in range(18, ITEMS))


@pytest.mark.parametrize("batch", [1, 6])
def test_numbers_may_be_arrays(data: optcache.Dataset, server: Server, batch: int) -> None:
    numbers = numpy.arange(2 * ITEMS).reshape(ITEMS, 2)

    class Rows(Captions):
        def made_of(self, index: int) -> Any:
            return numbers[index]

        def __getitem__(self, index: int) -> tuple[int, list[bytes]]:
            return int(index), [bytes(it) for it in self.files.__getitems__(numbers[index])]

    rows = Rows(data, "")
    loader = DataLoader(rows, batch, collate_fn=list)
    check(server, rows, attach(loader, dataset=data, samples=rows.made_of))


def test_what_samples_wants(data: optcache.Dataset) -> None:
    captions = Captions(data, "one by one")
    with pytest.raises(TypeError, match="names samples of dataset=. Set dataset=, too"):
        attach(DataLoader(data), samples=captions.made_of)
    kept = optcache.cached(captions, name="captions")
    with pytest.raises(TypeError, match="keeps computed samples: give the optcache dataset"):
        attach(DataLoader(captions), dataset=kept, samples=captions.made_of)
    with pytest.raises(TypeError, match="the Captions of the loader is not .* give dataset="):
        attach(DataLoader(captions))
    with pytest.raises(TypeError, match="the Captions that dataset= gives is not"):
        attach(DataLoader(data), dataset=captions)
    with pytest.raises(ValueError, match="limit_batches= cannot be used with samples="):
        attach(DataLoader(captions), dataset=data, samples=captions.made_of, limit_batches=2)
