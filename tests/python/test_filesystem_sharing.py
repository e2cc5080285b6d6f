"""optcache:// in several threads and processes, and what its files hold of the sidecar's memory."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import DEADLINE_S, Server

fsspec = pytest.importorskip("fsspec")

import optcache.filesystem  # noqa: E402
from optcache import _url_datasets  # noqa: E402
from optcache._manifest import Manifest  # noqa: E402
from optcache._names import Names  # noqa: E402

LARGE = "test/class 1/0077.png"  # 60,000 bytes


@pytest.fixture
def fs(server: Server) -> Any:
    return fsspec.filesystem("optcache", skip_instance_cache=True)


def start_child(check: Callable[[], bool]) -> int:
    """Forks; the child ends with 0 if `check` is true there, and after the deadline in any case."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(DEADLINE_S))
        good = False
        try:
            good = check()
        finally:
            os._exit(0 if good else 1)
    return child


def ends_well(child: int) -> bool:
    """Whether the child ends, with 0."""
    return os.waitpid(child, 0)[1] == 0


def test_a_file_asks_for_its_bytes_when_they_are_read(
    fs: Any, samples: Path, server: Server
) -> None:
    size = (samples / "class 1" / "0077.png").stat().st_size
    before = server.mark()
    files = [fs.open(path) for path in fs.find("test/class 1")]
    with fs.open(LARGE) as file:
        assert file.seek(0, 2) == size == file.size
        assert server.of("get", after=before) == []
        file.seek(0)
        assert len(file.read()) == size
    assert len(server.of("get", after=before)) == 1
    for file in files:
        file.close()


def test_a_closed_file_holds_nothing(fs: Any, server: Server) -> None:
    file = fs.open(LARGE)
    file.read(1)
    file.close()
    server.wait_for("release", held=0, in_use=0)
    with pytest.raises(ValueError):
        file.read(1)


def test_many_objects_take_little_of_the_arena(
    serve: Callable[..., Server], samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server puts what its arena has no room for into the answer, and reports that once."""
    monkeypatch.setattr(_url_datasets, "_PART_BYTES", 64 << 10)
    server = serve(samples, "--arena", str(96 << 10))
    fs = fsspec.filesystem("optcache", skip_instance_cache=True)
    paths = fs.find("test")
    assert sum(fs.sizes(paths)) > 512 << 10
    expected = {f"test/{p.relative_to(samples)}": p.read_bytes() for p in samples.glob("*/*")}
    assert fs.cat(paths) == expected
    assert fs.cat_ranges(paths, 0, None) == [expected[path] for path in paths]
    assert server.of("overflow") == []


def test_an_error_that_is_kept_holds_nothing(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in "abc":
        (source / name).write_bytes(name.encode() * 5000)
    server = serve(source)
    (source / "c").unlink()
    fs = fsspec.filesystem("optcache", skip_instance_cache=True)
    found = fs.cat(["test/a", "test/b", "test/c"], on_error="return")
    assert isinstance(found["test/c"], optcache.SampleError)
    server.wait_for("release", held=0, in_use=0)


def test_an_open_file_may_be_pickled(fs: Any, samples: Path) -> None:
    whole = (samples / "class 1" / "0077.png").read_bytes()
    with fs.open(LARGE) as file:
        file.seek(1000)
        with pickle.loads(pickle.dumps(file)) as copy:
            assert copy.tell() == 1000
            assert copy.read() == whole[1000:]
        assert file.read(10) == whole[1000:1010]


def test_a_file_that_was_opened_before_a_fork(fs: Any, samples: Path, server: Server) -> None:
    """The server overwrites what the parent gives back."""
    whole = (samples / "class 1" / "0077.png").read_bytes()
    file = fs.open(LARGE)
    assert file.read(10) == whole[:10]
    parent_closed, say = os.pipe()

    def reads_the_rest() -> bool:
        os.read(parent_closed, 1)
        file.seek(20_000)
        return bool(file.read() == whole[20_000:])

    child = start_child(reads_the_rest)
    file.close()
    server.wait_for("release", held=0)
    os.write(say, b"x")
    assert ends_well(child)


def test_a_fork_while_another_thread_opens_the_dataset(
    serve: Callable[..., Server], samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A log that another thread writes to during a fork may stay locked in the child, by Python.
    monkeypatch.setattr(logging.getLogger("optcache"), "disabled", True)
    server = serve(samples, "--open-delay-ms", "1500")
    fs = fsspec.filesystem("optcache", skip_instance_cache=True)
    whole = (samples / "class 1" / "0077.png").read_bytes()
    opener = threading.Thread(target=fs.exists, args=(LARGE,))
    opener.start()
    server.wait_for("open")
    assert ends_well(start_child(lambda: bool(fs.cat_file(LARGE) == whole)))
    opener.join()


def test_a_fork_while_another_thread_sorts_the_paths(fs: Any, samples: Path) -> None:
    whole = (samples / "class 1" / "0077.png").read_bytes()
    with _url_datasets._building:
        assert ends_well(start_child(lambda: bool(fs.cat_file(LARGE) == whole)))


def test_threads_share_what_is_known_of_a_dataset(
    server: Server, samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sorted_lists: list[Manifest] = []

    def names_of(manifest: Manifest) -> Names:
        sorted_lists.append(manifest)
        return Names(manifest)

    monkeypatch.setattr(_url_datasets, "Names", names_of)
    paths = sorted(samples.glob("*/*"))[:32]
    begin = threading.Barrier(8)

    def read(part: int) -> list[bytes]:
        fs = fsspec.filesystem("optcache")  # fsspec makes one for each thread
        begin.wait()
        return [fs.cat_file(f"test/{p.relative_to(samples)}") for p in paths[4 * part :][:4]]

    with ThreadPoolExecutor(8) as pool:
        found = [data for part in pool.map(read, range(8)) for data in part]
    assert found == [path.read_bytes() for path in paths]
    assert len(sorted_lists) == 1


def test_a_newer_index_is_read_after_invalidate_cache(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = fsspec.filesystem("optcache", skip_instance_cache=True)
    assert fs.exists(LARGE)
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "a.bin").write_bytes(b"newer")
    server.kill()
    server.folder = tmp_path / "newer"
    server.start()
    with pytest.raises(optcache.OptcacheError, match="indexed again"):
        fs.cat_file(LARGE)
    fs.invalidate_cache()
    assert fs.cat_file("test/a.bin") == b"newer"
    assert not fs.exists(LARGE)
