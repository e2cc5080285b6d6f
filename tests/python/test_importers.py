"""Lists of ranges for data sets of other libraries: the same samples as the libraries read."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import random
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.ranges import write_mds  # noqa: E402
from optcache import importers
from optcache._parquet_footers import FooterError, Footers
from optcache.importers import Folder, ImporterError, Range

FRAMEWORKS = "`./dev test frameworks` installs it"
DAMAGES = 5000 if os.environ.get("OPTCACHE_LONG") == "1" else 400  # of a file, from a seed


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Another sequence for each test; the same again with the same TEST_SEED."""
    seed = os.environ.get("TEST_SEED", "1")
    print(f"TEST_SEED={seed}")  # which a failure shows
    return random.Random(f"{seed} {request.node.name}")


def read(folder: Path, ranges: list[Range]) -> list[bytes]:
    return [(folder / r.object).read_bytes()[r.offset : r.offset + r.length] for r in ranges]


def test_samples_of_mds(tmp_path: Path) -> None:
    chance = random.Random(1)
    shards = [[chance.randbytes(chance.randrange(99)) for _ in range(n)] for n in (9, 1, 0, 30)]
    write_mds(tmp_path, shards)
    (tmp_path / "ranges.csv").write_text("an earlier list")
    ranges = list(importers.mds(Folder(str(tmp_path))))
    assert read(tmp_path, ranges) == [sample for shard in shards for sample in shard]
    assert ranges[9].object == "shard.00001.mds"


def test_samples_of_mds_in_folders(tmp_path: Path) -> None:
    write_mds(tmp_path / "b", [[b"2"]])
    write_mds(tmp_path / "a", [[b"0"], [b"1"]])
    ranges = list(importers.mds(Folder(str(tmp_path))))
    assert read(tmp_path, ranges) == [b"0", b"1", b"2"]
    assert ranges[0].object == "a/shard.00000.mds"


def test_folders_of_an_index_are_not_listed_twice(tmp_path: Path) -> None:
    write_mds(tmp_path / "a", [[b"0"]])
    index = json.loads((tmp_path / "a/index.json").read_text())
    index["shards"][0]["raw_data"]["basename"] = "a/shard.00000.mds"
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert read(tmp_path, list(importers.mds(Folder(str(tmp_path))))) == [b"0"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"compression": "zstd"}, "shard.00000.mds is compressed"),
        ({"zip_data": {"basename": "x.zstd"}}, "shard.00000.mds is compressed"),
        ({"format": "json"}, "is of format json, and only mds"),
        ({"samples": 3}, "does not begin with its 3 samples"),
        ({"samples": 1 << 60}, "does not begin with its"),
        ({"samples": -5}, "does not begin with its"),
        ({"samples": -2}, "does not begin with its"),
        ({"samples": "many"}, "shard 0 has no valid description: ValueError"),
        ({"raw_data": {}}, "shard 0 has no valid description: KeyError: 'basename'"),
        ({"raw_data": {"basename": "shard.00000.mds", "bytes": 7}}, "index.json says 7: copy it"),
    ],
)
def test_what_is_wrong_with_mds_is_said(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    write_mds(tmp_path, [[b"01", b"234"]], **changes)
    with pytest.raises(ImporterError, match=words):
        list(importers.mds(Folder(str(tmp_path))))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"shards": 3}', "\x00"])
def test_an_index_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ImporterError, match="index.json: this is no index of MosaicML"):
        list(importers.mds(Folder(str(tmp_path))))


def damaged(good: bytes, chance: random.Random, begin: int = 0) -> bytes:
    """Some bytes from `begin` on are others, or the file is cut."""
    bad = bytearray(good)
    for _ in range(chance.choice((1, 1, 2, 8))):
        # Others that JSON means something by come as often as all.
        bad[chance.randrange(begin, len(bad))] = chance.choice((chance.randrange(256), *b'"9],{'))
    return bytes(bad[: chance.randrange(len(bad))] if chance.random() < 0.1 else bad)


def test_a_damaged_index_is_named_or_harmless(tmp_path: Path, chance: random.Random) -> None:
    shards = [[chance.randbytes(chance.randrange(99)) for _ in range(n)] for n in (9, 1, 0, 30)]
    write_mds(tmp_path, shards)
    right = list(importers.mds(Folder(str(tmp_path))))
    good = (tmp_path / "index.json").read_bytes()
    refused = 0
    for _ in range(DAMAGES):
        (tmp_path / "index.json").write_bytes(damaged(good, chance))
        try:
            assert list(importers.mds(Folder(str(tmp_path)))) == right
        except ImporterError:
            refused += 1
    assert 0 < refused < DAMAGES


