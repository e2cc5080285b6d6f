"""What a saved state of a loader is a state of, and which loaders go on from it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import ROOT, Server

torch = pytest.importorskip("torch")

from test_orders import data, replayed, seeded  # noqa: E402
from test_progress import BATCH, Numbers, make  # noqa: E402
from test_readme import code  # noqa: E402
from torch.utils.data import (  # noqa: E402
    DataLoader,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

import optcache  # noqa: E402
import optcache.torch  # noqa: E402
from optcache.torch import attach  # noqa: E402

__all__ = ["data"]  # a fixture


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """place(rank, world): what torch.distributed says from then on."""

    def set_to(rank: int, world: int) -> None:
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: world > 1)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda *_: rank)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda *_: world)

    return set_to


WHOLE: dict[str, Callable[[int], Any]] = {  # each rank reads a list of its own
    "weighted": lambda seed: WeightedRandomSampler([1.0] * 200, 90, generator=seeded(seed)),
    "subset": lambda seed: SubsetRandomSampler(range(50, 150), seeded(seed)),
    "random": lambda seed: RandomSampler(range(200), generator=seeded(seed)),
}


def of(data: optcache.Dataset, kind: str, seed: int = 4, **options: Any) -> Any:
    return attach(DataLoader(Numbers(data), BATCH, sampler=WHOLE[kind](seed)), dataset=data, **options)


def some(loader: Any, batches: int) -> list[list[int]]:
    return [batch.tolist() for batch in itertools.islice(loader, batches)]


@pytest.mark.parametrize("worlds", [(2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("kind", WHOLE)
def test_a_list_of_one_rank_goes_on_whatever_the_number_of_ranks(
    data: optcache.Dataset, place: Callable[[int, int], None], kind: str, worlds: tuple[int, int]
) -> None:
    place(0, 1)
    whole = some(of(data, kind), 99)
    place(0, worlds[0])
    first = of(data, kind)
    assert some(first, 2) == whole[:2]
    state = first.optcache.state_dict()
    assert state["samples"] == 2 * BATCH
    place(0, worlds[1])
    late = of(data, kind)
    late.optcache.load_state_dict(state)
    assert some(late, 99) == whole[2:]


def test_a_rank_does_not_go_on_from_the_state_of_another(
    data: optcache.Dataset, place: Callable[[int, int], None]
) -> None:
    place(0, 2)
    state = of(data, "random", seed=10).optcache.state_dict()
    assert (state["rank"], state["seed"]) == (0, 10)
    place(1, 2)
    with pytest.raises(ValueError, match="of rank 0, whose generator .* this is rank 1"):
        of(data, "random", seed=11).optcache.load_state_dict(state)
    of(data, "random", seed=10).optcache.load_state_dict(state)  # reads the same list
    assert make(data, "distributed").optcache.state_dict()["rank"] is None


def test_a_generator_of_another_seed_goes_on(data: optcache.Dataset, server: Server) -> None:
    """As one that was seeded by chance: the state has all that it draws from. The cache knows the order
    by the present seed, so it is told that it does not know this one.
    """
    first = make(data, "random")
    some(first, 99)
    state = first.optcache.state_dict()
    whole = some(first, 99)
    known = server.mark()
    sampler = RandomSampler(Numbers(data), generator=seeded(77))
    late = DataLoader(Numbers(data), BATCH, sampler=sampler, generator=sampler.generator)
    late = attach(late, dataset=data)
    late.optcache.load_state_dict(state)
    assert some(late, 99) == whole
    (begun,) = server.of("pass", after=known)
    assert "crc" not in begun and server.of("attach", after=known)[-1]["known"] == 0


def test_a_state_says_what_it_is_of(
    data: optcache.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    loader = make(data, "distributed")
    state = loader.optcache.state_dict()
    assert (state["version"], state["size"], state["seed"]) == (1, 200, 3)
    assert state["dataset"] == data.version
    loader.optcache.load_state_dict({**state, "of a later release": 1})
    wrong = {
        "has version 2": {"version": 2},
        "state of 199 samples, and the loader has 200": {"size": 199},
        "seed=8, and this one has seed=3": {"seed": 8},
        "seed=None, and this one has seed=3": {"seed": None},
    }
    for says, changed in wrong.items():
        with pytest.raises(ValueError, match=says):
            loader.optcache.load_state_dict({**state, **changed})
    with pytest.raises(ValueError, match="RandomSampler, and this one has WeightedRandomSampler"):
        of(data, "weighted").optcache.load_state_dict(of(data, "random").optcache.state_dict())
    assert not caplog.records
    loader.optcache.load_state_dict({**state, "dataset": "local/test@0123"})
    assert f"state is of the dataset local/test@0123, and the loader reads {data.version}" in caplog.text


# --- Parts of epochs


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("replacement", [False, True])
def test_parts_of_epochs_go_on_in_their_order(
    data: optcache.Dataset, server: Server, replacement: bool, workers: int
) -> None:
    """A generator gives the same numbers to later epochs, though the first one was not read to its
    end: four batches are read, and what the workers ask for beyond.
    """

    part = range(150)  # so that the recipe is a text

    def loader(workers: int = workers) -> Any:
        source = Subset(Numbers(data), part)
        generator = seeded(4)
        sampler = RandomSampler(source, replacement, 100 if replacement else None, generator)
        options: dict[str, Any] = {"num_workers": workers, "prefetch_factor": 2} if workers else {}
        made = DataLoader(source, 8, sampler=sampler, generator=generator, **options)
        return attach(made, dataset=Subset(data, part), limit_batches=4)

    first = loader()
    whole, states, inside = [], [], []
    for _ in range(3):
        whole.append([])
        for batch in itertools.islice(first, 4):
            whole[-1].append(batch.tolist())
            inside.append(first.optcache.state_dict())
        states.append(first.optcache.state_dict())
    for epoch, state in enumerate(states[:2], 1):
        known = server.mark()
        late = loader(workers=0 if epoch == 2 else workers)
        late.optcache.load_state_dict(state)
        assert some(late, 4) == whole[epoch]
        if not replacement:
            assert replayed(server, len(server.of("pass")) - 1)[: 4 * 8] == sum(whole[epoch], [])
        (begun,) = server.of("pass", after=known)
        assert ("crc" in begun) == (not replacement), "what the recipe says, or nothing"
    for read in (1, 3):
        late = loader()
        late.optcache.load_state_dict(inside[read - 1])
        assert some(late, 99) == whole[0][read:]
        assert some(late, 4) == whole[1]


def test_an_iteration_that_goes_on_ends_where_the_first_one_would_have(
    data: optcache.Dataset,
) -> None:
    def loader() -> Any:
        sampler = DistributedSampler(data, num_replicas=1, rank=0, seed=3)
        made = DataLoader(Numbers(data), BATCH, sampler=sampler)
        return attach(made, dataset=data, limit_batches=4)

    first, late = loader(), loader()
    whole = some(first, 4)
    some(late, 0)
    again = loader()
    some(again, 3)
    late.optcache.load_state_dict(again.optcache.state_dict())
    assert some(late, 4) == whole[3:]
    assert late.optcache.state_dict()["epoch"] == 1
    assert len(some(late, 99)) == 13, "another one is read as far as it is asked for"


# --- Other loaders


class FetchesAhead(DataLoader):  # type: ignore[type-arg]
    """As Accelerate's DataLoaderShard."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner.dataset, inner.batch_size)
        object.__setattr__(self, "base_dataloader", inner)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.base_dataloader)
        held = next(batches)
        for batch in batches:
            yield held
            held = batch
        yield held


