"""What a sidecar serves and where that lies; docs/formats/sources.md says how it tells."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import stat
import urllib.parse
from typing import Any, NamedTuple, Optional

from .errors import OptcacheError

log = logging.getLogger("optcache")

VERSION = 1
_BYTES_MAX = 1 << 20
_TEXT_MAX = 4096
_NAMED_MAX = 10  # datasets in a message
PATIENCE_S = 600  # with a source, where the list has none
_PATIENCE_MAX_S = 24 * 3600
_URL = re.compile(r"https?://[^/?#@\s\x00-\x1f\x7f]+(/[^?#\s\x00-\x1f\x7f]*)?")
_REGION = re.compile(r"[a-z0-9_-]{1,64}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class WithKeys(NamedTuple):
    """How a process reads a source that has its keys. Holds no keys."""

    url: str
    region: str = ""  # of a bucket, by which requests are signed; empty: it is a web server
    keys_folder: str = ""  # that of the sidecar
    requester_pays: bool = False
    ambient: bool = False  # keys that a process finds around it count
    sts_endpoint: str = ""  # of a web identity; empty: there is none
    token_file: str = ""  # that of the sidecar
    role_arn: str = ""
    is_ours: bool = False  # this process's user, or root, has written the list


class Served(NamedTuple):
    """A dataset, and where training processes can read it themselves: one of the first three."""

    name: str
    path: str = ""  # a folder
    url: str = ""
    kept: str = ""  # why they cannot
    ca_file: str = ""  # certificates to trust instead of the system's
    manifest: str = ""  # its file
    digest: bytes = b""  # of that
    patience_s: int = PATIENCE_S  # how long the source may be away
    with_keys: Optional[WithKeys] = None  # of a kept one

    def __str__(self) -> str:
        return f"{self.name} ({self.path or self.url or self.kept})"


class UnusableListError(Exception):
    """There is no list of sources, or none that may be trusted."""


class MissingListError(UnusableListError):
    """There is none."""


def sources_of(socket: str) -> list[Served]:
    """What the sidecar at that socket has written; raises UnusableListError."""
    path = socket + ".sources"
    try:
        sidecars_uid = os.stat(socket).st_uid if os.path.exists(socket) else os.geteuid()
        data, uid = _read(path, sidecars_uid)
    except FileNotFoundError:
        raise MissingListError(f"there is no {path}") from None
    except OSError as error:
        raise UnusableListError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return _parse(data, is_ours=uid in (0, os.geteuid()))
    except (ValueError, RecursionError) as error:
        raise UnusableListError(f"{path} is damaged: {error}") from None


def _read(path: str, sidecars_uid: int) -> tuple[bytes, int]:
    """What it holds, and whose it is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnusableListError(f"{path} is not a file")
        # A user who may write it decides what is read as training data.
        if found.st_uid not in (0, os.geteuid(), sidecars_uid) or found.st_mode & stat.S_IWOTH:
            raise UnusableListError(f"{path} is not used: other users than the sidecar's can write it")
        data = file.read(_BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise UnusableListError(f"{path} is not used: it has more than {_BYTES_MAX} bytes")
    return data, found.st_uid


def _parse(data: bytes, is_ours: bool) -> list[Served]:
    parsed = json.loads(data)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("datasets"), list):
        raise ValueError("it has no list of datasets")
    if parsed.get("version") != VERSION:
        raise ValueError(f"it has another version than {VERSION}")
    return [_entry(item, is_ours) for item in parsed["datasets"]]


def _entry(item: Any, is_ours: bool) -> Served:
    if not isinstance(item, dict):
        raise ValueError("a dataset is not an object")
    keys = ("name", "path", "url", "kept", "caFile", "manifest", "digest")
    name, path, url, kept, ca_file, manifest, digest = (_text(item, key) for key in keys)
    if not name or sum(map(bool, (path, url, kept))) != 1:
        raise ValueError("a dataset needs a name, and one of path, url and kept")
    for file in (path, ca_file, manifest):
        if file and not os.path.isabs(file):
            raise ValueError(f"the path {file!r} is not absolute")
    if url and _URL.fullmatch(url) is None:
        raise ValueError(f"{url!r} is not an address of a web server")
    if bool(manifest) != bool(digest) or (digest and _DIGEST.fullmatch(digest) is None):
        raise ValueError("a manifest needs its digest, 64 hexadecimal digits")
    patience_s = item.get("patienceSeconds", PATIENCE_S)
    if type(patience_s) is not int or not 1 <= patience_s <= _PATIENCE_MAX_S:
        raise ValueError(f"patienceSeconds is not a whole number from 1 to {_PATIENCE_MAX_S}")
    way = item.get("withKeys")
    with_keys = None if way is None else _with_keys(way, is_ours)
    if with_keys is not None and not kept:
        raise ValueError("a dataset has withKeys that is not kept")
    return Served(
        name, path, url, kept, ca_file, manifest, bytes.fromhex(digest), patience_s, with_keys
    )


