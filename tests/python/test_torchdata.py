"""torchdata's StatefulDataLoader: what it gives with `attach`, and what the sidecar is told."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Server

torch = pytest.importorskip("torch")
package = pytest.importorskip("torchdata.stateful_dataloader")

from test_orders import crc, data, seeded  # noqa: E402
from test_progress import BATCH, Numbers  # noqa: E402
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    RandomSampler,
    Subset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler  # noqa: E402
from torchdata.stateful_dataloader.sampler import (  # noqa: E402
    BatchSampler as StatefulBatches,
)
from torchdata.stateful_dataloader.sampler import RandomSampler as StatefulRandom  # noqa: E402
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler  # noqa: E402

import optcache  # noqa: E402
from optcache.torch import attach  # noqa: E402

__all__ = ["data"]  # a fixture

SIZE = 200


def by_loader() -> dict[str, Any]:
    return {"shuffle": True, "generator": seeded(4)}


SAMPLERS: dict[str, Callable[[], dict[str, Any]]] = {
    "sequential": dict,
    "distributed": lambda: {"sampler": DistributedSampler(range(SIZE), 3, 1, seed=4)},
    "its own distributed": lambda: {"sampler": StatefulDistributedSampler(range(SIZE), 3, 1, seed=4)},
    "shuffle": by_loader,
    "shuffle without a seed": lambda: {"shuffle": True},
    "its own random": lambda: {"sampler": StatefulRandom(range(SIZE), generator=seeded(4))},
    "its own random, of a part": lambda: {
        "sampler": StatefulRandom(range(SIZE), num_samples=90, generator=seeded(4))
    },
    "its own random, with replacement": lambda: {
        "sampler": StatefulRandom(range(SIZE), True, 90, seeded(4))
    },
    "random of PyTorch": lambda: {"sampler": RandomSampler(range(SIZE), generator=seeded(4))},
    "weighted": lambda: {"sampler": WeightedRandomSampler([1.0, 2.0] * 100, 90, generator=seeded(4))},
}
FOLLOWED = ("its own random, with replacement",)
# The loader does not save their generators: another process repeats the first epoch only.
NOT_SAVED = ("random of PyTorch", "weighted")


def loader_of(data: optcache.Dataset, kind: str, attached: bool, **options: Any) -> Any:
    torch.manual_seed(9)  # of which samplers without a seed make theirs
    loader = package.StatefulDataLoader(Numbers(data), BATCH, **SAMPLERS[kind](), **options)
    return attach(loader, dataset=data) if attached else loader


def some(loader: Any, epoch: int, batches: int) -> list[list[int]]:
    if hasattr(loader.sampler, "set_epoch"):
        loader.sampler.set_epoch(epoch)
    return [batch.tolist() for batch in itertools.islice(loader, batches)]


def run(
    make: Callable[[bool], Any], first: bool, second: bool, whole: int = 1
) -> list[list[list[int]]]:
    """Epochs, the last of which ends early, and what another process makes of the rest.

    Args:
        make: a loader that is attached, or is not.
        first, second: is that of the first, of the second process attached?
        whole: epochs before that.
    """
    one, other = make(first), make(second)
    read = [some(one, epoch, 99) for epoch in range(whole)]
    read.append(some(one, whole, 3))
    other.load_state_dict(one.state_dict())
    return read + [some(other, epoch, 99) for epoch in range(whole, whole + 3)]


def is_told(server: Server, read: list[list[int]], number: int, start: int = 0) -> None:
    """The order of a pass is that which was read from its index `start` on."""
    begun = server.of("pass")[number]
    ids = list(itertools.chain(*read))
    assert (begun["start"], begun["length"]) == (start, len(ids) - start)
    before = server.events[: server.events.index(begun)]
    traces = [it for it in before if it["event"] == "trace" and it["pass"] == begun["pass"]]
    if traces:
        assert (traces[-1]["length"], traces[-1]["crc"]) == (len(ids), crc(ids))
    if start == 0:
        assert begun["crc"] == crc(ids)


@pytest.mark.parametrize("attached", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("kind", SAMPLERS)
def test_gives_what_it_gives_alone(
    data: optcache.Dataset, kind: str, attached: tuple[bool, bool]
) -> None:
    """Also from the other's state."""

    def make(told: bool) -> Any:
        return loader_of(data, kind, told)

    assert run(make, *attached) == run(make, False, False)


