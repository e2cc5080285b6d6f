"""Lists of ranges for data sets of other libraries: docs/user/own-format.md.

    python -m optcache.importers mds FOLDER > FOLDER/ranges.csv
    python -m optcache.importers parquet FOLDER > FOLDER/ranges.csv

Put the list at the root of the source, beside the shards, and index a Dataset of format Ranges.
FOLDER is a folder or, with fsspec, its URL, such as s3://bucket/prefix. Only the heads of the shards
are read.
"""

from __future__ import annotations

import argparse
import array
import csv
import io
import json
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, Optional

from ._parquet_footers import MAGIC, FooterError, Footers, extent

_NUMBER = struct.Struct("<I")


class Range(NamedTuple):
    """A sample: a part of the object of that path below the source's root."""

    object: str
    offset: int
    length: int


class ImporterError(Exception):
    """Says what is wrong with a data set, where, and what to do."""


class Folder:
    """The files of a folder, or of a URL that fsspec opens."""

    def __init__(self, url: str) -> None:
        """Raises ImporterError if there is no such folder, or no fsspec for a URL."""
        self._remote: Any = None
        self._root = url
        if "://" in url:
            try:
                import fsspec
            except ImportError as error:
                raise ImporterError(f"{url}: install fsspec, which opens URLs") from error
            self._remote, self._root = fsspec.core.url_to_fs(url)
        elif not os.path.isdir(url):
            raise ImporterError(f"{url} is no folder")

    def paths(self) -> list[str]:
        """All files, relative to the folder, in the order of their names."""
        if self._remote is not None:
            prefix = self._root.rstrip("/") + "/"
            return sorted(str(path)[len(prefix) :] for path in self._remote.find(self._root))
        found = []
        for folder, _, names in os.walk(self._root, followlinks=True):
            found += [os.path.relpath(os.path.join(folder, name), self._root) for name in names]
        return sorted(path.replace(os.sep, "/") for path in found)

    def open(self, path: str) -> IO[bytes]:
        """Raises OSError."""
        if self._remote is not None:
            opened: IO[bytes] = self._remote.open(f"{self._root.rstrip('/')}/{path}", "rb")
            return opened
        return open(os.path.join(self._root, path), "rb")


def mds(folder: Folder) -> Iterator[Range]:
    """The samples of MosaicML Streaming (MDS), in the order of `StreamingDataset` without shuffling.

    Raises ImporterError: shards are compressed or of another format, or do not fit their index.
    """
    names = folder.paths()
    indexes = [name for name in names if name.split("/")[-1] == "index.json"]
    if "index.json" in indexes:
        indexes = ["index.json"]  # of the folders below, too
    if not indexes:
        raise ImporterError("there is no index.json, as MDSWriter writes it")
    for name in indexes:
        with folder.open(name) as file:
            index = _index_of(name, file.read())
        for number, shard in enumerate(index):
            yield from _mds_shard(folder, name, number, shard)


def _index_of(name: str, text: bytes) -> list[dict[str, Any]]:
    try:
        shards = json.loads(text)["shards"]
        if not isinstance(shards, list):
            raise TypeError
        return shards
    except (ValueError, KeyError, TypeError) as error:
        raise ImporterError(f"{name}: this is no index of MosaicML Streaming") from error


