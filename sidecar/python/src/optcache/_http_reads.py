"""Objects of a web server or a bucket, read by the training process itself."""

from __future__ import annotations

import email.utils
import functools
import http.client
import os
import re
import ssl
import threading
import time
import urllib.parse
from typing import NamedTuple, Optional

from ._faults import SourceFaltersError
from ._manifest import Place
from ._source_keys import Proof, SourceKeys

_SILENCE_S = 20.0  # of the server, after which a read has failed
_TRANSFER_S = 30.0  # for a read, and as long again as its bytes take at _RATE_MIN
_RATE_MIN = 64 * 1024  # bytes a second
_PIECE_BYTES = 1 << 20
_REDIRECTIONS = (301, 302, 303, 307, 308)
_REDIRECTIONS_MAX = 5
_RETRY_AFTER_MAX_S = 60.0  # a longer one is taken for this
_FALTERS = (408, 429)  # and those from 500 on, but:
_NOT_BY_THESE_KEYS = (401, 403)
_UNKNOWN = (501, 505)  # it does not know the request
_REFUSAL_BYTES_MAX = 64 << 10  # of an error's body
_S3_CODE = re.compile(rb"<Error>.*?<Code>(\w{1,100})</Code>", re.DOTALL)
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired")
_CHANGED = "changed since it was indexed"


class RefusalError(OSError):
    """The server will not give it later either."""


_connections = threading.local()  # of each thread; a forked process has other threads


class HttpSource(NamedTuple):
    """A web server, or a bucket by its address. Uses no proxy."""

    url: str
    ca_file: str = ""  # certificates to trust instead of the system's
    keys: Optional[SourceKeys] = None  # go to the server of `url` alone

    def __str__(self) -> str:
        return self.url

    def where(self, path: str) -> str:
        # One slash: the prefix of a bucket may end with several.
        return f"{self.url.removesuffix('/')}/{urllib.parse.quote(os.fsencode(path))}"

    def fetch(
        self, place: Place, begin: int, length: int, fresh: bool = False, came: bytes = b""
    ) -> bytes:
        """Bytes of an object, in one request; if `fresh`, not from a cache on the way; without
        `came`, which came by the fetch before.

        Raises SourceFaltersError if the server may answer later, RefusalError if it will not,
        ValueError if it is not the object that was indexed.
        """
        headers = {"Accept-Encoding": "identity"}
        if place.etag.startswith('"'):  # a weak one never matches
            headers["If-Match"] = place.etag
        if length - len(came) != place.size:
            headers["Range"] = f"bytes={begin + len(came)}-{begin + length - 1}"
        if fresh:
            headers["Cache-Control"] = "no-cache"
        pieces = [came]
        try:
            return self._transfer(headers, place, begin, length, pieces)
        except SourceFaltersError as error:
            have = b"".join(pieces)
            error.came = have if len(have) < length else b""
            raise

    def _transfer(
        self, headers: dict[str, str], place: Place, begin: int, length: int, pieces: list[bytes]
    ) -> bytes:
        """The bytes: `pieces`, and what is left. What comes of the indexed version for sure is added
        to `pieces`. Raises as fetch does.
        """
        url = self.where(place.path)
        deadline = time.monotonic() + _TRANSFER_S + length / _RATE_MIN
        try:
            for _ in range(_REDIRECTIONS_MAX + 1):
                response, proof = self._ask(url, headers)
                if response.status not in _REDIRECTIONS:
                    if response.status == 200 and length == place.size:
                        pieces.clear()  # of a server that ignores ranges: it sends all of it again
                    have = sum(map(len, pieces))
                    _check_keys(response, place, proof)
                    _check(response, place, begin + have, length - have)
                    if not _is_version(response, place):
                        if have:
                            pieces.clear()  # the rest may be of another version
                            raise SourceFaltersError(f"{place.path}: the rest came without its ETag")
                        pieces = []
                    _read_body(response, length, deadline, pieces)
                    return b"".join(pieces)
                if self.keys is not None and self.keys.way.region:
                    raise RefusalError(_refusal(response))
                url = _redirected(url, response)
            raise RefusalError(f"more than {_REDIRECTIONS_MAX} redirections")
        except ssl.SSLCertVerificationError as error:
            _forget_connections()
            raise RefusalError(f"the server's certificate is not trusted: {error.reason}") from error
        except (SourceFaltersError, ValueError, RefusalError):
            _forget_connections()  # which may have the rest of an answer
            raise
        except (http.client.HTTPException, OSError) as error:
            _forget_connections()
            raise SourceFaltersError(f"{url}: {str(error) or type(error).__name__}") from error

    def _ask(
        self, url: str, headers: dict[str, str]
    ) -> tuple[http.client.HTTPResponse, Optional[Proof]]:
        """The answer, and what this process sent of its keys."""
        parts = urllib.parse.urlsplit(url)
        ca_file = self.ca_file
        proof: Optional[Proof] = None
        sent = headers
        if self.keys is not None and _server_of(url) == _server_of(self.url):
            proof = self.keys.prove(url)
            sent, ca_file = {**headers, **proof.headers}, proof.ca_file
        connection, used = _connection(parts.scheme, parts.netloc, ca_file)
        try:
            query = f"?{parts.query}" if parts.query else ""
            connection.request("GET", (parts.path or "/") + query, headers=sent)
            return connection.getresponse(), proof
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if not used:
                raise
        # The server has ended a connection that was idle.
        _forget_connections()
        return self._ask(url, headers)