@pytest.mark.parametrize("kind", [kind for kind in SAMPLERS if kind not in FOLLOWED])
def test_its_order_is_told_and_where_it_goes_on(
    data: optcache.Dataset, server: Server, kind: str
) -> None:
    before = 0 if kind in NOT_SAVED else 1
    read = run(lambda told: loader_of(data, kind, told), True, True, before)
    begun, rest = read[before], read[before + 1]
    for number in range(before):
        is_told(server, read[number], number)
    is_told(server, begun + rest, before)
    is_told(server, begun + rest, before + 1, start=3 * BATCH)
    is_told(server, read[before + 2], before + 2)
    is_told(server, read[before + 3], before + 3)
    gets = [get for get in server.of("get") if get["stream"]]
    assert len(gets) == sum(map(len, read)), "each batch is read at its place"
    again = [get["first"] for get in gets[sum(map(len, read[: before + 1])) :]][: len(rest)]
    assert again == list(range(3 * BATCH, 3 * BATCH + BATCH * len(rest), BATCH))


@pytest.mark.parametrize("kind", ["shuffle", "its own random", "distributed"])
@pytest.mark.parametrize("persistent", [False, True])
def test_with_workers(
    data: optcache.Dataset, server: Server, kind: str, persistent: bool
) -> None:
    def make(told: bool) -> Any:
        return loader_of(data, kind, told, num_workers=1, persistent_workers=persistent)

    alone = run(make, False, False)
    assert run(make, True, True) == alone
    begun = [it for it in server.of("pass") if it["start"] == 0]
    full = [alone[0], alone[1] + alone[2], alone[3], alone[4]]
    assert [it["crc"] for it in begun] == [crc(sum(ids, [])) for ids in full]


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}])
@pytest.mark.parametrize("kind", ["shuffle", "its own random"])
def test_two_permutations_are_known_ahead(
    data: optcache.Dataset, server: Server, kind: str, options: dict[str, Any]
) -> None:
    loader = loader_of(data, kind, True, **options)
    read = [some(loader, epoch, 99) for epoch in range(3)]
    told = server.of("trace")
    # Each list once: what was told ahead is what the pass then reads.
    assert [trace["pass"] for trace in told] == [3, 4, 5, 6, 7]
    assert [trace["crc"] for trace in told[:3]] == [crc(sum(ids, [])) for ids in read]


