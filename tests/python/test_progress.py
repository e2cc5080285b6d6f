"""`loader.optcache.state_dict()`: a loop that is ended anywhere goes on there in another process."""

from __future__ import annotations

import io
import os
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import ROOT, Server

torch = pytest.importorskip("torch")

from test_orders import Ids, crc, data, seeded  # noqa: E402
from test_readme import code  # noqa: E402
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import optcache  # noqa: E402
from optcache.torch import attach  # noqa: E402

__all__ = ["data"]  # a fixture

EPOCHS = 3
BATCH = 16
SAMPLES = 200


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc, type-arg]
    def __init__(self, data: optcache.Dataset) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> int:
        return index if len(self.data[index]) else -1


def weighted(source: Any) -> Any:
    return WeightedRandomSampler([1.0] * len(source), 90, generator=seeded(4))


SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "sequential": SequentialSampler,
    "distributed": lambda source: DistributedSampler(source, num_replicas=1, rank=0, seed=3),
    "random": lambda source: RandomSampler(source, generator=seeded(4)),
    "replacement": lambda source: RandomSampler(source, True, 90, seeded(4)),
    "weighted": weighted,
}


def make(data: optcache.Dataset, kind: str, workers: int = 0, **options: Any) -> Any:
    """The loader of a process that begins."""
    source = Numbers(data)
    sampler = SAMPLERS[kind](source)
    shared = {"generator": getattr(sampler, "generator", None)}
    loader = DataLoader(source, BATCH, sampler=sampler, num_workers=workers, **shared, **options)
    return attach(loader, dataset=data, name=f"loop-{workers}")


class Loop:
    """A training loop that reads `stop` batches in all, from what was saved on."""

    def __init__(self, loader: Any, saved: Any = None, stop: Optional[int] = None) -> None:
        self.read: list[list[int]] = []
        first = 0
        if saved is not None:
            loader.optcache.load_state_dict(saved)
            first = saved["epoch"]
        for epoch in range(first, 0 if stop == 0 else EPOCHS):
            if hasattr(loader.sampler, "set_epoch"):
                loader.sampler.set_epoch(epoch)
            for batch in loader:
                self.read.append(batch.tolist())
                if len(self.read) == stop:
                    break
            if len(self.read) == stop:
                break
        self.state = loader.optcache.state_dict()


