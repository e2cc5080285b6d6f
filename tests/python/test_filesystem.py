"""optcache:// for fsspec, beside fsspec's own local file system over the same folder."""

from __future__ import annotations

import errno
import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import DEADLINE_S, Server

fsspec = pytest.importorskip("fsspec")

import optcache  # noqa: E402
from fsspec.callbacks import Callback  # noqa: E402

from optcache import _url_datasets  # noqa: E402
from optcache._manifest import Manifest  # noqa: E402
from optcache._names import Names  # noqa: E402
from optcache.filesystem import OptcacheFileSystem  # noqa: E402


@pytest.fixture
def fs(server: Server) -> Any:
    return fsspec.filesystem("optcache", skip_instance_cache=True)


def write_list(server: Server, *names: str) -> None:
    """What a sidecar with these datasets writes beside its socket."""
    served = [{"name": name, "kept": "keys stay with the sidecar"} for name in names]
    Path(f"{server.socket}.sources").write_text(json.dumps({"version": 1, "datasets": served}))


@pytest.fixture
def local() -> Any:
    return fsspec.filesystem("file")


def relative(names: Any, root: str) -> set[str]:
    assert all(name.startswith(root) for name in names)
    return {name[len(root) :].strip("/") for name in names}


@pytest.mark.parametrize("folder", ["", "class 0", "class 3"])
def test_lists_what_the_folder_has(fs: Any, local: Any, samples: Path, folder: str) -> None:
    ours = fs.ls(f"optcache://test/{folder}")
    theirs = local.ls(str(samples / folder), detail=True)
    assert relative((e["name"] for e in ours), "test") == relative(
        (e["name"] for e in theirs), str(samples)
    )
    by_name = {e["name"][len("test/") :]: e for e in ours}
    for entry in theirs:
        found = by_name[str(Path(entry["name"]).relative_to(samples))]
        assert found["type"] == entry["type"]
        assert entry["type"] == "directory" or found["size"] == entry["size"]


def test_walks_finds_and_globs_as_a_local_folder(fs: Any, local: Any, samples: Path) -> None:
    root = str(samples)
    assert relative(fs.find("optcache://test"), "test") == relative(local.find(root), root)
    pattern = "class [12]/00*.png"
    assert relative(fs.glob(f"optcache://test/{pattern}"), "test") == relative(
        local.glob(f"{root}/{pattern}"), root
    )
    assert fs.du("test") == local.du(root)


def test_reads_whole_objects_parts_and_many(fs: Any, samples: Path, server: Server) -> None:
    paths = sorted(samples.glob("*/*"))
    names = [f"test/{path.relative_to(samples)}" for path in paths]
    assert fs.cat_file(names[3]) == fs.cat(names[3]) == paths[3].read_bytes()
    whole = paths[5].read_bytes()
    for start, end in [(None, 10), (5, None), (-3, None), (2, -2), (10**9, None)]:
        assert fs.cat_file(names[5], start, end) == whole[start:end]
    before = server.mark()
    assert fs.cat(names) == {name: path.read_bytes() for name, path in zip(names, paths)}
    assert len(server.of("get", after=before)) == 1, "one round trip"
    assert fs.cat("test/class 1", recursive=True).keys() == {n for n in names if "class 1" in n}
    parts = {name: path.read_bytes()[2:9] for name, path in zip(names, paths)}
    assert fs.cat(names, start=2, end=9) == parts
    for on_error in ["raise", "return", "omit"]:
        assert fs.cat(names[3], on_error=on_error) == paths[3].read_bytes()


