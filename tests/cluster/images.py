"""Container images, made on this machine by buildah: no registry is asked.

An image is made again when its inputs change, which a digest in its archive's name tells. Archives
lie outside of the checkout (`Paths.images`), and so does buildah's store with the base image.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from cluster.containerd import PAUSE_IMAGE
from cluster.errors import ClusterError
from cluster.host import Word, run
from cluster.settings import DEBIAN_RELEASE, Paths

BASE_IMAGE = "docker.io/library/debian:12-slim"
BUILD_SECONDS = 3600.0
CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
PAUSE_SOURCE = """\
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void quit(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) { signal(SIGINT, quit); signal(SIGTERM, quit); signal(SIGCHLD, reap); for (;;) pause(); }
"""


@dataclass(frozen=True)
class Image:
    reference: str
    context: Path
    dockerfile: Path
    # Files and folders that it is made of; a change of one makes it anew. None: the whole context.
    inputs: Optional[Sequence[Path]] = None
    target: str = ""  # the stage to stop at
    arguments: dict[str, str] = field(default_factory=dict)


class ImageStore:
    def __init__(self, paths: Paths) -> None:
        self._folder = paths.images
        self._environment = {
            "CONTAINERS_CONF": str(self._folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self._folder / "storage.conf"),
        }

    def build(self, image: Image) -> Path:
        """Its archive, made if it is not there as its inputs are now."""
        self._folder.mkdir(parents=True, exist_ok=True)
        archive = self._archive(image)
        with self._locked():
            if not archive.exists():
                self._prepare()
                print(f"cluster: making the image {image.reference}", file=sys.stderr, flush=True)
                self._build(image, archive)
        return archive

    def pause(self) -> Path:
        """The image that holds a pod's namespaces: a program that only sleeps."""
        source = self._folder / "pause"
        source.mkdir(parents=True, exist_ok=True)
        (source / "pause.c").write_text(PAUSE_SOURCE)
        if not (source / "pause").exists():
            run(["gcc", "-static", "-O2", "-o", source / "pause", source / "pause.c"])
        dockerfile = source / "Dockerfile"
        dockerfile.write_text('FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n')
        return self.build(Image(PAUSE_IMAGE, source, dockerfile))

    def base_packages(self) -> list[str]:
        """The Debian packages that the base image has."""
        with self._locked():
            self._prepare()
            container = self._buildah("from", "--pull-never", BASE_IMAGE).strip()
            try:
                words = ["run", "--isolation=chroot", container, "--"]
                return self._buildah(*words, "dpkg-query", "-W", "-f", "${Package}\\n").split()
            finally:
                self._buildah("rm", container)

    def release(self) -> None:
        """Unmounts what buildah, or one that was cut off, has left mounted."""
        lines = Path("/proc/mounts").read_text().splitlines()
        mounted = [line.split(" ")[1] for line in lines if f" {self._folder}/" in line]
        for path in reversed(mounted):
            run(["umount", path], check=False)

    def _archive(self, image: Image) -> Path:
        name = re.sub(r"[^a-z0-9.-]+", "-", image.reference)
        return self._folder / f"{name}.{digest(image)[:16]}.tar"

    def _build(self, image: Image, archive: Path) -> None:
        # Straight into its archive: a layer in buildah's store would be a third copy of it.
        fresh = archive.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        words: list[Word] = ["build", "--isolation=chroot", "--pull-never", "--layers=false"]
        words += ["--quiet", "--disable-compression=false"]  # space is scarcer than time
        words += [f"--build-arg={name}={value}" for name, value in image.arguments.items()]
        if image.target:
            words.append(f"--target={image.target}")
        words += ["--tag", f"oci-archive:{fresh}:{image.reference}"]
        words += ["--file", image.dockerfile, image.context]
        self._buildah(*words)
        for old in self._folder.glob(archive.name.rpartition(".")[0].rpartition(".")[0] + ".*.tar"):
            old.unlink()
        fresh.replace(archive)

    def _prepare(self) -> None:
        """buildah's configuration, and the base image from Debian's packages."""
        store = self._folder / "store"
        (self._folder / "containers.conf").write_text(CONTAINERS_CONF)
        (self._folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\nrunroot = "{store}/run"\ngraphroot = "{store}/graph"\n'
        )
        self._buildah("rm", "--all")  # of builds that were cut off
        have = run(["buildah", "inspect", BASE_IMAGE], check=False, environment=self._environment)
        if have.returncode != 0:
            print(f"cluster: making {BASE_IMAGE} by debootstrap", file=sys.stderr, flush=True)
            self._make_base(self._folder / "base")

    def _make_base(self, root: Path) -> None:
        shutil.rmtree(root, ignore_errors=True)
        words: list[Word] = ["debootstrap", "--variant=minbase", DEBIAN_RELEASE, root, mirror()]
        run(words, seconds=BUILD_SECONDS)
        for leftover in root.glob("var/cache/apt/archives/*.deb"):
            leftover.unlink()
        # As in images from a registry: packages that were installed do not stay as archives.
        keep_none = root / "etc" / "apt" / "apt.conf.d" / "keep-no-archives"
        keep_none.write_text('APT::Keep-Downloaded-Packages "false";\n')
        container = self._buildah("from", "scratch").strip()
        try:
            self._buildah("add", "--quiet", container, f"{root}/", "/")
            self._buildah("config", "--cmd", "bash", container)
            self._buildah("commit", "--quiet", container, BASE_IMAGE)
        finally:
            self._buildah("rm", container)
        shutil.rmtree(root)

    def _buildah(self, *words: Word) -> str:
        command = ["buildah", *words]
        return run(command, seconds=BUILD_SECONDS, environment=self._environment).stdout

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """buildah's store has one user at a time: two builds would both make the base."""
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def mirror() -> str:
    """Where this machine's own packages come from."""
    filters = ["Created-By: Packages", f"Codename: {DEBIAN_RELEASE}", "Component: main", "Label: Debian"]
    lines = run(["apt-get", "indextargets", "--format", "$(SITE)", *filters]).stdout.split()
    if not lines:
        raise ClusterError(f"apt knows no mirror of Debian {DEBIAN_RELEASE}: run apt-get update")
    return lines[0]


def digest(image: Image) -> str:
    """Of all that it is made of: names, modes and contents."""
    state = hashlib.sha256()
    for word in (image.reference, image.target, *sorted(image.arguments.items())):
        state.update(repr(word).encode())
    for root in [image.dockerfile, *(image.inputs or [image.context])]:
        for path in _files(root):
            status = path.lstat()
            state.update(f"{path.relative_to(root.parent)} {status.st_mode}\0".encode())
            state.update(str(path.readlink()).encode() if path.is_symlink() else path.read_bytes())
    return state.hexdigest()


def _files(root: Path) -> list[Path]:
    if not root.is_dir():
        return [root]
    return sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file())
