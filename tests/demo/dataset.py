"""The images that the ranks read: the default set, or a user's own folder.

The default is a part of the images of the Debian package wesnoth-1.16-data, which has 14,059 real
images of 135 MB. It is downloaded by apt and unpacked, never installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

from harness.dataset import Dataset
from harness.errors import HarnessError
from torchvision.datasets import ImageFolder
from torchvision.datasets.folder import IMG_EXTENSIONS

PACKAGE = "wesnoth-1.16-data"
# Where the images' class folders are in the package: doc, games and icons.
CLASS_FOLDERS = "usr/share"


def open_dataset(root: Path) -> Dataset:
    """Numbers the images under `root` by torchvision itself; the cache must agree with it."""
    if not root.is_dir():
        raise HarnessError(f"{root} is not a folder")
    try:
        samples = [Path(path) for path, _ in ImageFolder(str(root)).samples]
    except FileNotFoundError as error:
        raise HarnessError(
            f"{root}: {str(error).rstrip('.')}. There must be one folder a class with images in "
            "each, as cat/1.jpg and dog/2.jpg; move the images into folders like these"
        ) from error
    paths = tuple(path.relative_to(root).as_posix() for path in samples)
    for name in paths:
        if "\n" in name or "\t" in name:
            raise HarnessError(f"{root / name!r} has a line break or a tab in its name; rename it")
    return Dataset(root, paths, tuple(path.stat().st_size for path in samples))


def part_of(dataset: Dataset, parts: int, root: Path) -> Dataset:
    """One of `parts` parts of the images, as links below `root`: two cores read these in time.

    The first image is not among them. In the default set, the largest is in another half and in
    another quarter, where this one image has 9 % and 17 % of the bytes.
    """
    for path in dataset.paths[parts - 1 :: parts]:
        link = root / path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(dataset.root / path)
    return open_dataset(root)


def unpack_default(cache: Path) -> Path:
    """The default images under `cache`, downloaded and unpacked if they are not there yet."""
    images = cache / PACKAGE
    if not images.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        unpacking = cache / f"{PACKAGE}.unpacking"
        shutil.rmtree(unpacking, ignore_errors=True)
        _extract_images(_download(cache), unpacking)
        unpacking.rename(images)
    return images / CLASS_FOLDERS


def _download(cache: Path) -> Path:
    packages = sorted(cache.glob(f"{PACKAGE}_*.deb"))
    if not packages:
        command = ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", PACKAGE]
        done = subprocess.run(command, cwd=cache, capture_output=True, text=True, check=False)
        packages = sorted(cache.glob(f"{PACKAGE}_*.deb"))
        if done.returncode != 0 or not packages:
            raise HarnessError(
                f"apt-get could not download {PACKAGE}: {done.stderr.strip()}. "
                "Is this Debian, with a network? --dataset PATH uses your own images instead"
            )
    return packages[-1]


def _extract_images(package: Path, target: Path) -> None:
    """The images alone: ImageFolder refuses class folders without any."""
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as unpacker:
        with tarfile.open(fileobj=unpacker.stdout, mode="r|") as archive:
            for member in archive:
                if member.isfile() and member.name.lower().endswith(IMG_EXTENSIONS):
                    archive.extract(member, target, set_attrs=False)
    if unpacker.returncode != 0:
        raise HarnessError(f"dpkg-deb could not unpack {package}; delete it and try again")
