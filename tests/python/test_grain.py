"""A data source for grain's DataLoader: `optcache.grain.DataSource`."""

from __future__ import annotations

import itertools
import pickle
import random
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, Optional

import optcache
import pytest
from conftest import ROOT, Server
from optcache._known_orders import known_order
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


def index_sampler(epochs: Optional[int], shard: int = 0, count: int = 1) -> Any:
    """Of the attributes of grain's that are looked at; the order of an epoch is a Shuffle."""

    class IndexSampler:
        __module__ = "grain.python"

        def __init__(self) -> None:
            self._num_records = SIZE
            self._shard_options = SimpleNamespace(
                shard_index=shard, shard_count=count, drop_remainder=True
            )
            length = SIZE // count
            lists = [optcache.Shuffle(epoch).indices(0, length) for epoch in range(epochs or 9)]
            self._record_keys = [shard * length + index for ids in lists for index in ids]

        def __len__(self) -> int:
            return sys.maxsize if epochs is None else epochs * SIZE

    return IndexSampler()


def loop(source: DataSource, sampler: Any, begin: int, end: int) -> list[bytes]:
    """What grain's DataLoader reads by the numbers from `begin` on, before `end`."""
    return [bytes(source[sampler._record_keys[i] % len(source)]) for i in range(begin, end)]


