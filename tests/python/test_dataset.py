"""optcache.Dataset as a sequence, against a real channel and arena."""

from __future__ import annotations

import contextlib
import gc
import logging
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, until

import optcache
from optcache import _arena, _endpoint, _notices, _protocol
from optcache._source_reads import _same_time


def test_reads_like_a_sequence(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    assert len(ds) == len(contents)
    assert [bytes(ds[i]) for i in range(len(ds))] == contents
    assert ds[-1] == contents[-1]
    assert ds[-len(ds)] == contents[0]
    assert repr(ds) == f"<optcache.Dataset {ds.name}: 200 samples>"
    assert bytes(ds[7]) == bytes(ds.__getitems__([7])[0])


def test_many_in_one_round_trip(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    before = optcache.stats()
    ids = [5, 3, 199, 5, -1]
    assert ds.__getitems__(ids) == [contents[i] for i in ids]
    after = optcache.stats()
    assert after.round_trips - before.round_trips == 1
    assert after.samples - before.samples == len(ids)
    assert after.wait_seconds > before.wait_seconds
    assert len(server.of("get")) == 1
    assert ds.__getitems__([]) == []


def test_a_view_is_read_only_and_of_the_arena(server: Server) -> None:
    view = optcache.Dataset()[0]
    assert isinstance(view, memoryview)
    assert view.readonly and view.format == "B" and view.ndim == 1
    with pytest.raises(TypeError):
        view[0] = 1  # type: ignore[index]


def test_copies_on_request(server: Server, contents: list[bytes]) -> None:
    sample = optcache.Dataset(copy=True)[4]
    assert type(sample) is bytes and sample == contents[4]
    server.wait_for("release", held=0)


@pytest.mark.parametrize("index", [200, -201, 2**31, 2**40, -(2**40)])
def test_an_index_that_is_not_there(server: Server, index: int) -> None:
    ds = optcache.Dataset()
    with pytest.raises(IndexError, match="200 samples"):
        ds[index]
    with pytest.raises(IndexError, match="200 samples"):
        ds.path(index)


def test_knows_classes_paths_and_sizes(server: Server, samples: Path, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    paths = [str(p.relative_to(samples)) for p in sorted(samples.glob("*/*"))]
    assert ds.classes == [f"class {i}" for i in range(4)]
    assert [ds.path(i) for i in range(len(ds))] == paths
    assert ds.paths() == paths
    assert [ds.size(i) for i in range(len(ds))] == [len(c) for c in contents]
    assert ds.target(-1) == 3 and ds.target(0) == 0
    assert ds.manifest.targets() == [i // 50 for i in range(200)]


def test_finds_a_sample_by_its_path(server: Server) -> None:
    ds = optcache.Dataset()
    assert [ds.index(path) for path in ds.paths()] == list(range(len(ds)))
    assert pickle.loads(pickle.dumps(ds)).index(ds.path(9)) == 9
    with pytest.raises(KeyError, match="local/test has no object class 0"):
        ds.index("class 0")
    with pytest.warns(DeprecationWarning, match=r"index_of\(\) is now Dataset.index\(\)") as caught:
        assert ds.index_of(ds.path(3)) == 3
    assert caught[0].filename == __file__


def test_a_dataset_without_classes(serve: Callable[..., Server], tmp_path: Path) -> None:
    folder = tmp_path / "flat"
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    serve(folder)
    ds = optcache.Dataset()
    assert ds.classes == [] and ds[0] == b"a"
    with pytest.raises(optcache.OptcacheError, match="no classes"):
        ds.target(0)


def test_names_the_dataset(server: Server) -> None:
    assert optcache.Dataset("test").name == "local/test"
    with pytest.raises(optcache.OptcacheError, match="only local/test") as caught:
        optcache.Dataset("imagenet")
    assert caught.value.code == "not_found"


def test_takes_the_name_from_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTCACHE_DATASET", "cifar")
    with pytest.raises(optcache.OptcacheError, match="cifar"):
        optcache.Dataset()


def test_says_what_to_do_without_a_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPTCACHE_SOCKET", raising=False)
    with pytest.raises(optcache.SidecarUnavailableError, match="OPTCACHE_SOCKET"):
        optcache.Dataset()
    monkeypatch.setenv("OPTCACHE_WAIT", "0")
    with pytest.raises(optcache.SidecarUnavailableError, match="there is no socket at"):
        optcache.Dataset(socket=str(tmp_path / "none"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(optcache.SidecarUnavailableError, match="not a socket"):
        optcache.Dataset(socket=str(tmp_path / "file"))


def test_waits_for_a_dataset_that_is_being_indexed(
    serve: Callable[..., Server], samples: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for delay_ms in (1_500, 6_000, 24_000):  # it may be over before a busy machine asks
        serve(samples, "--open-delay-ms", str(delay_ms))
        with caplog.at_level(logging.WARNING, "optcache"):
            assert len(optcache.Dataset()) == 200
        if caplog.text:
            break
    assert "not indexed yet" in caplog.text


def test_an_index_is_waited_for_as_long_as_a_sidecar(
    serve: Callable[..., Server], samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(samples, "--open-delay-ms", "600000")
    monkeypatch.setattr(_endpoint, "RETURN_WAIT_S", 0.5)
    monkeypatch.delenv("OPTCACHE_WAIT", raising=False)
    with pytest.raises(optcache.SidecarUnavailableError, match="not indexed yet. Waited 0.5 s") as caught:
        optcache.Dataset()
    assert "wait= or OPTCACHE_WAIT" in str(caught.value)


def test_names_the_rank_that_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank, said in (("3", "rank 3: it waits"), ("", "it waits")):
        monkeypatch.setenv("RANK", rank)
        _notices.tell("it waits")
        assert capsys.readouterr().err == f"optcache: {said}\n"


@pytest.mark.parametrize("log_is_there", [False, True])
def test_says_on_standard_error_what_it_waits_for(
    serve: Callable[..., Server],
    samples: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log_is_there: bool,
) -> None:
    """Wherever the log goes, each line once."""
    serve(samples, "--open-delay-ms", "600000")
    monkeypatch.setattr(_endpoint, "TELL_EVERY_S", 0.2)
    monkeypatch.setenv("OPTCACHE_WAIT", "600")
    log, shown = logging.getLogger("optcache"), logging.StreamHandler(sys.stderr)
    if log_is_there:
        log.addHandler(shown)
    said: list[str] = []

    def open_it() -> None:
        with contextlib.suppress(optcache.SidecarUnavailableError):
            optcache.Dataset()

    def has_said_two() -> bool:
        said.append(capsys.readouterr().err)
        return "".join(said).count("\n") >= 2

    waiter = threading.Thread(target=open_it)
    waiter.start()
    try:
        until(has_said_two)
    finally:
        monkeypatch.setenv("OPTCACHE_WAIT", "0")
        waiter.join()
        log.removeHandler(shown)
    first, second, *_ = "".join(said).splitlines()
    begin = "" if log_is_there else "optcache: "
    assert first.startswith(f"{begin}waiting up to 600 s (wait= or OPTCACHE_WAIT sets how long): ")
    assert second.startswith(f"{begin}still waiting, ") and " of 600 s: " in second
    assert first.endswith("the dataset local/test is not indexed yet")
    assert second.endswith("the dataset local/test is not indexed yet")


def test_tells_once_when_samples_are_others_and_when_they_are_not_any_more(
    serve: Callable[..., Server], samples: Path, caplog: pytest.LogCaptureFixture
) -> None:
    serve(samples, "--stand-in", "7")
    ds = optcache.Dataset()
    copies = optcache.stats().copies
    with caplog.at_level(logging.WARNING, "optcache"):
        for batch in ([1, 2], [6, 7], [7, 8], [3, 4], [5, 6]):
            ds.__getitems__(batch)
    said = [record.message for record in caplog.records if "headspace" in record.message]
    assert said == [
        "headspace: from now on the sidecar delivers other samples than are requested, at once",
        "headspace: from now on the sidecar delivers the samples that are requested",
    ]
    assert optcache.stats().copies == copies


def test_an_object_that_is_gone(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_bytes(name.encode())
    server = serve(folder)
    ds = optcache.Dataset()
    (folder / "b").unlink()
    with pytest.raises(optcache.SampleError, match=r"sample 1 of local/test \(b\)") as caught:
        ds.__getitems__([0, 1, 2])
    assert (caught.value.code, caught.value.index) == ("not_found", 1)
    assert ds[2] == b"c"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code, again.index) == (str(caught.value), "not_found", 1)
    del caught
    server.wait_for("release", held=0)


def test_more_ids_than_one_request_holds(
    serve: Callable[..., Server], samples: Path, contents: list[bytes]
) -> None:
    server = serve(samples, "--stage")
    ds = optcache.Dataset(copy=True)
    small = min(range(200), key=lambda i: len(contents[i]))
    assert ds.__getitems__([small] * 70_000) == [contents[small]] * 70_000
    assert [e["count"] for e in server.of("get")] == [65_536, 70_000 - 65_536]


def test_more_bytes_than_one_request_holds(
    server: Server, contents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = optcache.Dataset()
    ids = [5, 1, 9, 1, 7]
    monkeypatch.setattr(_protocol, "BYTES_MAX", len(contents[5]) + len(contents[1]))
    assert ds.__getitems__(ids) == [contents[i] for i in ids]
    asked = [e["count"] for e in server.of("get")]
    assert sum(asked) == len(ids) and asked[0] == 2
    monkeypatch.setattr(_protocol, "BYTES_MAX", 0)
    assert ds.__getitems__(ids) == [contents[i] for i in ids]
    assert [e["count"] for e in server.of("get")][len(asked) :] == [1] * len(ids)


def test_every_thread_has_its_own_connection(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    wrong: list[Any] = []

    def read(begin: int) -> None:
        for i in range(begin, begin + 150):
            if ds[i % 200] != contents[i % 200]:
                wrong.append(i)

    threads = [threading.Thread(target=read, args=(40 * i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len({e["client"] for e in server.of("get")}) == 5


def test_a_view_outlives_its_thread(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    views: list[Any] = []
    thread = threading.Thread(target=lambda: views.append(ds[9]))
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert _arena.live_batches() == 1
    assert not server.of("closed")
    assert views[0] == contents[9]
    views.clear()
    server.wait_for("closed", held=0)


def test_pickles_without_its_connection(server: Server, contents: list[bytes]) -> None:
    ds = pickle.loads(pickle.dumps(optcache.Dataset(copy=True)))
    assert ds.name == "local/test" and ds[3] == contents[3] and type(ds[3]) is bytes


def test_refuses_a_dataset_that_was_indexed_anew(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    server = serve(folder)
    ds = optcache.Dataset()
    server.kill()
    (folder / "b").write_bytes(b"b")
    server.start()
    with pytest.raises(optcache.OptcacheError, match="indexed again"):
        ds[0]


def test_times_agree_as_far_as_they_are_known() -> None:
    assert _same_time(0, 5) and _same_time(1_000_000_005, 1_000_000_005)
    assert _same_time(1_000_000_000, 1_000_000_005), "HTTP tells whole seconds"
    assert not _same_time(1_000_000_005, 1_000_000_000)
    assert not _same_time(1_000_000_000, 2_000_000_005)
