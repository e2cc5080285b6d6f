"""A data source for grain's DataLoader: `optcache.grain.DataSource`."""

from __future__ import annotations

import itertools
import pickle
import random
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import optcache
import pytest
from conftest import ROOT, Server
from optcache.grain import DataSource
from test_announce import SIZE, crc, data, places

__all__ = ["data"]  # a fixture


def epochs_of(server: Server, after: int = 0) -> list[list[int]]:
    """The places of the reads of each pass."""
    by_pass = itertools.groupby(places(server, after), lambda place: place[0])
    return [[first for _, first, _ in of] for _, of in by_pass]


def shuffles(seed: int, epochs: int) -> list[list[int]]:
    return [optcache.Shuffle(seed).indices(epoch, SIZE) for epoch in range(epochs)]


def test_a_record_that_is_asked_for_again_is_of_the_next_epoch(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    source = DataSource(data, optcache.Shuffle(5))
    assert len(source) == SIZE
    for ids in shuffles(5, 3):
        assert [bytes(source[index]) for index in ids] == [contents[index] for index in ids]
    assert [begun["crc"] for begun in server.of("pass")] == [crc(ids) for ids in shuffles(5, 3)]
    assert epochs_of(server) == 3 * [list(range(SIZE))]
    assert len(server.of("get")) == 3 * SIZE


def test_threads_read_at_their_places(data: optcache.Dataset, server: Server) -> None:
    """Some reads of an epoch come after the first of the next one."""
    source = DataSource(data, optcache.Shuffle(5))
    chance = random.Random(1)
    reads = [(at, index) for at, index in enumerate(itertools.chain(*shuffles(5, 3)))]
    reads.sort(key=lambda read: read[0] + chance.uniform(0, 16))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(source.__getitem__, [index for _, index in reads]))
    assert len(server.of("pass")) == 3
    assert epochs_of(server) == 3 * [list(range(SIZE))]


def test_an_index_may_come_twice_in_an_epoch(data: optcache.Dataset, server: Server) -> None:
    source = DataSource(data, lambda epoch: [7, 3, 7, 7] if epoch < 2 else None)
    for index in 2 * [7, 3, 7, 7]:
        source[index]
    assert epochs_of(server) == [[0, 1, 2, 3], [0, 1, 2, 3]]
    source[7]
    assert server.of("get")[-1]["stream"] == 0


def test_an_order_that_fails_ahead_fails_one_read(data: optcache.Dataset, server: Server) -> None:
    def order(epoch: int) -> list[int]:
        if epoch == 2 and not failed:
            failed.append(epoch)
            raise OSError("no list")
        return [3, 1, 4]

    failed: list[int] = []
    source = DataSource(data, order)
    with pytest.raises(OSError, match="no list"):
        source[3]
    for index in 3 * [3, 1, 4]:
        source[index]
    assert len(server.of("pass")) == 3
    assert epochs_of(server) == 3 * [[0, 1, 2]]


def test_what_the_order_has_not_is_read_all_the_same(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    source = DataSource(data, [1, 2])
    assert [bytes(source[index]) for index in (9, 1, 9, 2)] == [
        contents[index] for index in (9, 1, 9, 2)
    ]
    assert epochs_of(server) == [[0, 1]]
    assert len(server.of("pass")) == 1


def test_a_second_loop_reads_outside_the_plan_and_is_told_so_once(
    data: optcache.Dataset, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    grain = pytest.importorskip("grain.python")
    sampler = grain.IndexSampler(SIZE, grain.NoSharding(), shuffle=True, seed=7, num_epochs=1)
    loader = grain.DataLoader(data_source=DataSource(data, sampler), sampler=sampler)
    assert len(list(loader)) == SIZE and "announced order" not in caplog.text
    known = server.mark()
    assert len(list(loader)) == SIZE and not places(server, known)
    assert caplog.text.count("is read outside the announced order") == 1


def test_reads_outside_the_order_are_told_once(
    data: optcache.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    """Without grain."""
    source = DataSource(data, [1, 2])
    for index in (1, 2):
        source[index]
    assert not caplog.records
    for index in (2, 9, 1):
        source[index]
    (told,) = caplog.records
    assert "sample 2 of" in told.message and "set num_epochs of the sampler" in told.message


def test_a_read_out_of_turn_begins_no_epoch(
    data: optcache.Dataset, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optcache.grain._EARLY_MAX", 8)
    source = DataSource(data, optcache.Shuffle(5))
    ids = shuffles(5, 1)[0]
    for index in [*ids[:100], *ids[:5], *ids[100:]]:
        source[index]
    assert len(server.of("pass")) == 1
    assert epochs_of(server) == [list(range(SIZE))]


def test_a_copy_reads_without_a_place(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    copy = pickle.loads(pickle.dumps(DataSource(data, [1, 2])))
    assert bytes(copy[1]) == contents[1] and len(copy) == SIZE
    assert copy.stats() is None and not server.of("pass")
    copy.close()


def test_a_source_that_is_closed_reads_on(data: optcache.Dataset, contents: list[bytes]) -> None:
    source = DataSource(data, [1, 2])
    source.close()
    assert bytes(source[1]) == contents[1]


@pytest.mark.parametrize("count, drop", [(1, False), (3, False), (3, True)])
def test_order_of_an_index_sampler(
    data: optcache.Dataset, server: Server, contents: list[bytes], count: int, drop: bool
) -> None:
    grain = pytest.importorskip("grain.python")
    for shard in range(count):
        known = server.mark()
        sampler = grain.IndexSampler(
            SIZE, grain.ShardOptions(shard, count, drop), shuffle=True, seed=7, num_epochs=3
        )
        source = DataSource(data, sampler)
        loader = grain.DataLoader(data_source=source, sampler=sampler)
        read = [bytes(sample) for sample in loader]
        keys = [sampler[i].record_key for i in range(shard, len(sampler), count)]
        assert read == [contents[key] for key in keys[: len(sampler) // count]]
        gets = server.of("get", after=known)
        assert len(gets) == len(read) and all(get["stream"] for get in gets)
        assert sum(map(len, epochs_of(server, known))) == len(read)
        (told,) = server.of("attach", after=known)
        assert (told["rank"], told["world"], told["order"]) == (shard, count, "trace")
        source.close()


@pytest.mark.parametrize("count, drop", [(1, False), (3, False), (3, True)])
def test_order_of_a_sequential_sampler(
    data: optcache.Dataset, server: Server, contents: list[bytes], count: int, drop: bool
) -> None:
    grain = pytest.importorskip("grain.python")
    for shard in range(count):
        known = server.mark()
        sampler = grain.SequentialSampler(SIZE, grain.ShardOptions(shard, count, drop))
        source = DataSource(data, sampler)
        read = [bytes(sample) for sample in grain.DataLoader(data_source=source, sampler=sampler)]
        assert read == contents[shard : SIZE // count * count : count]
        assert epochs_of(server, known) == [list(range(len(read)))]
        (told,) = server.of("attach", after=known)
        assert (told["rank"], told["world"]) == (shard, count)
        source.close()


def test_example_of_the_user_page(server: Server, contents: list[bytes]) -> None:
    pytest.importorskip("grain.python")
    page = (ROOT / "docs" / "user" / "announce.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page.split("## grain")[1], re.DOTALL)
    read: list[bytes] = []
    names: dict[str, Any] = {"ds": optcache.Dataset(), "read": read}
    exec(example.replace("    ...", "    read.append(bytes(sample))"), names)
    assert sorted(read) == sorted(2 * contents)
    assert len(server.of("pass")) == 2 and all(get["stream"] for get in server.of("get"))
