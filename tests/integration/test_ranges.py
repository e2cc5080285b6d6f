"""Samples that are ranges of objects: a training loop reads the same bytes as slices of the files
have, under the numbers of their index.
"""

from __future__ import annotations

import csv
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optcache
import pytest
from harness.ranges import TYPES, write_megatron
from harness.store import LISTING, Store
from torch.utils.data import DataLoader

from optcache._manifest import Manifest
from optcache._source_reads import read_samples
from optcache.torch import attach

OBJECTS = 4
OBJECT_BYTES = 300_000
RANGES = 200

Range = tuple[str, int, int]  # object, offset, length


def slices(root: Path, ranges: list[Range]) -> list[bytes]:
    """The samples, the slow and obvious way."""
    return [(root / name).read_bytes()[at : at + length] for name, at, length in ranges]


def make_ranges(root: Path, chance: random.Random) -> list[Range]:
    """Some follow one another, some overlap, some are empty."""
    names = [f"part, {number}/records.bin" for number in range(OBJECTS)]
    for name in names:
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(chance.randbytes(OBJECT_BYTES))
    ranges = [(names[0], 1000 * number, 1000) for number in range(50)]
    for _ in range(RANGES - len(ranges)):
        begin = chance.randrange(OBJECT_BYTES)
        length = chance.choice((0, chance.randrange(min(5000, OBJECT_BYTES - begin) + 1)))
        ranges.append((chance.choice(names), begin, length))
    chance.shuffle(ranges)
    return ranges