@pytest.mark.parametrize("kind", ["shuffle", "its own random"])
def test_a_list_that_is_too_long_is_followed(
    data: optcache.Dataset, server: Server, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optcache._protocol.TRACE_MAX", SIZE - 1)
    read = run(lambda told: loader_of(data, kind, told), True, True)
    told = server.of("trace")
    assert [it["crc"] for it in told] == [crc(batch) for epoch in read for batch in epoch]
    whole = list(range(0, SIZE, BATCH))
    firsts = [it["first"] for it in told]
    assert firsts[: len(whole) + 3 + len(whole[3:])] == whole + whole  # it goes on after three


def test_an_epoch_that_is_set_after_the_state_was_saved(
    data: optcache.Dataset, server: Server
) -> None:
    """The loader made its iteration for the state, of the epoch of then."""
    loader = loader_of(data, "distributed", True)
    loader.state_dict()
    read = [some(loader, epoch, 99) for epoch in (3, 4)]
    for number in range(2):
        is_told(server, read[number], number)
    assert [begun["epoch"] for begun in server.of("pass")] == [0, 4]


def test_a_permutation_of_a_subset(data: optcache.Dataset, server: Server) -> None:
    part = Subset(data, [7, 3, 50, 9, 10])
    loader = package.StatefulDataLoader(
        part, 2, shuffle=True, generator=seeded(1), drop_last=True, collate_fn=list
    )
    read = [bytes(sample) for batch in attach(loader) for sample in batch]
    (trace,) = [it for it in server.of("trace") if it["pass"] == 3]
    assert trace["length"] == 4 and len(read) == 4
    ids = [next(i for i in part.indices if bytes(data[i]) == sample) for sample in read]
    assert trace["crc"] == crc(ids)


def test_its_batch_sampler_in_pytorchs_loader(data: optcache.Dataset, server: Server) -> None:
    """Which makes two iterations for a pass where it has workers, and reads the second."""

    def epochs(told: bool, workers: int) -> list[list[list[int]]]:
        batches = StatefulBatches(StatefulRandom(range(SIZE), generator=seeded(4)), BATCH, False)
        loader = DataLoader(Numbers(data), batch_sampler=batches, num_workers=workers)
        if told:
            attach(loader, dataset=data)
        return [some(loader, epoch, 99) for epoch in range(2)]

    for workers in (0, 1):
        read = epochs(True, workers)
        assert read == epochs(False, workers)
        assert [it["crc"] for it in server.of("pass")[-2:]] == [crc(sum(ids, [])) for ids in read]


def test_pytorchs_batch_sampler_in_its_loader(data: optcache.Dataset, server: Server) -> None:
    """Has no state, so the loader draws the batches again that were read."""

    def make(told: bool) -> Any:
        batches = BatchSampler(DistributedSampler(range(SIZE), 1, 0, seed=4), BATCH, False)
        loader = package.StatefulDataLoader(Numbers(data), batch_sampler=batches)
        return attach(loader, dataset=data) if told else loader

    def epochs(told: bool) -> list[list[list[int]]]:
        one, other = make(told), make(told)
        read = some(one, 0, 3)
        other.load_state_dict(one.state_dict())
        return [read, some(other, 0, 99), some(other, 0, 99)]

    assert epochs(True) == epochs(False)
    assert {it["known"] for it in server.of("attach")} == {1}


class Counted(torch.utils.data.Sampler):  # type: ignore[misc, type-arg]
    """A batch sampler that itself has a state: how many batches it has given."""

    def __init__(self) -> None:
        self.given = 0

    def __len__(self) -> int:
        return 9

    def __iter__(self) -> Iterator[list[int]]:
        while self.given < 9:
            self.given += 1
            yield [self.given, 2 * self.given]
        self.given = 0

    def state_dict(self) -> dict[str, int]:
        return {"given": self.given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.given = state["given"]


def test_a_batch_sampler_of_yours_that_has_a_state(data: optcache.Dataset, server: Server) -> None:
    def loader() -> Any:
        made = package.StatefulDataLoader(Numbers(data), batch_sampler=Counted())
        return attach(made, dataset=data)

    one, other = loader(), loader()
    whole = some(one, 0, 99)
    assert len(whole) == 9 and some(one, 0, 4) == whole[:4]
    other.load_state_dict(one.state_dict())
    assert some(other, 0, 99) == whole[4:]
    assert callable(inspect.getattr_static(one.batch_sampler, "state_dict"))
    gets = [get for get in server.of("get") if get["stream"]]
    assert len(gets) == 18 and {it["length"] for it in server.of("trace")} == {0}


def test_it_keeps_its_own_state(data: optcache.Dataset) -> None:
    loader = loader_of(data, "distributed", True)
    for ask in (loader.optcache.state_dict, lambda: loader.optcache.load_state_dict({})):
        with pytest.raises(ValueError, match=r"keeps a state of its own: save what loader.state_dict\(\)"):
            ask()


def test_its_distributed_sampler_in_pytorchs_loader(data: optcache.Dataset, server: Server) -> None:
    sampler = StatefulDistributedSampler(range(SIZE), num_replicas=3, rank=1, seed=4)
    sampler.set_epoch(7)
    sampler.load_state_dict({"yielded": 30})
    loader = attach(DataLoader(Numbers(data), 8, sampler=sampler), dataset=data)
    whole = list(DistributedSampler(range(SIZE), num_replicas=3, rank=1, seed=4 + 7))
    assert sum(some(loader, 7, 99), []) == whole[30:]
    (begun,) = server.of("pass")
    assert (begun["epoch"], begun["start"], begun["crc"]) == (7, 30, crc(whole[30:]))