def _mds_shard(folder: Folder, index: str, number: int, shard: dict[str, Any]) -> Iterator[Range]:
    try:
        kind, compressed = shard["format"], shard["zip_data"] or shard["compression"]
        base, size = str(shard["raw_data"]["basename"]), int(shard["raw_data"]["bytes"])
        samples = int(shard["samples"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ImporterError(
            f"{index}: shard {number} has no valid description: {type(error).__name__}: {error}"
        ) from error
    path = f"{index[: -len('index.json')]}{base}"
    if kind != "mds":
        raise ImporterError(f"{index}: {path} is of format {kind}, and only mds is known")
    if compressed:
        raise ImporterError(
            f"{index}: {path} is compressed, so no sample of it can be read alone: "
            "write it with MDSWriter(compression=None)"
        )
    try:
        with folder.open(path) as file:
            found = file.seek(0, io.SEEK_END)
            file.seek(0)
            head = file.read(min(max(4 * (samples + 2), 0), found))  # number and places of the samples
    except (OSError, ValueError) as error:  # the latter of a name that no file can have
        raise ImporterError(f"{path!r}, which {index} names, cannot be read: {error}") from error
    if found != size:
        raise ImporterError(f"{path} has {found} bytes, and {index} says {size}: copy it again")
    if samples < 0 or len(head) != 4 * (samples + 2) or _NUMBER.unpack_from(head)[0] != samples:
        raise ImporterError(f"{path} does not begin with its {samples} samples, as {index} says")
    places = _numbers(head[4:])
    bounds = [4 * (samples + 2), *places, size]
    if any(b < a for a, b in zip(bounds, bounds[1:])):
        raise ImporterError(f"{path}: its samples do not follow one another: copy it again")
    for begin, end in zip(places, places[1:]):
        yield Range(path, begin, end - begin)


def _numbers(data: bytes) -> Sequence[int]:
    numbers = array.array("I", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def parquet(folder: Folder) -> Iterator[Range]:
    """The row groups of all Parquet files, by path. `read_row_group` reads one.

    Raises ImporterError: there is no such file, it is damaged, or pyarrow is not installed.
    """
    names = [name for name in folder.paths() if name.endswith(".parquet")]
    if not names:
        raise ImporterError("there is no file *.parquet")
    _pyarrow()
    with Footers() as footers:
        for name in names:
            with folder.open(name) as file:
                size, footer = _footer(name, file)
            try:
                extents = footers.extents(footer)
            except FooterError as error:
                raise ImporterError(f"{name}: {error}") from error
            for group, (begin, end) in enumerate(extents):
                if not 0 <= begin <= end <= size:
                    raise ImporterError(
                        f"{name}: row group {group} is not in the file: copy it again"
                    )
                yield Range(name, begin, end - begin)


def _footer(name: str, file: IO[bytes]) -> tuple[int, bytes]:
    """The file's size, and its end from the metadata on."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - 8, 0))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] == b"PARE":
        raise ImporterError(f"{name}: its footer is encrypted, so its row groups cannot be listed")
    if tail[4:] != MAGIC or length > size - 12:
        raise ImporterError(f"{name}: it does not end as a Parquet file does: copy it again")
    file.seek(size - 8 - length)
    return size, file.read(length + 8)


def read_row_group(data: Any, metadata: Any, group: int) -> Any:
    """The pyarrow.Table of a row group whose bytes were read as a sample.

    Args:
        data: the sample.
        metadata: of its file: `pyarrow.parquet.read_metadata(path)`.
        group: its number in the file.
    """
    arrow, files = _pyarrow()
    part = _Part(data, *extent(metadata, group))
    file = files.ParquetFile(arrow.PythonFile(part, mode="r"), metadata=metadata)
    return file.read_row_group(group)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImporterError("install pyarrow, which reads Parquet") from error
    return pyarrow, pyarrow.parquet


class _Part(io.RawIOBase):
    """A file of which one part is there."""

    def __init__(self, data: Any, begin: int, end: int) -> None:
        self._data = memoryview(data)
        self._begin, self._end = begin, end
        self._at = 0
        if len(self._data) != end - begin:
            raise ValueError(
                f"the row group has {end - begin} bytes, not {len(self._data)}: "
                "it is of another file, or the file has changed"
            )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._end}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        if not self._begin <= self._at <= self._end:
            raise OSError(f"byte {self._at} of the file is not in this row group")
        length = min(len(buffer), self._end - self._at)
        from_ = self._at - self._begin
        buffer[:length] = self._data[from_ : from_ + length]
        self._at += length
        return length


IMPORTERS = {"mds": mds, "parquet": parquet}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Writes the list to standard output, once it is whole."""
    parser = argparse.ArgumentParser(
        prog="python -m optcache.importers",
        description="Lists the samples of a data set as ranges of its files, for a Dataset of format "
        "Ranges. Put the list at the root of the source, as ranges.csv.",
    )
    parser.add_argument(
        "format", choices=IMPORTERS, help="mds (MosaicML Streaming) or parquet (row groups)"
    )
    parser.add_argument("source", help="a folder, or a URL that fsspec opens")
    options = parser.parse_args(arguments)
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(Range._fields)
    try:
        ranges = list(IMPORTERS[options.format](Folder(options.source)))
        if not ranges:
            raise ImporterError(f"{options.source} has no samples")
    except (ImporterError, OSError) as error:
        print(f"optcache.importers: {error}", file=sys.stderr)
        return 1
    out.writerows(ranges)
    sys.stdout.buffer.write(os.fsencode(text.getvalue()))  # paths need not be UTF-8
    return 0


if __name__ == "__main__":
    sys.exit(main())
