"""What can go wrong, as exceptions whose text says what happened and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

from . import _deprecated
from ._text import visible

_CODES = (
    "ok",
    "not_found",
    "invalid_argument",
    "unavailable",
    "conflict",
    "resource_exhausted",
    "deadline_exceeded",
    "cancelled",
    "data_loss",
    "permission_denied",
    "internal",
)


def code_name(code: int) -> str:
    """The name of a code of the hand-over protocol; unknown ones are "internal"."""
    return _CODES[code] if 0 <= code < len(_CODES) else "internal"


class OptcacheError(RuntimeError):
    """Base of all exceptions of this package.

    Attributes:
        code: what kind of error, for example "not_found" or "unavailable".
    """

    def __init__(self, message: str, code: str = "internal") -> None:
        super().__init__(visible(message, "\n"))
        self.code = code

    def __reduce__(self) -> tuple[type[OptcacheError], tuple[object, ...]]:
        return type(self), (*self.args, self.code)


class SidecarUnavailableError(OptcacheError):
    """No sidecar answers at the socket, or it went away and did not come back."""

    def __init__(self, message: str, code: str = "unavailable") -> None:
        super().__init__(message, code)


class SampleError(OptcacheError):
    """One sample cannot be read, for example because its object is gone.

    Attributes:
        index: the sample's number in the dataset; None if not known.
    """

    def __init__(
        self, message: str, code: str = "internal", index: Optional[int] = None
    ) -> None:
        super().__init__(message, code)
        self.index = index

    def __reduce__(self) -> tuple[type[OptcacheError], tuple[object, ...]]:
        return type(self), (*self.args, self.code, self.index)


if TYPE_CHECKING:
    SidecarUnavailable = SidecarUnavailableError
else:
    __getattr__ = _deprecated.attributes(
        __name__, SidecarUnavailable=("SidecarUnavailableError", SidecarUnavailableError)
    )