def test_a_loader_that_fetches_ahead_has_no_state(data: optcache.Dataset) -> None:
    loader = attach(FetchesAhead(DataLoader(Numbers(data), BATCH)), dataset=data)
    assert len(some(loader, 3)) == 3
    for call in (loader.optcache.state_dict, lambda: loader.optcache.load_state_dict({})):
        with pytest.raises(ValueError, match="FetchesAhead fetches batches.*skip_first"):
            call()


def test_a_loader_that_attaches_itself_goes_on_from_its_first_iteration(
    data: optcache.Dataset, server: Server
) -> None:
    def loader() -> Any:
        return optcache.torch.DataLoader(Numbers(data), BATCH, attach={"dataset": data})

    first = loader()
    some(first, 3)
    late = loader()
    assert server.of("attach")[1:] == []
    late.optcache.load_state_dict(first.optcache.state_dict())
    assert some(late, 99)[0][0] == 3 * BATCH
    assert late.optcache is late.optcache and len(server.of("attach")) == 2


# --- With the real packages: a loop that ends in the middle of an epoch, and another process's


def test_lightnings_trainer_goes_on_by_what_the_page_says(
    data: optcache.Dataset, tmp_path: Path
) -> None:
    lightning = pytest.importorskip("pytorch_lightning")

    class Stop(lightning.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step == 17:  # in the second epoch of 13 batches
                trainer.save_checkpoint(tmp_path / "last.ckpt")
                trainer.should_stop = True

    _, example = code(ROOT / "docs" / "user" / "checkpoints.md").split("class Model")
    scope: dict[str, Any] = {
        "lightning": lightning,
        "attach": lambda loader: attach(loader, dataset=data),
        "DataLoader": lambda source, batch_size, sampler: DataLoader(source, BATCH, sampler=sampler),
        "DistributedSampler": DistributedSampler,
        "train": Numbers(data),
    }
    exec("class Model" + example, scope)

    class Model(scope["Model"]):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.read: list[tuple[int, list[int]]] = []

        def training_step(self, batch: Any, number: int) -> Any:
            self.read.append((self.current_epoch, batch.tolist()))
            return self.layer(batch[:, None].float()).mean() * 0

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    def fit(callbacks: list[Any], checkpoint: Any = None) -> list[tuple[int, list[int]]]:
        model = Model()
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=3,
            logger=False,
            callbacks=callbacks,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(model, ckpt_path=checkpoint)
        return model.read

    whole = fit([])
    assert len(whole) == 3 * 13
    first = fit([Stop()])
    assert first == whole[:17]
    assert first + fit([], tmp_path / "last.ckpt") == whole
