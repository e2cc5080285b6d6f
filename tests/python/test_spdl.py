"""A source for SPDL's pipelines: `optcache.spdl.Source`."""

from __future__ import annotations

import re
import subprocess
import threading
import types
from typing import Any

import optcache
import pytest
from conftest import ROOT, Server, find_program
from optcache._known_orders import spdl_recipe
from optcache.spdl import Source
from test_announce import SIZE, crc, data, places

__all__ = ["data"]  # a fixture


class Gate:
    """A dataset whose reads wait until as many are under way as are allowed."""

    def __init__(self, data: optcache.Dataset, together: int) -> None:
        self.barrier = threading.Barrier(together)
        self.data = data
        self.begun = 0
        self._lock = threading.Lock()

    def __getitems__(self, batch: list[int]) -> list[Any]:
        with self._lock:
            self.begun += 1
        self.barrier.wait(timeout=120)
        return self.data.__getitems__(batch)


def test_batches_come_in_their_order(
    data: optcache.Dataset, server: Server, contents: list[bytes]
) -> None:
    source = Source(data, optcache.Shuffle(5), batch_size=16, epochs=2)
    for epoch in range(2):
        known = server.mark()
        ids = optcache.Shuffle(5).indices(epoch, SIZE)
        got = list(source)
        assert [index for indices, _ in got for index in indices] == ids
        assert [bytes(it) for _, samples in got for it in samples] == [contents[i] for i in ids]
        (begun,) = server.of("pass", after=known)
        firsts = range(0, SIZE, 16)
        assert places(server, known) == [(begun["pass"], at, min(16, SIZE - at)) for at in firsts]
    stats = source.stats()
    assert stats is not None and stats.samples == 2 * SIZE
    source.close()
    server.wait_for("detach")


def test_threads_read_ahead(data: optcache.Dataset) -> None:
    """The first batch comes when four reads are under way at a time: with fewer, none would end."""
    source = Source(data, list(range(32)), batch_size=2, num_threads=4)
    gate = Gate(data, together=4)
    source._dataset = gate
    batches = iter(source)
    assert next(batches)[0] == [0, 1]
    assert gate.begun <= 8
    assert len(list(batches)) == 15


@pytest.mark.parametrize("threads", [1, 12])
def test_the_sidecar_knows_how_many_samples_are_under_way(
    data: optcache.Dataset, server: Server, threads: int
) -> None:
    source = Source(data, list(range(32)), batch_size=2, num_threads=threads)
    assert server.of("attach")[0]["behind"] == 2 * threads * 2
    source.close()


def test_a_source_may_be_left_early(data: optcache.Dataset, server: Server) -> None:
    source = Source(data, optcache.Shuffle(5), batch_size=4)
    batches = iter(source)
    first = next(batches)[0]
    batches.close()  # type: ignore[attr-defined]
    source.shuffle(0)
    assert next(iter(source))[0] == first


def test_what_fails_is_an_error_of_the_loop(data: optcache.Dataset) -> None:
    source = Source(data, list(range(32)), batch_size=2)

    class Broken:
        def __getitems__(self, batch: list[int]) -> list[Any]:
            raise optcache.SampleError("it is gone", "not_found", batch[0])

    source._dataset = Broken()
    with pytest.raises(optcache.SampleError, match="it is gone"):
        list(source)
    with pytest.raises(ValueError, match="num_threads=0"):
        Source(data, [0], batch_size=1, num_threads=0)


class Lengths:
    """A dataset whose samples are computed by a decorated method: it has no `__getitems__`."""

    def __init__(self, data: optcache.Dataset) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    @optcache.cached(name="decorated-lengths")
    def __getitem__(self, index: int) -> int:
        return len(self.data[index])


def test_a_source_of_computed_samples(data: optcache.Dataset) -> None:
    around = optcache.cached(optcache.Dataset(transform=len), name="source-lengths")
    for computed in (around, Lengths(data)):
        source = Source(computed, list(range(10)), batch_size=4)
        read = [pair for indices, lengths in source for pair in zip(indices, lengths)]
        assert read == [(index, data.size(index)) for index in range(10)]
        source.close()


