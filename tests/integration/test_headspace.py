"""`optcache headspace` on a store that is slow by a known measure, with a job of a known pace."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import paced_rank
from harness.dataset import Dataset, generate
from harness.faulty_store import FaultyStore, Pace as StorePace
from harness.paced_rank import Pace
from harness.processes import stop, wait_until
from harness.store import LISTING

SAMPLES = 2400
BATCH = 8
COMPUTE_SECONDS = 0.025
STORE = StorePace(seconds=0.03, at_once=4)
STORE_SECONDS = BATCH * STORE.seconds / STORE.at_once  # of a batch that nobody has
WARMUP, STEPS, FREE_STEPS = 10, 50, 50
ESTABLISHED = "01"  # in /proc/net/tcp

CONFIGURATION = """\
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {{name: images}}
spec:
  source: {{http: {{baseURL: "{url}", listing: {listing}}}}}
  order: ImageFolder
  cache: {{capacity: "50%"}}
"""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return generate(tmp_path_factory.mktemp("objects"), SAMPLES, seed=5)


@pytest.fixture(scope="module")
def store(objects: Dataset) -> Iterator[FaultyStore]:
    with FaultyStore(objects, STORE) as running:
        yield running


class Bench:
    """Runs `optcache headspace`, and the ranks that it measures."""

    def __init__(self, programs: Path, folder: Path, state: Path, objects: Dataset, url: str):
        self._programs = programs
        self._folder = folder
        self._state = state
        self._objects = objects
        (folder / "images.yaml").write_text(CONFIGURATION.format(url=url, listing=LISTING))
        objects.write_digests(folder / "digests")

    def pace(self, **changes: Any) -> Pace:
        usual = Pace(
            digests=str(self._folder / "digests"),
            records=str(self._folder / "records"),
            compute_seconds=COMPUTE_SECONDS,
            batch=BATCH,
            epochs=1,
        )
        return dataclasses.replace(usual, **changes)

    def command(self, pace: Pace, rank: int = 0) -> list[str]:
        spec = paced_rank.save(pace, self._folder / "pace.json")
        return [sys.executable, paced_rank.__file__, str(spec), str(rank)]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._end(self._headspace(*words))

    @contextlib.contextmanager
    def start(self, log: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """As `run`, but without waiting for its end; what it says goes to `log`."""
        with log.open("wb") as said:
            running = subprocess.Popen(
                self._headspace(*words), cwd=self._folder, stdin=subprocess.DEVNULL, stderr=said
            )
        try:
            yield running
        finally:
            stop(running)

    def measure(self, *words: str) -> subprocess.CompletedProcess[str]:
        steps = [f"--warmup-steps={WARMUP}", f"--steps={STEPS}", f"--free-steps={FREE_STEPS}"]
        return self.run(*steps, *words)

    def seconds_without_waiting(self) -> float:
        """Of a step whose data is in memory: another run of the same job tells."""
        files = tuple(str(self._objects.root / path) for path in self._objects.paths)
        ended = self._end(self.command(self.pace(files=files, records=str(self._folder / "local"))))
        assert ended.returncode == 0, ended.stderr
        return statistics.mean(seconds for seconds, _ in self.records("local")[WARMUP:])

    def records(self, name: str = "records") -> list[tuple[float, int]]:
        """Of each step the seconds that it took, and how many of its samples were others."""
        lines = (self._folder / name).read_text().splitlines()
        return [(seconds, wrong) for seconds, wrong in map(json.loads, lines)]

    def _headspace(self, *words: str) -> list[str]:
        options = ["--state", str(self._state), "--socket-dir", str(self._folder), "--arena=32Mi"]
        program = str(self._programs / "optcache")
        return [program, "headspace", "-f", "images.yaml", *options, *words]

    def _end(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self._folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def bench(
    programs: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    objects: Dataset,
    store: FaultyStore,
) -> Bench:
    return Bench(
        programs, tmp_path, tmp_path_factory.getbasetemp() / "state", objects, store.base_url
    )


def near(value: float, *truths: float) -> bool:
    """As near as machines allow on which other tests run; of several truths, to any between them."""
    return 0.7 * min(truths) < value < 1.4 * max(truths)


def check_that_samples_are_others_in_free_steps_alone(records: list[tuple[float, int]]) -> None:
    assert len(records) == SAMPLES / BATCH
    others = [step for step, (_, wrong) in enumerate(records) if wrong]
    assert WARMUP + STEPS < others[0]
    assert FREE_STEPS <= len(others) <= others[-1] - others[0] + 1 < FREE_STEPS + 40
    assert others[-1] < len(records) - 1


@pytest.mark.long
def test_the_report_tells_what_a_run_from_memory_takes(bench: Bench, tmp_path: Path) -> None:
    plot = tmp_path / "curve.svg"
    before = bench.seconds_without_waiting()
    words = ("--output=json", "--keep-running", f"--plot={plot}", "--", *bench.command(bench.pace()))
    ended = bench.measure(*words)
    assert ended.returncode == 0, ended.stderr
    assert "What it trains is not for use" in ended.stderr
    check_that_samples_are_others_in_free_steps_alone(bench.records())
    report = json.loads(ended.stdout)
    assert report["state"] == "done"
    assert report["results"] == "not-for-use"
    assert (report["ranks"], report["loader"]) == (1, "default/local/images/train")
    assert near(report["now"]["seconds"], STORE_SECONDS), report["now"]
    truths = (before, bench.seconds_without_waiting())  # a machine's pace changes
    assert near(report["free"]["seconds"], *truths), (report["free"], truths)
    assert near(report["gain"]["speedup"], *(STORE_SECONDS / truth for truth in truths)), report["gain"]
    assert report["gain"]["resolved"]
    assert report["run"]["steps"] == SAMPLES / BATCH
    assert report["now"]["hitRatio"] < 0.05, "the first epoch finds nothing in the cache"
    curve = [point["seconds"] for point in report["whatIf"]]
    assert curve == sorted(curve, reverse=True)
    assert near(curve[0], STORE_SECONDS)
    assert curve[-1] == report["free"]["seconds"]
    assert plot.read_text().startswith("<svg")


def test_the_training_command_is_stopped_when_the_report_is_there(bench: Bench) -> None:
    ended = bench.measure("--", *bench.command(bench.pace(epochs=1000)))
    assert ended.returncode == 0, ended.stderr
    # A busy machine may leave no gain to be seen.
    assert ended.stdout.splitlines()[-1] == "What this run has trained is not for use."
    assert "stopping the training command" in ended.stderr


@pytest.mark.long
def test_two_ranks_are_measured_together(bench: Bench) -> None:
    pace = bench.pace(world=2, epochs=1000)
    one, other = (" ".join(bench.command(pace, rank)) for rank in range(2))
    ended = bench.measure("--output=json", "--", "sh", "-c", f"{one} & {other} & wait")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["ranks"] == 2
    assert near(report["now"]["seconds"], 2 * STORE_SECONDS), report["now"]


def test_a_run_that_is_too_short_is_no_report(bench: Bench) -> None:
    ended = bench.run("--warmup-steps=5", "--steps=1000", "--", *bench.command(bench.pace(world=8)))
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "the training command ended before headspace was measured. " in ended.stderr
    assert "of 1000 steps." in ended.stderr


def test_a_command_that_fails_is_no_report(bench: Bench) -> None:
    ended = bench.run("--", sys.executable, "-c", "raise SystemExit(3)")
    assert ended.returncode == 1
    assert "the training command failed (exit status 3)" in ended.stderr


def child_of(parent: int, program: str) -> int:
    """Of the processes that this one has started, the one that runs the program."""
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if Path(f"/proc/{child}/exe").readlink().name == program:
            return int(child)
    raise LookupError(program)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def has_unread_request(port: int) -> bool:
    connections = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(
        address.endswith(f":{port:04X}") and state == ESTABLISHED and not queues.endswith(":00000000")
        for _, address, _, state, queues, *_ in connections
    )


def test_a_stop_is_told_as_such_while_the_sidecar_is_asked(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with bench.start(log, "--", "sleep", "3600") as running:
        pages = re.compile(r":(\d+)/metrics \(sidecar\)")
        wait_until(lambda: pages.search(log.read_text()) is not None, "the sidecar's address")
        port = int(pages.findall(log.read_text())[0])
        wait_until(lambda: listens(port), "the sidecar listens")
        sidecar = child_of(running.pid, "optcache-sidecar")
        os.kill(sidecar, signal.SIGSTOP)
        wait_until(lambda: has_unread_request(port), "the sidecar is asked for the report")
        # It takes five seconds to end, in which there is time for more looks.
        os.kill(child_of(running.pid, "optcache-node"), signal.SIGSTOP)
        running.send_signal(signal.SIGINT)
        wait_until(lambda: "stopping the training command" in log.read_text(), "the stop")
        os.kill(sidecar, signal.SIGCONT)
        assert running.wait(timeout=120) == 1
    assert log.read_text().splitlines()[-1].endswith("stopped before headspace was measured")


def test_mistakes_are_told_before_anything_is_indexed(bench: Bench, tmp_path: Path) -> None:
    ended = bench.run("--", "no-such-program")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("optcache: cannot run no-such-program")
    ended = bench.run("--keys", "images=none", "--", "true")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "--keys 'images=none': there is no folder none" in ended.stderr
    for words, told in (
        (["--plot", "nowhere/c.svg", "--", "true"], "--plot: there is no folder nowhere"),
        (["--plot", "c.png", "--", "true"], "--plot: c.png does not end in .svg"),
        (["true"], "write -- before the training command"),
        (["true", "--steps", "50"], "write -- before the training command"),
        (["true", "--help"], "write -- before the training command"),
    ):
        ended = bench.run(*words)
        assert ended.returncode == 2, words
        assert told in ended.stderr, (words, ended.stderr)
        assert "indexing" not in ended.stderr


def test_an_empty_source_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "images.yaml").write_text(
        "apiVersion: optcache.io/v1alpha1\nkind: Dataset\nmetadata: {name: nothing}\n"
        "spec:\n  source: {file: {path: empty}}\n  cache: {capacity: 50%}\n"
    )
    ended = bench.run("--", "true")
    assert ended.returncode == 1
    assert "there is no object: check the address of the source" in ended.stderr


def test_steps_have_limits(bench: Bench) -> None:
    ended = bench.run("--steps=19", "--", "true")
    assert ended.returncode == 2
    assert "--steps" in ended.stderr
