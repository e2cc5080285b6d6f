"""A store that wants keys, or knows which came, for tests of processes that read it themselves.

A test file imports the fixtures `store` and `no_other_keys`; the second then holds for all its tests.
"""

from __future__ import annotations

import json
import os
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

import pytest
from optcache import _web_identity
from optcache._manifest import Place
from optcache._sigv4 import Credentials, Scope, authorization
from optcache._source_reads import Source
from optcache._sources import Served, sources_of
from recording_server import RecordingHandler, RecordingServer, running

BODY = b"four"
NAME = "vision/images"
KEYS = Credentials("AKIAEXAMPLE", "a secret/with+all=")
BUCKET = {"region": "eu-west-1"}


class Store(RecordingServer):
    """Answers by `refuse` once, or with an object; gives keys by POST, and knows the forms."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.forms: list[dict[str, str]] = []
        self.refuse: list[tuple[int, dict[str, str], bytes]] = []
        self.expires_s = 3600


class Handler(RecordingHandler):
    server: Store

    def answer(self) -> None:
        if not self._refuses():
            self.say(200, BODY)

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.forms.append(dict(urllib.parse.parse_qsl(form)))
        if self._refuses():
            return
        ends = time.gmtime(time.time() + self.server.expires_s)
        number = len(self.server.forms)
        text = (
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
            f"<AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>s{number}</SecretAccessKey>"
            f"<SessionToken>t{number}</SessionToken>"
            f"<Expiration>{time.strftime('%Y-%m-%dT%H:%M:%SZ', ends)}</Expiration>"
            "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
        self.say(200, text.encode())

    def _refuses(self) -> bool:
        if not self.server.refuse:
            return False
        status, headers, body = self.server.refuse.pop(0)
        self.say(status, body, **headers)
        return True


@pytest.fixture
def store() -> Iterator[Store]:
    with running(Store()) as server:
        yield server


@pytest.fixture(autouse=True)
def no_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the tester's own."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "OPTCACHE_FALLBACK", "KUBERNETES_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    _web_identity._kept.clear()


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def write_s3_keys(folder: Path, keys: Credentials = KEYS) -> None:
    write(folder, accessKeyID=keys.access_key_id, secretAccessKey=keys.secret_access_key)


def served(store: Store, tmp_path: Path, **way: Any) -> Served:
    """As the list of a sidecar of this user has it."""
    entry = {"name": NAME, "kept": "keys stay", "withKeys": {"url": store.url, **way}}
    path = tmp_path / "sock.sources"
    path.write_text(json.dumps({"version": 1, "datasets": [entry]}))
    (found,) = sources_of(str(tmp_path / "sock"))
    return found


def fetch(source: Optional[Source], path: str = "a b.png") -> bytes:
    assert source is not None
    return source.fetch(Place(path, len(BODY), 0, ""), 0, len(BODY))


def signed_by(asked: dict[str, str]) -> str:
    """The key ID of a request."""
    return asked["authorization"].partition("Credential=")[2].partition("/")[0]


def check_signature(asked: dict[str, str], keys: Credentials) -> None:
    names = asked["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: asked[name] for name in names}
    assert {"host", "x-amz-date", "x-amz-content-sha256"} <= headers.keys()
    scope = Scope(asked["x-amz-date"], "eu-west-1")
    assert asked["authorization"] == authorization("GET", asked["path"], headers, scope, keys)