def test_a_loop_may_begin_again(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    sampler = index_sampler(2)
    keys = list(sampler._record_keys)
    source = DataSource(data, sampler)
    for _ in range(2):
        assert loop(source, sampler, 0, 2 * SIZE) == [contents[key] for key in keys]
    lists = [keys[:SIZE], keys[SIZE:]]
    assert [begun["crc"] for begun in server.of("pass")] == 2 * [crc(ids) for ids in lists]
    assert epochs_of(server) == 4 * [list(range(SIZE))]


@pytest.mark.parametrize("at", [120, SIZE + 120])
def test_a_loop_that_was_left_may_begin_again(
    data: optcache.Dataset, server: Server, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """In its first epoch or later; what threads of the first loop still read is at its place, too."""
    monkeypatch.setattr("optcache.grain._EARLY_MAX", 16)
    sampler = index_sampler(None)
    source = DataSource(data, sampler)
    loop(source, sampler, 0, at)
    known, passes = server.mark(), len(server.of("pass"))
    loop(source, sampler, 0, SIZE + 9)
    assert len(server.of("pass")) == passes + 2
    assert epochs_of(server, known) == [list(range(SIZE)), list(range(9))]


def test_a_loop_goes_on_in_the_middle(
    data: optcache.Dataset, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optcache.grain._EARLY_MAX", 16)
    sampler = index_sampler(3)
    loop(DataSource(data, sampler), sampler, SIZE + 70, 3 * SIZE)
    first, second = server.of("pass")
    assert (first["epoch"], first["start"], first["length"]) == (1, 70 - 16, SIZE - 54)
    assert (second["epoch"], second["start"]) == (2, 0)
    assert epochs_of(server) == [list(range(70, SIZE)), list(range(SIZE))]


def test_threads_read_short_epochs_out_of_order(data: optcache.Dataset, server: Server) -> None:
    """Many epochs at a time: each is one pass, and each read is at its place."""
    sampler = index_sampler(9, shard=7, count=20)
    source = DataSource(data, sampler)
    chance = random.Random(1)
    numbers = sorted(range(90), key=lambda number: number + chance.uniform(0, 32))
    for number in numbers:
        source[sampler._record_keys[number]]
    assert len(server.of("pass")) == len({number // 10 for number in numbers}) == 9
    assert sorted(first for _, first, _ in places(server)) == sorted(9 * list(range(10)))


@pytest.mark.parametrize("begin", [0, 100])
def test_a_thread_that_is_very_late_reads_at_its_place(
    data: optcache.Dataset, server: Server, begin: int
) -> None:
    """The machine was busy elsewhere: the others have gone on to the end of the epoch meanwhile."""
    sampler = index_sampler(2)
    source = DataSource(data, sampler)
    loop(source, sampler, begin, begin + 5)
    loop(source, sampler, begin + 6, SIZE)
    loop(source, sampler, begin + 5, begin + 6)
    loop(source, sampler, SIZE, 2 * SIZE)
    assert len(server.of("pass")) == 2
    assert epochs_of(server) == [list(range(begin, SIZE)), list(range(SIZE))]


def test_a_read_beside_the_loop_begins_no_epoch(data: optcache.Dataset, server: Server) -> None:
    sampler = index_sampler(2)
    source = DataSource(data, sampler)
    loop(source, sampler, 0, 50)
    source[3]
    loop(source, sampler, 50, SIZE)
    assert len(server.of("pass")) == 1
    assert epochs_of(server) == [list(range(SIZE))]
    assert [get["stream"] for get in server.of("get")].count(0) == 1


def test_the_first_read_waits_for_the_first_list_alone(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    class Keys(list[int]):
        def _getitems(self, numbers: range) -> list[int]:
            assert numbers.start == 0 or drawn.wait(10), "the first read waits"
            return [self[number] for number in numbers]

    drawn = threading.Event()
    sampler = index_sampler(4)
    keys = sampler._record_keys = Keys(sampler._record_keys)
    source = DataSource(data, sampler)
    assert loop(source, sampler, 0, SIZE) == [contents[key] for key in keys[:SIZE]]
    assert [told["pass"] for told in server.of("trace")] == [3]
    drawn.set()
    server.wait_for("trace", count=3)
    loop(source, sampler, SIZE, 4 * SIZE)
    assert [told["pass"] for told in server.of("trace")] == [3, 4, 5, 6]


def test_a_loop_that_was_left_early_begins_again(data: optcache.Dataset, server: Server) -> None:
    """Within the places that threads may read out of order: a place is read once in a pass."""
    sampler = index_sampler(1)
    source = DataSource(data, sampler)
    for _ in range(4):
        loop(source, sampler, 0, 30)
    assert len(server.of("pass")) == 4
    assert epochs_of(server) == 4 * [list(range(30))]


def test_loops_after_one_that_went_on_in_a_short_epoch(
    data: optcache.Dataset, server: Server
) -> None:
    """Which read less than the epoch: what is left of it is not the next loop's."""
    sampler = index_sampler(1)
    source = DataSource(data, sampler)
    loop(source, sampler, 120, SIZE)
    for _ in range(2):
        loop(source, sampler, 0, SIZE)
    assert [begun["start"] for begun in server.of("pass")] == [120 - 32, 0, 0]
    assert epochs_of(server) == [list(range(120, SIZE)), *2 * [list(range(SIZE))]]


def test_the_lists_ahead_are_told_once(data: optcache.Dataset, server: Server) -> None:
    sampler = index_sampler(4)
    loop(DataSource(data, sampler), sampler, 0, 4 * SIZE)
    assert [told["pass"] for told in server.of("trace")] == [3, 4, 5, 6]


def test_the_keys_are_numbers_like_any_others() -> None:
    sampler = index_sampler(1)
    keys = list(sampler._record_keys)
    for _ in range(2):  # sources over one sampler
        known_order(sampler, SIZE, 0, 1)
        assert list(map(sampler._record_keys.__getitem__, range(SIZE))) == keys
        assert type(sampler._record_keys.plain(range(2))[0]) is int
    key = sampler._record_keys[5]
    assert (key.number, type(pickle.loads(pickle.dumps(key)))) == (5, int)
    assert key % SIZE is key and type(key % 3) is int and key % 3 == keys[5] % 3


def test_loops_of_grain_that_begin_again_and_go_on(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    grain = pytest.importorskip("grain.python")
    sampler = grain.IndexSampler(SIZE, grain.NoSharding(), shuffle=True, seed=7, num_epochs=2)
    keys = [sampler[i].record_key for i in range(2 * SIZE)]
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=1)
    loader = grain.DataLoader(
        data_source=DataSource(data, sampler), sampler=sampler, read_options=options
    )
    for _ in range(2):
        assert list(map(bytes, loader)) == [contents[key] for key in keys]
    assert epochs_of(server) == 4 * [list(range(SIZE))]
    assert len(server.of("pass")) == 4
    first = iter(loader)
    for _ in range(SIZE + 40):
        next(first)
    later = iter(loader)
    later.set_state(first.get_state())
    known = server.mark()
    assert list(map(bytes, later)) == [contents[key] for key in keys[SIZE + 40 :]]
    assert {get["first"] for get in server.of("get", known)} >= set(range(42, SIZE))
    assert all(get["stream"] for get in server.of("get"))


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
    assert "sample 2 of" in told.message and "give the sampler of your DataLoader" in told.message


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
