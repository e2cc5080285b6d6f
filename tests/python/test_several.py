"""`attach` of a loader that reads several datasets: what each of them is told."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Server

torch = pytest.importorskip("torch")

from test_orders import crc, seeded  # noqa: E402
from torch.utils.data import (  # noqa: E402
    ConcatDataset,
    DataLoader,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import optcache  # noqa: E402
from optcache._several import Attachments  # noqa: E402
from optcache._sidecar_stats import SidecarStats, added  # noqa: E402
from optcache.torch import attach  # noqa: E402

BATCH = 8
SIZES = (200, 60)
WHOLE = sum(SIZES)


class Two(NamedTuple):
    """Two datasets, each behind a sidecar of its own, so that it is seen what each is told."""

    servers: list[Server]
    data: list[optcache.Dataset]
    contents: list[bytes]  # of both

    @property
    def both(self) -> Any:
        return ConcatDataset(self.data)


@pytest.fixture
def two(
    serve: Callable[..., Server], samples: Path, contents: list[bytes], tmp_path: Path
) -> Two:
    chance = random.Random(8)
    others = [chance.randbytes(chance.randrange(1, 3000)) for _ in range(SIZES[1])]
    for number, content in enumerate(others):
        path = tmp_path / "others" / "class" / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    servers = [serve(samples), serve(tmp_path / "others")]
    data = [optcache.Dataset(socket=str(server.socket)) for server in servers]
    data[1].name = "local/others"  # a test server has one name for all that it serves
    return Two(servers, data, contents + others)


def part(ids: list[int], number: int) -> list[int]:
    """Those that are of a dataset, by its own numbers."""
    first = sum(SIZES[:number])
    return [index - first for index in ids if first <= index < first + SIZES[number]]


def as_bytes(samples: list[memoryview]) -> list[bytes]:
    return [bytes(sample) for sample in samples]


def of(dataset: Any, **options: Any) -> Any:
    return DataLoader(dataset, BATCH, collate_fn=as_bytes, **options)


def read(loader: Any, batches: int | None = None) -> list[bytes]:
    return [sample for batch in itertools.islice(loader, batches) for sample in batch]


def check_pass(two: Two, number: int, ids: list[int], start: int = 0) -> None:
    """Both were told what that pass reads of them, and were asked for each batch at its place.

    Args:
        number: of the pass, counted from 0.
        ids: the whole list of the rank.
        start: where in it the pass begins.
    """
    for which, server in enumerate(two.servers):
        whole, before = part(ids, which), len(part(ids[:start], which))
        begun = server.of("pass")[number]
        assert (begun["start"], begun["length"]) == (before, len(whole) - before)
        if start == 0:
            assert begun["crc"] == crc(whole)
        events = server.events[: server.events.index(begun)]
        lists = [it for it in events if it["event"] == "trace" and it["pass"] == begun["pass"]]
        assert (lists[-1]["first"], lists[-1]["length"]) == (0, len(whole))
        assert lists[-1]["crc"] == crc(whole)
        expected, at = [], before
        for first in range(start, len(ids), BATCH):
            count = len(part(ids[first : first + BATCH], which))
            if count:
                expected.append((at, count))
            at += count
        after = server.events[server.events.index(begun) :]
        gets = [it for it in after if it["event"] == "get" and it["pass"] == begun["pass"] and it["stream"]]
        assert sorted((it["first"], it["count"]) for it in gets) == expected


def distributed() -> Any:
    return DistributedSampler(range(WHOLE), num_replicas=2, rank=1, seed=3)


SAMPLERS: dict[str, Callable[[], Any]] = {
    "distributed": distributed,
    "random": lambda: RandomSampler(range(WHOLE), generator=seeded(5)),
    "weighted": lambda: WeightedRandomSampler([1.0] * 200 + [4.0] * 60, 90, generator=seeded(5)),
}


def lists_of(kind: str, epochs: int) -> list[list[int]]:
    """What the sampler draws in plain PyTorch."""
    sampler = SAMPLERS[kind]()
    found = []
    for epoch in range(epochs):
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
        found.append(list(sampler))
    return found


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", SAMPLERS)
def test_each_dataset_is_told_its_part(two: Two, kind: str, workers: int) -> None:
    sampler = SAMPLERS[kind]()
    loader = attach(of(two.both, sampler=sampler, num_workers=workers))
    lists = lists_of(kind, 3)
    for epoch, ids in enumerate(lists):
        if kind == "distributed":
            sampler.set_epoch(epoch)
        assert read(loader) == [two.contents[index] for index in ids]
        check_pass(two, epoch, ids)
    for server in two.servers:
        (told,) = server.of("attach")
        assert (told["known"], told["order"]) == (0, "trace")
        assert told["size"] == SIZES[two.servers.index(server)]
        assert (told["rank"], told["world"]) == ((1, 2) if kind == "distributed" else (0, 1))
        # Two passes ahead, and each list once.
        assert [trace["pass"] for trace in server.of("trace")] == [3, 4, 5, 6, 7]


def test_a_list_is_split_once(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all datasets together, and not again where it was told ahead."""
    split = Attachments._split
    lists: list[list[int]] = []

    def counted(self: Attachments, ids: Any) -> Any:
        lists.append(list(ids))
        return split(self, ids)

    monkeypatch.setattr(Attachments, "_split", counted)
    loader = attach(of(two.both, sampler=SAMPLERS["random"]()))
    for _ in range(3):
        read(loader)
    assert [ids for ids in lists if ids] == lists_of("random", 5)


