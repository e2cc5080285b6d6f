"""ImageFolder and attach, with the DataLoader of the PyTorch at hand."""

from __future__ import annotations

import inspect
import itertools
import zlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import IMAGES as COUNT
from conftest import Server, list_source, until

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
pytest.importorskip("PIL.Image")

from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import optcache  # noqa: E402
from optcache.torch import ImageFolder, attach  # noqa: E402


@pytest.fixture
def train(serve: Callable[..., Server], images: Path) -> ImageFolder:
    serve(images)
    return ImageFolder()


@pytest.fixture
def server(train: ImageFolder, serve: Callable[..., Server]) -> Server:
    (server,) = (c.cell_contents for c in serve.__closure__ if isinstance(c.cell_contents, list))
    return server[0]


def crc(ids: list[int]) -> int:
    return zlib.crc32(array("I", ids).tobytes())


# --- attach: what a loader gives does not change


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc, type-arg]
    """Gives (index, bytes): what the loader asked for, and that it came."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[int, int]:
        return int(index), zlib.crc32(self.data[index])


def seeded(seed: int) -> Any:
    return torch.Generator().manual_seed(seed)


class Backwards(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count - 1, -1, -1))

    def __len__(self) -> int:
        return self.count


class Pairs:
    """A batch sampler that PyTorch has no class for."""

    def __iter__(self) -> Iterator[list[int]]:
        return iter([[2 * i, 2 * i + 1] for i in range(COUNT // 2)])

    def __len__(self) -> int:
        return COUNT // 2


LOADERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "sequential": lambda d: {"batch_size": 5},
    "shuffle": lambda d: {"batch_size": 5, "shuffle": True},
    "shuffle with generator": lambda d: {"batch_size": 5, "shuffle": True, "generator": seeded(4)},
    "random with generator": lambda d: {
        "batch_size": 5,
        "sampler": RandomSampler(d, generator=seeded(4)),
    },
    "random with replacement": lambda d: {
        "batch_size": 5,
        "sampler": RandomSampler(d, replacement=True, num_samples=70, generator=seeded(4)),
    },
    "distributed": lambda d: {
        "batch_size": 5,
        "sampler": DistributedSampler(d, num_replicas=3, rank=1, seed=9),
    },
    "distributed, drop_last, unshuffled": lambda d: {
        "batch_size": 4,
        "sampler": DistributedSampler(d, num_replicas=4, rank=3, shuffle=False, drop_last=True),
    },
    "subset": lambda d: {"batch_size": 5, "sampler": SubsetRandomSampler(range(0, COUNT, 2))},
    "weighted": lambda d: {
        "batch_size": 5,
        "sampler": WeightedRandomSampler([1.0] * COUNT, 50),
    },
    "backwards": lambda d: {"batch_size": 5, "sampler": Backwards(COUNT)},
    "batch sampler": lambda d: {"batch_sampler": BatchSampler(SequentialSampler(d), 6, True)},
    "pairs": lambda d: {"batch_sampler": Pairs()},
}


def read_epochs(loader: Any, epochs: int = 3) -> list[Any]:
    torch.manual_seed(99)
    read = []
    for epoch in range(epochs):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        read.append([[column.tolist() for column in batch] for batch in loader])
    return read


WITHOUT_WORKERS, WITH_WORKERS = [(0, False)], [(2, False), (2, True)]
QUICK_KINDS = ("distributed", "shuffle with generator", "pairs")


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(
    "kind, workers, persistent",
    [
        pytest.param(
            kind, *workers, marks=[] if workers in WITHOUT_WORKERS or kind in QUICK_KINDS else pytest.mark.long
        )
        for kind in LOADERS
        for workers in [*WITHOUT_WORKERS, *WITH_WORKERS]
    ],
)
def test_an_attached_loader_reads_the_same(
    train: ImageFolder, kind: str, workers: int, persistent: bool, drop_last: bool
) -> None:
    data = Numbers(train.data)

    def make() -> Any:
        options = LOADERS[kind](data)
        if "batch_size" in options:
            options["drop_last"] = drop_last
        return DataLoader(data, num_workers=workers, persistent_workers=persistent, **options)

    plain = make()
    attached = attach(make(), dataset=train.data)
    assert len(attached) == len(plain)
    assert read_epochs(attached) == read_epochs(plain)


# --- attach: what the sidecar is told


def test_tells_a_distributed_loaders_passes(train: ImageFolder, server: Server) -> None:
    sampler = DistributedSampler(train, num_replicas=3, rank=2, seed=-7, drop_last=True)
    loader = attach(DataLoader(train, batch_size=5, sampler=sampler, collate_fn=list), name="train")
    expected = []
    for epoch in (0, 1, 5, 5):  # a jump, and a set_epoch that was forgotten
        sampler.set_epoch(epoch)
        expected.append((epoch, list(sampler)))
        assert sum(len(batch) for batch in loader) == 12
    (told,) = server.of("attach")
    fields = ("known", "kind", "size", "seed", "world", "rank", "shuffle", "drop_last", "loader")
    assert [told[f] for f in fields] == [1, 1, COUNT, -7, 3, 2, 1, 1, "train"]
    for number, (got, (epoch, ids)) in enumerate(zip(server.of("pass"), expected)):
        fields = ("rank", "pass", "epoch", "start", "length", "crc")
        assert [got[f] for f in fields] == [2, 3 + number, epoch, 0, 12, crc(ids)]
    firsts = [(g["stream"], g["pass"], g["first"], g["count"]) for g in server.of("get")]
    assert firsts[:3] == [(77, 3, 0, 5), (77, 3, 5, 5), (77, 3, 10, 2)]
    assert len(firsts) == 12, "one round trip a batch"


def test_epochs_may_count_below_zero(train: ImageFolder, server: Server) -> None:
    sampler = DistributedSampler(train, num_replicas=1, rank=0)
    sampler.set_epoch(-2)
    next(iter(attach(DataLoader(train, sampler=sampler, collate_fn=list))))
    assert [told["epoch"] for told in server.of("pass")] == [2**64 - 2]


def test_counts_only_what_drop_last_leaves(train: ImageFolder, server: Server) -> None:
    loader = attach(DataLoader(train, batch_size=10, drop_last=True, collate_fn=list))
    for _ in loader:
        pass
    (told,) = server.of("pass")
    assert (told["length"], told["crc"]) == (30, crc(list(range(30))))


@pytest.mark.parametrize("shared, persistent, base_seed", [(1, 0, 0), (1, 1, 1), (0, 0, 2)])
def test_tells_a_seeded_random_loaders_passes(
    train: ImageFolder, server: Server, shared: bool, persistent: bool, base_seed: int
) -> None:
    generator = seeded(11)
    loader = attach(
        DataLoader(
            Numbers(train.data),
            batch_size=4,
            num_workers=2 if persistent else 0,
            persistent_workers=bool(persistent),
            sampler=RandomSampler(train, generator=generator),
            generator=generator if shared else None,
        ),
        dataset=train.data,
    )
    orders = []
    for _ in range(3):
        orders.append([int(i) for batch in loader for i in batch[0]])
    (told,) = server.of("attach")
    assert [told[f] for f in ("known", "kind", "seed", "base_seed")] == [1, 2, 11, base_seed]
    passes = server.of("pass")
    assert [p["epoch"] for p in passes] == [0, 1, 2]
    assert [p["crc"] for p in passes] == [crc(order) for order in orders]


def test_says_when_a_generator_is_not_what_was_predicted(
    train: ImageFolder, server: Server
) -> None:
    loader = attach(
        DataLoader(train, batch_size=4, shuffle=True, generator=seeded(1), collate_fn=list),
        epochs=9,
    )
    next(iter(loader))  # left early: PyTorch draws less from the generator than in a whole pass
    for _ in loader:
        pass
    fields = ("known", "passes", "passes_from")
    told = [[a[f] for f in fields] for a in server.of("attach")]
    assert told == [[1, 9, 2**32 - 1], [0, 9, 3]], "those that were read are not expected again"
    first, second = server.of("pass")
    assert "crc" in first and "crc" not in second
    assert second["pass"] == first["pass"] + 1


@pytest.mark.parametrize("kind", ["shuffle", "weighted", "backwards", "pairs", "subset"])
def test_says_that_an_order_is_not_known(train: ImageFolder, server: Server, kind: str) -> None:
    loader = attach(DataLoader(train, collate_fn=list, **LOADERS[kind](train)))
    for _ in loader:
        pass
    (told,) = server.of("attach")
    assert (told["known"], told["size"], told["world"]) == (0, COUNT, 1)
    (begun,) = server.of("pass")
    listed = kind not in ("backwards", "pairs")  # what PyTorch's own samplers draw is handed over
    assert ("crc" in begun) == listed and begun["length"] in (0, len(loader.sampler), 19, 50)
    gets = server.of("get")
    assert {g["stream"] for g in gets} == {77}
    assert [g["first"] for g in gets] == [0, *itertools.accumulate(g["count"] for g in gets)][:-1]


def test_workers_ask_by_the_batch(train: ImageFolder, server: Server) -> None:
    loader = attach(DataLoader(Numbers(train.data), batch_size=8, num_workers=2), dataset=train.data)
    assert len(list(loader)) == 5
    gets = sorted(server.of("get"), key=lambda g: g["first"])
    assert [(g["first"], g["count"]) for g in gets] == [(0, 8), (8, 8), (16, 8), (24, 8), (32, 5)]
    assert len({g["client"] for g in gets}) == 2
    assert server.of("attach")[0]["behind"] == (2 * 2 + 1) * 8
    for client in {g["client"] for g in gets}:
        server.wait_for("closed", client=client)
    server.wait_for("closed", held=0)


class Resumed(DistributedSampler):  # type: ignore[type-arg]
    """Goes on in the middle of an epoch, as stateful samplers do."""

    skip = 0

    def __iter__(self) -> Iterator[int]:
        skip, self.skip = self.skip, 0
        return itertools.islice(super().__iter__(), skip, None)


def test_resumes_in_the_middle_of_an_epoch(train: ImageFolder, server: Server) -> None:
    sampler = Resumed(train, num_replicas=2, rank=0)
    sampler.set_epoch(4)
    sampler.skip = 10
    loader = attach(DataLoader(train, batch_size=5, sampler=sampler, collate_fn=list), start=10)
    assert sum(len(batch) for batch in loader) == 9
    assert server.of("attach")[0]["known"] == 1
    begun = server.of("pass")[0]
    assert (begun["epoch"], begun["start"], begun["length"]) == (4, 10, 9)
    assert [g["first"] for g in server.of("get")] == [10, 15]
    for _ in loader:
        pass
    assert server.of("pass")[1]["start"] == 0
    sampler.skip = 5
    loader.optcache.start_at(5)
    next(iter(loader))
    assert server.of("pass")[2]["start"] == 5
    for outside in (-1, 20):
        with pytest.raises(ValueError, match=f"index {outside}"):
            loader.optcache.start_at(outside)


@pytest.mark.parametrize("kind", ["sequential", "distributed", "shuffle with generator"])
def test_says_at_once_that_a_sampler_begins_at_the_front(train: ImageFolder, kind: str) -> None:
    options = LOADERS[kind](train)
    loader = attach(DataLoader(train, collate_fn=list, **options))
    with pytest.raises(ValueError, match="at the front, not at index 5.* start="):
        loader.optcache.start_at(5)
    loader.optcache.start_at(0)
    assert sum(len(batch) for batch in loader) == len(loader.sampler)


def test_what_derives_from_a_sampler_is_not_taken_for_it(
    train: ImageFolder, server: Server
) -> None:
    attach(DataLoader(train, batch_size=5, sampler=Resumed(train, num_replicas=2, rank=0)))
    told = server.of("attach")[0]
    assert (told["known"], told["world"]) == (0, 2)


def test_a_refusal_is_an_exception_in_the_trainer(train: ImageFolder) -> None:
    with pytest.raises(optcache.OptcacheError, match="rank 1 says that the seed is 7") as caught:
        attach(DataLoader(train), name="refused")
    assert caught.value.code == "conflict"


def test_what_cannot_be_attached(train: ImageFolder) -> None:
    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc, type-arg]
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    with pytest.raises(TypeError, match="IterableDataset"):
        attach(DataLoader(Stream()))
    with pytest.raises(ValueError, match="batch_size=None. Set a batch size, for example batch_size=1"):
        attach(DataLoader(train, batch_size=None))
    with pytest.raises(TypeError, match="dataset="):
        attach(DataLoader([1, 2, 3]))
    with pytest.raises(ValueError, match="at index 3"):
        attach(DataLoader(train), start=3)
    for epochs in (0, -1, 2**31):
        with pytest.raises(ValueError, match=f"epochs={epochs}"):
            attach(DataLoader(train), epochs=epochs)
    with pytest.raises(TypeError):
        attach(DataLoader(train), epochs=90.0)
    loader = attach(DataLoader(train))
    with pytest.raises(ValueError, match="already"):
        attach(loader)


def test_attach_takes_all_but_the_loader_by_name(train: ImageFolder) -> None:
    loader = DataLoader(train)
    with pytest.raises(TypeError, match="positional"):
        attach(loader, "train", 3)  # type: ignore[misc]
    assert attach(loader, name="train") is loader
    defaults = {name: it.default for name, it in inspect.signature(attach).parameters.items()}
    assert defaults["epochs"] is defaults["limit_batches"] is None


def test_old_names_of_arguments_warn(train: ImageFolder, server: Server) -> None:
    def told(name: str, **arguments: Any) -> tuple[int, int]:
        kept = attach(DataLoader(train, batch_size=4), name=name, **arguments)
        attached = server.of("attach")[-1]
        kept.optcache.detach()
        return attached["passes"], attached["pass_reads"]

    with pytest.warns(DeprecationWarning, match="attach: passes= is now epochs=") as caught:
        assert told("a", passes=9) == told("b", epochs=9) == (9, 0)
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="batches_per_pass= is now limit_batches="):
        assert told("c", batches_per_pass=3) == told("d", limit_batches=3) == (0, 12)
    with pytest.warns(DeprecationWarning):
        assert told("e", passes=0, batches_per_pass=0) == told("f") == (0, 0)
    with pytest.raises(TypeError, match="passes= is the old name of epochs="):
        attach(DataLoader(train), epochs=1, passes=1)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="attach: name is a keyword now: write name=") as caught:
        attach(DataLoader(train), "by place")  # type: ignore[misc]
    assert server.of("attach")[-1]["loader"] == "by place" and caught[0].filename == __file__
    for wrong in ((DataLoader(train), "a", train), (DataLoader(train), "a")):
        with pytest.raises(TypeError):
            attach(*wrong, **({} if len(wrong) == 3 else {"name": "b"}))  # type: ignore[misc]
    with pytest.warns(DeprecationWarning, match="cached: maxsize= is now max_bytes="):
        optcache.cached(name="squares", size=9, maxsize="1Mi")  # type: ignore[call-arg]


@pytest.fixture
def third_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process as rank 2 of a job, in the eyes of whoever asks torch.distributed."""
    for name, answer in (("is_initialized", True), ("get_rank", 2), ("get_world_size", 4)):
        monkeypatch.setattr(torch.distributed, name, lambda answer=answer: answer)


