"""Keys that a token service gives for a web identity (AssumeRoleWithWebIdentity)."""

from __future__ import annotations

import calendar
import http.client
import os
import re
import ssl
import threading
import time
import urllib.parse
from typing import NamedTuple

from ._faults import SourceFaltersError
from ._key_files import KeyFolder
from ._sigv4 import Credentials

_SECONDS_MAX = 10.0  # without a byte of the service, and for the body of its answer
_ANSWER_BYTES_MAX = 256 << 10
_RENEW_BEFORE_S = 300.0
_ASK_AGAIN_S = 30.0  # after a failure, while the old keys are good
_PIECE_BYTES = 64 << 10
_KEY = re.compile(r"[\x21-\x7e]{1,16384}")
_CODE = re.compile(r"<Code>\s*(\w{1,100})\s*</Code>")


class Identity(NamedTuple):
    """Whose keys are asked for, and where."""

    sts_endpoint: str
    role_arn: str  # empty: the service chooses by the token
    token_file: str
    ca_file: str


class _Kept(NamedTuple):
    keys: Credentials
    expires_s: float
    ask_at_s: float  # all in seconds since 1970


_kept: dict[Identity, _Kept] = {}
_lock = threading.Lock()


def keys_of(identity: Identity) -> Credentials:
    """The keys of now. Raises SourceFaltersError if there are none."""
    with _lock:  # one thread asks for all
        kept = _kept.get(identity)
        if kept is not None and time.time() < kept.ask_at_s:
            return kept.keys
        try:
            kept = _ask(identity)
        except SourceFaltersError:
            if kept is None or time.time() >= kept.expires_s:
                raise
            kept = kept._replace(ask_at_s=time.time() + _ASK_AGAIN_S)
        _kept[identity] = kept
        return kept.keys


def forget(identity: Identity, keys: Credentials) -> None:
    """The store does not take these keys any more; newer ones stay."""
    with _lock:
        kept = _kept.get(identity)
        if kept is not None and kept.keys == keys:
            del _kept[identity]


def _ask(identity: Identity) -> _Kept:
    token = KeyFolder(os.path.dirname(identity.token_file)).read(os.path.basename(identity.token_file))
    if token is None:
        raise SourceFaltersError(f"the token of the web identity: there is no {identity.token_file}")
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleSessionName": "optcache",
        "WebIdentityToken": token,
    }
    if identity.role_arn:
        form["RoleArn"] = identity.role_arn
    what = f"keys from {identity.sts_endpoint}"
    try:
        status, text = _post(identity, urllib.parse.urlencode(form, encoding="latin-1"))
    except (http.client.HTTPException, OSError) as error:
        raise SourceFaltersError(f"{what}: {str(error) or type(error).__name__}") from None
    if status != 200:
        code = _CODE.search(text)
        raise SourceFaltersError(f"{what}: HTTP {status}" + (f" {code[1]}" if code else ""))
    return _parse(what, text)


def _post(identity: Identity, form: str) -> tuple[int, str]:
    parts = urllib.parse.urlsplit(identity.sts_endpoint)
    made: http.client.HTTPConnection
    if parts.scheme == "https":
        trust = ssl.create_default_context(cafile=identity.ca_file or None)
        made = http.client.HTTPSConnection(parts.netloc, timeout=_SECONDS_MAX, context=trust)
    else:
        made = http.client.HTTPConnection(parts.netloc, timeout=_SECONDS_MAX)
    try:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        made.request("POST", parts.path.rstrip("/") + "/", body=form, headers=kind)
        answer = made.getresponse()
        return answer.status, _body(answer).decode("latin-1")
    finally:
        made.close()


def _body(answer: http.client.HTTPResponse) -> bytes:
    deadline = time.monotonic() + _SECONDS_MAX
    body = b""
    while len(body) < _ANSWER_BYTES_MAX and (piece := answer.read1(_PIECE_BYTES)):
        body += piece
        if time.monotonic() > deadline:
            raise TimeoutError("the answer comes too slowly")
    return body


def _element(name: str, text: str) -> str:
    found = re.search(rf"<{name}>\s*([^<>\s]*)\s*</{name}>", text)
    return found[1] if found else ""


def _parse(what: str, text: str) -> _Kept:
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    keys = [_element(name, text) for name in names]
    try:
        expires_s = calendar.timegm(
            time.strptime(_element("Expiration", text)[:19], "%Y-%m-%dT%H:%M:%S")
        )
    except ValueError:
        expires_s = 0
    if not expires_s or not all(map(_KEY.fullmatch, keys)):
        raise SourceFaltersError(f"{what}: the answer has no Credentials")
    ask_at_s = max(expires_s - _RENEW_BEFORE_S, time.time() + _ASK_AGAIN_S)
    return _Kept(Credentials(*keys), expires_s, ask_at_s)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)