def _server_of(url: str) -> tuple[str, Optional[str], int]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _refusal(response: http.client.HTTPResponse) -> str:
    """The status, and the code that S3 gives."""
    found = _S3_CODE.search(response.read1(_REFUSAL_BYTES_MAX))
    return f"HTTP {response.status}" + (f": {found[1].decode()}" if found else "")


def _check_keys(
    response: http.client.HTTPResponse, place: Place, proof: Optional[Proof]
) -> None:
    """Raises what fetch does if the server does not want the request. It may yet take other keys,
    and so may it take the sidecar's.
    """
    if not 400 <= response.status < 500 or response.status in (*_FALTERS, 412, 416):
        return
    why = _refusal(response)
    if proof is None:
        raise RefusalError(why)
    expired = why.endswith(_EXPIRED)
    if expired:
        proof.forget()  # newer ones are on their way
    if expired or response.status in _NOT_BY_THESE_KEYS:
        raise SourceFaltersError(f"{place.path}: {why}")
    raise RefusalError(why)


def _check(response: http.client.HTTPResponse, place: Place, begin: int, length: int) -> None:
    """Raises what fetch does if the answer is not the bytes of that object."""
    status = response.status
    if status in _FALTERS or (status >= 500 and status not in _UNKNOWN):
        raise SourceFaltersError(f"{place.path}: HTTP {status}", retry_after_s=_retry_after(response))
    if status in (412, 416):
        raise ValueError(_CHANGED)
    if status not in (200, 206):
        raise RefusalError(f"HTTP {status}")
    if _differs(response, place):
        raise ValueError(_CHANGED)
    whole = length == place.size
    if status != (200 if whole else 206):
        raise RefusalError(f"HTTP {status}: the server ignores ranges")
    if whole:
        size: Optional[int] = response.length
    else:
        size = _size_in(response.getheader("Content-Range") or "", begin, length)
    if size is not None and size != place.size:
        why = f"has {size} bytes, the indexed object has {place.size}"
        # One version has one length: with the listed ETag, another length is a broken answer.
        if place.etag and response.getheader("ETag") == place.etag:
            raise SourceFaltersError(f"{place.path} {why}")
        raise ValueError(why)


def _retry_after(response: http.client.HTTPResponse) -> float:
    seconds = (response.getheader("Retry-After") or "").strip()
    if not (seconds.isascii() and seconds.isdigit()):
        return 0.0
    return min(float(seconds), _RETRY_AFTER_MAX_S)


def _differs(response: http.client.HTTPResponse, place: Place) -> bool:
    """Whether ETag or time of the answer are others than the object's, where both are known."""
    etag = response.getheader("ETag") or ""
    if etag and place.etag and etag.removeprefix("W/") != place.etag.removeprefix("W/"):
        return True
    try:
        told = email.utils.parsedate_to_datetime(response.getheader("Last-Modified") or "")
    except (TypeError, ValueError):
        return False
    return bool(place.modified_ns) and int(told.timestamp()) != place.modified_ns // 1_000_000_000


def _is_version(response: http.client.HTTPResponse, place: Place) -> bool:
    """Whether the answer is of the version that was indexed, for sure."""
    return place.etag.startswith('"') and response.getheader("ETag") == place.etag


def _size_in(content_range: str, begin: int, length: int) -> Optional[int]:
    """The object's size, as "bytes 0-9/100" has it. Raises SourceFaltersError if it is another
    range.
    """
    sent, _, size = content_range.partition("/")
    if sent != f"bytes {begin}-{begin + length - 1}":
        raise SourceFaltersError(f"the server sent another range: {content_range!r}")
    return int(size) if size.isascii() and size.isdigit() else None


def _read_body(
    response: http.client.HTTPResponse, length: int, deadline: float, pieces: list[bytes]
) -> None:
    """Until `pieces` have as many bytes, and no more."""
    have = sum(map(len, pieces))
    while piece := response.read1(_PIECE_BYTES):
        pieces.append(piece)
        have += len(piece)
        if have > length:
            raise SourceFaltersError(f"more than {length} bytes came")
        if time.monotonic() > deadline:
            raise SourceFaltersError("its bytes come too slowly")
    if have != length:
        raise SourceFaltersError(f"only {have} of {length} bytes came")
    response.close()  # which leaves the connection for the next request


def _redirected(url: str, response: http.client.HTTPResponse) -> str:
    """Where the answer sends us: by the same scheme, or by https."""
    response.read(_PIECE_BYTES)
    _forget_connections()
    target = urllib.parse.urljoin(url, response.getheader("Location") or "")
    parts = urllib.parse.urlsplit(target)
    if parts.scheme not in ("https", urllib.parse.urlsplit(url).scheme) or "@" in parts.netloc:
        raise RefusalError(f"HTTP {response.status}: a redirection that is not followed")
    return parts._replace(fragment="").geturl()


def _connection(
    scheme: str, host: str, ca_file: str
) -> tuple[http.client.HTTPConnection, bool]:
    """This thread's connection to there, and whether it was used before. It has one at a time."""
    place = (scheme, host, ca_file, os.getpid())
    if getattr(_connections, "place", None) == place:
        return _connections.connection, True
    _forget_connections()
    made: http.client.HTTPConnection
    if scheme == "https":
        made = http.client.HTTPSConnection(host, timeout=_SILENCE_S, context=_trust(ca_file))
    else:
        made = http.client.HTTPConnection(host, timeout=_SILENCE_S)
    _connections.connection, _connections.place = made, place
    return made, False


def _forget_connections() -> None:
    connection = getattr(_connections, "connection", None)
    if connection is not None:
        connection.close()
    _connections.connection = _connections.place = None


@functools.lru_cache(maxsize=16)
def _trust(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise RefusalError(f"{ca_file}: {error.strerror}") from error
