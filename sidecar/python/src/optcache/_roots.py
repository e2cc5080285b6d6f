"""Which dataset a folder means, where a class of others takes the folder of its files."""

from __future__ import annotations

import logging
import os
from typing import Optional

from ._endpoint import endpoint_at, with_patience
from ._sources import UnusableListError, dataset_at, no_dataset_at, sources_of
from .errors import OptcacheError

log = logging.getLogger("optcache")


def name_of_root(
    root: str, name: Optional[str], socket: Optional[str], wait: Optional[float]
) -> Optional[str]:
    """The name of the dataset whose source is `root`, or that is called so. `name`, if it is given,
    or if there is no root.

    Raises:
        OptcacheError: there is none; the message says which there are.
        SidecarUnavailableError: as with_patience.
    """
    if not root:
        return name
    if name is not None:
        _warn_of_another(root, name, socket)
        return name
    instead_of_sidecar = os.environ.get("OPTCACHE_FALLBACK_ROOT")
    if instead_of_sidecar and os.path.realpath(instead_of_sidecar) == os.path.realpath(root):
        return None  # the environment's
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
    found = dataset_at(root, served)
    if found is None:
        raise no_dataset_at(root, endpoint.path, served)
    return found.name


def _warn_of_another(root: str, name: str, socket: Optional[str]) -> None:
    try:
        found = dataset_at(root, sources_of(endpoint_at(socket).path))
    except (UnusableListError, OptcacheError):
        return
    if found is not None and name not in (found.name, found.name.partition("/")[2]):
        log.warning("root=%s is the source of %s, but name=%s is used", root, found.name, name)
