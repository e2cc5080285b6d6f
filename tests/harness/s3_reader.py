"""Reads a bucket with one client library, as a training script that knows nothing of us would.

    python s3_reader.py CLIENT FOLDER FIRST_EPOCH EPOCHS

The endpoint and keys are in the environment, as the library itself looks for them. Prints a line of
JSON an epoch, what was read: key or sample, and its SHA-256. Between epochs it waits for a line.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

BUCKET = "data"
PREFIX = "train/"
SEED = 5
RANGE = 64 << 10

Samples = Iterator[tuple[str, bytes]]
Reader = Callable[[Path, int], Samples]  # a folder of one's own, the epoch


def s3_client() -> Any:
    import boto3

    endpoint = os.environ["AWS_ENDPOINT_URL_S3"]
    knows_variable = tuple(map(int, boto3.__version__.split(".")[:2])) >= (1, 28)
    return boto3.client("s3", **({} if knows_variable else {"endpoint_url": endpoint}))


def keys(client: Any) -> list[str]:
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Prefix=PREFIX, PaginationConfig={"PageSize": 7}
    )
    return [found["Key"] for page in pages for found in page.get("Contents", [])]


def boto3(folder: Path, epoch: int) -> Samples:
    client = s3_client()
    names = keys(client)
    random.Random(SEED + epoch).shuffle(names)
    for key in names:
        assert client.head_object(Bucket=BUCKET, Key=key)["ContentLength"] > 0
        yield key, client.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def in_order(names: list[str], epoch: int) -> list[str]:
    """By PyTorch's DistributedSampler over the sorted keys, one rank of one."""
    import torch

    generator = torch.Generator()
    generator.manual_seed(SEED + epoch)
    return [names[at] for at in torch.randperm(len(names), generator=generator).tolist()]


def boto3_in_order(folder: Path, epoch: int) -> Samples:
    client = s3_client()
    for key in in_order(keys(client), epoch):
        yield key, client.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def boto3_ranges_in_order(folder: Path, epoch: int) -> Samples:
    """Shards in that order, each as readers of Parquet do: its end twice, as they open the file
    again to read it, then half of its parts. Every third one is read whole, by its parts.
    """
    client = s3_client()
    for number, key in enumerate(in_order(keys(client), epoch)):
        size = client.head_object(Bucket=BUCKET, Key=key)["ContentLength"]
        part = size // 8
        read = []
        for at in (7, 7, *(range(7) if number % 3 == 0 else (0, 2, 4))):
            words = {"Bucket": BUCKET, "Key": key, "Range": f"bytes={at * part}-{at * part + part - 1}"}
            read.append(client.get_object(**words)["Body"].read())
        yield key, b"".join(read)


class Objects:
    """A map-style dataset that reads by boto3, as scripts have it."""

    def __init__(self) -> None:
        self.client = s3_client()
        self.names = keys(self.client)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[str, bytes]:
        name = self.names[index]
        return name, self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()


_loaders: list[Any] = []


def boto3_attached(folder: Path, epoch: int) -> Samples:
    """The one line that is ours: the loader's order is announced, its reads stay as they are."""
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler

    import optcache
    import optcache.torch

    if not _loaders:
        own = Objects()
        sampler: Any = DistributedSampler(own, num_replicas=1, rank=0, seed=SEED)  # type: ignore[arg-type]
        loader: Any = DataLoader(own, batch_size=4, sampler=sampler, collate_fn=list)  # type: ignore[arg-type]
        _loaders.append(optcache.torch.attach(loader, dataset=optcache.Dataset()))
    loader = _loaders[0]
    loader.sampler.set_epoch(epoch)
    for batch in loader:
        yield from batch


def boto3_transfer(folder: Path, epoch: int) -> Samples:
    """In ranges, by several threads."""
    from boto3.s3.transfer import TransferConfig  # type: ignore[import-untyped]

    client = s3_client()
    config = TransferConfig(
        multipart_threshold=RANGE, multipart_chunksize=RANGE, max_concurrency=4
    )
    for key in keys(client):
        into = io.BytesIO()
        client.download_fileobj(BUCKET, key, into, Config=config)
        yield key, into.getvalue()


