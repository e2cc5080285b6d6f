"""One rank of a training loop, a process of its own: `python -m bench.peers.rank JOB`, by crew.py.

It says `ready`, then waits for a line before each epoch, and answers with a line of JSON after it.
A step takes `step_seconds` of an accelerator that is given the next batch while it works on one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time

import torch
from bench.peers.loaders import LOADERS, Job


@dataclasses.dataclass
class Epoch:
    """What a rank got in an epoch, and when: seconds of the machine's clock."""

    began: float
    ended: float
    samples: int
    bytes: int
    touched: int


def run_epoch(batches: object, step_seconds: float) -> Epoch:
    epoch = Epoch(time.monotonic(), 0.0, 0, 0, 0)
    free = epoch.began  # when the accelerator has done all that it was given
    for batch in batches:  # type: ignore[attr-defined]
        epoch.samples += len(batch)
        epoch.bytes += sum(sample.size for sample in batch)
        epoch.touched += sum(sample.touched for sample in batch)
        free = max(free, time.monotonic()) + step_seconds
        time.sleep(max(0.0, free - step_seconds - time.monotonic()))
    time.sleep(max(0.0, free - time.monotonic()))
    epoch.ended = time.monotonic()
    return epoch


def main() -> None:
    # Only those lines go to the driver, whatever packages print.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    torch.set_num_threads(1)
    job = Job(**json.loads(sys.argv[1]))
    loader = LOADERS[job.way](job)
    print("ready", file=lines)
    for number in range(job.epochs):
        if not sys.stdin.readline():
            return
        loader.begin_epoch(number)
        epoch = run_epoch(loader.batches, job.step_seconds)
        print(json.dumps(dataclasses.asdict(epoch)), file=lines)
    sys.stdin.readline()  # its processes live until they have been counted


if __name__ == "__main__":
    main()
