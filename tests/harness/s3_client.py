"""What a test does to a bucket besides reading it: it makes it, puts objects, deletes them.

Requests are signed here anew (AWS Signature Version 4), so that the server, and not a shared mistake,
says whether the cache signs rightly.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ssl
import time
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from harness.errors import HarnessError

TIMEOUT_SECONDS = 30.0
UNRESERVED = "-._~"


@dataclass
class S3Client:
    """Of one server, path style; keeps its connection. Not thread-safe."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    ca_file: str = ""
    _connection: http.client.HTTPConnection | None = field(default=None, init=False)

    def make_bucket(self, bucket: str) -> None:
        self._send("PUT", f"/{bucket}")

    def put(self, bucket: str, key: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._send("PUT", f"/{bucket}/{quote(key, safe=UNRESERVED + '/')}", body, headers or {})

    def delete(self, bucket: str, key: str) -> None:
        self._send("DELETE", f"/{bucket}/{quote(key, safe=UNRESERVED + '/')}")

    def _send(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        signed = self._sign(method, path, body, headers or {})
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, path, body, signed)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise HarnessError(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")

    def _connect(self) -> http.client.HTTPConnection:
        place = urlsplit(self.endpoint)
        host, port = place.hostname or "", place.port
        if place.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        trust = ssl.create_default_context(cafile=self.ca_file or None)
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=trust)

    def _sign(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> dict[str, str]:
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        scope = f"{moment[:8]}/{self.region}/s3/aws4_request"
        digest = hashlib.sha256(body).hexdigest()
        sent = {name.lower(): value for name, value in headers.items()} | {
            "host": urlsplit(self.endpoint).netloc,
            "x-amz-content-sha256": digest,
            "x-amz-date": moment,
        }
        names = ";".join(sorted(sent))
        lines = "".join(f"{name}:{sent[name]}\n" for name in sorted(sent))
        canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{digest}"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{self.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        sent["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return sent
