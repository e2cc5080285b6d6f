"""Who holds what: views, slots, processes that fork and die, a sidecar that goes and comes."""

from __future__ import annotations

import array
import errno
import gc
import logging
import multiprocessing
import os
import pickle
import random
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import Server, until

import optcache
from optcache import _arena, _channel
from optcache import _protocol as protocol


def test_slots_come_back_when_the_last_view_dies(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    batch = ds.__getitems__([1, 2, 3])
    part = batch[1][:1]
    del batch
    gc.collect()
    ds[0]
    server.wait_for("release", held=1)  # that of ds[0]; the part keeps its batch
    assert part == contents[2][:1]
    del part
    server.wait_for("release", held=0, in_use=0)
    assert _arena.live_batches() == 0


def test_an_idle_process_gives_back_what_it_drops(server: Server) -> None:
    ds = optcache.Dataset()
    views = [ds[i] for i in range(20)]
    views.clear()
    server.wait_for("release", held=0, in_use=0)


def test_views_in_cycles_come_back_with_the_collector(server: Server) -> None:
    ds = optcache.Dataset()
    loop: list[Any] = [ds[0]]
    loop.append(loop)
    del loop
    gc.collect()
    server.wait_for("release", held=0)


def test_views_stay_while_the_arena_is_used_again_and_again(
    serve: Callable[..., Server], samples: Path, contents: list[bytes]
) -> None:
    server = serve(samples, "--arena", str(256 * 1024))
    ds = optcache.Dataset()
    generator = random.Random(1)
    held: list[tuple[int, Any]] = []
    for _ in range(300):
        ids = [generator.randrange(200) for _ in range(8)]
        held += [(i, v) for i, v in zip(ids, ds.__getitems__(ids))]
        generator.shuffle(held)
        del held[6:]
        assert all(view == contents[i] for i, view in held)
    del held
    gc.collect()
    server.wait_for("release", held=0, in_use=0)


def test_what_has_no_room_comes_by_copy(
    serve: Callable[..., Server], samples: Path, contents: list[bytes]
) -> None:
    server = serve(samples, "--arena", str(64 * 1024))
    ds = optcache.Dataset()
    before = optcache.stats().copies
    views = ds.__getitems__(range(200))  # held all at once, far more than the arena
    assert all(view == contents[i] for i, view in enumerate(views))
    copies = optcache.stats().copies - before
    assert 0 < copies < 200
    assert len(server.of("overflow")) == 1
    large = max(range(200), key=lambda i: len(contents[i]))
    assert ds[large] == contents[large]


def test_a_killed_process_gives_back_all(server: Server) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        views = optcache.Dataset().__getitems__(range(10))
        os.write(writer, b"x")
        signal.pause()
        os._exit(len(views))
    os.read(reader, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    server.wait_for("closed", held=0, in_use=0)


def test_a_fork_leaves_the_parents_views_alone(server: Server, contents: list[bytes]) -> None:
    ds = optcache.Dataset()
    views = ds.__getitems__(range(10))
    child = os.fork()
    if child == 0:
        del views
        gc.collect()
        good = ds[3] == contents[3] and _arena.live_batches() == 0
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert all(view == contents[i] for i, view in enumerate(views))
    assert len({e["client"] for e in server.of("get")}) == 2
    del views
    server.wait_for("release", held=0)


def _read_all(ds: optcache.Dataset, queue: Any) -> None:
    queue.put([bytes(ds[i]) for i in range(len(ds))])


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_process_reads(server: Server, contents: list[bytes], method: str) -> None:
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    worker = context.Process(target=_read_all, args=(optcache.Dataset(), queue))
    worker.start()
    assert queue.get(timeout=180) == contents
    worker.join()
    assert worker.exitcode == 0


def test_views_outlive_the_sidecar(
    server: Server, contents: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    ds = optcache.Dataset()
    views = ds.__getitems__(range(20))
    before = optcache.stats()
    server.kill()
    assert all(view == contents[i] for i, view in enumerate(views))
    starter = threading.Timer(0.3, server.start)
    starter.start()
    assert ds[50] == contents[50]  # waits for the new one, which has another arena
    starter.join()
    assert all(view == contents[i] for i, view in enumerate(views))
    assert optcache.stats().reconnects == before.reconnects + 1
    del views
    assert ds[51] == contents[51]


def test_gives_up_on_a_sidecar_that_stays_away(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = optcache.Dataset()
    server.kill()
    monkeypatch.setenv("OPTCACHE_WAIT", "0.2")
    with pytest.raises(optcache.SidecarUnavailableError, match="no process listens at"):
        ds[0]


def test_reads_the_files_while_the_sidecar_is_away(
    server: Server,
    samples: Path,
    contents: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("OPTCACHE_FALLBACK_ROOT", str(samples))
    ds = optcache.Dataset()
    fallbacks = optcache.stats().fallbacks
    server.kill()
    with caplog.at_level(logging.WARNING, "optcache"):
        assert ds.__getitems__([1, 2]) == contents[1:3]
        assert ds[3] == contents[3]
        assert optcache.stats().fallbacks == fallbacks + 3
        server.start()
        # Which is logged after reads know it.
        until(lambda: "3 samples were read from the source" in caplog.text)
    assert ds[4] == contents[4]
    assert optcache.stats().fallbacks == fallbacks + 3
    assert caplog.text.count("reading samples from files under") == 1
    assert caplog.text.count("3 samples were read from the source") == 1


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sample, alone in a folder that may be read instead."""
    path = tmp_path / "data" / "a"
    path.parent.mkdir()
    path.write_bytes(b"right")
    monkeypatch.setenv("OPTCACHE_FALLBACK_ROOT", str(path.parent))
    return path


@pytest.mark.parametrize(
    "content, seconds_later, says",
    [
        (b"right", 0, None),
        (b"longer than it was", 0, "another file: it has 18 bytes, the indexed one has 5"),
        (b"wrong", 1, "written at another time"),
    ],
)
def test_a_file_that_is_not_the_one_that_was_indexed(
    serve: Callable[..., Server],
    own_file: Path,
    content: bytes,
    seconds_later: int,
    says: Optional[str],
) -> None:
    server = serve(own_file.parent)
    ds = pickle.loads(pickle.dumps(optcache.Dataset()))
    assert len(ds) == 1
    server.kill()
    written_ns = own_file.stat().st_mtime_ns + seconds_later * 1_000_000_000
    own_file.write_bytes(content)
    os.utime(own_file, ns=(written_ns, written_ns))
    if says is None:
        assert ds[0] == content
        return
    with pytest.raises(optcache.SampleError, match=says) as caught:
        ds[0]
    assert (caught.value.code, caught.value.index) == ("conflict", 0)


def test_files_stand_for_the_environments_dataset_only(
    serve: Callable[..., Server], own_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(own_file.parent)
    other = optcache.Dataset("test")
    monkeypatch.setenv("OPTCACHE_DATASET", "test")
    ours = optcache.Dataset("test")
    server.kill()
    monkeypatch.setenv("OPTCACHE_WAIT", "0.2")
    assert ours[0] == b"right"
    with pytest.raises(optcache.SidecarUnavailableError):
        other[0]


@pytest.mark.parametrize("given", ["5s", "-1", "nan"])
def test_a_wait_that_is_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("OPTCACHE_WAIT", given)
    with pytest.raises(optcache.OptcacheError, match=f"OPTCACHE_WAIT={given}"):
        optcache.Dataset(socket=str(tmp_path / "none"))


def test_a_process_with_too_many_files(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)  # where errors of __del__ end
    monkeypatch.setenv("OPTCACHE_WAIT", "0")

    def refuse(*_: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(optcache.SidecarUnavailableError, match="Too many open files"):
        optcache.Dataset()
    gc.collect()
    assert ignored == []


@pytest.mark.parametrize("body", [b"", bytes(16) + b"entry"])
def test_an_answer_that_cannot_be_read_breaks_the_connection(server: Server, body: bytes) -> None:
    channel = _channel.Channel(str(server.socket))
    opened, descriptor = channel.open("test")
    os.close(descriptor)
    answers = [(protocol.SAMPLES, 3, memoryview(body))]
    channel._frames.read = answers.pop  # type: ignore[method-assign]
    with pytest.raises(_channel.ChannelBrokenError):
        channel.get(opened.handle, array.array("I", [1]), None)
    assert not channel.alive()


def test_a_sidecar_that_answers_nonsense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTCACHE_WAIT", "0")
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def answer() -> None:
            client, _ = listener.accept()
            client.recv(100)
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            client.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(optcache.SidecarUnavailableError, match="not a sidecar"):
            optcache.Dataset(socket=path)
        thread.join()


def test_a_sidecar_of_another_release_is_not_asked_again(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    text = b"this sidecar speaks versions 7 to 8"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def answer() -> None:
            client, _ = listener.accept()
            client.recv(100)
            error = struct.pack("<BH", 2, len(text)) + text
            client.sendall(struct.pack("<IIQ", len(error), 71, 0) + error)
            client.close()

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(optcache.OptcacheError, match="versions 7 to 8"):
            optcache.Dataset(socket=path)
        thread.join()


def test_a_client_that_sends_nonsense_is_told_and_hurts_nobody(
    server: Server, contents: list[bytes]
) -> None:
    ds = optcache.Dataset()
    view = ds[5]
    with socket.socket(socket.AF_UNIX) as rogue:
        rogue.connect(str(server.socket))
        rogue.sendall(b"GET / HTTP/1.1\r\n\r\n")
        answer = rogue.recv(4096)
        length, kind, request = struct.unpack_from("<IIQ", answer)
        assert (kind, request, length) == (71, 0, len(answer) - 16)
        assert rogue.recv(1) == b""
    assert view == contents[5] and ds[6] == contents[6]


def test_an_interrupted_request_is_made_anew(
    serve: Callable[..., Server], samples: Path, contents: list[bytes]
) -> None:
    server = serve(samples, "--delay-ms", "300")
    ds = optcache.Dataset()
    kept = ds[0]

    class Interrupt(Exception):
        pass

    def interrupt(*_: Any) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        # Where the machine is busy, the signal may come between two requests.
        for _ in range(20):
            channel = ds.endpoint.channel()
            with pytest.raises(Interrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                while True:
                    ds[1]
            was_under_way = not channel.healthy
            del channel
            if was_under_way:
                break
    finally:
        signal.signal(signal.SIGALRM, before)
    assert was_under_way
    assert ds[2] == contents[2]
    assert kept == contents[0] and not server.of("closed")
    del kept  # the last that the first connection was needed for
    until(lambda: bool(server.of("closed")))
