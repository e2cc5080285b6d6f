"""A pipeline of SPDL that reads through the cache, beside SPDL's own reading of the same web server.

Each way: one rank with 8 threads, by a link that all answers share, with equal memory. The memory of
node and sidecar counts, with the arena. In the last epoch, which counts for no rate, the time is taken for
which the threads that read hold the interpreter's lock.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from bench.context import REPOSITORY, Context
from bench.figures import Figure
from bench.peers import venv
from bench.scene import Made, cluster_over, store_of
from bench.spdl_rank import KEPT, OURS, PLAIN, THREADS, Job
from harness.errors import HarnessError
from harness.slow_link import SlowLink

SHARE = 0.3
BYTES_EACH = 32 << 10
ARENA_BYTES = 4 << 20
RATE = 16e6  # bytes a second of the link
EPOCHS = 4  # the first fills the cache, the last measures the lock
ROUNDS = 3
RANK_SECONDS = 600.0
LOOK_SECONDS = 0.05


@dataclasses.dataclass(frozen=True)
class Row:
    way: str
    rate: float  # samples a second in warm epochs
    memory: int  # the most bytes of all processes at a time
    lock: float  # seconds a sample


def row_of(way: str, epochs: Sequence[dict[str, float]], memory: int) -> Row:
    """Of what a rank has printed."""
    warm, last = epochs[1:-1], epochs[-1]
    rate = sum(it["samples"] for it in warm) / sum(it["seconds"] for it in warm)
    return Row(way, rate, memory, last["lock"] / last["samples"])


def figures_of(rows: Sequence[Row], bound: float) -> list[Figure]:
    """Medians of the rounds. `bound`: samples a second at which no cache of that size reads more."""
    ways = dict.fromkeys(row.way for row in rows)
    figures = []
    for way in ways:
        mine = [row for row in rows if row.way == way]
        rate = statistics.median(row.rate for row in mine)
        memory = statistics.median(row.memory for row in mine)
        lock = statistics.median(row.lock for row in mine)
        figures += [
            Figure(f"{way}: samples in warm epochs", rate, "1/s", f"{bound:.0f}: the bound"),
            Figure(f"{way}: most memory, of all processes", memory / 1e6, "MB"),
            Figure(f"{way}: lock of the interpreter, {THREADS} threads", lock * 1e6, "us/sample"),
        ]
    return figures


def memory_of(pids: Sequence[int]) -> int:
    """Bytes; a page that several processes share counts once."""
    total = 0
    for pid in pids:
        with suppress(OSError):  # it has ended
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            total += int(text.partition("\nPss:")[2].split()[0]) << 10
    return total


def run_rank(python: Path, job: Job, beside: Callable[[], Sequence[int]]) -> Row:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{REPOSITORY / 'sidecar' / 'python' / 'src'}{os.pathsep}{REPOSITORY / 'tests'}",
    }
    command: list[str | Path] = [python, "-m", "bench.spdl_rank", json.dumps(dataclasses.asdict(job))]
    pipes = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipes, stderr=pipes, text=True) as rank:
        ended = threading.Event()
        most = [0]

        def look() -> None:
            while not ended.wait(LOOK_SECONDS):
                most[0] = max(most[0], memory_of([rank.pid, *beside()]))

        looking = threading.Thread(target=look)
        looking.start()
        try:
            out, words = rank.communicate(timeout=RANK_SECONDS)
        except BaseException:
            rank.kill()
            raise
        finally:
            ended.set()
            looking.join()
    if rank.returncode != 0:
        raise HarnessError(f"{job.way}: the rank ends with {rank.returncode}: {words[-2000:]}")
    epochs = [json.loads(line) for line in out.splitlines()]
    wrong = [it for it in epochs if (it["samples"], it["bytes"]) != (job.samples, job.samples * BYTES_EACH)]
    if wrong:
        raise HarnessError(f"{job.way}: wrong samples in an epoch: {wrong[0]}")
    return row_of(job.way, epochs, most[0])


def measure(context: Context, made: Made, port: int, way: str, python: Path) -> Row:
    budget = made.budget
    with ExitStack() as running:
        link = running.enter_context(SlowLink(port, rate=RATE))
        socket = ""
        beside: Callable[[], Sequence[int]] = list
        if way == OURS:
            cluster = running.enter_context(
                cluster_over(context, made, f"http://127.0.0.1:{link.port}/")
            )
            socket = str(cluster.socket(0))
            beside = cluster.groups
        job = Job(
            way=way,
            epochs=EPOCHS,
            samples=made.samples,
            paths=made.paths,
            port=link.port,
            memory=budget.memory + budget.arena,
            socket=socket,
        )
        row = run_rank(python, job, beside)
    return row


def run(context: Context) -> list[Figure]:
    python = venv.python()
    samples = 200 if context.quick else 2_000
    made = Made(samples, BYTES_EACH, machines=1, share=SHARE, arena=ARENA_BYTES)
    rows = []
    with store_of(context, made) as store:
        for number in range(1 if context.quick else ROUNDS):
            for at, way in enumerate((OURS, PLAIN, KEPT)):
                folder = context.within(f"{number}-{at}")
                rows.append(measure(folder, made, store.port, way, python))
                context.say(f"{rows[-1]}")
    bound = RATE / BYTES_EACH / (1 - SHARE)
    return figures_of(rows, bound)
