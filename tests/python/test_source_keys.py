"""Sources that need keys, read without the sidecar, by keys that the pod asks for."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
import time
from pathlib import Path
from typing import Any, Optional

import pytest
from key_store import (
    BODY,
    BUCKET,
    KEYS,
    NAME,
    Store,
    check_signature,
    fetch,
    no_other_keys,
    served,
    signed_by,
    store,
    write,
    write_s3_keys,
)
from recording_server import running

from optcache import _web_identity
from optcache._faults import SourceFaltersError
from optcache._http_reads import HttpSource
from optcache._sigv4 import Credentials
from optcache._source_reads import Source, source_of
from optcache._sources import Served, WithKeys


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the dataset's keys, as the injector mounts it in a pod."""
    folder = tmp_path / "keys" / NAME
    folder.mkdir(parents=True)
    monkeypatch.setenv("OPTCACHE_FALLBACK_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    return folder


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


def test_slashes_at_the_end_of_an_address(store: Store, tmp_path: Path, given: Path) -> None:
    """One ends a bucket's prefix, which may have more of its own."""
    write_s3_keys(given)
    write(given, token="a.b")
    bucket = f"{store.url}//"
    fetch(source_of(served(store, tmp_path, **BUCKET, url=bucket)), "a")
    fetch(source_of(Served(NAME, url=bucket)), "a")
    fetch(source_of(served(store, tmp_path)), "a")
    fetch(source_of(Served(NAME, url=store.url)), "a")
    assert [asked["path"] for asked in store.asked] == ["/data//a"] * 2 + ["/data/a"] * 2


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
    with running(Store()) as other:
        store.refuse = [(302, {"Location": f"{other.url}/a"}, b"")]
        assert fetch(source_of(served(store, tmp_path))) == BODY
        assert "authorization" not in other.asked[0]
        store.refuse = [(302, {"Location": "/b"}, b"")]
        assert fetch(source_of(served(store, tmp_path))) == BODY
        assert "authorization" in store.asked[-1]
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
    with running(Store()) as other:  # where a redirection leads without them
        other.refuse = [(403, {}, b"")]
        store.refuse = [(302, {"Location": f"{other.url}/a"}, b"")]
        with pytest.raises(OSError, match="^HTTP 403$"):
            fetch(source_of(served(store, tmp_path)))


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
    store.refuse = [(403, {}, b"<Code>" + b"x" * 101 + b"</Code>")]  # no code is so long
    with pytest.raises(SourceFaltersError, match="HTTP 403$"):
        fetch(source)
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
    assert [signed_by(asked) for asked in store.asked] == ["ASIA3", "ASIA3"]
    store.refuse = [(200, {}, b"<html>hush</html>")]
    _web_identity._kept.clear()
    with pytest.raises(SourceFaltersError, match="the answer has no Credentials") as caught:
        fetch(source)
    assert "hush" not in str(caught.value)


def test_a_token_service_that_trickles(
    store: Store, tmp_path: Path, given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All threads wait for its answer."""
    monkeypatch.setattr(_web_identity, "_SECONDS_MAX", 0.5)
    given.rmdir()
    write(given.parents[1] / "_identity", **{"sts-token": "hush"})
    with socket.create_server(("127.0.0.1", 0)) as slow:

        def answer() -> None:
            connection, _ = slow.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
                for _ in range(100):
                    connection.sendall(b"x")
                    time.sleep(0.1)

        threading.Thread(target=answer, daemon=True).start()
        sts = f"http://127.0.0.1:{slow.getsockname()[1]}"
        source = source_of(served(store, tmp_path, **BUCKET, stsEndpoint=sts))
        begin = time.monotonic()
        with pytest.raises(SourceFaltersError, match="the answer comes too slowly"):
            fetch(source)
        assert time.monotonic() - begin < 5.0


def test_a_tokens_file_that_a_list_names_is_not_sent(
    store: Store, tmp_path: Path, given: Path
) -> None:
    """In a pod: it may be that of the ServiceAccount."""
    write(tmp_path, token="hush")
    source = by_role(store, tmp_path, tokenFile=str(tmp_path / "token"))
    with pytest.raises(SourceFaltersError):
        fetch(source)
    assert not store.forms
