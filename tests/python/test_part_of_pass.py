"""What `attach` tells of passes that are not each sample once."""

from __future__ import annotations

import itertools

import pytest
from conftest import Server

torch = pytest.importorskip("torch")

from test_orders import Ids, asked, crc, data, replayed, seeded  # noqa: E402
from torch.utils.data import DataLoader, RandomSampler, Subset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import optcache  # noqa: E402
from optcache.torch import attach  # noqa: E402

__all__ = ["data"]  # a fixture


@pytest.mark.parametrize("replacement, count", [(True, 70), (False, 450), (False, 30)])
def test_num_samples_of_a_seeded_random_sampler(
    data: optcache.Dataset, server: Server, replacement: bool, count: int
) -> None:
    if torch.__version__ < "1.12":
        pytest.skip("num_samples without replacement is newer")
    source = Ids(data)
    sampler = RandomSampler(source, replacement, count, seeded(6))
    loader = attach(DataLoader(source, 8, sampler=sampler), dataset=data)
    read = [asked(loader, source) for _ in range(3)]
    assert [replayed(server, number) for number in range(3)] == read
    assert f"draws={count}" in server.of("attach")[0]["order"]


def test_a_generator_that_is_left_early_as_announced(data: optcache.Dataset, server: Server) -> None:
    """What is drawn after a permutation's last id is not drawn then."""
    part = Subset(data, range(150))  # so that the recipe is a text
    loader = DataLoader(part, 8, shuffle=True, generator=seeded(6), collate_fn=list)
    attach(loader, limit_batches=4)
    for number in range(3):
        read = [bytes(sample) for batch in itertools.islice(loader, 4) for sample in batch]
        assert read == [bytes(data[i]) for i in replayed(server, number)[:32]]
    (told,) = server.of("attach")
    assert told["pass_reads"] == 32
    for _ in range(2):
        assert sum(map(len, loader)) == 150
    assert ["crc" in begun for begun in server.of("pass")] == [True, True, True, True, False]


@pytest.mark.parametrize("world", [1, 3])
def test_part_of_each_pass(data: optcache.Dataset, server: Server, world: int) -> None:
    sampler = DistributedSampler(data, num_replicas=world, rank=0, seed=3)
    loader = DataLoader(data, 8, sampler=sampler, collate_fn=list)
    attach(loader, limit_batches=5)
    (told,) = server.of("attach")
    assert told["pass_reads"] == 40 and "order" not in told
    assert sum(map(len, loader)) == len(sampler), "nothing is left out that is asked for"
    (begun,) = server.of("pass")
    assert (begun["length"], begun["crc"]) == (len(sampler), crc(list(sampler)))


def test_parts_that_are_none(data: optcache.Dataset, server: Server) -> None:
    for batches in (0, -1, 1 << 61):
        with pytest.raises(ValueError, match=f"limit_batches={batches} is not a number"):
            attach(DataLoader(data, 8, collate_fn=list), limit_batches=batches)
    with pytest.raises(ValueError, match="list has no batch_size"):
        loader = DataLoader(data, batch_sampler=[[0, 1], [2]], collate_fn=list)
        attach(loader, limit_batches=1)
