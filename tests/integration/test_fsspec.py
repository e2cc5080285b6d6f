"""optcache:// for fsspec over a real cache: workers of a DataLoader, and libraries that open paths
by fsspec, not changed. The bytes are those of the store, and come from the cache the second time. A
library that is not installed is skipped; `./dev test frameworks` installs all.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import fsspec
import optcache.filesystem
import pytest
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset
from harness.store import LISTING, Store
from torch.utils.data import DataLoader

URL = "optcache://images"  # the harness's name for its dataset
FILES = 24
ROWS = 3000


@dataclass
class Running:
    store: Store
    cluster: Cluster
    objects: int

    def requests(self, begin: int) -> int:
        """How many reads the store has answered since its log ended at `begin`."""
        return sum(" GET " in line for line in self.store.access_log(begin).splitlines())


Serve = Callable[..., Running]


@pytest.fixture
def serve_tree(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Serve]:
    """serve_tree(root): a cache with room for all files below `root`, and its store."""

    @contextmanager
    def over(root: Path, format: str) -> Iterator[Running]:
        paths = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
        files = Dataset(root, tuple(paths), tuple((root / p).stat().st_size for p in paths))
        (tmp_path / "store").mkdir()
        with Store(root, tmp_path / "store") as store:
            files.write_listing(store.listing_file)
            options = ClusterOptions(
                programs=programs,
                base_url=store.base_url,
                listing=LISTING,
                machines=1,
                budget=Budget(4 * files.total_bytes + (1 << 20), arena=16 << 20),
                state=tmp_path / "state",
                sockets=tmp_path,
                order="Path",
                format=format,
            )
            with Cluster(options, "Optimal", tmp_path) as cluster:
                monkeypatch.setenv("OPTCACHE_SOCKET", str(cluster.socket(0)))
                yield Running(store, cluster, len(paths))

    with ExitStack() as running:
        yield lambda root, format="Files": running.enter_context(over(root, format))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class ByPath:
    """A dataset of a training script that knows fsspec and nothing of us."""

    def __init__(self, folder: str) -> None:
        self.fs, root = fsspec.core.url_to_fs(folder)
        self.paths = self.fs.find(root)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[str, str]:
        path = self.paths[index]
        if index % 2:
            return path, sha256(self.fs.cat_file(path))
        with self.fs.open(path, "rb") as file:
            return path, sha256(file.read(1000) + file.read())


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_loader_read_by_path(serve_tree: Serve, root: Path, start: str) -> None:
    chance = random.Random(7)
    for number in range(FILES):
        path = root / f"class-{number % 3}" / f"{number:03}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(chance.randbytes(chance.randint(1, 200_000)))
    running = serve_tree(root)
    expected = {f"images/{p.relative_to(root)}": sha256(p.read_bytes()) for p in root.glob("*/*")}
    samples: Any = ByPath(URL)
    loader: Any = DataLoader(
        samples,
        batch_size=4,
        shuffle=True,
        num_workers=2,
        collate_fn=list,
        multiprocessing_context=start,
        persistent_workers=True,
    )
    begin = running.store.log_size()
    assert dict(pair for batch in loader for pair in batch) == expected
    assert running.requests(begin) == FILES, "each object is read from the store once"
    assert dict(pair for batch in loader for pair in batch) == expected
    assert running.requests(begin) == FILES, "the second epoch is the cache's alone"


def test_groups_of_a_tar_archive_have_no_paths(serve_tree: Serve, root: Path) -> None:
    with tarfile.open(root / "shard.tar", "w") as archive:
        for name in ("0001.jpg", "0001.cls"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, BytesIO(b"abc"))
    serve_tree(root, "Tar")
    with pytest.raises(OSError, match="format TarFiles, or read it with optcache.WebDataset"):
        fsspec.open(f"{URL}/0001").open()


def test_members_of_a_tar_archive_are_files(serve_tree: Serve, root: Path) -> None:
    with tarfile.open(root / "shard.tar", "w") as archive:
        for name in ("train/0002.jpg", "train/0001.jpg"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, BytesIO(name.encode()))
    serve_tree(root, "TarFiles")
    fs = fsspec.filesystem("optcache", skip_instance_cache=True)
    paths = ["images/train/0001.jpg", "images/train/0002.jpg"]
    assert fs.find("images") == paths
    assert fs.cat(paths) == {path: path.removeprefix("images/").encode() for path in paths}


# --- Libraries. Each writes a tree of its files, and returns what reads them through the cache.

Read = Callable[[], Any]


def numbers(part: int) -> list[int]:
    return list(range(part, ROWS, 3))


def pandas(root: Path) -> tuple[Read, Any]:
    import pandas as library

    for part in range(3):
        library.DataFrame({"n": numbers(part)}).to_csv(root / f"part-{part}.csv", index=False)
    library.DataFrame({"n": [0]}).to_parquet(root / "a.parquet")

    def read() -> Any:
        names = sorted(fsspec.filesystem("optcache").glob(f"{URL}/*.csv"))
        tables = [library.read_csv(f"optcache://{name}") for name in names]
        assert library.read_parquet(f"{URL}/a.parquet")["n"].tolist() == [0]
        with pytest.raises(OSError, match="read-only"):
            tables[0].to_csv(f"{URL}/new.csv")
        return library.concat(tables)["n"].tolist()

    return read, [n for part in range(3) for n in numbers(part)]


def pyarrow(root: Path) -> tuple[Read, Any]:
    import pyarrow as library
    import pyarrow.dataset
    import pyarrow.parquet

    for part in range(3):
        (root / f"day={part}").mkdir()
        table = library.table({"n": numbers(part), "text": [f"row {n}" for n in numbers(part)]})
        library.parquet.write_table(table, root / f"day={part}" / "a.parquet", row_group_size=100)

    def read() -> Any:
        fs = fsspec.filesystem("optcache")
        tables = library.dataset.dataset("images", filesystem=fs, partitioning="hive")
        column = tables.to_table(columns=["n"], filter=library.dataset.field("day") == 1)["n"]
        with fs.open("images/day=2/a.parquet") as file:
            group = library.parquet.ParquetFile(file).read_row_group(1, columns=["text"])
        return column.to_pylist(), group["text"].to_pylist()

    return read, (numbers(1), [f"row {n}" for n in numbers(2)[100:200]])


def zarr(root: Path) -> tuple[Read, Any]:
    import numpy as np
    import zarr as library

    values = np.arange(60 * 50).reshape(60, 50)
    array = library.create_array(
        str(root / "a.zarr"), shape=values.shape, chunks=(10, 10), shards=(20, 50), dtype="i8"
    )
    array[:] = values

    def read() -> Any:
        found = library.open_array(f"{URL}/a.zarr", mode="r")
        return found[5:25, 7:33].tolist(), found[:].tolist()

    return read, (values[5:25, 7:33].tolist(), values.tolist())


def datasets(root: Path) -> tuple[Read, Any]:
    import datasets as library

    for part in range(3):
        lines = [json.dumps({"n": n, "text": f"row {n}"}) for n in numbers(part)]
        (root / f"part-{part}.jsonl").write_text("\n".join(lines) + "\n")
    caches = iter(range(10))

    def read() -> Any:
        files = f"{URL}/*.jsonl"
        cache = str(root.parent / f"cache-{next(caches)}")
        loaded = library.load_dataset("json", data_files=files, split="train", cache_dir=cache)
        streamed = library.load_dataset("json", data_files=files, split="train", streaming=True)
        return loaded["n"][:], [row["text"] for row in streamed]

    expected = [n for part in range(3) for n in numbers(part)]
    return read, (expected, [f"row {n}" for n in expected])


def litdata(root: Path) -> tuple[Read, Any]:
    import litdata as library
    from litdata.streaming.cache import Cache

    chance = random.Random(5)
    chunks = Cache(str(root / "train"), chunk_bytes=1 << 17)
    samples = [{"n": n, "bytes": chance.randbytes(10_000)} for n in range(40)]
    for number, sample in enumerate(samples):
        chunks[number] = sample
    chunks.done()
    chunks.merge()
    caches = iter(range(10))

    def read() -> Any:
        import optcache.litdata

        with pytest.raises(ValueError, match="does not begin with optcache://"):
            optcache.litdata.folder("images/train")
        # litdata keeps chunks itself: here not for the next epoch.
        own = str(root.parent / f"chunks-{next(caches)}")
        source = optcache.litdata.folder(f"{URL}/train")
        dataset = library.StreamingDataset(source, cache_dir=own, shuffle=True)
        loader = library.StreamingDataLoader(dataset, batch_size=4, num_workers=2, collate_fn=list)
        found = [sample for batch in loader for sample in batch]
        return sorted(found, key=lambda sample: sample["n"])

    return read, samples


def needs(make: Callable[..., Any]) -> Any:
    name = make.__name__
    missing = importlib.util.find_spec(name) is None
    return pytest.param(make, marks=pytest.mark.skipif(missing, reason=f"{name} is not installed"))


@pytest.mark.parametrize("make", [needs(make) for make in (pandas, pyarrow, zarr, datasets, litdata)])
def test_a_library_reads_the_cache(
    serve_tree: Serve, root: Path, make: Callable[[Path], tuple[Read, Any]]
) -> None:
    read, expected = make(root)
    running = serve_tree(root)
    begin = running.store.log_size()
    assert read() == expected
    first = running.requests(begin)
    assert 0 < first <= running.objects, "no object is read from the store twice"
    assert read() == expected
    assert running.requests(begin) == first, "the second time is the cache's alone"
