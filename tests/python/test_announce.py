"""Orders that are announced without PyTorch: `optcache.announce`."""

from __future__ import annotations

import array
import gc
import os
import random
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import optcache
import pytest
from conftest import ROOT, Server, find_program, until
from optcache._batches import IndexBatch

SIZE = 200

# PyTorch cannot be imported here, whether it is installed or not.
WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import optcache
ds = optcache.Dataset()
with optcache.announce(ds, optcache.Shuffle(seed=3), batch_size=16) as reads:
    for _ in range(2):
        for batch in reads:
            print(*batch)
            ds.__getitems__(batch)
"""


@pytest.fixture
def data(server: Server) -> optcache.Dataset:
    return optcache.Dataset()


def crc(ids: list[int]) -> int:
    return zlib.crc32(array.array("I", ids).tobytes())


def places(server: Server, after: int = 0) -> list[tuple[int, int, int]]:
    """Pass, place and number of samples of each read that the sidecar knew the place of."""
    gets = [get for get in server.of("get", after=after) if get["stream"]]
    return sorted((get["pass"], get["first"], get["count"]) for get in gets)


def test_a_process_announces_in_which_pytorch_cannot_be_imported(server: Server) -> None:
    path = os.pathsep.join([str(ROOT / "sidecar" / "python" / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", WITHOUT_TORCH]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True, timeout=180
    )
    read = list(map(int, done.stdout.split()))
    assert sorted(read[:SIZE]) == sorted(read[SIZE:]) == list(range(SIZE))
    assert [begun["crc"] for begun in server.of("pass")] == [crc(read[:SIZE]), crc(read[SIZE:])]
    assert len(places(server)) == 2 * 13 == len(server.of("get"))
    (told,) = server.of("attach")
    assert told["known"]


@pytest.mark.parametrize("size, world", [(1, 1), (1, 3), (2, 5), (200, 1), (200, 3), (1000, 7)])
def test_a_shuffle_is_what_its_recipe_says(size: int, world: int) -> None:
    for seed, epoch in [(0, 0), (7, 2), (2**40 + 5, 1), (-3, 1)]:
        for rank in {0, world - 1}:
            recipe = f"torch-distributed size={size} seed={seed} world={world}"
            command = [find_program("optcache"), "order", "--recipe", recipe]
            command += ["--epoch", str(epoch), "--rank", str(rank)]
            shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=180)
            ids = optcache.Shuffle(seed).indices(epoch, size, rank, world)
            assert ids == list(map(int, shown.stdout.split()))


def test_a_shuffle_is_that_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    distributed = torch.utils.data.distributed
    sampler = distributed.DistributedSampler(range(1000), num_replicas=3, rank=2, seed=11)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        assert optcache.Shuffle(11).indices(epoch, 1000, 2, 3) == list(sampler)


def test_each_read_is_at_its_place(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    with optcache.announce(data, optcache.Shuffle(5), rank=1, world_size=3, epochs=2) as reads:
        for epoch in range(2):
            ids = list(reads)
            assert ids == optcache.Shuffle(5).indices(epoch, SIZE, 1, 3)
            known = server.mark()
            assert [bytes(data[index]) for index in ids] == [contents[index] for index in ids]
            begun = server.of("pass")[epoch]
            assert (begun["epoch"], begun["start"]) == (epoch, 0)
            assert (begun["length"], begun["crc"]) == (len(ids), crc(ids))
            assert places(server, known) == [(begun["pass"], at, 1) for at in range(len(ids))]
    (told,) = server.of("attach")
    assert (told["known"], told["rank"], told["world"], told["passes"]) == (True, 1, 3, 2)


def test_threads_read_batches_at_their_places(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    with optcache.announce(data, optcache.Shuffle(5), batch_size=16) as reads:
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(data.__getitems__, reads))
    ids = optcache.Shuffle(5).indices(0, SIZE)
    assert [bytes(sample) for batch in read for sample in batch] == [contents[i] for i in ids]
    begun = server.of("pass")[0]["pass"]
    expected = [(begun, first, min(16, SIZE - first)) for first in range(0, SIZE, 16)]
    assert places(server) == expected and len(server.of("get")) == len(expected)


def test_a_list_is_one_epoch(data: optcache.Dataset, server: Server) -> None:
    reads = optcache.announce(data, array.array("q", [3, 1, 4, 1, 5]))
    assert list(reads) == [3, 1, 4, 1, 5]
    (trace,) = server.of("trace")
    assert (trace["length"], trace["crc"]) == (5, crc([3, 1, 4, 1, 5]))
    assert server.of("attach")[0]["order"] == "trace"
    with pytest.raises(ValueError, match="of epoch 1 is not known: a list is the order of epoch 0"):
        list(reads)


def test_an_array_of_numpy_is_a_list(data: optcache.Dataset, server: Server) -> None:
    numpy = pytest.importorskip("numpy")
    with optcache.announce(data, numpy.array([3, 1, 4, 1, 5])) as reads:
        assert list(reads) == [3, 1, 4, 1, 5]


def test_a_function_is_asked_once_for_each_epoch_two_ahead(
    data: optcache.Dataset, server: Server
) -> None:
    asked: list[int] = []

    def order(epoch: int) -> Any:
        asked.append(epoch)
        return random.Random(epoch).sample(range(SIZE), 20 + epoch) if epoch < 4 else None

    expected = [random.Random(epoch).sample(range(SIZE), 20 + epoch) for epoch in range(4)]
    with optcache.announce(data, order) as reads:
        assert list(reads) == expected[0] and asked == [0, 1, 2]
        assert [list(reads) for _ in range(3)] == expected[1:]
        assert reads.epoch == 4
        with pytest.raises(ValueError, match="of epoch 4 is not known: the function has returned None"):
            list(reads)
    assert asked == [0, 1, 2, 3, 4]
    first = server.of("pass")[0]["pass"]
    traces = [(trace["pass"] - first, trace["crc"]) for trace in server.of("trace")]
    assert traces == [(epoch, crc(ids)) for epoch, ids in enumerate(expected)]
    assert [begun["crc"] for begun in server.of("pass")] == [crc(ids) for ids in expected]


def test_goes_on_in_a_later_epoch(data: optcache.Dataset, server: Server) -> None:
    with optcache.announce(data, optcache.Shuffle(5)) as reads:
        reads.epoch = 12
        assert list(reads) == optcache.Shuffle(5).indices(12, SIZE)
    assert server.of("pass")[0]["epoch"] == 12


def test_goes_on_at_a_sidecar_that_was_started_again(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    ids = optcache.Shuffle(5).indices(0, SIZE)
    with optcache.announce(data, optcache.Shuffle(5), batch_size=50) as reads:
        batches = iter(reads)
        data.__getitems__(next(batches))
        server.kill()
        known = len(server.events)
        server.start()
        for batch, first in zip(batches, (50, 100, 150)):
            assert [bytes(it) for it in data.__getitems__(batch)] == [
                contents[index] for index in ids[first : first + 50]
            ]
    until(lambda: bool(server.of("pass", after=known)))
    assert [first for _, first, _ in places(server, known)][-1] == 150


@pytest.mark.parametrize("index", [SIZE, -1, 2**40])
def test_an_index_that_the_dataset_has_not_is_an_error(
    data: optcache.Dataset, server: Server, index: int
) -> None:
    with optcache.announce(data, [1, index]) as reads:
        with pytest.raises(IndexError, match=f"epoch 0 has the index {index}, and .* has 200"):
            next(iter(reads))
    assert not server.of("pass")


def test_what_is_no_index_is_an_error(data: optcache.Dataset) -> None:
    for order, kind in (([1, "2"], "str"), (lambda epoch: [3, None], "NoneType")):
        with optcache.announce(data, order) as reads:
            with pytest.raises(TypeError, match=f"the order of epoch 0 has a {kind}, and not indices"):
                next(iter(reads))


def test_an_index_of_a_generator_is_checked(data: optcache.Dataset) -> None:
    with optcache.announce(data, lambda epoch: (index for index in (1, SIZE))) as reads:
        with pytest.raises(IndexError, match=f"epoch 0 has the index {SIZE}, and .* has 200"):
            next(iter(reads))


def test_what_is_no_order_is_an_error(data: optcache.Dataset) -> None:
    announce: Callable[..., Any] = optcache.announce
    for order in (7, "sequential size=200", iter([1])):
        with pytest.raises(TypeError, match=f"{type(order).__name__} is not an order.* grain's IndexS"):
            announce(data, order)
    with pytest.raises(TypeError, match="list is not an optcache dataset"):
        announce([b"1"], [0])
    wrong = {"batch_size": 0, "rank": 2, "world_size": 0, "epochs": 0}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=rf"\b{name}={value}\b"):
            announce(data, [0], **{name: value})


def test_an_order_ends_when_it_is_closed_or_dies(data: optcache.Dataset, server: Server) -> None:
    with optcache.announce(data, [1, 2]) as reads:
        list(reads)
    server.wait_for("detach", count=1)
    with pytest.raises(ValueError, match="closed"):
        list(reads)
    dies = optcache.announce(data, [1, 2])
    list(dies)
    del dies
    gc.collect()
    server.wait_for("detach", count=2)


@pytest.mark.parametrize("replayed", [True, False])
def test_an_iterator_of_a_closed_order_attaches_no_more(
    data: optcache.Dataset, server: Server, contents: list[bytes], replayed: bool
) -> None:
    ids = optcache.Shuffle(5).indices(0, SIZE)
    reads = optcache.announce(data, optcache.Shuffle(5) if replayed else lambda epoch: ids, batch_size=50)
    batches = iter(reads)
    next(batches)
    reads.close()
    server.wait_for("detach", count=1)
    known = server.mark()
    rest = [bytes(it) for batch in batches for it in data.__getitems__(batch)]
    assert rest == [contents[index] for index in ids[50:]]
    assert not server.of("attach", after=known) and not server.of("pass", after=known)
    assert not server.of("trace", after=known)


def test_an_empty_epoch_reads_nothing(data: optcache.Dataset, server: Server) -> None:
    with optcache.announce(data, []) as reads:
        assert list(reads) == []


def test_what_is_computed_is_announced(data: optcache.Dataset) -> None:
    """This sidecar keeps nothing of it, so nothing is announced, and all is read."""
    lengths = optcache.cached(optcache.Dataset(transform=len), name="lengths")
    with optcache.announce(lengths, [3, 1, 4]) as reads:
        assert [lengths[index] for index in reads] == [data.size(index) for index in (3, 1, 4)]


@pytest.mark.parametrize("own", [False, True])
def test_batches_of_what_is_computed_are_read_at_their_places(
    server: Server, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    """As `cached` returns it, and as a Dataset with `computed=` is."""
    lengths: Any = optcache.Dataset(transform=len, computed=own and "own-lengths")
    kept = lengths.kept if own else None
    if not own:
        lengths = optcache.cached(lengths, name="batch-lengths")
        kept = lengths.store_of(None)
    asked: list[tuple[int, Any]] = []
    monkeypatch.setattr(kept, "get", lambda index, tag, compute: asked.append((index, tag)))
    with optcache.announce(lengths, [5, 3, 9, 4, 7], batch_size=2) as reads:
        for batch in reads:
            assert lengths.__getitems__(batch) == [None] * len(batch)
    assert [(index, tag.first) for index, tag in asked] == list(zip([5, 3, 9, 4, 7], range(5)))
    tag = asked[0][1]
    asked.clear()
    mapped = IndexBatch([0, 1, 2], kept.identity, tag, samples=[5, 3, 9])  # as of a Subset
    lengths.__getitems__([[5, 3, 9][index] for index in mapped])
    assert [(index, tag.first) for index, tag in asked] == [(5, 0), (3, 1), (9, 2)]
    lengths.__getitems__([5, 3])
    assert asked[3:] == [(5, None), (3, None)]


def examples(heading: str) -> str:
    """The code of the user page before this chapter."""
    page = (ROOT / "docs" / "user" / "announce.md").read_text()
    return "".join(re.findall(r"```python\n(.*?)```", page.split(f"## {heading}")[0], re.DOTALL))


def test_examples_of_the_user_page(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    exec(examples("SPDL"), {})
    assert len(server.of("pass")) == 2 + 1 + 3 + 1
    assert all("crc" in begun for begun in server.of("pass"))
    assert all(get["stream"] for get in server.of("get"))
