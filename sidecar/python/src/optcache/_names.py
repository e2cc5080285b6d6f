"""Samples by the paths of their objects, and the folders that these paths make."""

from __future__ import annotations

import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional

from ._manifest import Manifest

_AFTER_SLASH = chr(ord("/") + 1)
_BLOCK = 16  # paths in a block of a manifest, whose first one is decoded without the others


class Entry(NamedTuple):
    """What a folder has."""

    path: str
    sample: Optional[int]  # its index; None: a folder


class Names:
    """The paths of a manifest in ascending order, by which they are found.

    Takes 4 bytes a sample, or nothing where the manifest lists paths in this order already. Making
    it decodes all paths once, about a second for a million.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._order: Sequence[int] = _order_of(manifest)

    def find(self, path: str) -> Optional[int]:
        """The index of the sample whose object has this path."""
        at = self._first_not_before(path)
        if at == len(self._order) or self._path(at) != path:
            return None
        return self._order[at]

    def has_folder(self, folder: str) -> bool:
        """True if some path begins with this folder. The root, "", is always there."""
        if not folder:
            return True
        prefix = folder + "/"
        at = self._first_not_before(prefix)
        return at < len(self._order) and self._path(at).startswith(prefix)

    def list(self, folder: str) -> Iterator[Entry]:
        """What lies right in the folder, by path; nothing if there is no such folder.

        A folder without a name has no URL: the object a//b is listed as one of the folder a.
        """
        prefix = folder + "/" if folder else ""
        at = self._first_not_before(prefix)
        while at < len(self._order):
            for path in self._paths(at):
                if not path.startswith(prefix):
                    return
                name, slash, _ = path[len(prefix) :].partition("/")
                if slash and name:
                    yield Entry(prefix + name, None)
                    at = self._first_not_before(prefix + name + _AFTER_SLASH, at)
                    break
                yield Entry(path, self._order[at])
                at += 1

    def _paths(self, begin: int) -> Iterator[str]:
        if isinstance(self._order, range):
            return self._manifest.paths(begin)
        return map(self._path, range(begin, len(self._order)))

    def _path(self, at: int) -> str:
        return self._manifest.path(self._order[at])

    def _first_not_before(self, path: str, begin: int = 0) -> int:
        end = len(self._order)
        while begin < end:
            middle = (begin + end) // 2
            if end - begin > 2 * _BLOCK:
                middle -= middle % _BLOCK
            if self._path(middle) < path:
                begin = middle + 1
            else:
                end = middle
        return begin


def _order_of(manifest: Manifest) -> Sequence[int]:
    before = ""
    for path in manifest.paths():
        if path < before:
            break
        before = path
    else:
        return range(len(manifest))
    paths = list(manifest.paths())
    return array.array("I", sorted(range(len(paths)), key=paths.__getitem__))