def write_list(root: Path, ranges: list[Range]) -> None:
    with (root / "ranges.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["object", "offset", "length"])
        out.writerows(ranges)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def web(root: Path, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """A web server over the folder, as it is when it is called."""
    (tmp_path / "store").mkdir()
    with Store(root, tmp_path / "store") as running:

        def list_all() -> Store:
            paths = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
            running.listing_file.write_text("".join(f"{path}\n" for path in paths))
            return running

        yield list_all


def test_a_training_loop_reads_slices_of_the_files(
    cache_over: Callable[..., Path],
    root: Path,
    web: Callable[[], Store],
    chance: random.Random,
) -> None:
    ranges = make_ranges(root, chance)
    write_list(root, ranges)
    (root / "notes.txt").write_text("no sample")
    expected = slices(root, ranges)
    store = web()
    dataset = optcache.Dataset(socket=str(cache_over(store.base_url, LISTING, "Ranges")))
    assert len(dataset) == RANGES
    begin = store.log_size()
    loader = attach(
        DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, collate_fn=list)
    )
    for _ in range(2):
        read = [bytes(sample) for batch in loader for sample in batch]
        assert sorted(read) == sorted(expected)
    assert [bytes(dataset[index]) for index in range(RANGES)] == expected
    gets = [line.split(" ") for line in store.access_log(begin).splitlines()]
    assert {(get[1], get[2]) for get in gets} <= {("GET", "206")}
    assert len(gets) <= RANGES, "each sample is read once, at most"


def test_samples_have_names(cache_over: Callable[..., Path], root: Path) -> None:
    (root / "a.bin").write_bytes(b"0123456789")
    (root / "ranges.csv").write_text("a.bin,7,3\na.bin,0,7\n")
    dataset = optcache.Dataset(socket=str(cache_over(str(root), "", "Ranges")))
    assert [dataset.path(index) for index in range(2)] == ["a.bin#0", "a.bin#1"]
    assert bytes(dataset[dataset.index("a.bin#1")]) == b"0123456"


def test_names_of_the_list(cache_over: Callable[..., Path], root: Path) -> None:
    (root / "a.bin").write_bytes(b"0123456789")
    (root / "ranges.csv").write_text('a.bin,7,3,"x, y"\na.bin,0,7,z\n')
    dataset = optcache.Dataset(socket=str(cache_over(str(root), "", "Ranges")))
    assert bytes(dataset[dataset.index("x, y")]) == b"789"


def test_the_sidecar_gone_samples_come_from_the_files(
    cache_over: Callable[..., Path], root: Path, chance: random.Random
) -> None:
    ranges = make_ranges(root, chance)
    write_list(root, ranges)
    dataset = optcache.Dataset(socket=str(cache_over(str(root), "", "Ranges")))
    manifest = dataset.manifest
    assert dataset._source is not None
    assert read_samples(dataset._source, manifest, range(RANGES)) == slices(root, ranges)


def test_rows_of_arrays(
    cache_over: Callable[..., Path],
    root: Path,
    web: Callable[[], Store],
    chance: random.Random,
) -> None:
    rows: list[bytes] = []
    for number in range(3):
        array = np.frombuffer(chance.randbytes(20 * 60), dtype=">f4").reshape(20, 3, 5)
        np.save(root / f"part-{number}.npy", array)
        rows += [row.tobytes() for row in array]
    store = web()
    dataset = optcache.Dataset(socket=str(cache_over(store.base_url, LISTING, "Npy")))
    loader = attach(DataLoader(dataset, batch_size=8, shuffle=False, collate_fn=list))
    assert [bytes(sample) for batch in loader for sample in batch] == rows


# What numpy writes: all versions of its format, and types of every kind.
ARRAYS = {
    "bytes": np.arange(24, dtype=np.uint8).reshape(4, 6),
    "floats": np.linspace(0, 1, 24).reshape(2, 3, 4),
    "half": np.ones((3, 2), dtype="<f2"),
    "one axis": np.arange(5),
    "booleans": np.array([[True, False], [False, True]]),
    "text": np.array(["a", "bcd", "ef"]),
    "byte strings": np.array([b"a", b"bcd"]),
    "times": np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[ns]"),
    "records": np.zeros(3, dtype=[("x", "<i4", (2, 3)), ("y", [("z", "<f8"), ("w", "S3")])]),
    "padded records": np.zeros(3, dtype=np.dtype([("x", "i1"), ("y", "<f8")], align=True)),
    "quotes in names": np.zeros(2, dtype=[("it's", "<i2"), ("größe", "<i2")]),
    "titles": np.zeros(2, dtype=[(("a title", "x"), "<i2"), ("y", "<i2")]),
    "version 2": np.zeros(2, dtype=[(f"field {i}", "<i2") for i in range(6000)]),
    "version 3": np.zeros(2, dtype=[("距離", "<i2")]),
}


@pytest.mark.filterwarnings("ignore:Stored array in format")
@pytest.mark.parametrize("kind", ARRAYS)
def test_every_array_that_numpy_writes(programs: Path, root: Path, kind: str) -> None:
    array = ARRAYS[kind]
    np.save(root / "a.npy", array)
    run = build(programs, root, "npy")
    assert run.returncode == 0, run.stderr
    manifest = Manifest(memoryview((root.parent / "m").read_bytes()))
    whole = (root / "a.npy").read_bytes()
    assert len(manifest) == len(array)
    for index in range(len(array)):
        (member,) = manifest.members(index)
        row = whole[member.offset : member.offset + member.size]
        assert row == array[index : index + 1].tobytes()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([{}, 1], dtype=object), "Python objects"),
        (np.array(3), "a single value"),
        (np.asfortranarray(np.ones((2, 3))), "numpy.ascontiguousarray"),
        (np.zeros((2, 0)), "its rows have no bytes"),
        (np.zeros((0, 3)), "there is no sample"),
    ],
)
def test_arrays_without_samples(programs: Path, root: Path, array: Any, words: str) -> None:
    np.save(root / "a.npy", array)
    run = build(programs, root, "npy")
    assert run.returncode != 0
    assert words in run.stderr


def test_an_array_that_was_cut(programs: Path, root: Path) -> None:
    np.save(root / "a.npy", np.arange(100))
    whole = (root / "a.npy").read_bytes()
    for length in (len(whole) - 1, 128, 100, 10, 0):
        (root / "a.npy").write_bytes(whole[:length])
        run = build(programs, root, "npy")
        assert run.returncode != 0
        assert "a.npy: " in run.stderr
        assert "upload the file again" in run.stderr or "this is no .npy file" in run.stderr


