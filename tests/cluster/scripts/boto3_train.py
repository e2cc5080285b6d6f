"""One rank, a pod of an Indexed Job, that reads a bucket by boto3 and knows of no cache.

It reads in the order of a DistributedSampler over the sorted keys, and writes down what it read in
the lines of train.py. In the end it tries to save a checkpoint to the same server, and writes down
what it is answered.

Environment: BUCKET, EPOCHS, WORLD_SIZE; JOB_COMPLETION_INDEX as the Job sets it; the server and keys
as the pod has them for its clients of S3.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import Any

BEGAN = time.time()

import boto3  # noqa: E402  (the clock starts before what is slow to load)
from botocore.exceptions import ClientError  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

BATCH = 16


def say(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, "at": round(time.time() - BEGAN, 4), **fields}))


def answer_to_a_write(client: Any, bucket: str) -> str:
    try:
        client.put_object(Bucket=bucket, Key="checkpoint.pt", Body=b"weights")
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "taken"


def main() -> None:
    rank, world = int(os.environ["JOB_COMPLETION_INDEX"]), int(os.environ["WORLD_SIZE"])
    bucket, endpoint = os.environ["BUCKET"], os.environ["AWS_ENDPOINT_URL_S3"]
    say("imported", rank=rank, cached=True, began=BEGAN)
    # Debian's boto3 does not know the variable; from 1.28 on, this argument is not needed.
    client = boto3.client("s3", endpoint_url=endpoint)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    keys = sorted(found["Key"] for page in pages for found in page.get("Contents", []))
    sampler = DistributedSampler(range(len(keys)), num_replicas=world, rank=rank, seed=0)  # type: ignore[arg-type]
    for epoch in range(int(os.environ["EPOCHS"])):
        sampler.set_epoch(epoch)
        order = list(sampler)
        say("epoch", epoch=epoch)
        for begin in range(0, len(order), BATCH):
            ids = order[begin : begin + BATCH]
            bodies = [client.get_object(Bucket=bucket, Key=keys[i])["Body"].read() for i in ids]
            digests = [hashlib.sha256(body).hexdigest() for body in bodies]
            say("batch", epoch=epoch, step=begin // BATCH, ids=ids, sha256=digests)
    say("write", answer=answer_to_a_write(client, bucket))
    say("done")


if __name__ == "__main__":
    main()