@pytest.mark.parametrize("workers", [0, 1])
def test_datasets_of_one_name_are_told_apart(two: Two, workers: int) -> None:
    """Those of two sidecars may be called the same."""
    two.data[1].name = two.data[0].name
    for name, options in {"as it is": {}, "mixed": {"sampler": SAMPLERS["random"]()}}.items():
        loader = attach(of(two.both, num_workers=workers, **options), name=name)
        ids = lists_of("random", 1)[0] if options else list(range(WHOLE))
        assert read(loader) == [two.contents[index] for index in ids]
    check_pass(two, 1, ids)


def test_computed_samples_of_one_name_are_told_apart(two: Two) -> None:
    kept = [
        optcache.cached(data, name="same", socket=data.endpoint.path) for data in two.data
    ]
    loader = attach(DataLoader(ConcatDataset(kept), BATCH, collate_fn=as_bytes))
    assert read(loader) == two.contents


def test_epochs_that_repeat_are_foreseen(two: Two) -> None:
    """Without set_epoch. The first guess is wrong, and is put right when the pass begins."""
    sampler = distributed()
    loader = attach(of(two.both, sampler=sampler))
    for number in range(4):
        read(loader)
        check_pass(two, number, list(sampler))
    told = [trace["pass"] for trace in two.servers[0].of("trace")]
    assert told == [3, 4, 5, 4, 5, 6, 7, 8], "the wrong guesses are two: of passes 4 and 5"


def test_an_order_that_is_the_same_in_each_pass(two: Two) -> None:
    loader = attach(of(two.both))
    for number in range(2):
        assert read(loader) == two.contents
        check_pass(two, number, list(range(WHOLE)))
    assert [trace["pass"] for trace in two.servers[0].of("trace")] == [3, 4, 5, 6]


def test_a_split_of_both(two: Two) -> None:
    train, _ = random_split(two.both, [150, WHOLE - 150], generator=seeded(4))
    generator = seeded(6)
    loader = attach(of(train, shuffle=True, generator=generator))
    drawn = torch.randperm(150, generator=drawn_after_the_loaders(6)).tolist()
    ids = [train.indices[index] for index in drawn]
    assert read(loader) == [two.contents[index] for index in ids]
    check_pass(two, 0, ids)


