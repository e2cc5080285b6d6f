"""What a training loop gets of an attached loader: augmented images, pinned batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import IMAGES as COUNT
from conftest import Server

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
pytest.importorskip("PIL.Image")

from torch.utils.data import DataLoader  # noqa: E402
from torchvision import transforms  # noqa: E402

from optcache.torch import ImageFolder, attach  # noqa: E402


@pytest.fixture
def train(serve: Callable[..., Server], images: Path) -> ImageFolder:
    serve(images)
    return ImageFolder()


@pytest.mark.parametrize("workers, persistent", [(0, False), (2, False), (2, True)])
def test_random_augmentation_is_another_in_each_epoch(
    train: ImageFolder, images: Path, workers: int, persistent: bool
) -> None:
    """And the same as without us."""
    jitter = transforms.Compose([transforms.ColorJitter(0.9, 0.9), transforms.ToTensor()])

    def read(data: Any, attached: bool) -> list[Any]:
        loader = DataLoader(data, 5, num_workers=workers, persistent_workers=persistent)
        if attached:
            loader = attach(loader)
        torch.manual_seed(6)
        return [torch.cat([image for image, _ in loader]) for _ in range(3)]

    ours = read(ImageFolder(transform=jitter), True)
    theirs = read(torchvision.datasets.ImageFolder(str(images), jitter), False)
    assert all(map(torch.equal, ours, theirs))
    for one, other in itertools.combinations(ours, 2):
        same = [torch.equal(*pair) for pair in zip(one, other)]
        assert len(same) == COUNT and sum(same) < 5, "a black picture has nothing to jitter"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:'pin_memory' argument")  # where there is no CUDA device
def test_a_loader_that_pins_memory_reads_the_same(train: ImageFolder, workers: int) -> None:
    images = ImageFolder(transform=transforms.ToTensor())
    options: dict[str, Any] = {"batch_size": 5, "num_workers": workers, "pin_memory": True}
    read = [image for batch, _ in attach(DataLoader(images, **options)) for image in batch]
    assert [image.tolist() for image in read] == [image.tolist() for image, _ in images]
    files = [bytes(train.data[index]) for index in range(COUNT)]
    assert [it for batch in attach(DataLoader(train.data, **options), name="raw") for it in batch] == files
    as_they_are = attach(DataLoader(train.data, **options, collate_fn=list), name="views")
    assert [bytes(it) for batch in as_they_are for it in batch] == files


def test_what_is_pinned_is_no_list_of_numbers(train: ImageFolder) -> None:
    view = train.data[0]
    pinned = torch.utils.data._utils.pin_memory.pin_memory({"files": [view, b"bytes"], "size": 1})
    assert pinned["files"][0] is view and pinned["files"][1] == b"bytes"


def test_batches_are_pinned(train: ImageFolder) -> None:
    if not torch.cuda.is_available():
        pytest.skip("has no CUDA device")
    images = ImageFolder(transform=transforms.ToTensor())
    for workers in (0, 2):
        loader = DataLoader(images, batch_size=5, num_workers=workers, pin_memory=True)
        assert all(batch.is_pinned() for batch, _ in attach(loader, name=f"pinned-{workers}"))
