"""A training job as users write them, one rank a pod of an Indexed Job.

A DistributedSampler, a DataLoader with workers, a step of all ranks after each batch. With a
sidecar the images come through `optcache.torch`; without one they are read from STORE_URL. Either
way the SHA-256 of the bytes of every sample is written down: a line of JSON for each batch.

Environment: WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them, JOB_COMPLETION_INDEX as
the Job does; EPOCHS, BATCH, WORKERS, SEED; PAUSE, seconds a batch takes beside; PASSES, how many the
cache is told of instead of EPOCHS (0: it is not told, and keeps what another may want); STORE_URL;
OPAQUE=1, a sampler whose order nobody can predict.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import socket
import threading
import time
import urllib.request
import warnings
from typing import Any
from urllib.parse import quote

BEGAN = time.time()

import numpy  # noqa: E402  (the clock starts before what is slow to load)
import torch  # noqa: E402
import torch.distributed  # noqa: E402
from PIL import Image  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

SIDE = 32  # pixels: images of one size make a batch


def number(name: str, default: float) -> float:
    return float(os.environ.get(name, default))


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, "at": round(time.time() - BEGAN, 4), **fields}))


def digest_and_pixels(data: Any) -> tuple[str, torch.Tensor]:
    digest = hashlib.sha256(data).hexdigest()
    with Image.open(io.BytesIO(data)) as image:
        small = image.convert("RGB").resize((SIDE, SIDE), Image.NEAREST)
    return digest, torch.from_numpy(numpy.array(small)).permute(2, 0, 1)


class PlainImages(Dataset):  # type: ignore[type-arg]
    """The images as a script without a cache reads them: each by a request of its own."""

    def __init__(self, url: str) -> None:
        self._url = url
        with urllib.request.urlopen(url + "index.txt", timeout=60) as answer:
            self._paths = answer.read().decode().splitlines()
        classes = sorted({path.split("/")[0] for path in self._paths})
        self._targets = [classes.index(path.split("/")[0]) for path in self._paths]

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> tuple[tuple[str, torch.Tensor], int]:
        url = self._url + quote(self._paths[index])
        with urllib.request.urlopen(url, timeout=60) as answer:
            return digest_and_pixels(answer.read()), self._targets[index]


class Numbered(Dataset):  # type: ignore[type-arg]
    """A dataset that says for each sample which one it is."""

    def __init__(self, images: Any) -> None:
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> tuple[int, str, torch.Tensor, int]:
        (digest, pixels), target = self._images[index]
        return index, digest, pixels, target


def make_loader(rank: int, world: int, epochs: int) -> DataLoader:  # type: ignore[type-arg]
    cached = "OPTCACHE_SOCKET" in os.environ
    if cached:
        from optcache.torch import ImageFolder, attach

        # The sidecar brings the package, and may be of an older release, whose loader takes bytes.
        reads = "decode" if "decode" in inspect.signature(ImageFolder).parameters else "loader"
        images: Any = ImageFolder(**{reads: digest_and_pixels})
    else:
        images = PlainImages(os.environ["STORE_URL"])
    dataset = Numbered(images)
    seed, workers = int(number("SEED", 0)), int(number("WORKERS", 1))
    sampler = OpaqueSampler if number("OPAQUE", 0) else DistributedSampler
    loader = DataLoader(
        dataset,
        batch_size=int(number("BATCH", 16)),
        sampler=sampler(dataset, num_replicas=world, rank=rank, seed=seed),
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    if not cached:
        return loader
    # In an older release it is passes.
    told = "epochs" if "epochs" in inspect.signature(attach).parameters else "passes"
    passes = int(number("PASSES", epochs))
    return attach(loader, dataset=images.data, **({told: passes} if passes else {}))


class OpaqueSampler(DistributedSampler):  # type: ignore[type-arg]
    """Reads as DistributedSampler does, but is of a class of its own and cannot be copied."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._lock = threading.Lock()


def wait_for_name(name: str, seconds: float = 120) -> None:
    """The name of the pod of rank 0 is known a moment after that pod has an address."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.getaddrinfo(name, None)
            return
        except socket.gaierror:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def main() -> None:
    warnings.filterwarnings("ignore", module="PIL")  # some images have odd palettes
    torch.set_num_threads(1)
    rank = int(number("JOB_COMPLETION_INDEX", 0))
    world, epochs, pause = int(number("WORLD_SIZE", 1)), int(number("EPOCHS", 1)), number("PAUSE", 0)
    say("imported", rank=rank, cached="OPTCACHE_SOCKET" in os.environ, began=BEGAN)
    wait_for_name(os.environ["MASTER_ADDR"])
    torch.distributed.init_process_group("gloo", world_size=world, rank=rank)
    say("met")
    loader = make_loader(rank, world, epochs)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3 * SIDE * SIDE, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        say("epoch", epoch=epoch)
        for step, (indices, digests, pixels, targets) in enumerate(loader):
            say("batch", epoch=epoch, step=step, ids=indices.tolist(), sha256=list(digests))
            scores = model(pixels.flatten(1).float() / 255)
            loss = torch.nn.functional.cross_entropy(scores, targets % 16)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(pause)
    torch.distributed.barrier()
    say("done")


if __name__ == "__main__":
    main()