# What megatron-core 0.16.1 writes of the documents [[1, 2, 3], [4]] and [[513]], of uint16.
GOLDEN_IDX = bytes.fromhex(
    "4d4d49444944580000"
    "010000000000000008"
    "03000000000000000300000000000000"
    "030000000100000001000000"
    "000000000000000006000000000000000800000000000000"
    "000000000000000002000000000000000300000000000000"
)


def test_the_layout_is_that_of_megatron_core(programs: Path, root: Path) -> None:
    sequences = [b"\1\0\2\0\3\0", b"\4\0", b"\1\2"]
    write_megatron(root, "a", 8, sequences, documents=[0, 2, 3])
    assert (root / "a.idx").read_bytes() == GOLDEN_IDX
    assert build(programs, root, "megatron").returncode == 0
    manifest = Manifest(memoryview((root.parent / "m").read_bytes()))
    assert [manifest.members(i)[0].offset for i in range(len(manifest))] == [0, 6, 8]
    assert [manifest.size(i) for i in range(len(manifest))] == [6, 2, 2]


@pytest.mark.parametrize("code", (5, 8))
def test_sequences_of_megatron(
    cache_over: Callable[..., Path], root: Path, chance: random.Random, code: int
) -> None:
    size = np.dtype(TYPES[code]).itemsize
    expected = []
    for shard in ("a", "b"):
        sequences = [chance.randbytes(size * chance.randrange(300)) for _ in range(40)]
        write_megatron(root, shard, code, sequences)
        expected += sequences
    dataset = optcache.Dataset(socket=str(cache_over(str(root), "", "Megatron")))
    assert len(dataset) == len(expected)
    loader = attach(DataLoader(dataset, batch_size=8, shuffle=False, collate_fn=list))
    assert [bytes(sample) for batch in loader for sample in batch] == expected
    assert dataset.path(41) == "b.bin#1"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda idx: idx[:-1], "a.idx: it has 81 bytes, which do not fit its 2 sequences"),
        (lambda idx: b"TNTIDX" + idx[6:], "a.idx: this is no index of Megatron-LM"),
        (lambda idx: idx[:17] + b"\7" + idx[18:], "a.idx: its type has the code 7"),
        (lambda idx: idx[:38] + b"\xff" + idx[39:], "a.idx: sequence 1: "),
    ],
)
def test_a_bad_index_of_megatron_is_named(
    programs: Path, root: Path, change: Callable[[bytes], bytes], words: str
) -> None:
    write_megatron(root, "a", 8, [b"0123", b"45"])
    (root / "a.idx").write_bytes(change((root / "a.idx").read_bytes()))
    run = build(programs, root, "megatron")
    assert run.returncode != 0
    assert words in run.stderr


def build(programs: Path, root: Path, format: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            programs / "optcache",
            *("manifest", "build", "--format", format, "--source", root),
            *("-o", root.parent / "m"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("a.bin,0,5\na.bin,8,3\n", "ranges.csv: line 2: 3 bytes from byte 8 on end beyond a.bin"),
        ("a.bin,0,5\nb.bin,0,1\n", "ranges.csv: line 2: b.bin is not there"),
        ("a.bin;0;5\n", "ranges.csv: line 1: not OBJECT,OFFSET,LENGTH"),
        ("a.bin,0,5,n\na.bin,5,5,n\n", "two samples have the name n"),
        ("../a.bin,0,5\n", 'ranges.csv: line 1: object path "../a.bin"'),
        ("", "ranges.csv: there is no range in it"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(
    programs: Path, root: Path, lines: str, words: str
) -> None:
    (root / "a.bin").write_bytes(b"0123456789")
    (root / "ranges.csv").write_text(lines)
    run = build(programs, root, "ranges")
    assert run.returncode != 0
    assert words in run.stderr
    assert not (root.parent / "m").exists()


def test_a_list_that_is_missing_is_asked_for(programs: Path, root: Path) -> None:
    (root / "a.bin").write_bytes(b"0123456789")
    run = build(programs, root, "ranges")
    assert run.returncode != 0
    assert "none of the 1 objects is ranges.csv" in run.stderr
