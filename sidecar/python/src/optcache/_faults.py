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
    """Neither the sidecar nor the source gives a sample now; the source may, a little later.

    Attributes:
        came: bytes that came before a fetch broke, with which the next fetch can go on.
        retry_after_s: the source asks for no other try before.
        progressed: more has come than by any try before.
    """

    def __init__(self, text: str, came: bytes = b"", retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.came = came
        self.retry_after_s = retry_after_s
        self.progressed = False


# What a request may end with when the sidecar goes away under it.
BROKEN = (ChannelBrokenError, OSError)
