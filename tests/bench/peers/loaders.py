"""How a training loop reads a bucket: one function for each way, as its documentation has it.

Each takes a Job and returns a Loader; its batches are lists of Sample. All but the shard loaders
read one object a sample, in the order of a DistributedSampler. Packages are imported where they are
used: a rank needs one of them.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

REGION = "us-east-1"
PAGE = 4096
SHUFFLE_BUFFER = 100  # samples, of loaders that shuffle within shards


class Sample(NamedTuple):
    size: int
    touched: int  # the sum of a byte a page, so that every page was there


def touch(data: Any) -> Sample:
    pages = numpy.frombuffer(data, numpy.uint8)
    return Sample(len(pages), int(pages[::PAGE].sum(dtype=numpy.int64)))


@dataclass(frozen=True)
class Job:
    """What a rank is told."""

    way: str  # of LOADERS
    rank: int
    world: int
    workers: int
    batch: int
    epochs: int
    step_seconds: float
    endpoint: str
    bucket: str
    objects: str  # a file: JSON, the keys of the samples
    shards: str  # a file: JSON, the keys of tar shards
    packed: str  # the prefix of MosaicML's shards
    cache: str  # a folder for what is kept
    cache_bytes: int
    socket: str  # of our sidecar
    seed: int = 0
    announced: bool = True  # whether we are told of the sampler

    def keys(self) -> list[str]:
        keys: list[str] = json.loads(Path(self.objects).read_text())
        return keys


class Loader(NamedTuple):
    batches: Iterable[list[Sample]]
    begin_epoch: Callable[[int], None]


class _Objects:
    """Sample i is object i, as `read` has it; `read` is made in each worker."""

    def __init__(self, keys: list[str], open_reader: Callable[[], Callable[[str], Any]]) -> None:
        self._keys = keys
        self._open_reader = open_reader
        self._read: Callable[[str], Any] | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int) -> Sample:
        if self._read is None:
            self._read = self._open_reader()
        return touch(self._read(self._keys[index]))


def _by_objects(job: Job, dataset: Any) -> tuple[Any, Any]:
    sampler: Any = DistributedSampler(
        dataset, num_replicas=job.world, rank=job.rank, seed=job.seed
    )
    return _loader(job, dataset, sampler=sampler, batch_size=job.batch), sampler


def _loader(job: Job, dataset: Any, **more: Any) -> Any:
    return DataLoader(
        dataset, num_workers=job.workers, persistent_workers=True, collate_fn=list, **more
    )


def s3torchconnector(job: Job) -> Loader:
    from s3torchconnector import S3ClientConfig, S3MapDataset

    dataset = S3MapDataset.from_objects(
        [f"s3://{job.bucket}/{key}" for key in job.keys()],
        region=REGION,
        endpoint=job.endpoint,
        transform=_read_whole,
        s3client_config=S3ClientConfig(force_path_style=True),
    )
    loader, sampler = _by_objects(job, dataset)
    return Loader(loader, sampler.set_epoch)


def _read_whole(reader: Any) -> Sample:
    return touch(reader.read())


def multi_storage_client(job: Job, policy: str) -> Loader:
    configuration = {
        "profiles": {
            "store": {
                "caching_enabled": True,
                "storage_provider": {
                    "type": "s3",
                    "options": {
                        "base_path": job.bucket,
                        "endpoint_url": job.endpoint,
                        "region_name": REGION,
                    },
                }
            }
        },
        "cache": {
            "size": f"{max(job.cache_bytes >> 20, 1)}M",
            "location": job.cache,
            "cache_line_size": "1M",  # at most the whole cache; objects are read whole
            "check_source_version": False,
            # By default every 300 s, longer than a run: a cache that short would never be emptied.
            "eviction_policy": {"policy": policy, "refresh_interval": 1},
        },
    }

    def open_reader() -> Callable[[str], Any]:
        from multistorageclient import StorageClient, StorageClientConfig

        config = StorageClientConfig.from_dict(configuration, profile="store")
        return StorageClient(config).read  # type: ignore[no-any-return]

    loader, sampler = _by_objects(job, _Objects(job.keys(), open_reader))
    return Loader(loader, sampler.set_epoch)


def s3fs_filecache(job: Job) -> Loader:
    def open_reader() -> Callable[[str], Any]:
        import fsspec

        files = fsspec.filesystem(
            "filecache",
            target_protocol="s3",
            target_options={"client_kwargs": {"endpoint_url": job.endpoint}},
            cache_storage=job.cache,
        )
        return lambda key: files.cat_file(f"{job.bucket}/{key}")

    loader, sampler = _by_objects(job, _Objects(job.keys(), open_reader))
    return Loader(loader, sampler.set_epoch)


def mosaicml(job: Job) -> Loader:
    """It keeps and evicts whole shards; a limit below a few of them is refused."""
    from streaming import StreamingDataset

    class Touched(StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: Any) -> Any:
            return touch(super().__getitem__(at)["data"])

    os.environ.update(
        S3_ENDPOINT_URL=job.endpoint,
        RANK=str(job.rank),
        LOCAL_RANK=str(job.rank),
        WORLD_SIZE=str(job.world),
        LOCAL_WORLD_SIZE=str(job.world),
    )
    dataset = Touched(
        remote=f"s3://{job.bucket}/{job.packed}",
        local=job.cache,
        cache_limit=job.cache_bytes,
        shuffle=True,
        shuffle_seed=job.seed,
        batch_size=job.batch,
        num_canonical_nodes=1,
        # By default 262,144 samples, a fifth of ImageNet: all of these would mean a shard a sample.
        shuffle_block_size=len(job.keys()) // 5,
    )
    return Loader(_loader(job, dataset, batch_size=job.batch), lambda epoch: None)


def webdataset(job: Job) -> Loader:
    """It reads tar shards whole, by curl; without its cache, which would keep all of them."""
    import boto3
    import webdataset as wds
    from botocore.config import Config

    signed = Config(signature_version="s3v4", s3={"addressing_style": "path"})
    client = boto3.client(
        "s3", endpoint_url=job.endpoint, region_name=REGION, config=signed
    )
    urls = [
        client.generate_presigned_url("get_object", {"Bucket": job.bucket, "Key": key})
        for key in json.loads(Path(job.shards).read_text())
    ]
    dataset = wds.WebDataset(
        urls,
        shardshuffle=len(urls),
        seed=job.seed,
        nodesplitter=functools.partial(_of_rank, job.rank, job.world),
    )
    dataset = dataset.shuffle(SHUFFLE_BUFFER).map(_touch_member)
    return Loader(_loader(job, dataset, batch_size=job.batch), lambda epoch: None)


def _of_rank(rank: int, world: int, shards: Iterable[Any]) -> Iterable[Any]:
    return (shard for number, shard in enumerate(shards) if number % world == rank)


def _touch_member(sample: dict[str, Any]) -> Sample:
    return touch(sample["png"])


class _Views:
    """Our samples, touched."""

    def __init__(self, dataset: Any) -> None:
        self.data = dataset

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> Sample:
        return touch(self.data[index])


def optcache(job: Job) -> Loader:
    import optcache as package
    from optcache.torch import attach

    data = package.Dataset(socket=job.socket)
    dataset = _Views(data)
    if not job.announced:  # every rank reads all of it, in an order that nobody knows
        shuffled = _loader(job, dataset, shuffle=True, batch_size=job.batch)
        return Loader(shuffled, lambda epoch: None)
    loader, sampler = _by_objects(job, dataset)
    attached = attach(loader, dataset=data, name=f"train-{job.seed}", epochs=job.epochs)
    return Loader(attached, sampler.set_epoch)


def optcache_tar(job: Job) -> Loader:
    """The samples of tar shards, by ranges, in the order of the sampler."""
    import optcache as package
    from optcache.torch import attach

    data = package.WebDataset(socket=job.socket, transform=_touch_member, views=True)
    loader, sampler = _by_objects(job, data)
    return Loader(attach(loader, epochs=job.epochs), sampler.set_epoch)


LOADERS: dict[str, Callable[[Job], Loader]] = {
    "optcache": optcache,
    "s3torchconnector": s3torchconnector,
    "multi-storage-client LRU": functools.partial(multi_storage_client, policy="lru"),
    "multi-storage-client MRU": functools.partial(multi_storage_client, policy="mru"),
    "s3fs filecache": s3fs_filecache,
    "MosaicML Streaming": mosaicml,
    "webdataset": webdataset,
    "optcache, tar": optcache_tar,
}
# Those that read archives of many samples, made beforehand.
SHARD_LOADERS = ("MosaicML Streaming", "webdataset")
