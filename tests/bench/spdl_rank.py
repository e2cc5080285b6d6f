"""A rank that reads epochs by SPDL's PipelineBuilder: through the cache, or by HTTP from the store.

Run as a program: it is given a Job as JSON, and prints a line of JSON for each epoch. In the last epoch,
a thread counts how long the others keep the interpreter's lock from it.
"""

from __future__ import annotations

import collections
import dataclasses
import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

THREADS = 8
BATCH = 16
OURS, PLAIN, KEPT = "optcache", "spdl", "spdl, keeping what came first"
_SWITCH_SECONDS = 0.0005  # else each read waits for 5 ms for the thread that counts


@dataclasses.dataclass(frozen=True)
class Job:
    way: str
    epochs: int
    samples: int
    paths: list[str]
    port: int  # of the store
    memory: int  # bytes that KEPT may keep
    socket: str  # of the sidecar


class Fetch:
    """Reads a sample by HTTP, over a connection of each thread. It keeps the first samples that fit."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._threads = threading.local()
        self._lock = threading.Lock()
        self._kept: dict[int, bytes] = {}
        self._room = job.memory if job.way == KEPT else 0

    def __call__(self, index: int) -> bytes:
        found = self._kept.get(index)
        if found is not None:
            return found
        body = self._read(index)
        with self._lock:
            if len(body) <= self._room:
                self._room -= len(body)
                self._kept[index] = body
        return body

    def _read(self, index: int) -> bytes:
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", self._job.port, timeout=120)
            self._threads.connection = connection
        connection.request("GET", "/" + self._job.paths[index])
        answer = connection.getresponse()
        body: bytes = answer.read()
        if answer.status != 200:
            raise OSError(f"{self._job.paths[index]}: HTTP {answer.status}")
        return body


def pipelines(job: Job) -> Callable[[int], Any]:
    """Makes the pipeline of an epoch, which gives batches of samples."""
    from spdl.pipeline import PipelineBuilder
    from spdl.source import DistributedRandomSampler

    sampler = DistributedRandomSampler(job.samples, rank=0, world_size=1)
    if job.way == OURS:
        import optcache
        from optcache.spdl import Source

        data = optcache.Dataset(socket=job.socket)
        source = Source(
            data, sampler, batch_size=BATCH, num_threads=THREADS, epochs=job.epochs
        )

        def ours(epoch: int) -> Any:
            source.shuffle(epoch)
            return PipelineBuilder().add_source(source).pipe(samples_of).add_sink(2).build(num_threads=1)

        return ours
    fetch = Fetch(job)

    def plain(epoch: int) -> Any:
        sampler.shuffle(epoch)
        builder = PipelineBuilder().add_source(sampler).pipe(fetch, concurrency=THREADS)
        return builder.aggregate(BATCH).add_sink(2).build(num_threads=THREADS)

    return plain


def samples_of(batch: tuple[list[int], list[Any]]) -> list[Any]:
    return batch[1]


@contextmanager
def interpreter_lock() -> Iterator[Callable[[], float]]:
    """How many seconds a thread that computes has waited for the interpreter's lock so far."""
    stop = threading.Event()
    waited = [0.0]

    def count() -> None:
        place = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")

        def idle() -> float:
            """Neither running nor waiting for a processor."""
            running, ready, _ = map(int, place.read_text().split())
            return time.perf_counter() - (running + ready) / 1e9

        begin = idle()
        while not stop.is_set():
            collections.deque(range(10_000), maxlen=0)
            waited[0] = idle() - begin

    thread = threading.Thread(target=count)
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    thread.start()
    try:
        yield lambda: waited[0]
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


def read(pipeline: Any) -> tuple[int, int]:
    """Samples and bytes of an epoch."""
    samples = size = 0
    with pipeline.auto_stop():
        for batch in pipeline:
            samples += len(batch)
            size += sum(map(len, batch))
    return samples, size


def main() -> None:
    job = Job(**json.loads(sys.argv[1]))
    pipeline = pipelines(job)
    for epoch in range(job.epochs):
        begin = time.monotonic()
        lock = None
        if epoch < job.epochs - 1:
            samples, size = read(pipeline(epoch))
        else:
            with interpreter_lock() as waited:
                samples, size = read(pipeline(epoch))
                lock = waited()
        seconds = time.monotonic() - begin
        print(
            json.dumps({"seconds": seconds, "samples": samples, "bytes": size, "lock": lock}),
            flush=True,
        )


if __name__ == "__main__":
    main()
