"""`optcache manifest build` numbers samples as the installed torchvision's ImageFolder does."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import random
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import manifest_reader
import pytest

datasets = pytest.importorskip("torchvision.datasets")

CLI = os.environ.get("OPTCACHE_CLI", "")
pytestmark = pytest.mark.skipif(not CLI, reason="OPTCACHE_CLI is not set")

Run = subprocess.CompletedProcess[str]


def optcache(*arguments: str | Path) -> Run:
    return subprocess.run(
        [CLI, "manifest", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=180,
        check=False,
    )


def build(source: str | Path, out: Path, *more: str) -> manifest_reader.Manifest:
    run = optcache("build", "--source", source, "-o", out, *more)
    assert run.returncode == 0, run.stderr
    return manifest_reader.read(out)


def write(root: Path, name: str | bytes, content: bytes = b"x") -> None:
    path = os.path.join(os.fsencode(root), os.fsencode(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def image_folder(root: Path) -> tuple[list[bytes], list[int], list[bytes]]:
    """Relative paths, classes of the samples and class names, as torchvision has them."""
    folder = datasets.ImageFolder(str(root))
    paths = [os.path.relpath(os.fsencode(path), os.fsencode(root)) for path, _ in folder.samples]
    return paths, [c for _, c in folder.samples], [os.fsencode(name) for name in folder.classes]


def plain(root: Path) -> None:
    for name in ("cat/1.jpg", "cat/10.jpg", "cat/2.jpg", "dog/1.png", "bird/x.webp"):
        write(root, name)


def upper_and_lower_case(root: Path) -> None:
    for name in ("a/z.JPG", "A/b.jpg", "a/B.JpEg", "a/b.tiff", "B/1.PPM", "b/1.Bmp", "b/A.PGM"):
        write(root, name)


def blanks_and_dashes(root: Path) -> None:
    for folder in ("a", "a b", "a-x", "a.b", "a_", "a!"):
        for name in ("1.jpg", " 1.jpg", "1 .jpg", "1-2.jpg", "b/1.jpg", "b c/1.jpg", "b-c/1.jpg"):
            write(root, f"{folder}/{name}")


def nested(root: Path) -> None:
    for name in ("a/z.jpg", "a/b/1.jpg", "a/a-x/1.jpg", "a/b/c/2.jpg", "a/b.jpg", "a/b c/3.jpg"):
        write(root, f"c/{name}")
        write(root, f"d/e/{name}")


def mixed_files(root: Path) -> None:
    for name in ("1.jpg", "2.txt", "3.gif", ".hidden.jpg", ".jpg", "jpg", "4.jpg.bak", "5.tif"):
        write(root, f"a/{name}")
        write(root, f"a/.dir/{name}")
    write(root, "top.jpg")
    write(root, "notes.txt")


def links(root: Path) -> None:
    write(root, "real/1.jpg")
    write(root, "real/deep/2.jpg")
    os.symlink("real", root / "linked")
    os.symlink("nowhere.jpg", root / "real" / "0dangling.jpg")
    os.symlink("../real/deep", root / "real" / "deep" / ".." / "sideways")
    os.symlink("nowhere", root / "dangling_folder")
    os.symlink("1.jpg", root / "real" / "3.jpg")


def bytes_that_are_no_text(root: Path) -> None:
    names = [b"\x80", b"\xc3\xa9", b"\xff", b"\xe2\x82", b"\xed\x9f\xbf", b"\xee\x80\x80", b"z"]
    names += [b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x82\xac", b"a\nb", b"q\"'"]
    for folder in names:
        for name in names:
            write(root, folder + b"/" + name + b".jpg")
            write(root, folder + b"/" + name + b"/1.jpg")


def other_kinds_of_files(root: Path) -> None:
    write(root, "a/1.jpg")
    os.mkfifo(root / "a" / "pipe.jpg")
    (root / "a" / "folder.jpg").mkdir()
    write(root, "a/folder.jpg/2.jpg")


def random_tree(seed: int, root: Path) -> None:
    generator = random.Random(seed)
    letters = [b"a", b"A", b"b", b" ", b"-", b".x", b"_", b"\xc3\xa9", b"\x99", b"0"]
    endings = [b".jpg", b".PNG", b".txt", b".webp", b""]

    def name() -> bytes:
        return b"n" + b"".join(generator.choices(letters, k=generator.randrange(4)))

    for _ in range(200):
        folders = [name() for _ in range(generator.randrange(1, 4))]
        target = b"/".join([*folders, b"f" + name() + generator.choice(endings)])
        full = os.path.join(os.fsencode(root), target)
        if not os.path.isdir(full):
            write(root, target, bytes(generator.randrange(100)))
    for entry in os.scandir(os.fsencode(root)):
        write(root, entry.name + b"/fn.jpg")  # each class has an image


TREES: list[Callable[[Path], None]] = [
    plain,
    upper_and_lower_case,
    blanks_and_dashes,
    nested,
    mixed_files,
    links,
    bytes_that_are_no_text,
    other_kinds_of_files,
    *(partial(random_tree, seed) for seed in range(8)),
]


def tree_name(tree: Callable[[Path], None]) -> str:
    return f"random{tree.args[0]}" if isinstance(tree, partial) else tree.__name__


@pytest.mark.parametrize("tree", TREES, ids=tree_name)
def test_numbers_as_image_folder(tree: Callable[[Path], None], tmp_path: Path) -> None:
    root = tmp_path / "data set"
    root.mkdir()
    tree(root)
    paths, class_of, class_names = image_folder(root)
    manifest = build(root, tmp_path / "m")
    assert manifest.paths == paths
    assert manifest.class_of == class_of
    assert manifest.class_names == class_names
    for path, size, modified in zip(manifest.paths, manifest.sizes, manifest.modified_ns):
        full = os.path.join(os.fsencode(root), path)
        if os.path.isfile(full):
            status = os.stat(full)
            assert (size, modified) == (status.st_size, status.st_mtime_ns)
        else:
            assert (size, modified) == (0, 0)


@pytest.mark.parametrize("order", ["image-folder", None])
def test_refuses_what_image_folder_refuses(order: str | None, tmp_path: Path) -> None:
    write(tmp_path, "data/a/1.jpg")
    write(tmp_path, "data/b/1.txt")
    with pytest.raises(FileNotFoundError):
        datasets.ImageFolder(str(tmp_path / "data"))
    more = [] if order is None else ["--order", order]
    run = optcache("build", "--source", tmp_path / "data", "-o", tmp_path / "m", *more)
    assert run.returncode == 1
    assert "class folder without an image" in run.stderr
    assert ": b." in run.stderr
    assert not (tmp_path / "m").exists()


def test_include_is_image_folders_is_valid_file(tmp_path: Path) -> None:
    root = tmp_path / "data"
    for name in ("a/1.npy", "a/2.jpg", "b/c/3.npy"):
        write(root, name)
    folder = datasets.DatasetFolder(str(root), lambda path: path, extensions=(".npy",))
    manifest = build(root, tmp_path / "m", "--include", "**/*.npy")
    assert [os.fsencode(path) for path, _ in folder.samples] == [
        os.path.join(os.fsencode(root), path) for path in manifest.paths
    ]


def test_path_order_is_pythons_sorted(tmp_path: Path) -> None:
    root = tmp_path / "data"
    names = [b"b", b"a/x", b"a-b", b"\x80", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xff"]
    for name in names:
        write(root, name)
    manifest = build(root, tmp_path / "m", "--order", "path")
    assert manifest.paths == [os.fsencode(name) for name in sorted(map(os.fsdecode, names))]
    assert manifest.class_of == []


def test_the_digest_is_the_files_sha256(tmp_path: Path) -> None:
    plain(tmp_path / "data")
    build(tmp_path / "data", tmp_path / "m")
    run = optcache("show", tmp_path / "m", "--output", "json")
    shown = json.loads(run.stdout)
    assert shown["digest"] == "sha256:" + hashlib.sha256((tmp_path / "m").read_bytes()).hexdigest()
    assert (shown["samples"], shown["classes"], shown["bytes"]) == (5, 3, 5)
    assert optcache("show", tmp_path / "m", "--paths").stdout.splitlines()[0] == "bird/x.webp"


class FileHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def web_server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    root = tmp_path / "www"
    root.mkdir()
    handler = partial(FileHandler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", root
        server.shutdown()
        thread.join()


def test_a_web_server_is_numbered_like_its_folder(
    web_server: tuple[str, Path], tmp_path: Path
) -> None:
    url, root = web_server
    for name in ("b/x y.jpg", "a/1+2.jpg", "a/50%.jpg", "a-x/#?&.jpg", "é/é.jpg", "a/b/1.png"):
        write(root / "train", name, name.encode())
    found = subprocess.run(
        ["find", ".", "-type", "f"], cwd=root / "train", capture_output=True, check=True
    ).stdout
    paths, class_of, class_names = image_folder(root / "train")
    write(root / "train", "index.txt", found)
    manifest = build(f"{url}/train/", tmp_path / "m")
    assert (manifest.paths, manifest.class_of) == (paths, class_of)
    assert manifest.class_names == class_names
    assert manifest.sizes == [len(path) for path in paths]
    assert optcache("verify", tmp_path / "m", "--source", f"{url}/train").returncode == 0


def damage(file: Path, content: bytes) -> None:
    """Other bytes under the same size and time."""
    before = file.stat()
    assert len(content) == before.st_size
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_verify_compares_contents_where_there_are_digests(tmp_path: Path) -> None:
    root = tmp_path / "data"
    plain(root)
    build(root, tmp_path / "without")
    build(root, tmp_path / "with", "--verify", "Digest")
    assert json.loads(optcache("show", tmp_path / "with", "--output", "json").stdout)["verify"] == "Digest"
    clean = optcache("verify", tmp_path / "with", "--source", root, "--bytes")
    assert (clean.returncode, clean.stdout) == (
        0,
        "unchanged: 5 samples checked, the contents of 5 compared\n",
    )
    damage(root / "cat" / "10.jpg", b"y")
    assert optcache("verify", tmp_path / "with", "--source", root).returncode == 0
    run = optcache("verify", tmp_path / "with", "--source", root, "--bytes")
    assert run.returncode == 1
    assert "other contents: 1\n  cat/10.jpg\n5 samples checked, the contents of 5" in run.stdout
    assert "restore the objects, or build the manifest again" in run.stderr
    run = optcache("verify", tmp_path / "without", "--source", root, "--bytes")
    assert (run.returncode, run.stdout) == (1, "")
    assert f"{tmp_path}/without: the manifest has no digests to compare bytes with" in run.stderr
    assert "build it by `optcache manifest build --verify Digest`" in run.stderr


def test_verify_compares_the_members_of_archives(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with tarfile.open(tmp_path / "data" / "a.tar", "w") as archive:
        for key in ("0001", "0002"):
            for ending in ("cls", "jpg"):
                member = tarfile.TarInfo(f"{key}.{ending}")
                member.size = 4
                archive.addfile(member, io.BytesIO(key.encode()))
    source = ("--source", tmp_path / "data")
    built = optcache("build", *source, "-o", tmp_path / "m", "--format", "tar", "--verify", "Digest")
    assert built.returncode == 0, built.stderr
    verify = ("verify", tmp_path / "m", *source, "--bytes")
    assert optcache(*verify).returncode == 0
    content = bytearray((tmp_path / "data" / "a.tar").read_bytes())
    content[content.rindex(b"0002")] ^= 1  # of its last member's content
    damage(tmp_path / "data" / "a.tar", bytes(content))
    run = optcache(*verify)
    assert run.returncode == 1
    assert "other contents: 1\n  0002 in a.tar\n" in run.stdout


def test_verify_is_checksum_or_digest(tmp_path: Path) -> None:
    plain(tmp_path / "data")
    run = optcache("build", "--source", tmp_path / "data", "-o", tmp_path / "m", "--verify", "MD5")
    assert run.returncode == 1
    assert "--verify MD5: there are Checksum and Digest" in run.stderr


def test_verify_names_what_changed_or_went(tmp_path: Path) -> None:
    root = tmp_path / "data"
    plain(root)
    build(root, tmp_path / "m")
    clean = optcache("verify", tmp_path / "m", "--source", root)
    assert (clean.returncode, clean.stdout) == (0, "unchanged: 5 samples checked\n")
    write(root, "cat/1.jpg", b"longer")
    (root / "dog" / "1.png").unlink()
    run = optcache("verify", tmp_path / "m", "--source", root)
    assert run.returncode == 1
    assert "missing: 1\n  dog/1.png\n" in run.stdout
    assert "cat/1.jpg changed since the manifest was made: size was 1, is 6" in run.stdout
