"""Computed samples: how often they are computed by real processes, whatever happens to these."""

from __future__ import annotations

import logging
import multiprocessing
import os
import random
import re
import signal
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optcache
import pytest
import torch
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.computed import Faces
from harness.processes import wait_until
from optcache._channel import Channel
from optcache._values import encode
from optcache.torch import ImageFolder, attach
from torch.utils.data import DataLoader, RandomSampler, Subset
from torch.utils.data.distributed import DistributedSampler

SIZE = 120
EPOCHS = 3
BATCH = 8
MEMORY = 4 << 20  # more than all values
VALUE_BYTES = len(encode((torch.zeros(500), 0)))
STATS = {"current", "size", "capacity", "hits", "miss", "evict", "hit_rate"}
STATS |= {"pool_free", "pool_utilized"}


@pytest.fixture
def cluster(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    folder = tmp_path / "files" / "class"
    folder.mkdir(parents=True)
    for number in range(9):
        (folder / f"{number}.png").write_bytes(b"sample %d" % number)
    options = ClusterOptions(
        programs=programs,
        base_url=str(folder.parent),
        listing="",
        machines=1,
        budget=Budget(1 << 20, 1 << 20, 1 << 20, MEMORY),
        state=tmp_path / "state",
        sockets=tmp_path,
    )
    options.state.mkdir(mode=0o700)
    with Cluster(options, "Optimal", tmp_path) as running:
        monkeypatch.setenv("OPTCACHE_SOCKET", str(running.socket(0)))
        yield running


@pytest.fixture
def faces(tmp_path: Path) -> Faces:
    return Faces(tmp_path / "computed", SIZE)


def shuffled(dataset: Any, world: int = 1, rank: int = 0, **options: Any) -> DataLoader[Any]:
    sampler: Any = DistributedSampler(dataset, world, rank, seed=3)
    return DataLoader(dataset, BATCH, sampler=sampler, **options)


def train(loader: DataLoader[Any], epochs: int = EPOCHS, first: int = 0) -> None:
    """Each epoch gives what the sampler lists, with the right values."""
    for epoch in range(first, first + epochs):
        loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        read = []
        for tensors, indices in loader:
            assert torch.equal(tensors, indices[:, None].float().expand_as(tensors))
            read += indices.tolist()
        assert read == list(loader.sampler)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_workers": 3},
        {"num_workers": 2, "persistent_workers": True},
        {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True},
    ],
)
@pytest.mark.parametrize("attached", [True, False])
def test_each_sample_is_computed_once(
    cluster: Cluster, faces: Faces, options: dict[str, Any], attached: bool
) -> None:
    cached = optcache.cached(faces, name="faces")
    loader = shuffled(cached, **options)
    train(attach(loader) if attached else loader)
    assert faces.computed() == {i: 1 for i in range(SIZE)}
    stats = cached.stats()
    assert set(stats) == STATS
    assert (stats["miss"], stats["hits"]) == (SIZE, (EPOCHS - 1) * SIZE)
    assert (stats["size"], stats["evict"]) == (SIZE, 0)
    assert stats["hit_rate"] == (EPOCHS - 1) / EPOCHS
    assert stats["pool_utilized"] == SIZE * VALUE_BYTES
    assert stats["pool_utilized"] + stats["pool_free"] == stats["capacity"] == MEMORY


# N + (E - 1) (N - C), the least that any cache with room for C can have.
@pytest.mark.parametrize("workers", [0, 2])
def test_what_there_is_no_room_for_is_all_that_is_computed_again(
    cluster: Cluster, faces: Faces, workers: int
) -> None:
    room = 48
    cached = optcache.cached(faces, name="faces", max_bytes=room * VALUE_BYTES)
    train(attach(shuffled(cached, num_workers=workers)), epochs=5)
    assert faces.total() == SIZE + 4 * (SIZE - room)
    assert cached.stats()["size"] == room
    assert cached.stats()["pool_utilized"] <= room * VALUE_BYTES


def run_rank(faces: Faces, room: int, rank: int, barrier: Any) -> None:
    cached = optcache.cached(faces, name="faces", max_bytes=room * VALUE_BYTES)
    loader = attach(shuffled(cached, 2, rank, num_workers=1))
    for epoch in range(EPOCHS):
        barrier.wait(300)
        train(loader, epochs=1, first=epoch)