def _with_keys(way: Any, is_ours: bool) -> WithKeys:
    if not isinstance(way, dict):
        raise ValueError("withKeys is not an object")
    texts = ("url", "region", "keysFolder", "stsEndpoint", "tokenFile", "roleARN")
    url, region, keys_folder, sts_endpoint, token_file, role_arn = (_text(way, k) for k in texts)
    if _URL.fullmatch(url) is None or (sts_endpoint and _URL.fullmatch(sts_endpoint) is None):
        raise ValueError("withKeys has no address of a web server as url, or as stsEndpoint")
    if region and _REGION.fullmatch(region) is None:
        raise ValueError(f"{region!r} is not a region")
    pays, ambient = way.get("requesterPays", False), way.get("ambientKeys", False)
    if type(pays) is not bool or type(ambient) is not bool:
        raise ValueError("requesterPays or ambientKeys is not true or false")
    return WithKeys(
        url, region, keys_folder, pays, ambient, sts_endpoint, token_file, role_arn, is_ours
    )


def _text(item: dict[str, Any], key: str) -> str:
    text = item.get(key, "")
    if not isinstance(text, str) or len(text) > _TEXT_MAX or "\0" in text:
        raise ValueError(f"{key} is not a text of at most {_TEXT_MAX} characters")
    return text


def sources_or_none(socket: str) -> Optional[list[Served]]:
    """The same; None where there is none, and a line in the log if there is one that is not used."""
    try:
        return sources_of(socket)
    except MissingListError:
        return None  # of an earlier release
    except UnusableListError as why:
        _tell(str(why))
        return None


@functools.lru_cache(maxsize=64)
def _tell(why: str) -> None:
    log.warning(
        "the sources of the sidecar's datasets are not known, so they are not read while it is away: %s",
        why,
    )


def named(served: list[Served], name: str) -> Optional[Served]:
    """The dataset that is called so: by its whole name, without its namespace where no other is
    called so, or by none where there is one alone.
    """
    for entry in served:
        if entry.name == name:
            return entry
    found = [e for e in served if not name or e.name.partition("/")[2] == name]
    return found[0] if len(found) == 1 else None


def _same_folder(one: str, other: str) -> bool:
    """Also where one volume is mounted at two places."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one is not there
        return os.path.realpath(one) == os.path.realpath(other)


def dataset_at(root: str, served: list[Served]) -> Optional[Served]:
    """The dataset whose source `root` is; else the one that is called so."""
    places = [
        entry
        for entry in served
        if (entry.path and _same_folder(entry.path, root))
        or (entry.url and entry.url.rstrip("/") == root.rstrip("/"))
    ]
    return _only(places, root) or named(served, root)


def dataset_around(root: str, served: list[Served]) -> Optional[tuple[Served, str]]:
    """The dataset in whose source `root` is a folder, by the longest path; and that folder's path in
    the source.
    """
    # A name may be that of a relative folder by chance, and a folder need not be there.
    is_folder = "://" not in root and (os.path.isabs(root) or os.path.isdir(root))
    for path in (os.path.abspath(root), os.path.realpath(root)) if is_folder else ():
        folder = path
        while folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
            found = [e for e in served if e.path and _same_folder(e.path, folder)]
            entry = _only(found, folder)
            if entry is not None:
                return entry, os.path.relpath(path, folder)
    urls = {e.url.rstrip("/") for e in served if e.url}
    url = max((u for u in urls if root.startswith(u + "/")), key=len, default="")
    entry = _only([e for e in served if url and e.url.rstrip("/") == url], url)
    below = urllib.parse.unquote(root[len(url) :].strip("/"), errors="surrogateescape")
    return (entry, below) if entry is not None else None


def _only(places: list[Served], root: str) -> Optional[Served]:
    if len(places) > 1:
        names = ", ".join(entry.name for entry in places[:_NAMED_MAX])
        raise OptcacheError(
            f"several datasets have the source {root}: write name= with one of {names}",
            "invalid_argument",
        )
    return places[0] if places else None


def no_dataset_at(root: str, socket: str, served: list[Served]) -> OptcacheError:
    """What is said where no dataset fits."""
    names = ", ".join(map(str, served[:_NAMED_MAX])) + (", …" if len(served) > _NAMED_MAX else "")
    first = f"{served[0].name!r}" if served else "..."
    return OptcacheError(
        f"no dataset of the sidecar at {socket} has the source or the name {root!r}; it serves "
        f"{names or 'none'}: give one of these folders, or its name, as name={first}",
        "not_found",
    )