def s3fs(folder: Path, epoch: int) -> Samples:
    import s3fs as library  # type: ignore[import-not-found]

    files = library.S3FileSystem()
    names = sorted(files.find(f"{BUCKET}/{PREFIX}"))
    assert files.isdir(f"{BUCKET}/{PREFIX}") and len(names) > 0
    for number, name in enumerate(names):
        if number % 2:
            yield name.removeprefix(f"{BUCKET}/"), files.cat_file(name)
        else:
            with files.open(name, "rb", block_size=RANGE) as file:
                yield name.removeprefix(f"{BUCKET}/"), file.read()


def s3torchconnector(folder: Path, epoch: int) -> Samples:
    from s3torchconnector import S3MapDataset  # type: ignore[import-not-found]

    dataset = S3MapDataset.from_prefix(
        f"s3://{BUCKET}/{PREFIX}",
        region=os.environ["AWS_REGION"],
        endpoint=os.environ["AWS_ENDPOINT_URL_S3"],
    )
    for number in range(len(dataset)):
        sample = dataset[number]
        yield sample.key, sample.read()


def webdataset(folder: Path, epoch: int) -> Samples:
    """By plain HTTP, as its own reader of addresses does."""
    import webdataset as library

    client = s3_client()
    shards = [key for key in keys(client) if key.endswith(".tar")]
    urls = [f"{os.environ['AWS_ENDPOINT_URL_S3']}/{BUCKET}/{key}" for key in shards]
    for sample in library.WebDataset(urls, shardshuffle=False, empty_check=False):
        yield sample["__key__"], sample["bin"]


def webdataset_by_aws(folder: Path, epoch: int) -> Samples:
    """By a pipe from AWS's own program, as many scripts have it: webdataset has no reader of S3."""
    import webdataset as library

    shards = [key for key in keys(s3_client()) if key.endswith(".tar")]
    urls = [f"pipe:aws s3 cp s3://{BUCKET}/{key} -" for key in shards]
    for sample in library.WebDataset(urls, shardshuffle=False, empty_check=False):
        yield sample["__key__"], sample["bin"]


def streaming(folder: Path, epoch: int) -> Samples:
    """MosaicML's, with shards and their index; what it keeps itself is gone after the epoch."""
    from streaming import StreamingDataset

    dataset = StreamingDataset(
        remote=f"s3://{BUCKET}/{PREFIX}".rstrip("/"),
        local=str(folder / f"local-{epoch}"),
        batch_size=4,
        shuffle=True,
    )
    for sample in dataset:
        yield str(sample["id"]), sample["bytes"]


def datasets(folder: Path, epoch: int) -> Samples:
    """Hugging Face's load_dataset over files of JSON lines."""
    from datasets import load_dataset  # type: ignore[import-not-found]

    loaded = load_dataset(
        "json",
        data_files=f"s3://{BUCKET}/{PREFIX}*.jsonl",
        split="train",
        cache_dir=str(folder / f"cache-{epoch}"),
    )
    for row in loaded:
        yield str(row["id"]), bytes.fromhex(row["bytes"])


CLIENTS: dict[str, Reader] = {
    reader.__name__: reader
    for reader in (
        boto3,
        boto3_in_order,
        boto3_ranges_in_order,
        boto3_attached,
        boto3_transfer,
        s3fs,
        s3torchconnector,
        webdataset,
        webdataset_by_aws,
        streaming,
        datasets,
    )
}


def command(
    python: PathLike[str] | str,
    client: str,
    folder: PathLike[str] | str,
    epochs: int,
    first_epoch: int = 0,
) -> list[PathLike[str] | str]:
    """What runs this file. It asks for a line of input between epochs."""
    arguments = [client, folder, str(first_epoch), str(epochs)]
    return [python, "-W", "ignore", __file__, *arguments]


def main() -> None:
    client, folder, first, epochs = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:])
    for epoch in range(first, first + epochs):
        if epoch > first:
            sys.stdin.readline()
        read = [
            (key, hashlib.sha256(sample).hexdigest())
            for key, sample in CLIENTS[client](folder, epoch)
        ]
        print(json.dumps(read), flush=True)


if __name__ == "__main__":
    main()