def test_ranks_of_one_machine_share(cluster: Cluster, faces: Faces) -> None:
    room = 48
    processes = multiprocessing.get_context("spawn")
    barrier = processes.Barrier(2)
    ranks = [processes.Process(target=run_rank, args=(faces, room, r, barrier)) for r in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(300)
        assert rank.exitcode == 0
    assert faces.total() == SIZE + (EPOCHS - 1) * (SIZE - room)


def read_all(faces: Faces, seed: int) -> None:
    cached = optcache.cached(faces, name="faces")
    order = list(range(len(faces)))
    random.Random(seed).shuffle(order)
    for index in order:
        tensor, number = cached[index]
        assert number == index and torch.all(tensor == index)


def test_of_processes_that_miss_at_once_one_computes(cluster: Cluster, tmp_path: Path) -> None:
    faces = Faces(tmp_path / "slow", 30, seconds=0.02)
    keep_open = optcache.cached(faces, name="faces")
    processes = multiprocessing.get_context("fork")
    readers = [processes.Process(target=read_all, args=(faces, seed // 2)) for seed in range(6)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(300)
        assert reader.exitcode == 0
    assert faces.computed() == {i: 1 for i in range(30)}
    assert keep_open.stats()["current"] == 6 * 30


def test_a_process_that_is_killed_leaves_it_to_the_next(cluster: Cluster, tmp_path: Path) -> None:
    hangs = Faces(tmp_path / "computed", 5, seconds=1000)
    goes_on = Faces(tmp_path / "computed", 5)
    cached = optcache.cached(goes_on, name="faces")
    victim = multiprocessing.get_context("fork").Process(target=read_all, args=(hangs, 1))
    victim.start()
    order = list(range(5))
    random.Random(1).shuffle(order)
    wait_until(lambda: goes_on.computing(order[0]) == victim.pid, "it computes")
    os.kill(victim.pid or 0, signal.SIGKILL)
    assert cached[order[0]][1] == order[0]
    victim.join()
    assert goes_on.computed() == {order[0]: 2}
    assert cached.stats()["size"] == 1


def test_what_raises_is_computed_again_and_raises_again(cluster: Cluster, faces: Faces) -> None:
    cached = optcache.cached(faces, name="faces")
    faces.fail = True
    for _ in range(2):
        with pytest.raises(KeyError, match="sample 7 is broken"):
            cached[7]
    faces.fail = False
    assert cached[7][1] == cached[7][1] == 7
    assert faces.computed() == {7: 3}


def test_a_sidecar_that_is_killed_costs_only_time(cluster: Cluster, faces: Faces) -> None:
    cached = optcache.cached(faces, name="faces")
    loader = attach(shuffled(cached, num_workers=2))
    train(loader, epochs=1)
    cluster.kill("sidecar-0")
    train(loader, epochs=2, first=1)
    wait_until(lambda: cached.stats()["capacity"] == MEMORY, "it is back")
    train(loader, epochs=2, first=3)
    before = faces.total()
    train(loader, epochs=1, first=5)
    assert faces.total() == before


def test_without_a_sidecar_everything_is_computed(
    faces: Faces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPTCACHE_WAIT", "0")
    for socket in (None, str(tmp_path / "nobody")):
        monkeypatch.delenv("OPTCACHE_SOCKET", raising=False)
        caplog.clear()
        cached = optcache.cached(faces, name="faces", socket=socket)
        train(attach(shuffled(cached)), epochs=1)
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert "'faces' are computed each time" in record.message
        assert "OPTCACHE_SOCKET" in record.message
        assert cached.stats()["miss"] == SIZE
    assert faces.total() == 2 * SIZE


def test_says_once_what_is_frozen(
    cluster: Cluster, faces: Faces, caplog: pytest.LogCaptureFixture
) -> None:
    first = optcache.cached(faces, name="faces")
    second = optcache.cached(faces, name="faces")
    assert first[0][1] == second[0][1] == 0
    assert [r.message for r in caplog.records if "augmentation" in r.message] == [
        "samples of 'faces' are computed once and kept (up to 4.0 MiB): random changes, such as "
        "augmentation, stay as they were the first time"
    ]


def test_another_dataset_by_the_same_name_is_computed(
    cluster: Cluster, faces: Faces, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = optcache.cached(faces, name="faces")
    assert first[0][1] == 0
    other = optcache.cached(Faces(tmp_path / "other", 10), name="faces")
    assert other[3][1] == other[3][1] == 3
    assert "give them another name" in caplog.text
    assert other.stats()["miss"] == 2
    optcache.cached(Faces(tmp_path / "equal", SIZE), name="faces")
    assert "share their samples" in caplog.text


def test_wrong_bytes_are_not_used(
    cluster: Cluster, faces: Faces, caplog: pytest.LogCaptureFixture
) -> None:
    cached = optcache.cached(faces, name="faces")
    channel = Channel(str(cluster.socket(0)))
    handle = cached._store.open_on(channel)
    wrong = bytearray(encode((torch.zeros(500), 5)))
    wrong[100] ^= 1
    channel.put_computed(channel.get_computed(handle, 5, None).lease, bytes(wrong))  # type: ignore[union-attr]
    assert isinstance(channel.get_computed(handle, 5, None), bytearray)
    assert cached[5][1] == 5
    assert faces.computed() == {5: 1}
    assert "its checksum does not match" in caplog.text


class Objects:
    """Its samples have no place in the format."""

    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> Any:
        return {index}


def test_what_cannot_be_kept_is_computed_each_time(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    sets = optcache.cached(Objects(), name="sets")
    assert [sets[3], sets[3], sets[4]] == [{3}, {3}, {4}]
    assert sets.stats()["miss"] == 3
    assert len([r for r in caplog.records if "builtins.set is not" in r.message]) == 1
    # One name has taken all memory.
    assert optcache.cached(Objects(), name="more")[2] == {2}
    assert "give each a part of it" in caplog.text


def test_pickles_where_they_are_asked_for(cluster: Cluster) -> None:
    sets = optcache.cached(Objects(), name="pickled", allow_pickle=True)
    assert [sets[3], sets[3]] == [{3}, {3}]
    assert sets.stats()["hits"] == 1


def test_a_value_that_is_larger_than_the_room_passes_through(
    cluster: Cluster, faces: Faces
) -> None:
    cached = optcache.cached(faces, name="faces", max_bytes=VALUE_BYTES - 1)
    assert cached[1][1] == cached[1][1] == 1
    assert cached.stats()["size"] == 0


def test_large_values_go_in_parts(cluster: Cluster) -> None:
    whole = optcache.cached(
        lambda index: torch.full((700_000,), float(index)), name="large", size=2
    )
    assert torch.equal(whole(1), whole(1)) and whole.stats()["hits"] == 1


def test_subsets_and_samplers_with_replacement(cluster: Cluster, faces: Faces) -> None:
    cached = optcache.cached(faces, name="faces", max_bytes=40 * VALUE_BYTES)
    part = Subset(cached, [3, 1, 4, 15, 9, 2, 6])
    for _ in range(2):
        assert [i for _, ids in attach(DataLoader(part, 2)) for i in ids.tolist()] == part.indices
    generator = torch.Generator().manual_seed(2)
    sampler: Any = RandomSampler(cached, replacement=True, generator=generator)
    loader = attach(DataLoader(cached, BATCH, sampler=sampler, num_workers=2), name="again")
    for _ in range(3):
        for tensors, indices in loader:
            assert torch.equal(tensors[:, 0], indices.float())
    assert cached.stats()["size"] == 40


def test_a_method_that_is_decorated(cluster: Cluster, tmp_path: Path) -> None:
    class Split(Faces):
        split = "train"

        @optcache.cached(name=lambda split: f"split-{split.split}", max_bytes="1Mi")
        def __getitem__(self, index: int) -> Any:
            return Faces.__getitem__(self, index)

    first, second = Split(tmp_path / "train", 40), Split(tmp_path / "validation", 40)
    with pytest.raises(IndexError, match="it has 40"):
        first[40]
    train(attach(shuffled(first, num_workers=2)), epochs=2)
    assert first.computed() == {i: 1 for i in range(40)}
    with pytest.raises(ValueError, match="tell them apart"):
        second[0]
    second.split = "validation"
    train(shuffled(second, num_workers=2), epochs=2)
    assert second.computed() == {i: 1 for i in range(40)}
    assert Split.__getitem__.stats(second)["hits"] == 40  # type: ignore[attr-defined]


def as_numbers(data: Any) -> Any:
    with open(os.environ["COUNT"], "ab") as file:
        file.write(b".")
    return list(bytes(data))


class Scaled:
    """A transform with a setting."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, data: Any) -> Any:
        return [self.factor * number for number in as_numbers(data)]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", [True, "numbers"])
def test_a_dataset_keeps_what_its_transform_makes(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: Any, workers: int
) -> None:
    count = tmp_path / "count"
    monkeypatch.setenv("COUNT", str(count))
    data = optcache.Dataset(transform=as_numbers, computed=name)
    plain: list[list[int]] = [list(bytes(sample)) for sample in optcache.Dataset()]
    loader = attach(shuffled(data, num_workers=workers, collate_fn=list))
    for _ in range(EPOCHS):
        assert [value for batch in loader for value in batch] == [plain[i] for i in loader.sampler]
    assert count.read_bytes().count(b".") == len(plain)
    assert data.stats()["hits"] == (EPOCHS - 1) * len(plain)
    assert data[-1] == plain[-1]
    with pytest.raises(IndexError):
        data[len(plain)]


def test_a_transform_with_other_settings_is_another(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    # One name has taken all memory: the others say why they are computed each time.
    data = [optcache.Dataset(transform=Scaled(n), computed=True) for n in (1, 2, 1)]
    one, two, again = (it[0] for it in data)
    assert two == [2 * number for number in one] and again == one
    assert [it.stats()["miss"] for it in data] == [1, 1, 1]


def is_odd(path: str) -> bool:
    return int(Path(path).stem) % 2 == 1


def test_an_image_folder_keeps_what_its_loader_makes(cluster: Cluster) -> None:
    data = ImageFolder(decode=bytes, computed=True)
    for _ in range(EPOCHS):
        loader = attach(shuffled(data, num_workers=2, collate_fn=list))
        assert [it for batch in loader for it in batch] == [
            (b"sample %d" % index, 0) for index in loader.sampler
        ]
    assert data.stats()["miss"] == len(data) == 9
    assert data[-1] == (b"sample 8", 0)
    # Of some of its files the same values, under their own numbers.
    some = ImageFolder(is_valid_file=is_odd, decode=bytes, computed=True)
    loader = attach(shuffled(some, num_workers=2, collate_fn=list))
    read = [it for batch in loader for it in batch]
    assert read == [(b"sample %d" % (2 * index + 1), 0) for index in loader.sampler]
    assert some[0] == (b"sample 1", 0)
    assert some.stats()["miss"] == 9 and len(some) == 4


def test_what_cannot_be_computed_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="computed='faces-224'"):
        optcache.Dataset(transform=lambda data: data, computed=True)
    with pytest.raises(ValueError, match="keeps the results of transform=. Set transform=, too"):
        optcache.Dataset(computed=True)
    with pytest.raises(ValueError, match="no computed samples of"):
        optcache.Dataset(transform=len).stats()
    assert optcache.Dataset(transform=len)[0] == len(b"sample 0")


@pytest.mark.parametrize("wrong", ["", "much", "0", "-1Gi", 0, -5])
def test_sizes_that_are_none(wrong: Any) -> None:
    with pytest.raises(ValueError, match="max_bytes"):
        optcache.cached(Objects(), name="sets", max_bytes=wrong)


# --- What docs/user/computed.md shows, word for word


def examples() -> list[str]:
    page = Path(__file__).parents[2] / "docs" / "user" / "computed.md"
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


class PageFaces:
    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> Any:
        return torch.full((4,), float(index))


@pytest.mark.parametrize("number", range(len(examples())))
def test_examples_of_the_user_page(
    cluster: Cluster,
    number: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: dict[str, Any] = dict(vars(torch.utils.data), torch=torch, attach=attach)
    names.update(optcache=optcache, DistributedSampler=DistributedSampler, Faces=PageFaces)
    page = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)
    vars(page).update(names, __name__="page")
    exec(examples()[number], vars(page))
    if number == 0:
        assert capsys.readouterr().out == "0.5\n"
    if "computed=True" in examples()[number]:
        assert capsys.readouterr().out == "9\n"
