"""What stands as `optcache/__init__.py` where a sidecar has put the package on PYTHONPATH.

The package itself lies beside it, in `_copy`. One of the same version that is installed here is
used instead; another version would not fit the sidecar.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from typing import Optional


def _version_in(init: str) -> Optional[str]:
    with open(init, encoding="utf-8") as file:
        found = re.search(r'^__version__ = "(.+)"$', file.read(), re.MULTILINE)
    return found.group(1) if found else None


def _installed(version: Optional[str], own_folder: str) -> Optional[str]:
    """The folder of the package that would be found without this one, if it is of that version."""
    others = [path for path in sys.path if os.path.realpath(path or os.curdir) != own_folder]
    spec = PathFinder.find_spec("optcache", others)
    if spec is None or spec.origin is None or _version_in(spec.origin) != version:
        return None
    return os.path.dirname(spec.origin)


def _choose() -> str:
    here = os.path.dirname(os.path.realpath(__file__))
    copy = os.path.join(here, "_copy")
    version = _version_in(os.path.join(copy, "__init__.py"))
    return _installed(version, os.path.dirname(here)) or copy


__path__ = [_choose()]
__file__ = os.path.join(__path__[0], "__init__.py")
with open(__file__, encoding="utf-8") as _source:
    exec(compile(_source.read(), __file__, "exec"))
