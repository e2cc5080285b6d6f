"""Sources that need keys, read without the sidecar: which keys a process uses, and which it does not."""

from __future__ import annotations

import base64
import json
import os
import threading
import time
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import Server, list_source

import optcache
from optcache import _web_identity
from optcache._faults import SourceFaltersError
from optcache._http_reads import HttpSource
from optcache._manifest import Place
from optcache._sigv4 import Credentials, Scope, authorization
from optcache._source_keys import why_kept
from optcache._source_reads import Source, source_of
from optcache._sources import Served, WithKeys, sources_of

BODY = b"four"
NAME = "vision/images"
KEYS = Credentials("AKIAEXAMPLE", "a secret/with+all=")
BUCKET = {"region": "eu-west-1"}


class Store(ThreadingHTTPServer):
    """Knows what it was asked, and answers by `refuse` once, or with an object; gives keys by POST."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[dict[str, str]] = []
        self.forms: list[dict[str, str]] = []
        self.refuse: list[tuple[int, dict[str, str], bytes]] = []
        self.expires_s = 3600

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append({"path": self.path, **headers})
        self._say(*(self.server.refuse.pop(0) if self.server.refuse else (200, {}, BODY)))

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.forms.append(dict(urllib.parse.parse_qsl(form)))
        if self.server.refuse:
            self._say(*self.server.refuse.pop(0))
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
        self._say(200, {}, text.encode())

    def _say(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def store() -> Iterator[Store]:
    server = Store()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tester's own keys."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "OPTCACHE_FALLBACK", "KUBERNETES_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    _web_identity._kept.clear()


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the dataset's keys, as the injector mounts it in a pod."""
    folder = tmp_path / "keys" / NAME
    folder.mkdir(parents=True)
    monkeypatch.setenv("OPTCACHE_FALLBACK_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    return folder


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


# --- Keys that the pod asks for


@pytest.mark.parametrize(
    "files, sent",
    [
        ({"token": "a.b"}, "Bearer a.b"),
        (
            {"username": "me", "password": "p:w é"},
            "Basic " + base64.b64encode("me:p:w é".encode()).decode(),
        ),
    ],
)
def test_a_web_server(
    store: Store, tmp_path: Path, given: Path, files: dict[str, str], sent: str
) -> None:
    write(given, **files)
    assert fetch(source_of(served(store, tmp_path))) == BODY
    assert store.asked[0]["authorization"] == sent


def test_a_bucket(store: Store, tmp_path: Path, given: Path) -> None:
    write_s3_keys(given)
    write(given, sessionToken="session/token=")
    assert fetch(source_of(served(store, tmp_path, **BUCKET, requesterPays=True))) == BODY
    (asked,) = store.asked
    assert asked["path"] == "/data/a%20b.png"
    assert asked["x-amz-security-token"] == "session/token="
    assert asked["x-amz-request-payer"] == "requester"
    check_signature(asked, KEYS)


def test_keys_that_change_count_at_once(store: Store, tmp_path: Path, given: Path) -> None:
    """As the kubelet brings a changed Secret: a folder, to which a link is turned."""
    for number in ("1", "2"):
        write_s3_keys(given / f"..{number}", Credentials(f"AKIA{number}", f"s{number}"))
    (given / "..data").symlink_to("..1")
    source = source_of(served(store, tmp_path, **BUCKET))
    fetch(source)
    (given / "new").symlink_to("..2")
    (given / "new").rename(given / "..data")
    fetch(source)
    assert [signed_by(asked) for asked in store.asked] == ["AKIA1", "AKIA2"]
    check_signature(store.asked[1], Credentials("AKIA2", "s2"))


def test_a_customers_key_goes_along(store: Store, tmp_path: Path, given: Path) -> None:
    write_s3_keys(given)
    key = base64.b64encode(bytes(32)).decode()
    write(given, sseCustomerKey=key)
    fetch(source_of(served(store, tmp_path, **BUCKET)))
    begin = "x-amz-server-side-encryption-customer"
    assert store.asked[0][f"{begin}-algorithm"] == "AES256"
    assert store.asked[0][f"{begin}-key"] == key
    assert store.asked[0][f"{begin}-key-md5"] == "cLyPS3KoaSFGi/joRB3OUQ=="
    check_signature(store.asked[0], KEYS)
    elsewhere = Served(NAME, kept="k", with_keys=WithKeys("http://store.example.com/b", "r"))
    with pytest.raises(SourceFaltersError, match="sseCustomerKey needs https"):
        fetch(source_of(elsewhere))
    for name in ("accessKeyID", "secretAccessKey"):
        (given / name).unlink()
    fetch(source_of(served(store, tmp_path, **BUCKET)))  # as the sidecar: without a signature
    assert "authorization" not in store.asked[1]
    assert store.asked[1][f"{begin}-key"] == key


def test_keys_go_to_the_server_of_the_address_alone(
    store: Store, tmp_path: Path, given: Path
) -> None:
    write(given, token="a.b")
    other = Store()
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        store.refuse = [(302, {"Location": f"{other.url}/a"}, b"")]
        assert fetch(source_of(served(store, tmp_path))) == BODY
        assert "authorization" not in other.asked[0]
        store.refuse = [(302, {"Location": "/b"}, b"")]
        assert fetch(source_of(served(store, tmp_path))) == BODY
        assert "authorization" in store.asked[-1]
    finally:
        other.shutdown()
        other.server_close()
    write_s3_keys(given)
    store.refuse = [(307, {"Location": "/b"}, b"<Error><Code>TemporaryRedirect</Code></Error>")]
    with pytest.raises(OSError, match="HTTP 307: TemporaryRedirect"):
        fetch(source_of(served(store, tmp_path, **BUCKET)))


WRONG = {
    "nothing": ({}, {}, "no token, no username"),
    "half": ({"username": "me"}, {}, "one is missing"),
    "both": ({"username": "hush", "password": "hush", "token": "hush"}, {}, "leave one out"),
    "colon": ({"username": "hush:me", "password": "hush"}, {}, "no colon"),
    "two lines": ({"token": "hush\nhush"}, {}, "not one line"),
    "no keys": ({}, BUCKET, "no accessKeyID"),
    "no secret": ({"accessKeyID": "hush"}, BUCKET, "one is missing"),
    "control": ({"accessKeyID": "hush", "secretAccessKey": "hu\tsh"}, BUCKET, "not one line"),
    "token alone": ({"sessionToken": "hush"}, BUCKET, "but no accessKeyID"),
    "customer's": ({"sseCustomerKey": "hush"}, BUCKET, "base64 of 32 bytes"),
}


@pytest.mark.parametrize("files, way, says", WRONG.values(), ids=WRONG)
def test_wrong_keys_are_waited_for_and_not_repeated(
    store: Store,
    tmp_path: Path,
    given: Path,
    files: dict[str, str],
    way: dict[str, str],
    says: str,
) -> None:
    write(given, **files)
    with pytest.raises(SourceFaltersError, match=says) as caught:
        fetch(source_of(served(store, tmp_path, **way)))
    assert str(given) in str(caught.value) and "hush" not in str(caught.value)
    assert not store.asked


def test_keys_that_are_still_to_come(store: Store, tmp_path: Path, given: Path) -> None:
    given.rmdir()
    for way in ({}, BUCKET):
        source = source_of(served(store, tmp_path, keysFolder="/etc/optcache/keys", **way))
        with pytest.raises(SourceFaltersError, match=f"{given}: there is no such folder"):
            fetch(source)
    write(given)
    with pytest.raises(SourceFaltersError, match=f"{given}: there is no accessKeyID"):
        fetch(source)


def test_a_refusal(store: Store, tmp_path: Path, given: Path) -> None:
    write_s3_keys(given)
    source = source_of(served(store, tmp_path, **BUCKET))
    says = "<Error><Code>{}</Code><Message>AKIAEXAMPLE</Message></Error>"
    store.refuse = [(400, {}, says.format("ExpiredToken").encode())]
    with pytest.raises(SourceFaltersError, match="HTTP 400: ExpiredToken"):
        fetch(source)
    store.refuse = [(404, {}, says.format("NoSuchKey").encode())]
    with pytest.raises(OSError, match="^HTTP 404: NoSuchKey$"):
        fetch(source)


@pytest.mark.parametrize("status, code", [(401, "Unauthorized"), (403, "InvalidAccessKeyId")])
def test_keys_that_are_refused_are_waited_for(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    """They may be others than the sidecar's, as those of a training process for its checkpoints."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACHECKPOINTS")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    source = source_of(served(store, tmp_path, **BUCKET, ambientKeys=True))
    store.refuse = [(status, {}, f"<Error><Code>{code}</Code></Error>".encode())]
    with pytest.raises(SourceFaltersError, match=f"HTTP {status}: {code}$"):
        fetch(source)
    assert fetch(source) == BODY


def test_a_refusal_without_keys(store: Store, given: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="^HTTP 403$"):
        store.refuse = [(403, {}, b"")]
        fetch(source_of(Served(NAME, url=store.url)))
    write(given, token="a.b")
    other = Store()
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:  # where a redirection leads without them
        other.refuse = [(403, {}, b"")]
        store.refuse = [(302, {"Location": f"{other.url}/a"}, b"")]
        with pytest.raises(OSError, match="^HTTP 403$"):
            fetch(source_of(served(store, tmp_path)))
    finally:
        other.shutdown()
        other.server_close()


# --- A web identity


def by_role(store: Store, tmp_path: Path, **more: Any) -> Optional[Source]:
    sts = store.url.removesuffix("/data")
    return source_of(
        served(store, tmp_path, **BUCKET, stsEndpoint=sts, roleARN="arn:role", **more)
    )


def test_a_role(store: Store, tmp_path: Path, given: Path) -> None:
    given.rmdir()
    write(given.parents[1] / "_identity", **{"sts-token": "a.b.c"})
    source = by_role(store, tmp_path)
    fetch(source)
    fetch(source)
    (form,) = store.forms
    assert form == {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleSessionName": "optcache",
        "WebIdentityToken": "a.b.c",
        "RoleArn": "arn:role",
    }
    assert [asked["x-amz-security-token"] for asked in store.asked] == ["t1", "t1"]
    check_signature(store.asked[1], Credentials("ASIA1", "s1", "t1"))
    store.refuse = [(403, {}, b"<Error><Code>ExpiredToken</Code></Error>")]
    with pytest.raises(SourceFaltersError):
        fetch(source)
    fetch(source)
    assert signed_by(store.asked[-1]) == "ASIA2"


def test_newer_keys_are_not_forgotten_with_old_ones(
    store: Store, tmp_path: Path, given: Path
) -> None:
    """As where several threads hear at once that the same keys have expired."""
    given.rmdir()
    write(given.parents[1] / "_identity", **{"sts-token": "a.b.c"})
    source = by_role(store, tmp_path)
    assert isinstance(source, HttpSource) and source.keys is not None
    proofs = [source.keys.prove(f"{store.url}/a") for _ in range(2)]
    for proof in proofs:
        proof.forget()
        fetch(source)
    assert [signed_by(asked) for asked in store.asked] == ["ASIA2", "ASIA2"]


def test_a_token_service_that_fails(
    store: Store, tmp_path: Path, given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that are good still count meanwhile."""
    given.rmdir()
    write(given.parents[1] / "_identity", **{"sts-token": "hush"})
    source = by_role(store, tmp_path)
    refusal = (403, {}, b"<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>")
    store.refuse = [refusal]
    with pytest.raises(SourceFaltersError, match="HTTP 403 AccessDenied$") as caught:
        fetch(source)
    assert "hush" not in str(caught.value)
    monkeypatch.setattr(_web_identity, "_ASK_AGAIN_S", 0.0)
    store.expires_s = 100  # so renewed at once
    fetch(source)
    store.refuse = [refusal]
    fetch(source)
    assert [signed_by(asked) for asked in store.asked] == ["ASIA2", "ASIA2"]
    store.refuse = [(200, {}, b"<html>hush</html>")]
    _web_identity._kept.clear()
    with pytest.raises(SourceFaltersError, match="the answer has no Credentials") as caught:
        fetch(source)
    assert "hush" not in str(caught.value)


def test_a_tokens_file_that_a_list_names_is_not_sent(
    store: Store, tmp_path: Path, given: Path
) -> None:
    """In a pod: it may be that of the ServiceAccount."""
    write(tmp_path, token="hush")
    source = by_role(store, tmp_path, tokenFile=str(tmp_path / "token"))
    with pytest.raises(SourceFaltersError):
        fetch(source)
    assert not store.forms


# --- Keys that a process has without being given them


def test_a_folder_of_our_own_sidecar(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one machine; in a pod another file may be at that path."""
    write(tmp_path / "own", token="a.b")
    found = served(store, tmp_path, keysFolder=str(tmp_path / "own"))
    assert found.with_keys is not None and found.with_keys.is_ours
    fetch(source_of(found))
    assert store.asked[0]["authorization"] == "Bearer a.b"
    others = found._replace(with_keys=found.with_keys._replace(is_ours=False))
    assert source_of(others) is None
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert source_of(found) is None


def test_the_surroundings(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = served(store, tmp_path, **BUCKET, ambientKeys=True)
    assert found.with_keys is not None
    assert source_of(found) is None
    file = tmp_path / "credentials"
    file.write_text(
        "[other]\naws_access_key_id = x\n\n[lab]\n"
        f"aws_access_key_id = {KEYS.access_key_id}  # ours\n"
        f"aws_secret_access_key={KEYS.secret_access_key}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    assert source_of(found) is None
    monkeypatch.setenv("AWS_PROFILE", "lab")
    fetch(source_of(found))
    check_signature(store.asked[0], KEYS)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    fetch(source_of(found))
    check_signature(store.asked[1], Credentials("AKIAENV", "s"))
    # Those of the S3 endpoint open nothing.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "optcache-placeholder")
    fetch(source_of(found))
    assert signed_by(store.asked[2]) == KEYS.access_key_id
    not_asked_for = found.with_keys._replace(ambient=False), found.with_keys._replace(is_ours=False)
    for way in not_asked_for:
        assert source_of(found._replace(with_keys=way)) is None


def test_the_surroundings_do_not_stand_in_for_a_folder(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while it is mounted again: other keys would go to the store meanwhile."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    folder = tmp_path / "own"
    found = served(store, tmp_path, **BUCKET, ambientKeys=True, keysFolder=str(folder))
    assert source_of(found) is None
    write(folder, sseCustomerKey=base64.b64encode(bytes(32)).decode())
    source = source_of(found)
    fetch(source)
    assert signed_by(store.asked[0]) == "AKIAENV"
    folder.rename(tmp_path / "away")
    with pytest.raises(SourceFaltersError, match=f"{folder}: there is no such folder"):
        fetch(source)
    assert len(store.asked) == 1


def test_the_surroundings_do_not_count_in_a_list_of_another_user(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose server would get them; what lies in the folder for this dataset is meant for it."""
    write(tmp_path, identity="hush")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "identity"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("OPTCACHE_FALLBACK_KEYS", str(tmp_path / "keys"))
    sts = store.url.removesuffix("/data")
    found = served(store, tmp_path, **BUCKET, ambientKeys=True, stsEndpoint=sts)
    assert found.with_keys is not None
    found = found._replace(with_keys=found.with_keys._replace(is_ours=False))
    assert source_of(found) is None
    write_s3_keys(tmp_path / "keys" / NAME)
    fetch(source_of(found))
    assert signed_by(store.asked[0]) == KEYS.access_key_id and not store.forms


def test_what_cannot_be_read_is_not_given(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a process would wait for its source with nothing to read it by."""
    folder, sts = tmp_path / "own", store.url.removesuffix("/data")
    write(folder, token="a.b")
    ways = [
        {"keysFolder": str(folder)},
        {**BUCKET, "stsEndpoint": sts, "tokenFile": str(folder / "token")},
    ]
    lists = [served(store, tmp_path, **way) for way in ways]
    assert all(map(source_of, lists))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not any(map(source_of, lists))


def test_in_a_pod_the_surroundings_count_if_it_asks(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    found = served(store, tmp_path, **BUCKET, ambientKeys=True)
    assert source_of(found) is None
    monkeypatch.setenv("OPTCACHE_FALLBACK_KEYS", str(tmp_path))
    fetch(source_of(found))
    assert signed_by(store.asked[0]) == "AKIAENV"


def test_a_broken_file_of_aws_is_not_repeated(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credentials"
    file.write_text("[default]\nhush\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    source = source_of(served(store, tmp_path, **BUCKET, ambientKeys=True))
    with pytest.raises(SourceFaltersError, match=str(file)) as caught:
        fetch(source)
    assert "hush" not in str(caught.value)


# --- What is said


def test_what_would_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    way = WithKeys("https://host/b", "eu-west-1", ambient=True, is_ours=True)
    kept = Served(NAME, kept="keys stay with the sidecar", with_keys=way)
    begin = "Its source is not read instead: keys stay with the sidecar. "
    assert why_kept(kept) == (
        f"{begin}OPTCACHE_FALLBACK_KEYS=FOLDER gives them to this process, in FOLDER/{NAME}, and "
        "so do AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )
    assert why_kept(kept._replace(with_keys=way._replace(is_ours=False))) == (
        f"{begin}OPTCACHE_FALLBACK_KEYS=FOLDER gives them to this process, in FOLDER/{NAME}; the "
        "sidecar's user chooses the server that gets them"
    )
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert why_kept(kept) == (
        f"{begin}The pod's annotation optcache.io/fallback-keys: \"true\" gives them to its "
        "containers, too"
    )
    assert why_kept(Served(NAME, kept="x")) == "Its source is not read instead: x"
    monkeypatch.setenv("OPTCACHE_FALLBACK_KEYS", str(tmp_path))
    nothing = f"{begin}This process finds none in {tmp_path}/{NAME}"
    assert why_kept(kept) == f"{nothing}, in its environment and in AWS's files"
    assert why_kept(kept._replace(with_keys=way._replace(ambient=False))) == nothing
    write_s3_keys(tmp_path / NAME)
    assert why_kept(kept) == why_kept(None) == why_kept(Served(NAME, path="/data")) == ""


def test_a_reader_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    way = {"url": "http://127.0.0.1:1/data"}
    list_source(server, path="", kept="keys stay with the sidecar", withKeys=way)
    data = optcache.Dataset(wait=0.2)
    server.kill()
    with pytest.raises(optcache.SidecarUnavailableError, match=r"annotation optcache.io/fallback-k"):
        data[0]
