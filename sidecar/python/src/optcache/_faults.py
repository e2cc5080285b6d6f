"""How a request to the sidecar may end badly."""

from __future__ import annotations

from .errors import OptcacheError


class ChannelBrokenError(Exception):
    """The connection is of no more use; a new one may be."""


class SilentError(ChannelBrokenError):
    """The sidecar said nothing for as long as it may."""


class RefusedError(OptcacheError):
    """The sidecar answered a request with an error."""


class SampleFailedError(Exception):
    """The sidecar could not read one sample of a batch."""

    def __init__(self, position: int, code: str, text: str) -> None:
        super().__init__(text)
        self.position = position
        self.code = code


class SourceFaltersError(Exception):
    """Neither the sidecar nor the source gives a sample now; the source may, a little later."""


# What a request may end with when the sidecar goes away under it.
BROKEN = (ChannelBrokenError, OSError)