def test_a_damaged_shard_is_named_or_its_samples_lie_in_it(
    tmp_path: Path, chance: random.Random
) -> None:
    samples = [chance.randbytes(chance.randrange(99)) for _ in range(9)]
    write_mds(tmp_path, [samples])
    right = list(importers.mds(Folder(str(tmp_path))))
    good = (tmp_path / "shard.00000.mds").read_bytes()
    head = 4 * (len(samples) + 2)  # that says where the samples lie
    refused = 0
    for _ in range(DAMAGES):
        bad = damaged(good, chance)
        (tmp_path / "shard.00000.mds").write_bytes(bad)
        try:
            ranges = list(importers.mds(Folder(str(tmp_path))))
        except ImporterError:
            refused += 1
            continue
        assert len(ranges) == len(samples)
        places = [ranges[0].offset, *(it.offset + it.length for it in ranges)]
        assert [head, *places, len(good)] == sorted([head, *places, len(good)])
        assert bad[:head] != good[:head] or ranges == right
    assert 0 < refused < DAMAGES


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone.mds", "'gone.mds', which index.json names, cannot be read: .*No such file"),
        ("a\0b", "which index.json names, cannot be read: embedded null byte"),
        ("", "cannot be read: .*Is a directory"),
    ],
)
def test_a_shard_that_cannot_be_read(tmp_path: Path, name: str, words: str) -> None:
    write_mds(tmp_path, [[b"01"]], raw_data={"basename": name, "bytes": 7})
    with pytest.raises(ImporterError, match=words):
        list(importers.mds(Folder(str(tmp_path))))


@pytest.mark.parametrize(("at", "place"), [(4, 0), (4, 15), (8, 1), (12, 1), (12, 1 << 31)])
def test_places_that_do_not_follow_one_another(tmp_path: Path, at: int, place: int) -> None:
    write_mds(tmp_path, [[b"01", b"234"]])
    shard = bytearray((tmp_path / "shard.00000.mds").read_bytes())
    shard[at : at + 4] = struct.pack("<I", place)
    (tmp_path / "shard.00000.mds").write_bytes(shard)
    with pytest.raises(ImporterError, match="do not follow one another"):
        list(importers.mds(Folder(str(tmp_path))))