@pytest.mark.usefixtures("third_of_four")
@pytest.mark.parametrize(
    "kind, expected",
    [
        ("sequential", [1, 1, "train.rank2"]),
        ("random with generator", [1, 1, "train.rank2"]),
        ("distributed", [1, 3, "train"]),
        ("backwards", [0, 4, "train"]),
    ],
)
def test_ranks_that_share_no_list_have_streams_of_their_own(
    train: ImageFolder, server: Server, kind: str, expected: list[Any]
) -> None:
    attach(DataLoader(train, **LOADERS[kind](train)))
    (told,) = server.of("attach")
    assert [told[f] for f in ("known", "world", "loader")] == expected


@pytest.mark.usefixtures("third_of_four")
def test_a_rank_whose_order_is_lost_keeps_its_stream(train: ImageFolder, server: Server) -> None:
    sampler = RandomSampler(train, generator=seeded(4))
    loader = attach(DataLoader(train, batch_size=5, sampler=sampler, collate_fn=list))
    next(iter(loader))
    assert sum(len(batch) for batch in loader) == COUNT
    told = [[a[f] for f in ("known", "world", "rank", "loader")] for a in server.of("attach")]
    assert told == [[1, 1, 0, "train.rank2"], [0, 1, 0, "train.rank2"]]


