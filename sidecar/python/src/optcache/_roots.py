"""Which dataset a folder means, where a class of others takes the folder of its files."""

from __future__ import annotations

import logging
import os
from typing import NamedTuple, Optional

from ._endpoint import endpoint_at, with_patience
from ._sources import (
    Served,
    UnusableListError,
    dataset_around,
    dataset_at,
    no_dataset_at,
    sources_of,
)
from .errors import OptcacheError

log = logging.getLogger("optcache")


class Root(NamedTuple):
    """What a folder means: a dataset, all of it or what lies below a folder of its source."""

    name: Optional[str]  # None: the usual one
    below: str = ""


def dataset_of_root(
    root: str, name: Optional[str], socket: Optional[str], wait: Optional[float]
) -> Root:
    """The dataset whose source is `root`, or that is called so, or in whose source `root` is a
    folder. That of `name`, if it is given, or if there is no root.

    Raises:
        OptcacheError: there is none; the message says which there are.
        SidecarUnavailableError: as with_patience.
    """
    if not root:
        return Root(name)
    if name is not None:
        _warn_of_another(root, name, socket)
        return Root(name)
    instead_of_sidecar = os.environ.get("OPTCACHE_FALLBACK_ROOT")
    if instead_of_sidecar and os.path.realpath(instead_of_sidecar) == os.path.realpath(root):
        return Root(None)  # the environment's
    endpoint = endpoint_at(socket)

    def reach() -> None:  # what it serves now is listed when it answers
        endpoint.channel()

    listed = os.path.exists(endpoint.path + ".sources")
    with_patience(endpoint, reach, (lambda: None) if listed else None, wait)
    try:
        served = sources_of(endpoint.path)
    except UnusableListError as why:
        raise OptcacheError(
            f"it is not known which dataset the root {root!r} means ({why}): write name= with the "
            "dataset's name instead",
            "invalid_argument",
        ) from None
    found = _find(root, served)
    if found is None:
        raise no_dataset_at(root, endpoint.path, served)
    return found


def _find(root: str, served: list[Served]) -> Optional[Root]:
    at = dataset_at(root, served)
    if at is not None:
        return Root(at.name)
    around = dataset_around(root, served)
    return None if around is None else Root(around[0].name, around[1])


def _warn_of_another(root: str, name: str, socket: Optional[str]) -> None:
    try:
        found = _find(root, sources_of(endpoint_at(socket).path))
    except (UnusableListError, OptcacheError):
        return
    if found is None or found.name is None:
        return
    if name not in (found.name, found.name.partition("/")[2]):
        log.warning("root=%s is the source of %s, but name=%s is used", root, found.name, name)
    elif found.below:
        log.warning(
            "root=%s is a part of the source of %s, and name= takes all of it: leave name= out to "
            "take the part",
            root,
            found.name,
        )