def drawn_after_the_loaders(seed: int) -> Any:
    """A generator from which a loader has drawn the seed of its workers."""
    generator = seeded(seed)
    torch.empty((), dtype=torch.int64).random_(generator=generator)
    return generator


def test_parts_of_parts_in_any_order(two: Two) -> None:
    first, second = two.data
    nested = ConcatDataset(
        [Subset(second, range(9)), ConcatDataset([first, Subset(second, [50, 40])]), second]
    )
    ids = [*range(9), *range(60, 260), 50, 40, *range(60)]  # `second` comes first here
    loader = attach(of(nested))
    assert read(loader) == [two.contents[(index + 200) % WHOLE] for index in ids]
    mine, others = [index - 60 for index in ids if index >= 60], [i for i in ids if i < 60]
    for server, expected in zip(two.servers, (mine, others), strict=True):
        (begun,) = server.of("pass")
        assert (begun["length"], begun["crc"]) == (len(expected), crc(expected))


def test_a_wrapper_around_both(two: Two) -> None:
    class Lengths(torch.utils.data.Dataset):  # type: ignore[misc, type-arg]
        def __len__(self) -> int:
            return WHOLE

        def __getitem__(self, index: int) -> int:
            return len(both[index])

    both, sampler = two.both, SAMPLERS["random"]()
    loader = attach(DataLoader(Lengths(), BATCH, sampler=sampler), dataset=both)
    (ids,) = lists_of("random", 1)
    assert torch.cat(list(loader)).tolist() == [len(two.contents[index]) for index in ids]
    check_pass(two, 0, ids)


