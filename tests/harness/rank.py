"""What every rank of a job does: reads its epochs, in step with the others, and writes them down."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Union

import torch
import torch.distributed
from harness.job import EpochRecord, Job, digest_at
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data.distributed import DistributedSampler


def checked(index: int, data: Union[bytes, memoryview], digests: bytes) -> tuple[int, bool, float]:
    """Of a sample that was read: its id, whether its bytes are right, and when they were there."""
    right = hashlib.sha256(data).digest() == digest_at(digests, index)
    return int(index), right, time.time()


def loader_of(job: Job, dataset: TorchDataset[Any]) -> DataLoader[Any]:
    sampler: DistributedSampler[Any] = DistributedSampler(
        dataset, num_replicas=job.world, rank=job.rank, shuffle=True, seed=job.seed
    )
    return DataLoader(
        dataset,
        batch_size=job.batch,
        sampler=sampler,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
    )


def run(make_loader: Callable[[Job], DataLoader[Any]]) -> None:
    """The whole program: `rank.py JOB.json`.

    The last three of what the loader gives are sample ids, whether their bytes were right, and when
    they were there. Each batch is a line `epoch batch` on standard output.
    """
    job = Job(**json.loads(Path(sys.argv[1]).read_text()))
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{job.rendezvous}", world_size=job.world, rank=job.rank
    )
    loader = make_loader(job)
    records: list[EpochRecord] = []
    while not _is_over(job, len(records)):
        records.append(_read_epoch(job, loader, job.first_epoch + len(records)))
    Path(job.records).write_text(json.dumps([asdict(record) for record in records]))
    # So that no rank takes the connections down under another.
    torch.distributed.barrier()  # type: ignore[no-untyped-call]


def _is_over(job: Job, epochs: int) -> bool:
    if not job.until:
        return epochs == job.epochs
    over = torch.tensor(int(time.time() >= job.until))
    torch.distributed.broadcast(over, src=0)  # type: ignore[no-untyped-call]  # one clock for all
    return bool(over)


def _read_epoch(job: Job, loader: DataLoader[Any], epoch: int) -> EpochRecord:
    record = EpochRecord(began=time.time())
    loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
    asked = time.monotonic()
    for number, batch in enumerate(loader):
        record.waits.append(time.monotonic() - asked)
        *_, samples, right, times = batch
        # Stands for the gradients: every rank waits here for the others, as in any such job.
        mean = batch[0].float().mean()
        torch.distributed.all_reduce(mean)  # type: ignore[no-untyped-call]
        record.samples += samples.tolist()
        record.times += times.tolist()
        record.steps.append(time.time())
        record.mismatches += samples[~right].tolist()
        sys.stdout.write(f"{epoch} {number}\n")
        sys.stdout.flush()
        time.sleep(job.step_seconds)
        asked = time.monotonic()
    record.ended = time.time()
    return record
