"""What training scripts do with their loaders, and what the cache makes of it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.plain_rank import CheckedSamples
from harness.store import Store
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache import _attach
from optcache.torch import attach

BATCH = 8
SEED = 5


class Resumed(DistributedSampler):  # type: ignore[type-arg]
    """As training scripts write it that go on in the middle of an epoch."""

    first = 0

    def __iter__(self) -> Iterator[int]:
        return itertools.islice(super().__iter__(), self.first, None)


def sampler_over(samples: CheckedSamples, epoch: int = 0) -> DistributedSampler[Any]:
    sampler: DistributedSampler[Any] = DistributedSampler(
        samples, num_replicas=1, rank=0, seed=SEED
    )
    sampler.set_epoch(epoch)
    return sampler


def loader_over(samples: CheckedSamples, **options: Any) -> DataLoader[Any]:
    return DataLoader(samples, batch_size=BATCH, **options)


def read(loader: DataLoader[Any], batches: int | None = None) -> list[int]:
    """The ids that an iteration gives, or its first batches; their bytes are checked."""
    ids: list[int] = []
    for batch, right, _ in itertools.islice(loader, batches):
        assert right.all(), f"wrong bytes among {batch.tolist()}"
        ids += batch.tolist()
    return ids


OpenSamples = Callable[..., CheckedSamples]
StartCache = Callable[..., Cluster]


def orders_unknown(cluster: Cluster) -> float:
    return sum(it["optcache_unknown_orders_total"] for it in cluster.sidecar_metrics())


def test_train_and_validation_in_one_process(
    start_cache: StartCache, open_samples: OpenSamples
) -> None:
    cluster = start_cache()
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples)
    train = attach(loader_over(samples, sampler=sampler, num_workers=2), dataset=samples.samples)
    validation = attach(
        loader_over(samples, num_workers=1), name="validation", dataset=samples.samples
    )
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert read(train) == list(sampler)
        assert read(validation) == list(range(len(samples)))
    assert orders_unknown(cluster) == 0


def test_a_loader_is_made_anew_for_each_epoch(
    start_cache: StartCache, open_samples: OpenSamples
) -> None:
    """The old one dies when the new one has attached, and takes nothing away from it."""
    cluster = start_cache()
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        loader = attach(loader_over(samples, sampler=sampler), dataset=samples.samples)
        assert read(loader) == list(sampler)
    assert orders_unknown(cluster) == 0


def test_two_loaders_have_one_name(
    start_cache: StartCache, open_samples: OpenSamples
) -> None:
    cluster = start_cache()
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples)
    train = attach(loader_over(samples, sampler=sampler), dataset=samples.samples)
    validation = attach(loader_over(samples), dataset=samples.samples)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        one, other = zip(*zip(train, validation, strict=True), strict=True)
        for batches, expected in ((one, list(sampler)), (other, list(range(len(samples))))):
            assert [i for ids, right, _ in batches if right.all() for i in ids.tolist()] == expected
    assert orders_unknown(cluster) == 0


def test_set_epoch_is_forgotten(
    start_cache: StartCache, open_samples: OpenSamples, store: Store, dataset: Dataset
) -> None:
    cluster = start_cache(share=0.5)
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples)
    loader = attach(loader_over(samples, sampler=sampler, num_workers=2), dataset=samples.samples)
    shares: list[float] = []
    # A pass takes a fraction of a second here; some go by until it is known that orders repeat.
    while not shares or shares[-1] > 0.52:
        assert len(shares) < 60, f"half of the dataset is in the cache, but the store gave {shares}"
        begin = store.log_size()
        assert read(loader) == list(sampler)
        shares.append(store.read_bytes(begin) / dataset.total_bytes)
    assert orders_unknown(cluster) == 0


def another_seed(patch: pytest.MonkeyPatch) -> None:
    """The recipe says another than the sampler has."""
    told = _attach.order_of

    def wrong(*arguments: Any) -> Any:
        order = told(*arguments)
        order.recipe = dataclasses.replace(order.recipe, seed=SEED + 1)
        return order

    patch.setattr(_attach, "order_of", wrong)


def another_randperm(patch: pytest.MonkeyPatch) -> None:
    """The training process has a torch that shuffles in another way."""
    drawn = torch.randperm
    patch.setattr(torch, "randperm", lambda *given, **named: drawn(*given, **named).flip(0))


@pytest.mark.parametrize("wrong", [another_seed, another_randperm])
def test_a_wrong_recipe_does_no_harm(
    start_cache: StartCache,
    open_samples: OpenSamples,
    store: Store,
    dataset: Dataset,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[pytest.MonkeyPatch], None],
) -> None:
    """It is noticed when a pass begins: nothing is staged by it, and what came first is kept."""
    cluster = start_cache(share=0.5)
    samples = open_samples(cluster.socket(0))
    wrong(monkeypatch)
    sampler = sampler_over(samples)
    loader = attach(loader_over(samples, sampler=sampler, num_workers=2), dataset=samples.samples)
    begin = store.log_size()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert read(loader) == list(sampler)
        assert orders_unknown(cluster) == epoch + 1
    assert store.read_bytes(begin) <= 2.1 * dataset.total_bytes


@pytest.mark.parametrize("begun", [0, 1, 70])
def test_epoch_goes_on_where_it_was_left(
    start_cache: StartCache, open_samples: OpenSamples, begun: int
) -> None:
    """A job stops in the middle of epoch 1; the next goes on there and reads epoch 2 as well."""
    cluster = start_cache()
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples, epoch=1)
    first = attach(loader_over(samples, sampler=sampler, num_workers=2), dataset=samples.samples)
    ids = read(first, begun) if begun else []
    first.optcache.detach()

    resumed = Resumed(samples, num_replicas=1, rank=0, seed=SEED)
    resumed.first = len(ids)
    resumed.set_epoch(1)
    second = attach(
        loader_over(samples, sampler=resumed, num_workers=2),
        dataset=samples.samples,
        start=len(ids),
    )
    assert ids + read(second) == list(sampler)
    resumed.first = 0
    for it in (sampler, resumed):
        it.set_epoch(2)
    assert read(second) == list(sampler)
    assert orders_unknown(cluster) == 0


@pytest.mark.parametrize("begun", [1, 70])
def test_what_was_saved_is_gone_on_from(
    start_cache: StartCache, open_samples: OpenSamples, begun: int
) -> None:
    cluster = start_cache()
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples, epoch=1)
    first = attach(loader_over(samples, sampler=sampler, num_workers=2), dataset=samples.samples)
    ids = read(first, begun)
    saved = first.optcache.state_dict()
    first.optcache.detach()

    second = attach(
        loader_over(samples, sampler=sampler_over(samples), num_workers=2), dataset=samples.samples
    )
    second.optcache.load_state_dict(saved)
    assert ids + read(second) == list(sampler)
    for it in (sampler, second.sampler):
        it.set_epoch(2)  # type: ignore[union-attr]
    assert read(second) == list(sampler)
    assert orders_unknown(cluster) == 0


def test_epochs_end_early(start_cache: StartCache, open_samples: OpenSamples) -> None:
    cluster = start_cache()
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples)
    loader = attach(loader_over(samples, sampler=sampler, num_workers=2), dataset=samples.samples)
    for epoch, batches in enumerate([1, 60, 60, 60, None, 5, None]):
        sampler.set_epoch(epoch)
        expected = list(sampler)
        assert read(loader, batches) == expected[: batches and batches * BATCH]
    assert orders_unknown(cluster) == 0


@pytest.mark.parametrize(
    ("workers", "start", "persistent"),
    [
        (0, None, False),
        (2, "fork", False),
        (2, "fork", True),
        (1, "spawn", False),
        (1, "spawn", True),
    ],
)
def test_worker_processes(
    start_cache: StartCache,
    open_samples: OpenSamples,
    workers: int,
    start: str | None,
    persistent: bool,
) -> None:
    cluster = start_cache()
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples)
    loader = attach(
        loader_over(
            samples,
            sampler=sampler,
            num_workers=workers,
            multiprocessing_context=start,
            persistent_workers=persistent,
        ),
        dataset=samples.samples,
    )
    for epoch in range(2):
        sampler.set_epoch(epoch)
        assert read(loader) == list(sampler)
    assert orders_unknown(cluster) == 0


@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_any_size(
    start_cache: StartCache, open_samples: OpenSamples, drop_last: bool
) -> None:
    """One sample, one that does not divide the dataset, and more than fits the arena."""
    cluster = start_cache(arena=4 << 20)
    samples = open_samples(cluster.socket(0))
    sampler = sampler_over(samples)
    for epoch, size in enumerate([1, 7, 400]):
        sampler.set_epoch(epoch)
        loader = DataLoader(
            samples, batch_size=size, sampler=sampler, num_workers=1, drop_last=drop_last
        )
        expected = list(sampler)
        whole = len(expected) // size * size if drop_last else len(expected)
        attached = attach(loader, dataset=samples.samples)
        assert read(attached) == expected[:whole]
        attached.optcache.detach()
