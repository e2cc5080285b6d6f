"""How sources are listed: the pages of web servers, and folders with links and rights."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import optcache
import pytest
from harness.cluster import DATASET, Budget, Cluster, ClusterOptions
from harness.store import LISTING, Store

NAMES = (
    "top.jpg",
    "cat/a b+c?#&%41;'\"<x>.jpg",
    "cat/é.jpg",
    "cat/deep/er/x:y.jpg",
    "dog & co/1.jpg",
    "dog & co/.hidden.jpg",
)

OTHER = 65534  # a user who owns nothing here

Build = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def build(programs: Path, tmp_path: Path) -> Build:
    """build(source, "manifest", more…): writes that manifest."""

    def run(source: str | Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [programs / "optcache", "manifest", "build", "--source", source, "--order", "path"]
        return subprocess.run(
            [*command, "-o", tmp_path / name, *more], capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def files(tmp_path: Path) -> Path:
    root = tmp_path / "files"
    for number, name in enumerate(NAMES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x" * number)
    return root


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def python_server(files: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(files))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def paths_of(programs: Path, manifest: Path) -> list[str]:
    shown = subprocess.run(
        [programs / "optcache", "manifest", "show", "--paths", manifest],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.splitlines()


def test_the_pages_of_nginx_say_the_same_as_a_listing(
    programs: Path, build: Build, files: Path, tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    # nginx shows no hidden files.
    seen = sorted(name for name in NAMES if "/." not in name)
    with Store(files, tmp_path / "store", guard="autoindex on;") as store:
        store.listing_file.write_text("".join(f"{name}\n" for name in seen))
        by_pages = build(store.base_url, "pages", "--listing", "autoindex")
        assert by_pages.returncode == 0, by_pages.stderr
        assert build(store.base_url, "listed", "--listing", LISTING).returncode == 0
    assert paths_of(programs, tmp_path / "pages") == seen
    assert (tmp_path / "pages").read_bytes() == (tmp_path / "listed").read_bytes()


def test_the_pages_of_pythons_server(
    programs: Path, build: Build, python_server: str, tmp_path: Path
) -> None:
    run = build(python_server, "pages", "--listing", "autoindex")
    assert run.returncode == 0, run.stderr
    assert paths_of(programs, tmp_path / "pages") == sorted(NAMES)


def test_a_server_without_such_pages_is_told(build: Build, files: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with Store(files, tmp_path / "store") as store:
        run = build(store.base_url, "pages", "--listing", "autoindex")
    assert run.returncode != 0
    assert "HTTP 403" in run.stderr and "check the address of the source" in run.stderr


def test_a_link_that_leads_out_is_named(build: Build, files: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.jpg").write_text("x")
    (files / "cat" / "link.jpg").symlink_to("../top.jpg")
    assert build(files, "inside").returncode == 0
    (files / "cat" / "out.jpg").symlink_to("../../outside.jpg")
    run = build(files, "outside")
    assert run.returncode != 0
    assert f"{files}/cat/out.jpg: a link that leads out of the source, to " in run.stderr


def test_a_folder_that_may_not_be_read_is_named(programs: Path) -> None:
    """As another user if this one is root, who may read everything."""
    user = OTHER if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory(prefix="oc-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(programs / "optcache", folder)
        closed = folder / "files" / "cat"
        closed.mkdir(parents=True)
        (closed / "1.jpg").write_text("x")
        (folder / "files" / "top.jpg").write_text("x")
        command = [folder / "optcache", "manifest", "build", "--source", folder / "files", "--order", "path"]

        def build() -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*command, "-o", folder / "out" / "manifest"],
                user=user if os.geteuid() == 0 else None,
                extra_groups=[] if os.geteuid() == 0 else None,
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
            )

        (folder / "out").mkdir()
        os.chown(folder / "out", user, -1)
        opened = build()
        closed.chmod(0)
        run = build()
        closed.chmod(0o755)
    assert opened.returncode == 0, opened.stderr
    assert run.returncode != 0
    assert f"{closed}: " in run.stderr
    assert f"it is read as user {user}" in run.stderr


def test_keys_of_a_web_server_lie_in_a_folder(programs: Path, files: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    users = tmp_path / "users"
    users.write_text("reader:{PLAIN}open-sesame\n")
    keys = tmp_path / "keys"
    keys.mkdir()
    for name, text in {"username": "reader", "password": "open-sesame"}.items():
        (keys / name).write_text(text)
    guard = f"auth_basic samples; auth_basic_user_file {users};"
    with Store(files, tmp_path / "store", guard) as store:
        store.listing_file.write_text("".join(f"{name}\n" for name in sorted(NAMES)))
        options = ClusterOptions(
            programs=programs,
            base_url=store.base_url,
            listing=LISTING,
            machines=1,
            budget=Budget(memory=1 << 20, arena=8 << 20, overflow=8 << 20),
            state=tmp_path / "state",
            sockets=tmp_path,
            order="Path",
            keys=keys,
        )
        with Cluster(options, "Optimal", tmp_path) as cluster:
            warmup = [programs / "optcache", "warmup", DATASET, "--state", options.state]
            warmed = subprocess.run(warmup, capture_output=True, text=True, check=False)
            assert warmed.returncode == 0, warmed.stderr
            samples = optcache.Dataset(socket=str(cluster.socket(0)), copy=True)
            for number, name in enumerate(sorted(NAMES, key=str.encode)):
                assert bytes(samples[number]) == (files / name).read_bytes()
