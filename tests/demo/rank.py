"""One rank of the training job, a process of its own: `rank.py JOB.json`.

What it does with the data is what any PyTorch job does: a DataLoader with workers over ImageFolder,
DistributedSampler, a step of all ranks after each batch. A job may leave decoding to its GPU. Beside
that it checks the bytes of every sample and writes down what it got when (harness/rank.py).
"""

from __future__ import annotations

import hashlib
import io
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Union

import numpy
import torch
from harness import rank
from harness.job import Job, digest_at
from PIL import Image
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset
from torchvision.datasets import folder

from optcache.torch import ImageFolder, attach

IMAGE_SIDE = 64  # pixels: images of one size make a batch
Images = Union[ImageFolder, folder.ImageFolder]  # of the cache, or torchvision's of files
Decode = Callable[[Any], tuple[bytes, Any]]


def digest_and_image(view: Any) -> tuple[bytes, Image.Image]:
    """ImageFolder's `decode`: the raw bytes of a sample in, what its `transform` gets out."""
    with Image.open(io.BytesIO(view)) as image:
        # NEAREST costs least: what is to be seen here is reading, not resampling.
        small = image.resize((IMAGE_SIDE, IMAGE_SIDE), Image.NEAREST)
        return hashlib.sha256(view).digest(), small.convert("RGB")


def to_tensor(loaded: tuple[bytes, Image.Image]) -> tuple[bytes, torch.Tensor]:
    digest, image = loaded
    return digest, torch.from_numpy(numpy.array(image)).permute(2, 0, 1)


def digest_and_size(view: Any) -> tuple[bytes, torch.Tensor]:
    """Of an image that the GPU decodes."""
    return hashlib.sha256(view).digest(), torch.tensor([len(view)])


class CheckedImages(TorchDataset):  # type: ignore[type-arg]
    """The images with, for each, its id, whether its bytes are right, and when it was there."""

    def __init__(self, images: Images, digests: bytes) -> None:
        self._images = images
        self._digests = digests

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int, int, bool, float]:
        (digest, image), target = self._images[index]
        right = digest == digest_at(self._digests, index)
        return image, target, int(index), right, time.time()


def make_loader(job: Job) -> DataLoader:  # type: ignore[type-arg]
    decode: Decode = digest_and_image if job.decodes else digest_and_size
    transform = to_tensor if job.decodes else None
    if job.folder:

        def read(path: str) -> tuple[bytes, Any]:
            return decode(Path(path).read_bytes())

        return loader_of(job, folder.ImageFolder(job.folder, transform, loader=read))
    images = ImageFolder(decode=decode, transform=transform)
    return attach(loader_of(job, images), dataset=images.data, epochs=job.passes or None)


def loader_of(job: Job, images: Images) -> DataLoader:  # type: ignore[type-arg]
    return rank.loader_of(job, CheckedImages(images, Path(job.digests).read_bytes()))


if __name__ == "__main__":
    warnings.filterwarnings("ignore", module="PIL")  # some images have odd palettes
    rank.run(make_loader)
