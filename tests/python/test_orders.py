"""What `attach` tells of samplers beyond PyTorch's distributed and seeded ones."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import zlib
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import Server, find_program

torch = pytest.importorskip("torch")

from torch.utils.data import (  # noqa: E402
    ConcatDataset,
    DataLoader,
    RandomSampler,
    Subset,
    WeightedRandomSampler,
    random_split,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import optcache  # noqa: E402
from optcache.torch import attach  # noqa: E402


@pytest.fixture
def data(server: Server) -> optcache.Dataset:
    return optcache.Dataset()


def crc(ids: list[int]) -> int:
    return zlib.crc32(array("I", ids).tobytes())


def seeded(seed: int) -> Any:
    return torch.Generator().manual_seed(seed)


def replayed(server: Server, number: int = 0) -> list[int]:
    """What the recipe that was told last says of the pass that was told as the `number`-th."""
    told, begun = server.of("attach")[-1], server.of("pass")[number]
    command = [find_program("optcache"), "order", "--recipe", told["order"]]
    command += ["--epoch", str(begun["epoch"]), "--rank", str(told["rank"])]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=180)
    ids = [int(text) for text in done.stdout.split()][begun["start"] :][: begun["length"]]
    assert begun["crc"] == crc(ids)
    return ids


class Ids(torch.utils.data.Dataset):  # type: ignore[misc, type-arg]
    """Gives the bytes, and notes which were asked for."""

    def __init__(self, data: optcache.Dataset) -> None:
        self.data = data
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> int:
        self.asked.append(int(index))
        return len(self.data[index])


def as_bytes(samples: list[memoryview]) -> list[bytes]:
    return [bytes(sample) for sample in samples]


def asked(loader: Any, source: Ids) -> list[int]:
    before = len(source.asked)
    for _ in loader:
        pass
    return source.asked[before:]


# --- Recipes as text


@pytest.mark.parametrize("world", [1, 3])
def test_ranges_of_the_dataset(data: optcache.Dataset, server: Server, world: int) -> None:
    """Subset and ConcatDataset of ranges: a recipe, and each batch asked for in one request."""
    part = ConcatDataset([Subset(data, range(150, 190)), Subset(data, list(range(20)))])
    sampler = DistributedSampler(part, num_replicas=world, rank=world - 1, seed=3)
    sampler.set_epoch(2)
    loader = attach(DataLoader(part, 8, sampler=sampler, collate_fn=list))
    expected = [part.datasets[0].indices[i] if i < 40 else i - 40 for i in sampler]
    read = [bytes(sample) for batch in loader for sample in batch]
    assert replayed(server) == expected
    assert read == [bytes(data[i]) for i in expected]
    assert server.of("attach")[0]["order"].endswith(" subset=150+40,0+20")
    gets = [get for get in server.of("get") if get["stream"] != 0]
    firsts = list(range(0, len(expected), 8))
    assert [get["first"] for get in gets] == firsts, "one request a batch, with its place"
    assert sum(get["count"] for get in gets) == len(expected)


def test_a_subset_is_read_by_its_samples(data: optcache.Dataset, server: Server) -> None:
    subset = Subset(data, [30, 20, 10])
    loader = attach(DataLoader(subset, batch_size=2, collate_fn=list))
    read = [bytes(sample) for batch in loader for sample in batch]
    assert read == [bytes(data[i]) for i in (30, 20, 10)]
    assert server.of("attach")[0]["order"] == (
        "sequential size=3 seed=0 world=1 shuffle=false drop_last=false modern_randperm=true "
        "base_seed=every-pass tail_permutation=true subset=30+1,20+1,10+1"
    )
    assert [(g["stream"], g["first"], g["count"]) for g in server.of("get") if g["stream"]] == [
        (77, 0, 2),
        (77, 2, 1),
    ]


def test_a_subset_of_a_subset_by_workers(data: optcache.Dataset, server: Server) -> None:
    part = Subset(Subset(data, range(100)), range(10, 40))
    loader = DataLoader(
        part, 8, shuffle=True, generator=seeded(1), num_workers=2, collate_fn=as_bytes
    )
    read = [sample for batch in attach(loader) for sample in batch]
    assert read == [bytes(data[i]) for i in replayed(server)]
    assert {get["stream"] for get in server.of("get") if get["count"] > 1} == {77}


def test_datasets_are_added_up(data: optcache.Dataset, server: Server) -> None:
    both = data + Subset(data, range(9))
    assert type(both) is ConcatDataset and len(both) == len(data) + 9
    assert sum(map(len, attach(DataLoader(both, 8, collate_fn=list)))) == len(both)
    assert server.of("attach")[0]["order"].endswith(" subset=0+200,0+9")


# --- Lists


def test_a_split_is_handed_over_as_a_list(data: optcache.Dataset, server: Server) -> None:
    train, _ = random_split(data, [150, 50], generator=seeded(4))
    sampler = DistributedSampler(train, num_replicas=2, rank=1, seed=5)
    loader = attach(DataLoader(train, 10, sampler=sampler, collate_fn=list))
    for epoch in range(2):
        sampler.set_epoch(epoch)
        expected = [train.indices[i] for i in sampler]
        assert [bytes(s) for b in loader for s in b] == [bytes(data[i]) for i in expected]
        (trace,) = [t for t in server.of("trace") if t["pass"] == 3 + epoch]
        assert (trace["first"], trace["length"], trace["crc"]) == (0, 75, crc(expected))
        assert server.of("pass")[epoch]["crc"] == crc(expected)
    told = server.of("attach")[0]
    assert (told["known"], told["order"], told["world"]) == (0, "trace", 2)


@pytest.mark.parametrize("own", [True, False])
def test_weights_are_handed_over_as_lists(
    data: optcache.Dataset, server: Server, own: bool
) -> None:
    """With a generator of its own, two iterations ahead; and the sampler draws as without."""
    def epochs(tell: bool) -> list[list[int]]:
        torch.manual_seed(3)
        source = Ids(data)
        generator = seeded(8) if own else None
        sampler = WeightedRandomSampler([1.0 + i for i in range(200)], 60, generator=generator)
        loader = DataLoader(source, 7, sampler=sampler, generator=generator)
        if tell:
            attach(loader, dataset=data)
        return [asked(loader, source) for _ in range(3)]

    plain = epochs(tell=False)
    assert epochs(tell=True) == plain
    traces = server.of("trace")
    if own:  # the loader draws from the same generator in between
        assert [t["pass"] for t in traces] == [3, 4, 5, 6, 7]
    assert [p["crc"] for p in server.of("pass")] == [crc(order) for order in plain]
    for number, order in enumerate(plain):
        assert [t["crc"] for t in traces if t["pass"] == 3 + number][-1] == crc(order)


def weighted(data: optcache.Dataset) -> tuple[Any, Ids]:
    """A loader that is attached, of weighted draws, and what it reads from."""
    sampler = WeightedRandomSampler([1.0 + i for i in range(200)], 60, generator=seeded(8))
    source = Ids(data)
    return attach(DataLoader(source, 7, sampler=sampler), dataset=data), source


def test_what_is_known_of_the_next_iteration_is_told_once(
    data: optcache.Dataset, server: Server
) -> None:
    loader, source = weighted(data)
    for _ in range(3):
        asked(loader, source)
    assert [t["pass"] for t in server.of("trace")] == [3, 4, 5, 6, 7]


def test_a_sampler_that_is_changed_is_drawn_anew(data: optcache.Dataset, server: Server) -> None:
    def epochs(tell: bool) -> list[list[int]]:
        sampler = WeightedRandomSampler([1.0 + i for i in range(200)], 60, generator=seeded(8))
        source = Ids(data)
        loader = DataLoader(source, 7, sampler=sampler)
        if tell:
            attach(loader, dataset=data)
        read = [asked(loader, source)]
        sampler.weights[:100] = 0
        read.append(asked(loader, source))
        sampler.generator.manual_seed(99)
        read.append(asked(loader, source))
        sampler.weights = torch.ones(200, dtype=torch.double)
        return [*read, asked(loader, source)]

    read = epochs(tell=True)
    assert read == epochs(tell=False)
    assert [p["crc"] for p in server.of("pass")] == [crc(order) for order in read]
    for number, order in enumerate(read):
        assert [t["crc"] for t in server.of("trace") if t["pass"] == 3 + number][-1] == crc(order)


def test_an_iteration_that_is_left_is_predicted_all_the_same(
    data: optcache.Dataset, server: Server
) -> None:
    loader, source = weighted(data)
    for _ in range(3):
        for _ in zip(range(3), loader):
            pass
    assert [t["pass"] for t in server.of("trace")] == [3, 4, 5, 6, 7]


def test_a_list_of_yours(data: optcache.Dataset, server: Server) -> None:
    class Curriculum(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
        epoch = 0

        def __init__(self) -> None:
            pass

        def __len__(self) -> int:
            return 20

        def __iter__(self) -> Iterator[int]:
            self.epoch += 1
            return iter(curriculum(self.epoch - 1) or [])

    def curriculum(epoch: int) -> Optional[list[int]]:
        return None if epoch > 2 else random.Random(epoch).sample(range(50 + 50 * epoch), 20)

    source = Ids(data)
    loader = attach(DataLoader(source, 6, sampler=Curriculum()), dataset=data, trace=curriculum)
    read = [asked(loader, source) for _ in range(3)]
    assert read == [curriculum(epoch) for epoch in range(3)]
    assert [t["crc"] for t in server.of("trace")] == [crc(order) for order in read]
    assert [t["pass"] for t in server.of("trace")] == [3, 4, 5]


class Unforeseen(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
    """Draws each index when it is asked for it."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return 20

    def __iter__(self) -> Iterator[int]:
        for _ in range(20):
            yield random.randrange(self.size)


