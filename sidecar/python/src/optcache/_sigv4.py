"""AWS Signature Version 4, by which S3 knows whose a request is: of requests without query and body.

The rules: docs.aws.amazon.com, "Authenticating Requests: Using the Authorization Header". S3 takes a
path as it is sent, encoded once and not normalised.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import NamedTuple

_ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_PAYLOAD_HASH = hashlib.sha256(b"").hexdigest()


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Keys of a bucket. No text of it shows them. Characters are bytes, by Latin-1."""

    access_key_id: str = dataclasses.field(repr=False)
    secret_access_key: str = dataclasses.field(repr=False)
    session_token: str = dataclasses.field(default="", repr=False)


class Scope(NamedTuple):
    """What a signature holds for."""

    date_time: str  # as in x-amz-date: "20130524T000000Z"
    region: str
    service: str = "s3"

    def __str__(self) -> str:
        return f"{self.date_time[:8]}/{self.region}/{self.service}/aws4_request"


def canonical_request(method: str, path: str, headers: Mapping[str, str]) -> str:
    """What is hashed. `path` is percent-encoded; `headers` have names in lower case, and `host` and
    `x-amz-date` among them.
    """
    lines = [f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers)]
    return f"{method}\n{path}\n\n{''.join(lines)}\n{_names(headers)}\n{EMPTY_PAYLOAD_HASH}"


def _names(headers: Mapping[str, str]) -> str:
    return ";".join(sorted(headers))


def string_to_sign(canonical: str, scope: Scope) -> str:
    """What is signed of it."""
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    return f"{_ALGORITHM}\n{scope.date_time}\n{scope}\n{digest}"


def authorization(
    method: str, path: str, headers: Mapping[str, str], scope: Scope, keys: Credentials
) -> str:
    """The value of the header Authorization; all of `headers` are signed."""
    key = b"AWS4" + keys.secret_access_key.encode("latin-1")
    canonical = canonical_request(method, path, headers)
    for part in (scope.date_time[:8], scope.region, scope.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = string_to_sign(canonical, scope).encode()
    signature = hmac.new(key, text, hashlib.sha256).hexdigest()
    return (
        f"{_ALGORITHM} Credential={keys.access_key_id}/{scope},"
        f"SignedHeaders={_names(headers)},Signature={signature}"
    )


def signed_headers(
    host: str, path: str, more: Mapping[str, str], region: str, keys: Credentials, unix_s: float
) -> dict[str, str]:
    """The headers of a GET, with `more`, which have names in lower case. What proxies may change
    is not to be among them.
    """
    date_time = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(unix_s))
    headers = {
        **more,
        "host": host,
        "x-amz-date": date_time,
        "x-amz-content-sha256": EMPTY_PAYLOAD_HASH,
    }
    if keys.session_token:
        headers["x-amz-security-token"] = keys.session_token
    scope = Scope(date_time, region)
    headers["authorization"] = authorization("GET", path, headers, scope, keys)
    return headers