def test_the_list_is_csv(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_mds(tmp_path / 'a, "b"', [[b"01", b"234"]])
    assert importers.main(["mds", str(tmp_path)]) == 0
    head, *rows = csv.reader(io.StringIO(capfd.readouterr().out))
    assert head == ["object", "offset", "length"]
    assert [int(row[2]) for row in rows] == [2, 3]
    assert rows[0][0] == 'a, "b"/shard.00000.mds'


def test_errors_are_sentences(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert importers.main(["mds", str(tmp_path / "none")]) == 1
    assert importers.main(["mds", str(tmp_path)]) == 1
    write_mds(tmp_path, [[]])
    assert importers.main(["mds", str(tmp_path)]) == 1
    written = capfd.readouterr()
    assert written.out == ""
    for words in ("none is no folder", "there is no index.json", "has no sample"):
        assert words in written.err


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(ImporterError, match="install pyarrow"):
        list(importers.parquet(Folder(str(tmp_path))))


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImporterError, match="s3://b/p: install fsspec"):
        Folder("s3://b/p")


def test_a_url(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason=FRAMEWORKS)
    write_mds(tmp_path / "a", [[b"01"], [b"234"]])
    ranges = list(importers.mds(Folder(f"file://{tmp_path}")))
    assert read(tmp_path, ranges) == [b"01", b"234"]


def test_samples_are_those_of_streaming(tmp_path: Path) -> None:
    streaming = pytest.importorskip("streaming", reason=FRAMEWORKS)
    from streaming.base.format import reader_from_json

    columns = {"number": "int", "data": "bytes", "text": "str"}
    chance = random.Random(2)
    with streaming.MDSWriter(out=str(tmp_path), columns=columns, size_limit=5000) as out:
        for number in range(60):
            data = chance.randbytes(chance.randrange(300))
            out.write({"number": number, "data": data, "text": f"sample {number}"})
    ranges = list(importers.mds(Folder(str(tmp_path))))
    assert len({r.object for r in ranges}) >= 2
    shard = json.loads((tmp_path / "index.json").read_text())["shards"][0]
    reader = reader_from_json(str(tmp_path), None, shard)
    theirs = streaming.StreamingDataset(local=str(tmp_path), shuffle=False, batch_size=1)
    decoded = [reader.decode_sample(sample) for sample in read(tmp_path, ranges)]
    assert decoded == [theirs[index] for index in range(60)]


def test_row_groups_are_those_of_pyarrow(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason=FRAMEWORKS)
    files = pytest.importorskip("pyarrow.parquet", reason=FRAMEWORKS)
    for part, settings in enumerate(
        ({}, {"use_dictionary": False}, {"compression": "zstd", "write_page_index": True})
    ):
        table = arrow.table(
            {
                "number": list(range(1000)),
                "text": [f"row {row % 7}" for row in range(1000)],
                "list": [[row] * (row % 3) for row in range(1000)],
                "none": [None] * 1000,
            }
        )
        files.write_table(table, tmp_path / f"{part}.parquet", row_group_size=300, **settings)
    ranges = list(importers.parquet(Folder(str(tmp_path))))
    assert len(ranges) == 3 * 4
    samples = read(tmp_path, ranges)
    for part in range(3):
        path = tmp_path / f"{part}.parquet"
        metadata = files.read_metadata(path)
        for group in range(4):
            table = importers.read_row_group(samples[4 * part + group], metadata, group)
            assert table.equals(files.ParquetFile(path).read_row_group(group))
    with pytest.raises(ValueError, match="of another file"):
        importers.read_row_group(samples[0], metadata, 3)


def test_a_damaged_footer_is_named_or_its_row_groups_lie_in_the_file(
    tmp_path: Path, chance: random.Random
) -> None:
    arrow = pytest.importorskip("pyarrow", reason=FRAMEWORKS)
    files = pytest.importorskip("pyarrow.parquet", reason=FRAMEWORKS)
    path = tmp_path / "a.parquet"
    table = arrow.table({"number": list(range(100)), "text": [f"row {i % 7}" for i in range(100)]})
    files.write_table(table, path, row_group_size=30)
    right = list(importers.parquet(Folder(str(tmp_path))))
    good = path.read_bytes()
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    refused = equal = 0
    for _ in range(DAMAGES // 20):  # each starts a process
        bad = damaged(good, chance, footer)
        path.write_bytes(bad)
        try:
            ranges = list(importers.parquet(Folder(str(tmp_path))))
        except ImporterError:
            refused += 1
            continue
        assert all(0 <= it.offset <= it.offset + it.length <= len(bad) for it in ranges)
        equal += ranges == right
    assert refused > 0 and equal > 0


def test_a_footer_that_ends_pyarrow_ends_no_listing() -> None:
    arrow = pytest.importorskip("pyarrow", reason=FRAMEWORKS)
    files = pytest.importorskip("pyarrow.parquet", reason=FRAMEWORKS)
    file = io.BytesIO()
    files.write_table(arrow.table({"number": [1, 2, 3]}), file)
    good = file.getvalue()
    footer = good[-8 - int.from_bytes(good[-8:-4], "little") :]
    with Footers() as footers:
        right = footers.extents(footer)
        assert len(right) == 1
        for place in range(len(footer) - 8):  # pyarrow 26 ends by two of them
            bad = footer[:place] + b"\x15" + footer[place + 1 :]
            with contextlib.suppress(FooterError):
                footers.extents(bad)
        assert footers._child is not None
        footers._child.kill()
        with pytest.raises(FooterError, match="was killed, for want of memory or after 120 s"):
            footers.extents(footer)
        assert footers.extents(footer) == right


def test_a_child_without_pyarrow_is_no_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with Footers() as footers, pytest.raises(FooterError, match="cannot import pyarrow"):
        footers.extents(b"PAR1")


def test_damaged_parquet_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason=FRAMEWORKS)
    with pytest.raises(ImporterError, match="there is no file"):
        list(importers.parquet(Folder(str(tmp_path))))
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100) + b"PARE")
    with pytest.raises(ImporterError, match="a.parquet: its footer is encrypted"):
        list(importers.parquet(Folder(str(tmp_path))))
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(ImporterError, match="a.parquet: "):
        list(importers.parquet(Folder(str(tmp_path))))
