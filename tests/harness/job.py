"""What a training job and its ranks say to each other: a job to a rank, records back."""

from __future__ import annotations

from dataclasses import dataclass, field

DIGEST_BYTES = 32  # of a SHA-256


def digest_at(digests: bytes, sample: int) -> bytes:
    """Of that sample, by Job.digests."""
    return digests[DIGEST_BYTES * sample : DIGEST_BYTES * (sample + 1)]


@dataclass(frozen=True)
class Job:
    rank: int
    world: int
    epochs: int
    batch: int
    seed: int
    digests: str  # a file: the SHA-256 of sample i is DIGEST_BYTES at i * DIGEST_BYTES
    rendezvous: str  # a file by which the ranks find each other
    records: str  # where the epochs' records are written in the end
    until: float = 0.0  # if given, counts instead of `epochs`: none begins after this time
    first_epoch: int = 0
    passes: int = 0  # how many it says will follow; 0: it does not say
    workers: int = 2
    step_seconds: float = 0.0  # a sleep after each batch, which stands for the GPU's work
    folder: str = ""  # samples are files below it, and not the cache's
    decodes: bool = True  # images; else it leaves them as they are in the file


@dataclass
class EpochRecord:
    """Of each sample in the order of delivery: its id and when a worker had its bytes."""

    began: float = 0.0  # seconds since 1970, as all times here
    ended: float = 0.0
    steps: list[float] = field(default_factory=list)  # when each batch was there, in all ranks
    samples: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)  # for each batch, in seconds
    mismatches: list[int] = field(default_factory=list)  # samples whose bytes were wrong
