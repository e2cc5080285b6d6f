"""Sources that need keys, read without the sidecar, by keys that a process has without being given
them; and what is said where it has none.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

import optcache
import pytest
from conftest import Server, list_source
from key_store import (
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
from optcache._faults import SourceFaltersError
from optcache._sigv4 import Credentials
from optcache._source_keys import why_kept
from optcache._source_reads import source_of
from optcache._sources import Served, WithKeys


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