def test_order_of_a_random_sampler(data: optcache.Dataset, server: Server) -> None:
    """Known from its recipe. Where the ranks are dealt unequal numbers, what all read is predicted."""
    spdl = pytest.importorskip("spdl.source")
    for more in ({}, {"ddp_drop_last_distributed_round": False}):
        sampler = spdl.DistributedRandomSampler(SIZE, rank=1, world_size=3, **more)
        known = server.mark()
        with optcache.announce(data, sampler) as reads:
            for epoch in (0, 1):
                sampler.shuffle(epoch)
                expected = list(sampler)
                sampler.shuffle(17)
                assert list(reads) == expected
                begun = server.of("pass", after=known)[epoch]
                assert (begun["epoch"], begun["length"]) == (epoch, SIZE // 3)
                assert begun["crc"] == crc(expected[: SIZE // 3])
            assert sampler._seed == 17
        told = server.of("attach", after=known)[-1]
        assert (told["rank"], told["world"]) == (1, 3)
        command = [find_program("optcache"), "order", "--recipe", told["order"]]
        command += ["--epoch", "1", "--rank", "1"]
        shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=180)
        assert list(map(int, shown.stdout.split())) == expected[: SIZE // 3]


def test_a_seed_of_a_sampler_is_that_of_epoch_0(data: optcache.Dataset, server: Server) -> None:
    spdl = pytest.importorskip("spdl.source")
    for more in ({}, {"weights": [1.0 + i for i in range(SIZE)]}):
        sampler = spdl.DistributedRandomSampler(SIZE, rank=1, world_size=2, seed=42, **more)
        known = server.mark()
        first = list(sampler)
        with optcache.announce(data, sampler) as reads:
            assert list(reads) == first
            sampler.shuffle(43)
            assert list(reads) == list(sampler)
        told = server.of("attach", after=known)[0]["order"]
        assert told == "trace" if more else " seed=42 " in told
    sampler.shuffle(None)
    with pytest.raises(ValueError, match="DistributedRandomSampler has the seed None"):
        optcache.announce(data, sampler)


def test_embed_shuffle_is_refused_by_its_name(data: optcache.Dataset) -> None:
    spdl = pytest.importorskip("spdl.source")
    utils = pytest.importorskip("spdl.source.utils")
    sampler = spdl.DistributedRandomSampler(SIZE, rank=0, world_size=1)
    with pytest.raises(TypeError, match="embed_shuffle is not an order: give the sampler"):
        optcache.announce(data, utils.embed_shuffle(sampler))


def test_a_recipe_of_spdl_with_a_seed() -> None:
    """Without SPDL: a sampler that has its attributes."""
    sampler = types.SimpleNamespace(_world_size=2, _rank=1, _num_draws=100)
    recipes = [spdl_recipe(sampler, 100, seed).order for seed in (42, 0)]
    shown = []
    for recipe, epoch in zip(recipes, ("1", "43")):
        command = [find_program("optcache"), "order", "--recipe", recipe, "--epoch", epoch]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=180)
        shown.append(done.stdout)
    assert shown[0] == shown[1] and "seed" not in recipes[1]


def test_order_of_other_samplers(data: optcache.Dataset, server: Server) -> None:
    spdl = pytest.importorskip("spdl.source")
    weighted = spdl.DistributedRandomSampler(
        SIZE, rank=1, world_size=2, num_draws=50, weights=[1.0 + i for i in range(SIZE)]
    )
    plain = spdl.DistributedDeterministicSampler(SIZE, rank=1, world_size=2)
    for sampler in (weighted, plain):
        known = server.mark()
        with optcache.announce(data, sampler) as reads:
            assert list(reads) == list(sampler)
        assert server.of("attach", after=known)[0]["order"] == "trace"
        assert len(server.of("trace", after=known)) == 3


def test_example_of_the_user_page(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spdl.pipeline")
    page = (ROOT / "docs" / "user" / "announce.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page.split("## SPDL")[1].split("\n## ")[0], re.DOTALL)
    read: list[Any] = []
    names: dict[str, Any] = {"ds": optcache.Dataset(), "read": read}
    exec(example.replace("            ...", "            read.extend(batch)"), names)
    data = names["ds"]
    assert sorted(read) == sorted(2 * [(data.target(i), data.size(i)) for i in range(SIZE)])
    assert len(server.of("pass")) == 2 and server.of("attach")[0]["order"].startswith("spdl-random")
    assert all(get["stream"] for get in server.of("get"))


def test_an_announced_order_is_a_source(server: Server, data: optcache.Dataset) -> None:
    pipeline = pytest.importorskip("spdl.pipeline")
    with optcache.announce(data, optcache.Shuffle(5), batch_size=16) as reads:
        builder = pipeline.PipelineBuilder().add_source(reads)
        builder = builder.pipe(data.__getitems__, concurrency=4).add_sink(4)
        running = builder.build(num_threads=4)
        with running.auto_stop():
            assert sum(map(len, running)) == SIZE
    assert [first for _, first, _ in places(server)] == list(range(0, SIZE, 16))
