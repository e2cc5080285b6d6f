"""A sidecar that is killed or frozen, and comes back, while samples are read."""

from __future__ import annotations

import collections
import contextlib
import hashlib
import logging
import multiprocessing
import os
import pickle
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import Server, list_source, until

import optcache
from optcache import _breaker, _endpoint, _source_reads
from optcache._faults import SourceFaltersError
from optcache._frames import Frames

SILENCE_S = 1  # a whole number, of which the usual one is 5


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which no sidecar answers: one on a busy machine may be silent for as long."""
    monkeypatch.setattr(_endpoint, "INSTEAD_AFTER_S", SILENCE_S)


@pytest.fixture
def listed(server: Server) -> Server:
    list_source(server)
    return server


@contextlib.contextmanager
def frozen(server: Server, ds: optcache.Dataset) -> Iterator[None]:
    """Its silence is short until it goes on."""
    assert ds.endpoint.silence_s == _endpoint.INSTEAD_AFTER_S
    with pytest.MonkeyPatch.context() as short:
        short.setattr(_endpoint, "INSTEAD_AFTER_S", SILENCE_S)
        short.setattr(ds.endpoint, "silence_s", SILENCE_S)
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(server.process.pid, signal.SIGCONT)


def is_probe(thread: threading.Thread, socket: object) -> bool:
    return thread.name == f"optcache-probe {socket}"


def probes(socket: object) -> int:
    return sum(is_probe(thread, socket) for thread in threading.enumerate())


def fallbacks() -> int:
    return optcache.stats().fallbacks


def arenas() -> collections.Counter[str]:
    """How often each arena is mapped, by its number."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return collections.Counter(line.split()[4] for line in lines if "/memfd:optcache-arena" in line)


def test_the_arena_of_a_sidecar_that_ended_is_given_back(
    server: Server, contents: list[bytes]
) -> None:
    """Though a thread that has read from it reads no more; what is in use stays."""
    before = arenas()
    ds = optcache.Dataset()
    with ThreadPoolExecutor(1) as idle:
        assert idle.submit(lambda: bytes(ds[0])).result() == contents[0]
        view = ds[1]
        of_first = arenas().keys() - before.keys()
        server.kill()
        server.start()
        assert ds[2] == contents[2]
        assert sum(arenas()[arena] for arena in of_first) == 1
        assert view == contents[1]
        del view
        assert sum(arenas()[arena] for arena in of_first) == 0


def test_a_forked_process_keeps_no_arena_of_its_parent(server: Server) -> None:
    before = arenas()
    ds = optcache.Dataset()
    assert len(ds[0]) > 0
    own = arenas().keys() - before.keys()
    with multiprocessing.get_context("fork").Pool(1) as forked:
        assert len(own) == 1 and not own & forked.apply(arenas).keys()


