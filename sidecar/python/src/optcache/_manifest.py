"""The list of a dataset's samples, decoded on demand; docs/formats/manifest.md says how it lies.

Checksums are not looked at again: the sidecar has checked them, and no process can change the file.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Optional

from .errors import OptcacheError

_HEADER = struct.Struct("<8sHHIQIIQQI")
_HEADER_BYTES = 64
_SECTION = struct.Struct("<IIQQ")
_MAGIC = b"OPTCMANI"
_MAJORS = (1, 2)
_SECTIONS_MAX = 32
_FILE_BYTES_MAX = 4 << 30
_PATHS, _SIZES, _CLASSES, _CLASS_NAMES, _MODIFIED, _ETAGS, _DIGESTS = 1, 2, 3, 4, 5, 6, 7
_SHARDS, _SHARD_SIZES, _SHARD_MODIFIED, _SHARD_ETAGS, _SHARD_OF = 8, 9, 10, 11, 12
_FIRST_MEMBER, _OFFSETS, _MEMBER_SIZES, _MEMBER_NAMES = 13, 14, 15, 16
_OBJECTS, _GROUPS, _MEMBERS = 0, 1, 2  # layouts


class Member(NamedTuple):
    """A part of a sample, in the object that holds it."""

    name: bytes
    offset: int
    size: int


class Place(NamedTuple):
    """The object that a sample is or is a part of."""

    path: str
    size: int
    modified_ns: int  # since 1970; 0: not known
    etag: str = ""  # as its server sent it, quotes included; empty: not known


class _StringTable:
    """Front-coded strings in blocks."""

    def __init__(self, section: memoryview) -> None:
        self.count, self._per_block = struct.unpack_from("<II", section)
        blocks = -(-self.count // self._per_block)
        text_at = 8 + 8 * (blocks + 1)
        self._offsets = section[8:text_at].cast("Q")
        self._text = section[text_at:]

    def __getitem__(self, index: int) -> bytes:
        block, wanted = divmod(index, self._per_block)
        for at, text in enumerate(self._block(block)):
            if at == wanted:
                return text
        raise OptcacheError("the manifest is damaged", "data_loss")

    def __iter__(self) -> Iterator[bytes]:
        return self.starting_at(0)

    def starting_at(self, index: int) -> Iterator[bytes]:
        """Those from `index` on, much faster than one after the other."""
        first, skipped = divmod(index, self._per_block)
        for block in range(first, len(self._offsets) - 1):
            yield from itertools.islice(self._block(block), skipped, None)
            skipped = 0

    def _block(self, block: int) -> Iterator[bytes]:
        text = bytes(self._text[self._offsets[block] : self._offsets[block + 1]])
        at = 0
        before = b""
        while at < len(text):
            shared, at = _varint(text, at)
            length, at = _varint(text, at)
            before = before[:shared] + text[at : at + length]
            at += length
            yield before


def _varint(text: bytes, at: int) -> tuple[int, int]:
    first = text[at]
    if first < 128:
        return first, at + 1
    return first & 127 | text[at + 1] << 7, at + 2


class Manifest:
    """A manifest in memory; decodes what is asked for.

    Attributes:
        digest: 32 bytes that name it.
        name: of the dataset.
        classes: names of the classes, by number; empty if the dataset has none.
    """

    def __init__(self, data: memoryview, digest: bytes = b"", name: str = "") -> None:
        """Raises OptcacheError if `data` is no manifest of this version."""
        self.digest = digest
        self.name = name
        try:
            sections = self._parse_header(data)
            self._paths = _StringTable(sections[_PATHS])
            self._sizes = sections[_SIZES].cast("Q")
            self._modified: Optional[memoryview] = None
            modified = _MODIFIED if self._layout == _OBJECTS else _SHARD_MODIFIED
            if modified in sections:
                self._modified = sections[modified].cast("q")
            etags = _ETAGS if self._layout == _OBJECTS else _SHARD_ETAGS
            self._etags = _StringTable(sections[etags]) if etags in sections else None
            self._digests = sections.get(_DIGESTS)
            if self._layout != _OBJECTS:
                self._shards = _StringTable(sections[_SHARDS])
                self._shard_sizes = sections[_SHARD_SIZES].cast("Q")
                self._shard_of = sections[_SHARD_OF].cast("I")
                self._offsets = sections[_OFFSETS].cast("Q")
            if self._layout == _GROUPS:
                self._first_member = sections[_FIRST_MEMBER].cast("I")
                self._member_sizes = sections[_MEMBER_SIZES].cast("Q")
                self._member_names = _StringTable(sections[_MEMBER_NAMES])
            self._class_of: Optional[memoryview] = None
            self.classes: list[str] = []
            if _CLASSES in sections:
                self._class_of = sections[_CLASSES].cast("I")
                self.classes = [os.fsdecode(n) for n in _StringTable(sections[_CLASS_NAMES])]
        except (struct.error, KeyError, TypeError, IndexError) as error:
            raise OptcacheError("the sidecar sent a damaged manifest", "data_loss") from error

    @classmethod
    def from_descriptor(cls, descriptor: int, size: int, digest: bytes, name: str) -> Manifest:
        """Maps the memory file; the descriptor stays the caller's."""
        data = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
        return cls(memoryview(data), digest, name)

    @classmethod
    def from_file(cls, path: str, digest: bytes, name: str) -> Manifest:
        """Reads a file. Raises OSError, or ValueError if it is not the one of that digest."""
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > _FILE_BYTES_MAX:
                raise ValueError(f"{path} is longer than a manifest can be")
            data = file.read()
        if hashlib.sha256(data).digest() != digest:
            raise ValueError(f"{path} is another manifest than the sidecar's")
        return cls(memoryview(data), digest, name)

    def _parse_header(self, data: memoryview) -> dict[int, memoryview]:
        magic, major, _, _, samples, _, sections, _, _, layout = _HEADER.unpack_from(data)
        self._count: int = samples
        self._layout: int = layout
        if magic != _MAGIC or major not in _MAJORS or sections > _SECTIONS_MAX:
            raise OptcacheError(
                f"the sidecar sent a manifest of version {major}, this package reads 1 and 2: "
                "install the Python package and the sidecar of one release",
                "invalid_argument",
            )
        table = {}
        for i in range(sections):
            at = _HEADER_BYTES + i * _SECTION.size
            kind, _, offset, length = _SECTION.unpack_from(data, at)
            table[kind] = data[offset : offset + length]
        return table

    def __len__(self) -> int:
        return self._count

    def path(self, index: int) -> str:
        """The object's path below the source's root, a member's in its archive, or a group's key;
        bytes that are no UTF-8 as os.fsdecode has it.
        """
        return os.fsdecode(self._paths[index])

    def paths(self, begin: int = 0) -> Iterator[str]:
        """All paths from that index on, much faster than one after the other."""
        return map(os.fsdecode, self._paths.starting_at(begin))

    def size(self, index: int) -> int:
        """Of the sample, in bytes."""
        return int(self._sizes[index])

    def total(self, indices: Iterable[int]) -> int:
        """Of these samples together, in bytes."""
        return sum(map(self._sizes.__getitem__, indices))

    def parts(self, indices: Sequence[int], count_max: int, bytes_max: int) -> Iterator[slice]:
        """Where to cut `indices`: a part has at most that many samples and bytes. A sample with more
        bytes is a part of its own.
        """
        begin = 0
        if len(indices) > count_max or self.total(indices) > bytes_max:
            total = 0
            for at, index in enumerate(indices):
                size = self.size(index)
                if at > begin and (total + size > bytes_max or at - begin == count_max):
                    yield slice(begin, at)
                    begin, total = at, 0
                total += size
        yield slice(begin, len(indices))

    def modified_ns(self, index: int) -> int:
        """When the object that holds the sample was written, in nanoseconds since 1970; 0 if that is
        not known.
        """
        if self._modified is None:
            return 0
        at = index if self._layout == _OBJECTS else self._shard_of[index]
        return int(self._modified[at])

    def etag(self, index: int) -> str:
        """Of the object that holds the sample, as Place has it."""
        if self._etags is None:
            return ""
        at = index if self._layout == _OBJECTS else self._shard_of[index]
        return str(self._etags[at], "ascii", "replace")

    def place(self, index: int) -> Place:
        """The object that the sample is or is a part of."""
        at = index if self._layout == _OBJECTS else self._shard_of[index]
        etag = self.etag(index)
        if self._layout == _OBJECTS:
            return Place(self.path(index), self.size(index), self.modified_ns(index), etag)
        return Place(
            os.fsdecode(self._shards[at]), int(self._shard_sizes[at]), self.modified_ns(index), etag
        )

    def sample_digest(self, index: int) -> Optional[bytes]:
        """The SHA-256 of the sample's bytes; None if the dataset was indexed without."""
        if self._digests is None:
            return None
        return bytes(self._digests[32 * index : 32 * index + 32])

    def members(self, index: int) -> list[Member]:
        """What of its object makes the sample: all of it, or members of an archive."""
        if self._layout == _OBJECTS:
            return [Member(b"", 0, self.size(index))]
        if self._layout == _MEMBERS:
            return [Member(b"", int(self._offsets[index]), self.size(index))]
        return [
            Member(self._member_names[at], int(self._offsets[at]), int(self._member_sizes[at]))
            for at in range(self._first_member[index], self._first_member[index + 1])
        ]

    def key(self, index: int) -> Optional[bytes]:
        """Of a group; None where a sample is one piece."""
        return self._paths[index] if self._layout == _GROUPS else None

    def check_groups(self) -> None:
        """Raises OptcacheError if samples are not groups of members of tar archives."""
        if self._layout != _GROUPS:
            raise OptcacheError(
                f"the samples of {self.name} are single files: WebDataset reads those of several "
                "members of a tar archive. Index it with format Tar, or take optcache.Dataset",
                "invalid_argument",
            )

    def target(self, index: int) -> int:
        """The number of the sample's class. Raises OptcacheError if the dataset has no classes."""
        if self._class_of is None:
            raise OptcacheError(self._no_classes(), "invalid_argument")
        return int(self._class_of[index])

    def targets(self) -> list[int]:
        """The class numbers of all samples."""
        if self._class_of is None:
            raise OptcacheError(self._no_classes(), "invalid_argument")
        return self._class_of.tolist()

    def _no_classes(self) -> str:
        return (
            f"the dataset {self.name} has no classes: it was not indexed as an image folder, with a "
            "folder for each class"
        )
