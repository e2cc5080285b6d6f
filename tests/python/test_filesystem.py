"""optcache:// for fsspec, beside fsspec's own local file system over the same folder."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Server

fsspec = pytest.importorskip("fsspec")

import optcache  # noqa: E402
from optcache._names import Names  # noqa: E402
from optcache.filesystem import OptcacheFileSystem  # noqa: E402


@pytest.fixture
def fs(server: Server) -> Any:
    return fsspec.filesystem("optcache", skip_instance_cache=True)


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


def test_what_is_not_there(fs: Any) -> None:
    for name in ["test/none", "test/class 1/0", "test/class", "test/class 1/0001.png/x"]:
        assert not fs.exists(name)
        with pytest.raises(FileNotFoundError):
            fs.cat_file(name)
    with pytest.raises(IsADirectoryError):
        fs.cat_file("test/class 1")
    with pytest.raises(FileNotFoundError, match="only local/test"):
        fs.ls("optcache://imagenet/train")


def test_nothing_can_be_written(fs: Any, samples: Path) -> None:
    name = "test/class 1/0001.png"
    for write in [
        lambda: fs.open(name, "wb"),
        lambda: fs.pipe_file(name, b""),
        lambda: fs.rm(name),
        lambda: fs.mkdir("test/new"),
        lambda: fs.touch(name),
        lambda: fs.mv(name, "test/b"),
        lambda: fs.cp_file(name, "test/b"),
        lambda: fs.put_file(str(samples / "class 1" / "0001.png"), name),
    ]:
        with pytest.raises(OSError, match="read-only") as caught:
            write()
        assert caught.value.errno == errno.EROFS


def test_names_with_a_namespace(fs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fs.ls("", detail=False) == ["local/test"]
    assert fs.isdir("optcache://local/test/class 1")
    assert fs.ls("optcache://local/test", detail=False)[0] == "local/test/class 0"
    monkeypatch.setenv("OPTCACHE_DATASET", "local/test")
    other = OptcacheFileSystem(skip_instance_cache=True)
    assert other.info("optcache://test/class 0/0000.png")["index"] == 0


def test_a_short_name_may_be_the_namespace_of_another_dataset(fs: Any) -> None:
    assert optcache.Dataset("short").name == "vision/short"
    with pytest.raises(FileNotFoundError, match="there is no dataset short, but vision/short"):
        fs.ls("optcache://short/class 1")


def test_says_when_and_which(fs: Any, samples: Path) -> None:
    name = "class 0/0000.png"
    modified = fs.modified(f"test/{name}").timestamp()
    assert modified == pytest.approx((samples / name).stat().st_mtime, abs=1e-3)
    assert fs.ukey(f"test/{name}") == f"{optcache.Dataset().version}/0"


class Listed:
    """Of a manifest, what Names needs."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def path(self, index: int) -> str:
        return self._paths[index]

    def paths(self) -> Any:
        return iter(self._paths)


@pytest.mark.parametrize("seed", range(20))
def test_names_in_any_order(seed: int) -> None:
    """Against the obvious: sets of strings. Paths may be folders of others, as keys of S3 may."""
    generator = random.Random(seed)
    letters = ["a", "b", "a-", "a0", "é", "\udcff", "."]
    paths = sorted(
        {
            "/".join(generator.choices(letters, k=generator.randrange(1, 4)))
            for _ in range(generator.randrange(60))
        }
    )
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
        objects = {(prefix + p, paths.index(prefix + p)) for p in inside if "/" not in p}
        below = {(prefix + p.split("/")[0], None) for p in inside if "/" in p}
        assert sorted(map(tuple, names.list(folder)), key=str) == sorted(objects | below, key=str)


try:
    from fsspec.implementations.local import LocalFileSystem, make_path_posix
    from fsspec.tests.abstract import AbstractFixtures, AbstractGetTests
except ImportError:  # before 2023.4
    pass
else:

    class TestAsFsspecSays(AbstractGetTests, AbstractFixtures):  # type: ignore[misc]
        """fsspec's own tests of what a read-only file system can do: get, of all kinds."""

        test_get_directory_recursive = None  # it writes

        @pytest.fixture
        def scenarios(self, serve: Callable[..., Server], tmp_path: Path) -> Path:
            """The folders that fsspec's tests read, in the dataset from the start."""
            root = tmp_path / "source"
            root.mkdir()
            make = {
                "bulk": self._bulk_operations_scenario_0,
                "globs": self._glob_edge_cases_files,
                "prefix": self._dir_and_file_with_same_name_prefix,
                "hashed": self._10_files_with_hashed_names,
            }
            for name, scenario in make.items():
                scenario(LocalFileSystem(auto_mkdir=True), self._join, make_path_posix(str(root / name)))
            serve(root)
            return root

        @staticmethod
        def _join(*parts: str) -> str:
            return "/".join(parts)

        @pytest.fixture
        def fs(self, scenarios: Path) -> Any:
            return fsspec.filesystem("optcache", skip_instance_cache=True)

        @pytest.fixture
        def fs_path(self) -> str:
            return "test"

        def _source(self, fs: Any, scenario: str) -> str:
            assert fs.isdir(f"test/{scenario}/source")
            return f"test/{scenario}/source"

        @pytest.fixture
        def fs_bulk_operations_scenario_0(self, fs: Any) -> str:
            return self._source(fs, "bulk")

        @pytest.fixture
        def fs_glob_edge_cases_files(self, fs: Any) -> str:
            return self._source(fs, "globs")

        @pytest.fixture
        def fs_dir_and_file_with_same_name_prefix(self, fs: Any) -> str:
            return self._source(fs, "prefix")

        @pytest.fixture
        def fs_10_files_with_hashed_names(self, fs: Any) -> str:
            return self._source(fs, "hashed")
