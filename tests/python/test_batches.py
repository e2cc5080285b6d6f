"""Indices that know their place, without PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

from conftest import Server

import optcache
from optcache._batches import BatchIndex, IndexBatch
from optcache._protocol import Tag

TAG = Tag(stream=77, rank=1, pass_number=4, first=256)


def test_is_a_list_of_ints() -> None:
    batch = IndexBatch([3, 1, 2], "local/test", TAG)
    assert batch == [3, 1, 2] and isinstance(batch, list) and len(batch) == 3
    assert list(batch) == [3, 1, 2] and sorted(batch) == [1, 2, 3]
    index = next(iter(batch))
    assert isinstance(index, int) and index + 1 == 4 and {3: "x"}[index] == "x"


def test_travels_with_its_tag() -> None:
    batch = IndexBatch([3, 1, 2], "local/test", TAG)
    there = pickle.loads(pickle.dumps((7, batch)))[1]
    assert type(there) is IndexBatch and there == batch
    assert (there.tag, there.dataset) == (TAG, "local/test")
    assert type(copy.copy(batch)) is IndexBatch


def test_an_index_travels_as_an_int() -> None:
    index = next(iter(IndexBatch([3], "local/test", TAG)))
    assert type(index) is BatchIndex
    assert type(pickle.loads(pickle.dumps(index))) is int


def test_one_index_after_the_other_is_one_round_trip(
    server: Server, contents: list[bytes]
) -> None:
    ds = optcache.Dataset()
    batch = IndexBatch([9, 8, 7], ds.identity, TAG)
    assert [ds[i] for i in batch] == [contents[i] for i in (9, 8, 7)]
    (get,) = server.of("get")
    assert (get["count"], get["stream"], get["pass"], get["first"]) == (3, 77, 4, 256)
    del batch
    server.wait_for("release", held=0)


def test_a_whole_batch_is_one_round_trip(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    assert ds.__getitems__(IndexBatch([9, 8], ds.identity, TAG)) == contents[9:7:-1]
    assert server.of("get")[0]["stream"] == 77


def test_indices_of_another_dataset_carry_no_tag(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    batch = IndexBatch([5, 6], "vision/imagenet", TAG)
    assert [ds[i] for i in batch] == contents[5:7]
    assert ds.__getitems__(batch) == contents[5:7]
    assert {e["stream"] for e in server.of("get")} == {0}


def test_one_bad_sample_costs_its_batch_one_round_trip_more_each(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in "abcd":
        (folder / name).write_bytes(name.encode())
    server = serve(folder)
    ds = optcache.Dataset()
    (folder / "c").unlink()
    read = []
    for index in IndexBatch([0, 1, 2, 3], ds.identity, TAG):
        try:
            read.append(bytes(ds[index]))
        except optcache.SampleError as error:
            assert error.index == 2
    assert read == [b"a", b"b", b"d"]
    assert [get["count"] for get in server.of("get")] == [4, 1, 1, 1, 1]
