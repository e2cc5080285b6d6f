"""Where caching cannot help: a loader that only decodes, over files that lie in the page cache.

Real images, the usual transform of ImageNet training, DataLoaders with as many workers as cores:
one over torchvision's ImageFolder, one over ours, which read an epoch in turns. Processor time
counts that of the workers, and for ours also that of node and sidecar.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torchvision
from bench.context import REPOSITORY, Context
from bench.figures import Figure, at_least, ratio_interval
from bench.scene import unpack_default
from harness.cluster import Budget, Cluster, ClusterOptions
from optcache.torch import ImageFolder, attach
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms

GOAL = 0.99
IMAGES = 800
IMAGE_BYTES_MIN = 8192  # smaller ones are icons
BATCH = 32
ALTERNATIONS = 20
ARENA_BYTES = 64 << 20


@dataclass
class Way:
    """A loader, and what each of its epochs took."""

    loader: DataLoader  # type: ignore[type-arg]
    programs: Cluster | None  # whose processor time counts, too
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    def read_epoch(self, epoch: int) -> None:
        self.loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
        for _ in self.loader:
            pass

    def measure_epoch(self, epoch: int) -> None:
        cpu_began = self._cpu_seconds()
        began = time.perf_counter()
        self.read_epoch(epoch)
        self.seconds.append(time.perf_counter() - began)
        self.cpu_seconds.append(self._cpu_seconds() - cpu_began)

    def _cpu_seconds(self) -> float:
        workers: list[Any] = self.loader._iterator._workers  # type: ignore[union-attr]
        seconds = time.process_time() + sum(_cpu_seconds_of(worker.pid) for worker in workers)
        if self.programs is not None:
            both = self.programs.node_metrics() + self.programs.sidecar_metrics()
            seconds += sum(metrics["process_cpu_seconds_total"] for metrics in both)
        return seconds


def run(context: Context) -> list[Figure]:
    context.say("unpacking images")
    root, total = _some_images(context)
    (context.folder / "sockets").mkdir()
    options = ClusterOptions(
        programs=context.programs,
        base_url=str(root),
        listing="",
        machines=1,
        budget=Budget(memory=total, arena=ARENA_BYTES),
        state=context.folder / "state",
        sockets=context.folder / "sockets",
    )
    with Cluster(options, "Optimal", context.folder) as cluster:
        transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            ]
        )
        socket = str(cluster.socket(0))
        ours = Way(attach(_loader(ImageFolder(transform=transform, socket=socket))), cluster)
        plain = torchvision.datasets.ImageFolder(str(root), transform=transform)
        theirs = Way(_loader(plain), None)
        _alternate(context, ours, theirs)
    speed, speed_interval = ratio_interval(theirs.seconds, ours.seconds)
    cpu, cpu_interval = ratio_interval(theirs.cpu_seconds, ours.cpu_seconds)
    rate = len(plain) * len(theirs.seconds) / sum(theirs.seconds)
    return [
        Figure(
            "decode-bound loader: samples/s / torchvision's",
            speed,
            "",
            f"torchvision {rate:,.0f} samples/s; {len(theirs.seconds)} alternations",
            at_least(GOAL),
            speed_interval,
        ),
        Figure(
            "decode-bound loader: samples a CPU second / torchvision's",
            cpu,
            "",
            "ours with node and sidecar",
            interval=cpu_interval,
        ),
    ]


def _some_images(context: Context) -> tuple[Path, int]:
    """A folder with some of the demo's images in their class folders, and their bytes."""
    source = unpack_default(REPOSITORY / "build" / "demo-data")
    images = [Path(path) for path, _ in torchvision.datasets.ImageFolder(str(source)).samples]
    large = [image for image in images if image.stat().st_size >= IMAGE_BYTES_MIN]
    wanted = 64 if context.quick else IMAGES
    root = context.folder / "images"
    total = 0
    for image in large[:: max(len(large) // wanted, 1)][:wanted]:
        copy = root / image.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(image.read_bytes())
        total += copy.stat().st_size
    return root, total


def _loader(dataset: Any) -> DataLoader:  # type: ignore[type-arg]
    return DataLoader(
        dataset,
        BATCH,
        sampler=DistributedSampler(dataset, num_replicas=1, rank=0),
        num_workers=os.cpu_count() or 1,
        persistent_workers=True,
    )


def _alternate(context: Context, ours: Way, theirs: Way) -> None:
    """An epoch each, in turns; who is first changes, so that what drifts meets both alike."""
    ours.read_epoch(0)
    theirs.read_epoch(0)
    alternations = 4 if context.quick else ALTERNATIONS
    for turn in range(alternations):
        context.say(f"alternation {turn + 1} of {alternations}")
        for way in (ours, theirs) if turn % 2 == 0 else (theirs, ours):
            way.measure_epoch(turn + 1)


def _cpu_seconds_of(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