def test_detaches_when_the_loader_dies(train: ImageFolder, server: Server) -> None:
    loader = attach(DataLoader(train))
    assert not server.of("detach")
    del loader
    server.wait_for("detach", stream=77, rank=0)


def test_detaches_when_told(train: ImageFolder, server: Server) -> None:
    loader = attach(DataLoader(train))
    loader.optcache.detach()
    loader.optcache.detach()
    server.wait_for("detach")
    assert len(server.of("detach")) == 1


def test_the_loader_looks_as_before(train: ImageFolder) -> None:
    loader = attach(DataLoader(train, batch_size=5, drop_last=True))
    assert loader.batch_sampler.batch_size == 5 and loader.batch_sampler.drop_last
    assert isinstance(loader.batch_sampler.sampler, SequentialSampler)
    assert loader.sampler is loader.batch_sampler.sampler
    assert not hasattr(loader.batch_sampler, "nothing")


def test_tells_a_new_sidecar_what_it_must_know(train: ImageFolder, server: Server) -> None:
    loader = attach(DataLoader(train, batch_size=5, collate_fn=list))
    batches = iter(loader)
    next(batches)
    next(batches)
    known = server.mark()
    server.kill()
    server.start()
    assert len(list(batches)) == 6
    (begun,) = server.of("pass", after=known)
    assert len(server.of("attach", after=known)) == 1
    assert (begun["pass"], begun["start"], begun["length"]) == (3, 5, 32)
    assert "crc" not in begun
    assert [g["first"] for g in server.of("get", after=known)] == [10, 15, 20, 25, 30, 35]


@pytest.mark.parametrize("workers", [0, 2])
def test_training_goes_on_without_the_sidecar(server: Server, workers: int) -> None:
    list_source(server)
    data = ImageFolder()
    loader = attach(DataLoader(data, batch_size=5, collate_fn=list, num_workers=workers))
    expected = [sample[1] for batch in loader for sample in batch]
    before = optcache.stats().fallbacks
    server.kill()
    assert [sample[1] for batch in loader for sample in batch] == expected
    if not workers:  # which count for themselves
        assert optcache.stats().fallbacks == before + COUNT
    late = attach(DataLoader(data, batch_size=5, collate_fn=list), name="late")
    assert [sample[1] for batch in late for sample in batch] == expected
    known = server.mark()
    server.start()
    until(lambda: bool(list(loader)) and bool(server.of("pass", after=known)))
    assert [sample[1] for batch in late for sample in batch] == expected
    until(lambda: bool(list(late)) and len(server.of("attach", after=known)) == 2)
