"""One rank of a light training job, a process of its own: `reader.py JOB`, JSON by readers.py.

A DataLoader over the plain samples, in the order of a DistributedSampler; nothing is decoded. It
reads a batch for each line on its standard input, and says `done` after it. It ends after its epochs,
or when its standard input ends.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import optcache
from optcache.torch import attach


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    job: dict[str, Any] = json.loads(sys.argv[1])
    dataset = optcache.Dataset()
    sampler = DistributedSampler(
        dataset,  # type: ignore[arg-type]
        num_replicas=job["world"],
        rank=job["rank"],
        seed=job["seed"],
    )
    loader = attach(
        DataLoader(
            dataset,  # type: ignore[arg-type]
            job["batch"],
            sampler=sampler,
            collate_fn=len,
        ),
        name=job["stream"],
        epochs=job["epochs"],
    )
    say("ready")
    times = []
    for epoch in range(job["first_epoch"], job["first_epoch"] + job["epochs"]):
        sampler.set_epoch(epoch)
        of_epoch: list[float] = []
        batches = iter(loader)
        while sys.stdin.readline():
            count = next(batches, 0)
            of_epoch += [time.time()] * count
            if len(of_epoch) == len(sampler):
                break
            say("done")
        times.append(of_epoch)
        if len(of_epoch) < len(sampler):
            break
        next(batches, None)  # the pass is over
        say("done")
    Path(job["records"]).write_text(json.dumps(times))
    loader.optcache.detach()


if __name__ == "__main__":
    main()