def test_others_are_followed_batch_by_batch(data: optcache.Dataset, server: Server) -> None:
    source = Ids(data)
    loader = attach(DataLoader(source, 8, sampler=Unforeseen(len(data))), dataset=data)
    read = asked(loader, source)
    told = [(t["first"], t["length"], t["count"], t["crc"]) for t in server.of("trace")]
    parts = [read[:8], read[8:16], read[16:]]
    assert told == [(8 * i, 0, len(part), crc(part)) for i, part in enumerate(parts)]
    assert "crc" not in server.of("pass")[0]


def test_your_word_makes_a_copy_be_asked(data: optcache.Dataset, server: Server) -> None:
    source = Ids(data)
    sampler = Unforeseen(len(data))
    loader = attach(DataLoader(source, 8, sampler=sampler), dataset=data, trace=True)
    random.seed(4)
    read = asked(loader, source)
    (trace,) = server.of("trace")
    assert (trace["length"], trace["crc"]) == (20, crc(read))


def test_indices_that_are_no_samples_are_read_as_before(
    data: optcache.Dataset, server: Server
) -> None:
    class Twice(Ids):
        def __len__(self) -> int:
            return 2 * len(self.data)

        def __getitem__(self, index: int) -> int:
            return super().__getitem__(index // 2)

    source = Twice(data)
    loader = attach(DataLoader(source, 50, shuffle=True), dataset=data)
    assert sorted(asked(loader, source)) == sorted(2 * list(range(len(data))))


# --- Frameworks; each is skipped where its package is not installed


def read_and_replay(
    loader: Any, source: Ids, server: Server, before: Callable[[int], Any], epochs: int = 3
) -> None:
    for number in range(epochs):
        before(number)
        read = asked(loader, source)
        predicted = replayed(server, number)
        assert read[: len(predicted)] == predicted and len(predicted) > 0
    assert {get["stream"] for get in server.of("get")} == {77}


@pytest.mark.parametrize("split, even", [(False, True), (True, True), (False, False)])
@pytest.mark.parametrize("shuffle", [True, False])
def test_accelerate(
    data: optcache.Dataset, server: Server, split: bool, even: bool, shuffle: bool
) -> None:
    accelerate = pytest.importorskip("accelerate.data_loader")
    source = Ids(data)
    torch.manual_seed(17)
    plain = DataLoader(source, 12 if split else 4, shuffle=shuffle)
    loader = accelerate.prepare_data_loader(
        plain, num_processes=3, process_index=1, split_batches=split, even_batches=even,
        use_seedable_sampler=True,
    )
    attach(loader, dataset=data)
    read_and_replay(loader, source, server, lambda number: None)
    assert "block=4" in server.of("attach")[0]["order"]


def test_spdl(data: optcache.Dataset, server: Server) -> None:
    spdl = pytest.importorskip("spdl.source")
    source = Ids(data)
    sampler = spdl.DistributedRandomSampler(len(data), rank=1, world_size=3, num_draws=100)
    loader = attach(DataLoader(source, 8, sampler=sampler), dataset=data)
    read_and_replay(loader, source, server, lambda number: sampler.shuffle(seed=number + 5))


def test_megatron(data: optcache.Dataset, server: Server) -> None:
    from test_framework_live import nemo_samplers

    source = Ids(data)
    make = nemo_samplers().MegatronPretrainingRandomSampler
    sampler = make(len(data), 5 * 24, 8, 1, 3, seed=2)
    sampler.__class__.__module__ = "nemo.collections.nlp.data.language_modeling.megatron.data_samplers"
    loader = attach(DataLoader(source, batch_sampler=sampler), dataset=data)
    read_and_replay(loader, source, server, lambda number: None)
    assert [begun["start"] for begun in server.of("pass")] == [40, 0, 0]
    assert [begun["epoch"] for begun in server.of("pass")] == [0, 1, 2]


def counts(lightning: Any, read: list[list[Any]]) -> Any:
    """A module that notes, by epoch, what it is given."""

    class Counts(lightning.LightningModule):  # type: ignore[misc, name-defined]
        automatic_optimization = False

        def training_step(self, batch: Any, number: int) -> None:
            read[-1] += batch if isinstance(batch, list) else batch.tolist()

        def on_train_epoch_start(self) -> None:
            read.append([])

        def configure_optimizers(self) -> None:
            return None

    return Counts()


def test_lightning_calls_set_epoch(data: optcache.Dataset, server: Server) -> None:
    lightning = pytest.importorskip("pytorch_lightning")
    read: list[list[int]] = []
    sampler = DistributedSampler(range(len(data)), num_replicas=1, rank=0)
    source = Indexed(data)
    loader = attach(DataLoader(source, 8, sampler=sampler), dataset=data)
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=3, use_distributed_sampler=False, barebones=True
    )
    trainer.fit(counts(lightning, read), loader)
    assert [begun["epoch"] for begun in server.of("pass")] == [0, 1, 2]
    assert [begun["crc"] for begun in server.of("pass")] == [crc(order) for order in read]