def stored(state: Any) -> Any:
    """As a checkpoint keeps it."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", SAMPLERS)
def test_a_loop_goes_on_where_it_was(data: optcache.Dataset, kind: str, workers: int) -> None:
    whole = Loop(make(data, kind, workers)).read
    a_pass = len(whole) // EPOCHS
    for stop in (0, 1, 3, a_pass - 1, a_pass, a_pass + 1, 2 * a_pass, 3 * a_pass - 1):
        first = Loop(make(data, kind, workers), stop=stop)
        assert first.read == whole[:stop]
        assert Loop(make(data, kind, workers), stored(first.state)).read == whole[stop:], stop


def test_a_loop_may_be_ended_again(data: optcache.Dataset) -> None:
    whole = Loop(make(data, "random")).read
    read: list[list[int]] = []
    state = None
    while len(read) < len(whole):
        loop = Loop(make(data, "random", workers=2 if len(read) % 2 else 0), state, stop=5)
        read += loop.read
        state = stored(loop.state)
    assert read == whole


@pytest.mark.parametrize("kind", ["distributed", "random"])
def test_persistent_workers(data: optcache.Dataset, kind: str) -> None:
    options: dict[str, Any] = {"persistent_workers": True, "prefetch_factor": 3}
    whole = Loop(make(data, kind, 2, **options)).read
    for stop in (0, 20):
        first = Loop(make(data, kind, 2, **options), stop=stop)
        assert Loop(make(data, kind, 2, **options), first.state).read == whole[stop:]


def test_what_was_read_is_neither_read_nor_staged_again(
    data: optcache.Dataset, server: Server
) -> None:
    state = Loop(make(data, "distributed"), stop=5).state
    assert (state["epoch"], state["samples"]) == (0, 5 * BATCH)
    known = server.mark()
    loader = make(data, "distributed")
    loader.optcache.load_state_dict(state)
    assert loader.optcache.state_dict() == state
    assert sum(map(len, loader)) == SAMPLES - 5 * BATCH
    (begun,) = server.of("pass", after=known)
    assert [begun[it] for it in ("epoch", "start", "length")] == [0, 80, 120] and "crc" not in begun
    gets = [get for get in server.of("get", after=known) if get["stream"]]
    assert [get["first"] for get in gets] == list(range(80, 200, BATCH))
    assert server.of("attach", after=known)[0]["known"] == 1


def test_an_order_that_is_replayed_still_is(data: optcache.Dataset, server: Server) -> None:
    state = Loop(make(data, "random"), stop=20).state
    known = server.mark()
    loop = Loop(make(data, "random"), state)
    (told,) = server.of("attach", after=known)
    assert told["known"] == 1
    first, second = server.of("pass", after=known)
    assert (first["epoch"], first["start"]) == (1, 20 * BATCH - 208)
    assert second["epoch"] == 2 and second["crc"] == crc([it for b in loop.read[-13:] for it in b])


def test_another_number_of_ranks_goes_on(data: optcache.Dataset) -> None:
    """What some ranks have read beyond others is read twice, and nothing is left out."""

    def ranks(world: int, saved: Any = None, stop: Optional[int] = None) -> list[Any]:
        loops = []
        for rank in range(world):
            sampler = DistributedSampler(data, num_replicas=world, rank=rank, seed=3)
            loader = DataLoader(Numbers(data), 8, sampler=sampler)
            loader = attach(loader, dataset=data, name=f"{world} ranks")
            if saved is not None:
                loader.optcache.load_state_dict(saved)
            read: list[int] = []
            for number, batch in enumerate(loader, 1):
                read += batch.tolist()
                if number == stop:
                    break
            loops.append((read, loader.optcache.state_dict()))
        return loops

    before = ranks(4, stop=3)
    (state,) = {it["samples"]: it for _, it in before}.values()
    assert state["samples"] == 96
    for world, first in ((4, 96), (2, 96), (3, 96), (5, 80), (8, 64)):
        after = {it for read, _ in ranks(world, state) for it in read}
        order = list(DistributedSampler(data, num_replicas=1, rank=0, seed=3))
        padded = -SAMPLES % world  # by the first of the order
        assert after >= set(order[first:]) and not after & set(order[padded:first])


def test_part_of_each_epoch(data: optcache.Dataset) -> None:
    sampler = DistributedSampler(data, num_replicas=1, rank=0)
    loader = attach(DataLoader(Numbers(data), BATCH, sampler=sampler), dataset=data, limit_batches=4)
    for number, _ in zip(range(4), loader):
        assert loader.optcache.state_dict()["epoch"] == (1 if number == 3 else 0)


def test_a_state_is_of_its_epoch(
    data: optcache.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    state = Loop(make(data, "distributed"), stop=5).state
    loader = make(data, "distributed")
    loader.optcache.load_state_dict(state)
    loader.sampler.set_epoch(7)
    assert sum(map(len, loader)) == SAMPLES
    assert "of epoch 0, and the sampler is at epoch 7" in caplog.text


class Backwards(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
    def __init__(self) -> None: ...

    def __len__(self) -> int:
        return SAMPLES

    def __iter__(self) -> Iterator[int]:
        return iter(range(SAMPLES)[::-1])


def test_orders_that_are_not_repeated(data: optcache.Dataset) -> None:
    source = Ids(data)
    refused = {
        "has no generator of its own": DataLoader(source, BATCH, shuffle=True),
        "whether a Backwards repeats": DataLoader(source, BATCH, sampler=Backwards()),
        "list deals batches": DataLoader(source, batch_sampler=[[1], [2]]),
    }
    for says, loader in refused.items():
        control = attach(loader, dataset=data).optcache
        with pytest.raises(ValueError, match=says):
            control.state_dict()
    plain, random = make(data, "sequential"), make(data, "random")
    for wrong in ({}, {"epoch": 1}, 7):
        with pytest.raises(ValueError, match="not a state that state_dict"):
            plain.optcache.load_state_dict(wrong)
    with pytest.raises(ValueError, match="another sampler"):
        random.optcache.load_state_dict(plain.optcache.state_dict())


def test_of_a_subset(data: optcache.Dataset) -> None:
    def loader() -> Any:
        part = Subset(Numbers(data), range(30, 130))
        batches = BatchSampler(DistributedSampler(part, num_replicas=1, rank=0), 9, True)
        return attach(DataLoader(part, batch_sampler=batches), dataset=Subset(data, range(30, 130)))

    first = loader()
    whole = [batch.tolist() for batch in first]
    assert first.optcache.state_dict()["epoch"] == 1
    again = loader()
    for number, _ in enumerate(again, 1):
        if number == 4:
            break
    late = loader()
    late.optcache.load_state_dict(again.optcache.state_dict())
    assert [batch.tolist() for batch in late] == whole[4:]


def test_the_example_of_the_user_page(
    data: optcache.Dataset, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    example, lightnings = code(ROOT / "docs" / "user" / "checkpoints.md").split("class Model")
    names = dict(vars(torch.utils.data), torch=torch, attach=attach, os=os, train=data)
    names.update(DistributedSampler=DistributedSampler, model=torch.nn.Linear(1, 1))
    for _ in range(2):
        exec(example.replace("DataLoader(train, ", "DataLoader(train, collate_fn=list, "), names)
    assert [begun["start"] for begun in server.of("pass")] == [0, 0, 0, 160]
    assert server.of("pass")[-1]["epoch"] == 2

    # The hooks as Lightning's Trainer calls them.
    names.update(lightning=types.SimpleNamespace(LightningModule=object))
    exec(("class Model" + lightnings).replace("DataLoader(train, ", "DataLoader(train, collate_fn=list, "), names)
    checkpoint: dict[str, Any] = {}
    for first in (0, 3):
        model: Any = names["Model"]()
        if first:
            model.on_load_checkpoint(checkpoint)
        model.trainer = types.SimpleNamespace(world_size=2, global_rank=1)
        loader = model.trainer.train_dataloader = model.train_dataloader()
        for _ in zip(range(3), loader):
            pass
        model.on_save_checkpoint(checkpoint)
        assert checkpoint["loader"]["samples"] == (first + 3) * 8 * 2
