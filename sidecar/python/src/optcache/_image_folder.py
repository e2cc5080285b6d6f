"""torchvision's ImageFolder, read through the sidecar."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import torch.utils.data

from ._batches import IndexBatch, Sample, place_of
from ._roots import name_of_root
from .computed import kept, resolve, stats_of
from .dataset import Dataset

Transform = Callable[[Any], Any]


def default_loader(data: Sample) -> Any:
    """The bytes of an image file as a PIL image in RGB, as torchvision's default loader gives it."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


class ImageFolder(torch.utils.data.Dataset[Any]):
    """torchvision.datasets.ImageFolder, read through the sidecar.

    The same samples under the same indices, the same classes. A sample is (image, target).

    Attributes:
        data: the files' bytes, an optcache.Dataset.
        classes: class names, by number.
        class_to_idx: their numbers.
        transform, target_transform, loader: as given.
        kept: where samples are kept that are computed; None: nowhere.
        root: as given; what paths in `samples` begin with.
    """

    def __init__(
        self,
        root: str = "",
        transform: Optional[Transform] = None,
        target_transform: Optional[Transform] = None,
        loader: Callable[[Sample], Any] = default_loader,
        name: Optional[str] = None,
        socket: Optional[str] = None,
        computed: Union[bool, str] = False,
        wait: Optional[float] = None,
    ) -> None:
        """Opens the dataset.

        Args:
            root: the folder or address of the dataset's source, as for torchvision, or the
                dataset's name. "": the one that `name` says. Where `name` is given, root is only
                what paths in `samples` begin with.
            transform: applied to each image, target_transform to each class number.
            loader: makes an image from a file's bytes, a view that is good while it is in use.
            name, socket, wait: as for optcache.Dataset.
            computed: keep (image, target) as they come out of the transforms, for all processes of
                the machine: as for optcache.Dataset.

        Raises:
            ValueError: computed=True where a transform cannot be pickled; or of `wait`.
            OptcacheError: as optcache.Dataset, or no dataset has that root, or the dataset has no
                classes.
        """
        self.data = Dataset(name_of_root(root, name, socket, wait), socket, wait=wait)
        self.root = root
        self.transform = transform
        self.target_transform = target_transform
        self.loader = loader
        self.data.target(0)  # the sentence for a dataset without classes, now and not in a worker
        made_by = (transform or loader, target_transform, loader)
        self.kept = kept(self, computed, self.data.version, made_by, socket)

    @property
    def classes(self) -> list[str]:
        return self.data.classes

    @functools.cached_property
    def class_to_idx(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.data.classes)}

    @functools.cached_property
    def targets(self) -> list[int]:
        """The class numbers of all samples."""
        return self.data.manifest.targets()

    @functools.cached_property
    def samples(self) -> list[tuple[str, int]]:
        """(path, class number) of all samples; made when first asked for."""
        begin = self.root.rstrip("/") + "/" if self.root else ""
        paths = self.data.manifest.paths()
        return [(begin + path, target) for path, target in zip(paths, self.targets)]

    @property
    def imgs(self) -> list[tuple[str, int]]:
        return self.samples

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if self.kept is None:
            return self._make(int(index), self.data[index])
        at, tag = resolve(index, len(self), self.kept.name), place_of(self.kept.name, index)
        value: tuple[Any, Any] = self.kept.get(at, tag, lambda: self._make(at, self.data[at]))
        return value

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, Any]]:
        """The samples of a batch, in one round trip; kept ones are had one by one."""
        if self.kept is not None:
            return [self[index] for index in indices]
        samples = self.data.__getitems__(indices)
        plain = list.__iter__(indices) if isinstance(indices, IndexBatch) else indices
        return [self._make(int(index), data) for index, data in zip(plain, samples)]

    def stats(self) -> dict[str, Any]:
        """Counts of what is kept: as of optcache.Dataset."""
        return stats_of(self.kept, self.data.name)

    def _make(self, index: int, data: Sample) -> tuple[Any, Any]:
        image = self.loader(data)
        target: Any = self.data.target(index)
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __getstate__(self) -> dict[str, Any]:
        lazy = ("class_to_idx", "targets", "samples")
        return {key: value for key, value in self.__dict__.items() if key not in lazy}

    def __repr__(self) -> str:
        return f"Dataset ImageFolder\n    Number of datapoints: {len(self)}\n    {self.data.name}"
