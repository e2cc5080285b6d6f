"""The images that tests put into the cluster: our programs, a store, a training job."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from cluster import programs, settings
from cluster.errors import ClusterError
from cluster.host import run
from cluster.images import Image, ImageStore
from cluster.settings import REPOSITORY, Paths

CONTAINERS = settings.HERE / "containers"
# Folder of the component: its program. The image is PREFIX and optcache/FOLDER.
COMPONENTS = {
    "cache-node": "optcache-node",
    "operator": "optcache-operator",
    "sidecar": "optcache-sidecar",
}
# Of all of them, by the chart's image.prefix.
PREFIX = "optcache.test/"
TAG = "test"
FROM_SOURCES_TAG = "sources"
STORE = "optcache.test/store:1"
BUCKET_SERVER = "optcache.test/s3:1"
TRAINING = "optcache.test/training:1"


@dataclass(frozen=True)
class Tree:
    """Sources, the programs that are built from them, and the tag of their images."""

    root: Path
    programs: Path
    tag: str


def present() -> Tree:
    folder = os.environ.get("OPTCACHE_BIN_DIR", REPOSITORY / "build" / "dev" / "bin")
    return Tree(REPOSITORY, Path(folder), TAG)


def component(name: str, store: ImageStore, paths: Paths, tree: Optional[Tree] = None) -> Image:
    """PREFIX and `optcache/NAME`, of the program that is built already; its Dockerfile's target `prebuilt`."""
    tree = tree or present()
    program = tree.programs / COMPONENTS[name]
    if not program.exists():
        raise ClusterError(f"{program} is not there: ./dev build, or set OPTCACHE_BIN_DIR")
    context = paths.images / f"{name}-{tree.tag}-files"
    stamp = context.with_suffix(".stamp")
    status = program.stat()
    state = f"{program} {status.st_size} {status.st_mtime_ns}"
    if not (stamp.exists() and stamp.read_text() == state):
        shutil.rmtree(context, ignore_errors=True)
        base_packages = paths.images / "base-packages"
        if not base_packages.exists():
            base_packages.write_text("\n".join(store.base_packages()) + "\n")
        run([tree.root / "scripts" / "image-files.sh", program, context, base_packages])
        stamp.write_text(state)
    if name == "sidecar":
        package = tree.root / "sidecar" / "python" / "src"
        _copy_package(package, context / "usr" / "share" / "optcache" / "python")
    dockerfile = tree.root / name / "Dockerfile"
    return Image(f"{PREFIX}optcache/{name}:{tree.tag}", context, dockerfile, target="prebuilt")


def from_sources(name: str) -> Image:
    """The same as users make it: the whole of its Dockerfile, which compiles for many minutes."""
    kept = (REPOSITORY / ".dockerignore").read_text().splitlines()
    inputs = [REPOSITORY / line[1:] for line in kept if line.startswith("!")]
    dockerfile = REPOSITORY / name / "Dockerfile"
    return Image(f"{PREFIX}optcache/{name}:{FROM_SOURCES_TAG}", REPOSITORY, dockerfile, inputs)


def training() -> Image:
    folder = CONTAINERS / "training"
    return Image(TRAINING, folder, folder / "Dockerfile")


def object_store(paths: Paths) -> Image:
    """nginx with the images of the demo."""
    # Not at the top: torchvision takes seconds to load.
    from demo.dataset import open_dataset, unpack_default

    dataset = open_dataset(unpack_default(REPOSITORY / "build" / "demo-data"))
    context = paths.images / "store-files"
    if not (context / "images").is_dir():
        fresh = context / "images.new"
        shutil.rmtree(fresh, ignore_errors=True)
        for name in dataset.paths:
            target = fresh / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(dataset.root / name, target)
        fresh.rename(context / "images")
    dataset.write_listing(context / "images" / "index.txt")
    shutil.copy2(CONTAINERS / "store" / "nginx.conf", context)
    return Image(STORE, context, CONTAINERS / "store" / "Dockerfile")


def bucket_server(paths: Paths) -> Image:
    """versitygw with the same images as files of a bucket."""
    programs.ensure(paths, ["s3"])
    images = object_store(paths).context / "images"
    context = paths.images / "s3-files"
    context.mkdir(parents=True, exist_ok=True)
    shutil.copy2(paths.program("versitygw"), context)
    if not (context / "images").is_dir():
        fresh = context / "images.new"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(images, fresh, copy_function=os.link, ignore=shutil.ignore_patterns("index.txt"))
        fresh.rename(context / "images")
    return Image(BUCKET_SERVER, context, CONTAINERS / "s3" / "Dockerfile")


def of_all_cases(paths: Paths) -> list[Image]:
    """What nearly every case uses, and what does not change with our programs."""
    return [object_store(paths), training()]


def _copy_package(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


def all_images(store: ImageStore, paths: Paths) -> dict[str, Callable[[], Image]]:
    """By the name that `./dev cluster images` knows."""

    def of(name: str) -> Callable[[], Image]:
        return lambda: component(name, store, paths)

    images = {name: of(name) for name in COMPONENTS}
    return {**images, "store": lambda: object_store(paths), "s3": lambda: bucket_server(paths), "training": training}
