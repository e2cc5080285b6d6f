"""What a refused call says, and whether it says so at once."""

from __future__ import annotations

import time
from collections.abc import Callable

import optcache

AT_ONCE_S = 2.0
TRIES = 5


def refusal(action: Callable[[], object], kind: type[Exception] = optcache.OptcacheError) -> str:
    try:
        action()
    except kind as error:
        return str(error)
    raise AssertionError("it was not refused")


def refusal_at_once(action: Callable[[], object], kind: type[Exception] = optcache.OptcacheError) -> str:
    """It waits for nothing. One quick answer of several shows that: the machine may be busy."""
    for _ in range(TRIES):
        began = time.monotonic()
        said = refusal(action, kind)
        if time.monotonic() - began < AT_ONCE_S:
            return said
    raise AssertionError(f"it has waited each time before it said: {said}")