def test_one_object_that_fails_costs_the_others_one_round_trip(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(8):
        (source / f"{number}.bin").write_bytes(b"%d" % number)
    server = serve(source)
    (source / "3.bin").unlink()
    fs = fsspec.filesystem("optcache", skip_instance_cache=True)
    names = [f"test/{number}.bin" for number in range(8)]
    before = server.mark()
    found = fs.cat(names, on_error="return")
    assert len(server.of("get", after=before)) == 2
    assert isinstance(found.pop("test/3.bin"), optcache.SampleError)
    assert found == {n: n[5:6].encode() for n in names if "3" not in n}
    assert fs.cat(names, on_error="omit") == found
    with pytest.raises(optcache.SampleError, match=r"3\.bin"):
        fs.cat(names)


def test_reads_ranges_of_many_objects(fs: Any, samples: Path, server: Server) -> None:
    path = sorted(samples.glob("*/*"))[0]
    name, whole = f"test/{path.relative_to(samples)}", path.read_bytes()
    before = server.mark()
    found = fs.cat_ranges([name, name, "test/none"], [0, 4, 0], [4, None, 9])
    assert found[:2] == [whole[:4], whole[4:]]
    assert isinstance(found[2], FileNotFoundError)
    assert len(server.of("get", after=before)) == 1
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(["test/none"], [0], [1], on_error="raise")
    with pytest.raises(ValueError, match="as many"):
        fs.cat_ranges([name], [0, 1], [1])


def test_opens_like_a_file(fs: Any, samples: Path) -> None:
    path = samples / "class 1" / "0077.png"
    whole = path.read_bytes()
    generator = random.Random(7)
    with fs.open(f"test/{path.relative_to(samples)}") as ours, path.open("rb") as theirs:
        for _ in range(100):
            at = generator.randrange(len(whole) + 10)
            assert ours.seek(at) == theirs.seek(at)
            length = generator.choice([-1, 0, 1, 7, 10_000])
            assert ours.read(length) == theirs.read(length)
            assert ours.tell() == theirs.tell()
        assert ours.seek(-2, 2) == len(whole) - 2
        for file in [ours, theirs]:
            with pytest.raises((OSError, ValueError)):
                file.seek(-1)
            with pytest.raises(OSError):
                file.seek(-100_000, 2)
    for mode in ["rb", "br"]:
        with fs.open(f"test/{path.relative_to(samples)}", mode) as file:
            assert file.mode == "rb"
    with fsspec.open(f"optcache://test/{path.relative_to(samples)}", "rb") as file:
        assert file.read() == whole
        assert file.size == file.details["size"] == len(whole)


def test_reads_blocks_up_to_delimiters(fs: Any, samples: Path) -> None:
    path = sorted(samples.glob("*/*"))[0]
    name, whole = f"test/{path.relative_to(samples)}", path.read_bytes()
    assert fs.read_block(name, 3, 10) == whole[3:13]
    assert fs.read_block(name, 5, None) == whole[5:]
    delimiter = whole[20:21]
    blocks = [fs.read_block(name, at, 100, delimiter) for at in range(0, len(whole), 100)]
    assert b"".join(blocks) == whole


def test_copies_a_folder(fs: Any, samples: Path, tmp_path: Path) -> None:
    fs.get("test/class 1", str(tmp_path / "copy"), recursive=True)
    copied = {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()}
    assert copied == {path.name: path.read_bytes() for path in samples.glob("class 1/*")}


def test_a_copy_that_fails_leaves_the_local_file(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.bin").write_bytes(b"of the store")
    serve(source)
    (source / "a.bin").unlink()
    local = tmp_path / "a.bin"
    local.write_bytes(b"as it was")
    with pytest.raises(optcache.SampleError):
        fsspec.filesystem("optcache", skip_instance_cache=True).get_file("test/a.bin", str(local))
    assert local.read_bytes() == b"as it was"


def test_a_copy_tells_its_progress(fs: Any, samples: Path, tmp_path: Path) -> None:
    progress = Callback()
    fs.get_file("test/class 1/0077.png", str(tmp_path / "new" / "a.png"), callback=progress)
    size = (samples / "class 1" / "0077.png").stat().st_size
    assert progress.size == progress.value == size
    with open(tmp_path / "b.png", "wb") as file:
        fs.get_file("test/class 1/0077.png", file)
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "new" / "a.png").read_bytes()


def test_what_is_not_there(fs: Any) -> None:
    for name in ["test/none", "test/class 1/0", "test/class", "test/class 1/0001.png/x"]:
        assert not fs.exists(name)
        with pytest.raises(FileNotFoundError):
            fs.cat_file(name)
    with pytest.raises(IsADirectoryError):
        fs.cat_file("test/class 1")
    with pytest.raises(FileNotFoundError, match="imagenet here: the sidecar serves local/test"):
        fs.ls("optcache://imagenet/train")


def test_nothing_can_be_written(fs: Any, samples: Path) -> None:
    name = "test/class 1/0001.png"
    for write in [
        lambda: fs.open(name, "wb"),
        lambda: fs.open(name, "a"),
        lambda: fs.open(name, "r+b"),
        lambda: fs.write_text(name, "new"),
        lambda: fs.put(str(samples / "class 1"), "test/new", recursive=True),
        lambda: fs.get_mapper("optcache://test").__setitem__("new", b""),
        lambda: fs.pipe_file(name, b""),
        lambda: fs.rm(name),
        lambda: fs.mkdir("test/new"),
        lambda: fs.touch(name),
        lambda: fs.mv(name, "test/b"),
        lambda: fs.cp_file(name, "test/b"),
        lambda: fs.put_file(str(samples / "class 1" / "0001.png"), name),
    ]:
        with pytest.raises(OSError, match="Write to the dataset's store") as caught:
            write()
        assert caught.value.errno == errno.EROFS


def test_names_with_a_namespace(fs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fs.isdir("optcache://local/test/class 1")
    assert fs.ls("optcache://local/test", detail=False)[0] == "local/test/class 0"
    monkeypatch.setenv("OPTCACHE_DATASET", "local/test")
    other = OptcacheFileSystem(skip_instance_cache=True)
    assert other.info("optcache://test/class 0/0000.png")["index"] == 0


def test_the_root_has_namespaces_and_these_datasets(fs: Any, server: Server) -> None:
    assert fs.ls("", detail=False) == ["local"]  # of a sidecar that lists nothing
    assert fs.ls("optcache://local", detail=False) == ["local/test"]
    fs.invalidate_cache()
    write_list(server, "vision/a", "local/test", "vision/b")
    assert fs.ls("optcache://", detail=False) == ["vision", "local"]
    assert fs.ls("vision", detail=False) == ["vision/a", "vision/b"]
    assert fs.isdir("optcache://") and fs.isdir("vision") and not fs.exists("visio")
    assert fs.glob("*/t*") == ["local/test"]
    assert "local/test/class 0/0000.png" in fs.find("optcache://local")


def test_a_sidecar_that_is_on_its_way_writes_its_list_first(
    fs: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTCACHE_WAIT", str(DEADLINE_S))
    server.kill()

    def start() -> None:
        write_list(server, "vision/a", "local/test")
        server.start()

    starter = threading.Timer(0.3, start)
    starter.start()
    try:
        assert fs.exists("optcache://test/class 0/0000.png")
    finally:
        starter.join()


def test_slashes_before_the_name_do_not_count(fs: Any) -> None:
    assert fs.info("optcache:///test/class 0/0000.png") == fs.info("test/class 0/0000.png")


def test_without_a_sidecar_there_is_no_answer(
    fs: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPTCACHE_WAIT", "0")
    server.kill()
    for ask in [fs.exists, fs.isfile, fs.isdir, fs.info, fs.ls]:
        with pytest.raises(optcache.SidecarUnavailableError):
            ask("optcache://test/class 0/0000.png")


def test_without_a_sidecar_no_object_is_left_out(
    fs: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = fs.find("test")[:2]
    monkeypatch.setenv("OPTCACHE_WAIT", "0")
    server.kill()
    for on_error in ["raise", "return", "omit"]:
        with pytest.raises(optcache.SidecarUnavailableError):
            fs.cat(paths, on_error=on_error)
        with pytest.raises(optcache.SidecarUnavailableError):
            fs.cat_ranges(paths, 0, 1, on_error=on_error)


def test_samples_that_have_no_paths(fs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Manifest, "key", lambda manifest, index: b"train/0001")
    with pytest.raises(OSError, match="format TarFiles, or read it with optcache.WebDataset"):
        fs.exists("optcache://test/train")


@pytest.mark.parametrize(
    ("names", "path", "found", "inner"),
    [
        ("default/images", "images/a", "default/images", "a"),
        ("default/images", "default/images/a", "default/images", "a"),
        ("vision/images default/faces", "images/a/b", "vision/images", "a/b"),
        ("vision/images images/train", "images/train/a", "images/train", "a"),
        ("vision/images images/train", "images/test/a", "vision/images", "test/a"),
        ("images", "images/a", "local/images", "a"),
        ("images", "local/images", "local/images", ""),
        ("vision/images default/images", "default/images/a", "default/images", "a"),
        ("vision/images usual/images", "images/a", "usual/images", "a"),
    ],
)
def test_names_with_and_without_a_namespace(
    server: Server, monkeypatch: pytest.MonkeyPatch, names: str, path: str, found: str, inner: str
) -> None:
    write_list(server, *names.split())
    monkeypatch.setenv("OPTCACHE_DATASET", "usual/images")
    opened: list[str] = []

    def open_dataset(name: str, socket: str) -> optcache.Dataset:
        opened.append(name)
        return optcache.Dataset("test", socket)

    monkeypatch.setattr(_url_datasets, "Dataset", open_dataset)
    dataset, rest = _url_datasets.find(path, None)
    assert (opened, rest) == ([found], inner)
    assert path == dataset.prefix + (f"/{inner}" if inner else "")


def test_a_name_of_several_datasets(fs: Any, server: Server) -> None:
    write_list(server, "vision/images", "default/images")
    with pytest.raises(FileNotFoundError, match="write one of vision/images, default/images"):
        fs.info("optcache://images/a")
    assert not fs.exists("optcache://images/a")
    write_list(server, "vision/images", "local/test")
    assert fs.exists("optcache://test/class 0"), "a sidecar that has started again is asked again"


def test_says_when_and_which(fs: Any, samples: Path) -> None:
    name = "class 0/0000.png"
    modified = fs.modified(f"test/{name}").timestamp()
    written = (samples / name).stat().st_mtime
    assert modified == pytest.approx(written, abs=1e-3)
    assert fs.info(f"test/{name}")["mtime"] == pytest.approx(written, abs=1e-3)
    assert fs.ukey(f"test/{name}") == f"{optcache.Dataset().version}/0"


def test_info_has_only_what_the_source_says(fs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "test/class 0/0000.png"
    assert fs.info(path).keys() == {"name", "size", "type", "index", "mtime"}
    monkeypatch.setattr(Manifest, "etag", lambda manifest, index: '"5f3a"')
    monkeypatch.setattr(Manifest, "modified_ns", lambda manifest, index: 0)
    assert fs.info(path).keys() == {"name", "size", "type", "index", "ETag"}
    assert fs.info(path)["ETag"] == '"5f3a"'


class Listed:
    """Of a manifest, what Names needs."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def path(self, index: int) -> str:
        return self._paths[index]

    def paths(self, begin: int = 0) -> Any:
        return iter(self._paths[begin:])


@pytest.mark.parametrize("seed", range(20))
def test_names_in_any_order(seed: int) -> None:
    """Against the obvious: sets of strings. Paths may be folders of others, as keys of S3 may, and
    have empty components: what is behind one is listed with the folder before it.
    """
    generator = random.Random(seed)
    letters = ["a", "b", "a-", "a0", "é", "\udcff", ".", ""]
    made = {
        "/".join(generator.choices(letters, k=generator.randrange(1, 5)))
        for _ in range(generator.randrange(60))
    }
    paths = sorted(p for p in made if p and p[0] != "/" and p[-1] != "/")  # as manifests have them
    if seed % 2:
        generator.shuffle(paths)
    names = Names(Listed(paths))  # type: ignore[arg-type]
    folders = {p[:i] for p in paths for i, c in enumerate(p) if c == "/"}
    for path in [*paths, *folders, "none", "a/none", ""]:
        expected = paths.index(path) if path in paths else None
        assert names.find(path) == expected
        assert names.has_folder(path) == (path in folders or path == "")
    for folder in [*folders, "", "none"]:
        prefix = folder + "/" if folder else ""
        inside = [p[len(prefix) :] for p in paths if p.startswith(prefix)]
        first = {p: p.partition("/")[0] for p in inside}
        objects = {(prefix + p, paths.index(prefix + p)) for p in inside if first[p] in ("", p)}
        below = {(prefix + first[p], None) for p in inside if first[p] not in ("", p)}
        assert sorted(map(tuple, names.list(folder)), key=str) == sorted(objects | below, key=str)
