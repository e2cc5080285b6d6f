"""One rank that reads a bucket by boto3 and knows of no cache: `boto3_rank.py JOB.json`.

AWS_ENDPOINT_URL_S3 names the server, as it does in a pod. Beside its reads, it checks the bytes of
every object and writes down what it got when (harness/rank.py).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import boto3
from harness import rank
from harness.job import Job
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

BUCKET = "data"
PREFIX = "train/"


def client() -> Any:
    if tuple(map(int, boto3.__version__.split(".")[:2])) >= (1, 28):
        return boto3.client("s3")
    # As Debian's, which does not look for the endpoint in the environment.
    return boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])


class Objects(TorchDataset):  # type: ignore[type-arg]
    """For each object its number, whether its bytes are right, and when they were there."""

    def __init__(self, digests: bytes) -> None:
        pages = client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=PREFIX)
        self._keys = sorted(found["Key"] for page in pages for found in page.get("Contents", []))
        self._client: Any = None  # each worker has its own: connections do not survive a fork
        self._digests = digests

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int) -> tuple[int, bool, float]:
        self._client = self._client or client()
        answer = self._client.get_object(Bucket=BUCKET, Key=self._keys[index])
        return rank.checked(index, answer["Body"].read(), self._digests)


def make_loader(job: Job) -> DataLoader:  # type: ignore[type-arg]
    return rank.loader_of(job, Objects(Path(job.digests).read_bytes()))


if __name__ == "__main__":
    rank.run(make_loader)