def test_a_loader_that_a_framework_makes_anew_is_attached(
    data: optcache.Dataset, server: Server
) -> None:
    """As Lightning does it: by the loader's class and arguments, with another sampler."""
    source = Ids(data)
    given = optcache.torch.DataLoader(source, 8, attach={"name": "again", "dataset": data})
    sampler = DistributedSampler(source, num_replicas=2, rank=1, seed=6)
    loader = type(given)(dataset=given.dataset, batch_size=8, sampler=sampler, attach=given.attach)
    assert server.of("attach") == []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert asked(loader, source) == list(sampler)
    (told,) = server.of("attach")
    assert (told["known"], told["rank"], told["world"]) == (1, 1, 2)
    assert [begun["epoch"] for begun in server.of("pass")] == [0, 1]


def test_an_order_of_mosaicml_streaming(data: optcache.Dataset, server: Server) -> None:
    """Its shuffle and its partition over ranks, handed over as lists."""
    shuffle = pytest.importorskip("streaming.base.shuffle")
    partition = pytest.importorskip("streaming.base.partition")
    numpy = pytest.importorskip("numpy")
    size = len(data)

    def order(epoch: int) -> list[int]:
        places = partition.get_partitions("relaxed", size, 2, 1, 2, 1, 8)[0, 1, 0].reshape(-1)
        ids = shuffle.get_shuffle("py1e", numpy.full(4, size // 4), 2, 9, epoch)
        return [int(ids[place]) for place in places if place >= 0]

    class Streamed(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
        epoch = 0

        def __init__(self) -> None:
            pass

        def __iter__(self) -> Iterator[int]:
            self.epoch += 1
            return iter(order(self.epoch - 1))

    source = Ids(data)
    loader = attach(DataLoader(source, 8, sampler=Streamed()), dataset=data, trace=order)
    read = [asked(loader, source) for _ in range(3)]
    assert read == [order(epoch) for epoch in range(3)] and read[0] != read[1]
    assert [begun["crc"] for begun in server.of("pass")] == [crc(ids) for ids in read]
    assert [trace["pass"] for trace in server.of("trace")] == [3, 4, 5, 6, 7]


class Indexed(Ids):
    def __getitem__(self, index: int) -> int:
        super().__getitem__(index)
        return int(index)


# --- What docs/user/samplers.md shows, word for word


def examples() -> list[str]:
    page = Path(__file__).parents[2] / "docs" / "user" / "samplers.md"
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


class MySampler(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
    def __init__(self, order: list[list[int]]) -> None:
        self.order = iter(order)

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[int]:
        return iter(next(self.order))


def renamed() -> optcache.Dataset:
    """As of another dataset of the same sidecar."""
    more = optcache.Dataset()
    more.name = more.identity = "more"
    return more


@pytest.mark.parametrize("number", range(len(examples())))
def test_examples_of_the_user_page(
    data: optcache.Dataset,
    server: Server,
    number: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # Lightning writes its logs there
    example = examples()[number]
    names: dict[str, Any] = dict(vars(torch.utils.data), torch=torch, attach=attach)
    names.update(itertools=itertools, train=data, more=renamed(), DistributedSampler=DistributedSampler, MySampler=MySampler)
    if "prepare_data_loader" in example:
        accelerate = pytest.importorskip("accelerate.data_loader")
        names["prepare_data_loader"] = accelerate.prepare_data_loader
    if "Trainer(" in example:
        lightning = pytest.importorskip("pytorch_lightning")
        numbers = optcache.Dataset(transform=len)  # it would take views for lists
        names.update(lightning=lightning, model=counts(lightning, []), train=numbers)
    # Files of these names are not there; any others do.
    monkeypatch.setattr(optcache.Dataset, "index", lambda self, path: len(path) * 7)
    example = re.sub(r"(DataLoader\((?:train|part), )", r"\1collate_fn=list, ", example)
    exec(example, names)
    assert all("crc" in begun for begun in server.of("pass")) and server.of("pass")
    told = server.of("attach")[-1]
    traced = told.get("order") == "trace"
    # Lightning's Trainer, alone, leaves a sampler without a seed of its own.
    lists = ("Weighted", "trace=", "Trainer(", "samples=lambda", "more")
    assert traced == any(it in example for it in lists)
    assert traced or told["known"] or told["order"]