def test_a_killed_sidecar_is_missed_by_nobody(
    listed: Server, contents: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    ds = optcache.Dataset()
    before = fallbacks()
    listed.kill()
    with caplog.at_level(logging.WARNING, "optcache"):
        assert [bytes(ds[i]) for i in range(20)] == contents[:20]
        assert ds.__getitems__([30, 31]) == contents[30:32]
        assert fallbacks() == before + 22
        assert probes(listed.socket) == 1
        listed.start()
        until(lambda: not ds.endpoint.away)
    until(lambda: probes(listed.socket) == 0)
    assert ds[5] == contents[5]
    assert fallbacks() == before + 22
    # On a busy machine there may be lines between them that say that it goes on.
    begin, *_, end = [record.getMessage() for record in caplog.records]
    assert f"reading samples from files under {listed.folder} until it does" in begin
    assert "does not answer ([Errno 111] Connection refused)" in begin
    assert "answers again" in end and "22 samples were read from the source" in end


def test_a_frozen_sidecar_costs_one_silence(listed: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    assert ds[0] == contents[0]
    before = fallbacks()
    with frozen(listed, ds):
        began = time.monotonic()
        assert ds[1] == contents[1]
        first_s = time.monotonic() - began
        assert ds.endpoint.away
        # Each of them would wait for a silence if the sidecar were tried.
        assert [bytes(ds[i]) for i in range(100)] == contents[:100]
        assert fallbacks() == before + 101
    until(lambda: not ds.endpoint.away)
    assert ds[7] == contents[7]
    assert fallbacks() == before + 101
    print(f"the first read took {first_s:.1f} s, of which {SILENCE_S} s were silence")


def test_a_frozen_sidecar_is_not_connected_to_by_other_threads(
    listed: Server, contents: list[bytes]
) -> None:
    ds = optcache.Dataset()
    with frozen(listed, ds):
        assert ds[1] == contents[1]
        got: list[bytes] = []
        threads = [
            threading.Thread(target=lambda: got.append(bytes(ds[2]))) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [contents[2]] * 8
        assert probes(listed.socket) == 1


@pytest.mark.long
def test_a_sidecar_that_waits_for_its_store_is_not_frozen(
    serve: Callable[..., Server], samples: Path, contents: list[bytes]
) -> None:
    server = serve(samples, "--delay-ms", "12000")
    list_source(server)
    ds = optcache.Dataset()
    ds.endpoint.silence_s = 5  # the sidecar says every 2 s that it is there
    before = fallbacks()
    assert ds[0] == contents[0]
    assert fallbacks() == before


def test_a_sidecar_that_ends_connections_counts_as_away(
    listed: Server, contents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = optcache.Dataset()

    def ended(*_: Any) -> Any:
        raise _endpoint.SilentError("made up")

    before = fallbacks()
    monkeypatch.setattr(_endpoint.Channel, "get", ended)
    assert ds[3] == contents[3]
    assert fallbacks() == before + 1


def read_in_child(ds: optcache.Dataset, expected: list[bytes], queue: Any) -> None:
    right = [bytes(ds[i]) for i in range(10)] == expected
    queue.put((right, fallbacks(), probes(ds.endpoint.path)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_that_begin_while_it_is_away(
    server: Server, contents: list[bytes], tmp_path: Path, method: str
) -> None:
    """A spawned one has no list of samples yet and reads it from its file."""
    manifest = tmp_path / "manifest"
    ds = optcache.Dataset()
    data = memory_of(ds)
    manifest.write_bytes(data)
    list_source(server, manifest=str(manifest), digest=hashlib.sha256(data).hexdigest())
    ds = optcache.Dataset()
    server.kill()
    assert ds[0] == contents[0]
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    worker = context.Process(target=read_in_child, args=(ds, contents[:10], queue))
    worker.start()
    right, counted, probing = queue.get(timeout=180)
    worker.join()
    assert (right, counted, probing) == (True, 10, 1)


def memory_of(ds: optcache.Dataset) -> bytes:
    """The bytes of a dataset's manifest, which its sidecar keeps in memory."""
    channel = ds.endpoint.channel()
    opened, descriptor = channel.open("")
    try:
        return os.pread(descriptor, opened.manifest_bytes, 0)
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("short_silence")
def test_a_job_that_begins_without_its_sidecar(
    server: Server, contents: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = tmp_path / "manifest"
    data = memory_of(optcache.Dataset())
    manifest.write_bytes(data)
    list_source(server, manifest=str(manifest), digest=hashlib.sha256(data).hexdigest())
    server.kill()
    monkeypatch.setattr(_endpoint, "_endpoints", {})
    ds = optcache.Dataset()
    assert ds.name == "local/test" and ds[4] == contents[4]
    server.start()
    until(lambda: not ds.endpoint.away)
    assert ds[5] == contents[5]


@pytest.mark.usefixtures("short_silence")
@pytest.mark.parametrize("damage", ["other bytes", "gone", "other dataset"])
def test_a_manifest_that_is_not_the_sidecars(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    ds = optcache.Dataset()
    data = memory_of(ds)
    manifest = tmp_path / "manifest"
    manifest.write_bytes(data + b"!" if damage == "other bytes" else data)
    list_source(server, manifest=str(manifest), digest=hashlib.sha256(data).hexdigest())
    copy = pickle.dumps(optcache.Dataset(wait=1.5))
    if damage == "gone":
        manifest.unlink()
    server.kill()
    ds = pickle.loads(copy)
    if damage == "other dataset":
        ds._digest = bytes(32)
    with pytest.raises(optcache.SidecarUnavailableError, match="manifest"):
        ds[0]


def test_without_a_source_reads_wait_and_one_thread_probes(
    server: Server, contents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = optcache.Dataset(wait=60)
    server.kill()
    connects = []
    connect = Frames.connect

    def counted(frames: Frames, path: str) -> None:
        if path == str(server.socket):  # tests before this one may still probe their own
            connects.append(is_probe(threading.current_thread(), server.socket))
        connect(frames, path)

    monkeypatch.setattr(Frames, "connect", counted)
    got: list[bytes] = []
    threads = [threading.Thread(target=lambda: got.append(bytes(ds[2]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: sum(connects) >= 5)
    assert connects.count(False) <= 8  # the first of each at most
    server.start()
    for thread in threads:
        thread.join()
    assert got == [contents[2]] * 8
    until(lambda: probes(server.socket) == 0)


def test_the_wait_is_an_argument(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTCACHE_WAIT", "1000")
    ds = optcache.Dataset(wait=0.2)
    copy = pickle.loads(pickle.dumps(ds))
    server.kill()
    for either in (ds, copy):
        with pytest.raises(optcache.SidecarUnavailableError, match="no process listens"):
            either[0]
    with pytest.raises(ValueError, match="wait=-1"):
        optcache.Dataset(wait=-1)


def test_kept_sources_are_not_read(server: Server) -> None:
    list_source(server, path="", kept="keys stay with the sidecar")
    ds = optcache.Dataset(wait=0.2)
    assert not ds.goes_on_alone
    server.kill()
    with pytest.raises(optcache.SidecarUnavailableError):
        ds[0]


def test_a_folder_that_is_not_here_is_not_read(server: Server, tmp_path: Path) -> None:
    list_source(server, path=str(tmp_path / "elsewhere"))
    assert not optcache.Dataset().goes_on_alone


@pytest.mark.usefixtures("short_silence")
def test_a_source_that_falters_is_asked_again(
    listed: Server, contents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    list_source(listed, patienceSeconds=3)
    ds = optcache.Dataset()
    listed.kill()
    read = _source_reads.FileSource.fetch
    failures = [SourceFaltersError("made up")] * 3

    def falters(source: Any, *place: Any) -> bytes:
        if failures:
            raise failures.pop()
        return read(source, *place)

    monkeypatch.setattr(_source_reads.FileSource, "fetch", falters)
    assert ds[6] == contents[6]
    failures += [SourceFaltersError("made up")] * 1000
    ds.wait = 0.3
    with pytest.raises(optcache.SidecarUnavailableError, match="made up. Waited 3 s: spec.source"):
        ds[7]
    listed.start()  # and where the sidecar is back, it is asked
    ds.wait = 60
    assert ds[8] == contents[8]
    assert failures


def test_the_log_says_how_it_goes_on(
    listed: Server,
    contents: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(_breaker, "TELL_EVERY_S", 0.2)
    ds = optcache.Dataset()
    listed.kill()
    with caplog.at_level(logging.WARNING, "optcache"):
        def told() -> list[str]:
            messages = [record.getMessage() for record in caplog.records]
            return [m for m in messages if f"{listed.socket} has not answered" in m]

        while len(told()) < 2:
            assert ds[6] == contents[6]
    assert told()[0].endswith("samples were read from the source, 0 reads wait")
    before = len(told())
    ds.endpoint.note_source("HTTP 503")
    until(lambda: len(told()) > before + 1)
    assert "reads wait, and the source fails: HTTP 503" in told()[-1]
    monkeypatch.setattr(_breaker, "IDLE_S", 0.1)
    until(lambda: probes(listed.socket) == 0)
    monkeypatch.setattr(_breaker, "IDLE_S", 600)
    assert ds[6] == contents[6] and probes(listed.socket) == 1


@pytest.mark.usefixtures("short_silence")
def test_a_process_without_threads_left_tries_each_time(
    listed: Server, contents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ds = optcache.Dataset(wait=0.2)
    listed.kill()
    monkeypatch.setattr(_breaker.threading.Thread, "start", none)
    with pytest.raises(optcache.SidecarUnavailableError):
        ds[0]
    assert not ds.endpoint.away
    monkeypatch.undo()
    listed.start()
    assert ds[0] == contents[0]


def test_a_backlog_that_is_full(tmp_path: Path) -> None:
    """So a sidecar that is frozen for long looks like."""
    import socket

    path = str(tmp_path / "full")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(0)
    waiting = []
    for _ in range(3):
        client = socket.socket(socket.AF_UNIX)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 100_000))
        waiting.append(client)
        with contextlib.suppress(BlockingIOError):
            client.connect(path)
    with pytest.raises(_endpoint.SilentError):
        _endpoint.Channel(path, SILENCE_S)
    listener.close()