class Drawn(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
    """Draws each index when it is asked for it."""

    def __init__(self) -> None:
        self.drawn: list[int] = []

    def __len__(self) -> int:
        return 50

    def __iter__(self) -> Iterator[int]:
        for _ in range(50):
            self.drawn.append(random.randrange(WHOLE))
            yield self.drawn[-1]


def test_an_order_that_nothing_says_is_followed(two: Two) -> None:
    sampler = Drawn()
    assert read(attach(of(two.both, sampler=sampler))) == [two.contents[i] for i in sampler.drawn]
    for which, server in enumerate(two.servers):
        told = [(it["first"], it["crc"]) for it in server.of("trace")]
        expected, at = [], 0
        for first in range(0, 50, BATCH):
            own = part(sampler.drawn[first : first + BATCH], which)
            if own:
                expected.append((at, crc(own)))
            at += len(own)
        assert told == expected
        gets = [it for it in server.of("get") if it["stream"]]
        assert [it["first"] for it in gets] == [first for first, _ in expected]


def test_lists_of_the_users(two: Two) -> None:
    lists = [random.Random(epoch).sample(range(WHOLE), 40) for epoch in range(3)]
    drawn = iter(lists)

    class Listed(Drawn):
        def __iter__(self) -> Iterator[int]:
            return iter(next(drawn))

    loader = attach(
        of(two.both, sampler=Listed()), trace=lambda epoch: lists[epoch] if epoch < 3 else None
    )
    for number, ids in enumerate(lists):
        assert read(loader) == [two.contents[index] for index in ids]
        check_pass(two, number, ids)


@pytest.mark.parametrize("kind", ["distributed", "weighted"])
def test_part_of_each_epoch(two: Two, kind: str) -> None:
    """Lists end where the loop does."""
    sampler = SAMPLERS[kind]()
    loader = attach(of(two.both, sampler=sampler), limit_batches=4, epochs=2)
    for epoch, ids in enumerate(lists_of(kind, 2)):
        if kind == "distributed":
            sampler.set_epoch(epoch)
        assert read(loader, 4) == [two.contents[index] for index in ids[: 4 * BATCH]]
        check_pass(two, epoch, ids[: 4 * BATCH])
    assert {server.of("attach")[0].get("pass_reads", 0) for server in two.servers} == {0}


@pytest.mark.parametrize("kind", SAMPLERS)
def test_goes_on_where_the_loop_was(two: Two, kind: str) -> None:
    first = attach(of(two.both, sampler=SAMPLERS[kind]()), name="first")
    (ids, following) = lists_of(kind, 2)
    read(first, 5)
    state = first.optcache.state_dict()
    assert state["dataset"] == f"{two.data[0].version} and {two.data[1].version}"
    sampler = SAMPLERS[kind]()
    second = attach(of(two.both, sampler=sampler), name="second")
    second.optcache.load_state_dict(state)
    assert read(second) == [two.contents[index] for index in ids[5 * BATCH :]]
    check_pass(two, 1, ids, start=5 * BATCH)
    if kind == "distributed":
        sampler.set_epoch(1)
    assert read(second) == [two.contents[index] for index in following]
    check_pass(two, 2, following)


def test_torchdatas_loader_goes_on(two: Two) -> None:
    package = pytest.importorskip("torchdata.stateful_dataloader")

    def loader() -> Any:
        made = package.StatefulDataLoader(
            two.both, BATCH, shuffle=True, generator=seeded(5), collate_fn=as_bytes
        )
        return made

    (plain, one, other) = loader(), attach(loader(), name="one"), attach(loader(), name="other")
    whole = read(plain)
    assert read(one, 5) == whole[: 5 * BATCH]
    other.load_state_dict(one.state_dict())
    assert read(other) == whole[5 * BATCH :]
    ids = torch.randperm(WHOLE, generator=seeded(5)).tolist()
    check_pass(two, 1, ids, start=5 * BATCH)


def test_a_dataset_of_which_a_pass_reads_nothing(two: Two) -> None:
    loader = attach(of(two.both, sampler=WeightedRandomSampler([1.0] * 200 + [0.0] * 60, 50)))
    assert len(read(loader)) == 50
    first, second = two.servers
    assert first.of("pass")[0]["length"] == 50 and second.of("pass")[0]["length"] == 0
    assert not second.of("trace") and not second.of("get")


def test_a_part_that_is_computed(two: Two, caplog: pytest.LogCaptureFixture) -> None:
    """Here no sidecar keeps computed samples: they are read, and the other part is announced."""
    first, second = two.data
    shown = optcache.Dataset(
        socket=second.endpoint.path, transform=lambda sample: bytes(sample)[::-1], computed="reversed"
    )
    loader = attach(of(ConcatDataset([first, shown]), sampler=SAMPLERS["random"]()))
    (ids,) = lists_of("random", 1)
    contents = [it if at < 200 else it[::-1] for at, it in enumerate(two.contents)]
    assert read(loader) == [contents[index] for index in ids]
    (begun,) = two.servers[0].of("pass")
    assert begun["crc"] == crc(part(ids, 0)) and loader.optcache.stats() is None


def test_what_is_refused(two: Two) -> None:
    mixed = ConcatDataset([two.data[0], TensorDataset(torch.zeros(3))])
    with pytest.raises(TypeError, match="nor made of such alone by Subset and ConcatDataset"):
        attach(of(mixed))
    with pytest.raises(TypeError, match="samples= names samples of one dataset, and dataset= is made"):
        attach(of(two.both), dataset=two.both, samples=lambda index: [index])


def test_none_is_attached_if_one_cannot_be(two: Two) -> None:
    two.data[1].wait = 0.0
    two.servers[1].kill()
    with pytest.raises(optcache.OptcacheError):
        attach(of(two.both))
    two.servers[0].wait_for("detach")


def test_counts_of_both_together() -> None:
    def counts(*numbers: Any) -> SidecarStats:
        return SidecarStats(*numbers)

    one, other = counts(*range(9), None), counts(*range(10, 19), 0.5)
    assert added([one]) == one
    assert added([one, other]) == counts(*range(10, 28, 2), None)
    assert added([other, other]).saved_cost == 1.0  # type: ignore[union-attr]
    assert added([one, None]) is None
