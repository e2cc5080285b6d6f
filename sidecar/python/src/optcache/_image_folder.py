"""torchvision's ImageFolder, read through the sidecar."""

from __future__ import annotations

import array
import functools
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import torch.utils.data

from ._batches import IndexBatch, Sample
from ._roots import dataset_of_root
from ._sample_file import path_of
from .computed import kept, read_kept, resolve, stats_of
from .dataset import Dataset
from .errors import OptcacheError

Transform = Callable[[Any], Any]
# Those of torchvision, which an image need not have installed.
IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def default_loader(source: Union[str, Sample]) -> Any:
    """An image file as a PIL image in RGB, as torchvision's default loader gives it.

    Args:
        source: the file's path, or its bytes.
    """
    from PIL import Image

    with Image.open(source if isinstance(source, str) else io.BytesIO(source)) as image:
        return image.convert("RGB")


class ImageFolder(torch.utils.data.Dataset[tuple[Any, Any]]):
    """torchvision.datasets.ImageFolder, read through the sidecar.

    The same samples under the same indices, the same classes. A sample is (image, target).

    Attributes:
        data: the files' bytes, an optcache.Dataset.
        ids: the sample of `data` that each index is; None: the one of the same number.
        classes: class names, by number.
        class_to_idx: their numbers.
        transform, target_transform, loader, decode: as given.
        kept: where samples are kept that are computed; None: nowhere.
        root: as given; what paths in `samples` begin with.
    """

    def __init__(
        self,
        root: Union[str, os.PathLike[str]] = "",
        transform: Optional[Transform] = None,
        target_transform: Optional[Transform] = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Optional[Callable[[str], bool]] = None,
        allow_empty: bool = False,
        *,
        name: Optional[str] = None,
        socket: Optional[str] = None,
        computed: Union[bool, str] = False,
        wait: Optional[float] = None,
        decode: Optional[Callable[[Sample], Any]] = None,
    ) -> None:
        """Opens the dataset.

        Args:
            root: the folder or address of the dataset's source, as for torchvision, or the
                dataset's name; or a folder below the source, whose folders are then the classes.
                "": the one that `name` says. Where `name` is given, root is only what paths in
                `samples` begin with.
            transform: applied to each image, target_transform to each class number.
            loader: makes an image of a file, as torchvision's loaders do. It is given a path at
                which it can open the file while it runs. The path is one in memory: its name says
                nothing of the file.
            is_valid_file: chooses samples by their paths below `root`, among those that the dataset
                has. A function that opens the file opens it at its source.
            allow_empty: keep classes of which `is_valid_file` chooses nothing.
            name, socket, wait: as for optcache.Dataset.
            computed: keep (image, target) as they come out of the transforms, for all processes of
                the machine: as for optcache.Dataset.
            decode: makes an image of a file's bytes, instead of `loader`: without a copy, as they
                are a view that is good while it is in use.

        Raises:
            ValueError: computed=True where a transform cannot be pickled; or of `wait`.
            FileNotFoundError: `is_valid_file` leaves a class empty, and `allow_empty` is not set.
            OptcacheError: as optcache.Dataset, or no dataset has that root, or the dataset has no
                classes, or none below that folder.
        """
        if isinstance(is_valid_file, str):
            raise TypeError(
                f"ImageFolder: is_valid_file={is_valid_file!r} is not a function of a path. If it is "
                f"the name of the dataset, write name={is_valid_file!r}"
            )
        self.root = os.path.expanduser(os.fspath(root))
        found = dataset_of_root(self.root, name, socket, wait)
        self.data = Dataset(found.name, socket, wait=wait)
        self.transform = transform
        self.target_transform = target_transform
        self.loader = loader
        self.decode = decode
        self.ids: Optional[array.array[int]] = None
        self._below = found.below + "/" if found.below else ""
        self._classes: list[str] = []  # below that folder
        if self._below:
            self._take_folder(is_valid_file is None)
        else:
            self.data.target(0)  # the sentence for a dataset without classes, not in a worker first
        if is_valid_file is not None:
            self.ids = self._choose(is_valid_file, allow_empty)
        made_by: tuple[Any, ...] = (transform or decode or loader, target_transform, decode or loader)
        if self._below:  # where classes have other numbers
            made_by = (*made_by, self._below)
        self.kept = kept(self.data, computed, self.data.version, made_by, socket)

    def _take_folder(self, images_only: bool) -> None:
        """Chooses what lies in class folders below `_below`, in torchvision's order."""
        found = samples_below(self._below, self.data.paths(), images_only)
        if not found:
            raise OptcacheError(
                f"the dataset {self.data.name} has no samples in class folders below "
                f"{self._below!r}, which {self.root!r} means",
                "not_found",
            )
        place = self._torchvisions_place
        # Most are in order already, and the places of millions take memory.
        if any(place(one) > place(next_one) for one, next_one in zip(found, found[1:])):
            found.sort(key=place)
        self.ids = array.array("I", found)
        self._classes = sorted({self._class_of(at) for at in found})

    def _torchvisions_place(self, at: int) -> tuple[str, str, str]:
        return (self._class_of(at), *os.path.split(self.data.path(at)))

    def _class_of(self, at: int) -> str:
        """The folder below `_below` of a sample of `data`."""
        return self.data.path(at)[len(self._below) :].partition("/")[0]

    def _choose(
        self, is_valid_file: Callable[[str], bool], allow_empty: bool
    ) -> Optional[array.array[int]]:
        before = self._ids()
        ids = array.array(
            "I", (at for at, path in zip(before, self._paths()) if is_valid_file(path))
        )
        there = set(self._targets_of(ids))
        empty = [name for number, name in enumerate(self.classes) if number not in there]
        if empty and not allow_empty:
            raise FileNotFoundError(
                f"Found no valid file for the classes {', '.join(sorted(empty))}: is_valid_file "
                "takes none of their samples. To keep empty classes, set allow_empty=True"
            )
        return None if self.ids is None and len(ids) == len(self.data) else ids

    def _ids(self) -> Sequence[int]:
        """The samples of `data` that are ours."""
        return range(len(self.data)) if self.ids is None else self.ids

    def _paths(self) -> list[str]:
        """Of our samples, as torchvision has them."""
        begin = self.root.rstrip("/") + "/" if self.root else ""
        paths = self.data.paths()
        return [begin + paths[at][len(self._below) :] for at in self._ids()]

    def _targets_of(self, ids: Sequence[int]) -> list[int]:
        if self._below:
            return [self._target(at) for at in ids]
        targets = self.data.manifest.targets()
        return [targets[at] for at in ids]

    def _target(self, at: int) -> int:
        """The class number of a sample of `data`."""
        if not self._below:
            return self.data.target(at)
        return self.class_to_idx[self._class_of(at)]

    @property
    def classes(self) -> list[str]:
        return self._classes if self._below else self.data.classes

    @functools.cached_property
    def class_to_idx(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.classes)}

    @functools.cached_property
    def targets(self) -> list[int]:
        """The class numbers of all samples."""
        return self._targets_of(self._ids())

    @functools.cached_property
    def samples(self) -> list[tuple[str, int]]:
        """(path, class number) of all samples; made when first asked for."""
        return list(zip(self._paths(), self.targets))

    @property
    def imgs(self) -> list[tuple[str, int]]:
        return self.samples

    def __len__(self) -> int:
        return len(self.data) if self.ids is None else len(self.ids)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        index = self._in_data(index)
        if self.kept is None:
            return self._make(int(index), self.data[index])
        value: tuple[Any, Any] = read_kept(self.kept, index, lambda at: self._make(at, self.data[at]))
        return value

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, Any]]:
        """The samples of a batch, in one round trip; kept ones are had one by one."""
        if self.kept is not None:
            return [self[index] for index in indices]
        if self.ids is not None:
            indices = [self._in_data(index) for index in indices]
        samples = self.data.__getitems__(indices)
        plain = list.__iter__(indices) if isinstance(indices, IndexBatch) else indices
        return [self._make(int(index), data) for index, data in zip(plain, samples)]

    def _in_data(self, index: int) -> int:
        """The sample of `data`: where all are ours, the index as it is, with what it remembers."""
        return index if self.ids is None else self.ids[resolve(index, len(self), self.data.name)]

    def stats(self) -> dict[str, Any]:
        """Counts of what is kept: as of optcache.Dataset."""
        return stats_of(self.kept, self.data.name)

    def _make(self, index: int, data: Sample) -> tuple[Any, Any]:
        image = self._image(data)
        target: Any = self._target(index)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def _image(self, data: Sample) -> Any:
        if self.decode is not None:
            return self.decode(data)
        if self.loader is default_loader or _loads_by_pil(self.loader):
            return default_loader(data)
        with path_of(data) as path:
            try:
                return self.loader(path)
            except TypeError as why:
                raise TypeError(
                    f"ImageFolder: loader= is given a path, and raised a TypeError: {why}. If it is a "
                    "function that takes the bytes, write decode= instead of loader="
                ) from why

    def __getstate__(self) -> dict[str, Any]:
        lazy = ("class_to_idx", "targets", "samples")
        return {key: value for key, value in self.__dict__.items() if key not in lazy}

    def __repr__(self) -> str:
        return f"Dataset ImageFolder\n    Number of datapoints: {len(self)}\n    {self.data.name}"


def samples_below(below: str, paths: Sequence[str], images_only: bool) -> list[int]:
    """Which of the paths lie in class folders below `below`; of `images_only`, those that torchvision
    takes.
    """
    begin = len(below)
    return [
        at
        for at, path in enumerate(paths)
        if path.startswith(below)
        and path.find("/", begin) > begin
        and (not images_only or path.lower().endswith(IMG_EXTENSIONS))
    ]


def _loads_by_pil(loader: Any) -> bool:
    """Is it a loader of torchvision's that does what default_loader does with bytes, without a file?"""
    if getattr(loader, "__module__", None) != "torchvision.datasets.folder":
        return False
    if loader.__name__ == "default_loader":
        return bool(sys.modules["torchvision"].get_image_backend() == "PIL")
    return bool(loader.__name__ == "pil_loader")
