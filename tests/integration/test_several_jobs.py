"""Several jobs on one dataset: docs/user/several-jobs.md, word for word, and jobs of several ranks.
What that page does on a cluster is tried in tests/cluster.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "user" / "several-jobs.md"
READS = 20_000
ALONE = 15_200  # of the store, if each job has a cache of its own
SECONDS = 300


@pytest.mark.long
def test_two_jobs_on_this_machine(programs: Path, tmp_path: Path) -> None:
    page = PAGE.read_text()
    block, _ = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    script, count = re.subn("optcache up ", "optcache up --port 0 ", block)  # others may be up
    assert count == 1
    # Its python3 is this one.
    path = [programs, Path(sys.executable).parent, os.environ["PATH"]]
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": ":".join(map(str, path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            output, errors = shell.communicate(timeout=SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)  # what it started, if it failed
    assert shell.returncode == 0, errors
    heads, row, *_ = output.splitlines()
    store_reads = dict(zip(re.split("  +", heads), re.split("  +", row)))["STORE READS"]
    assert f"{READS:,} reads in all" in page and f"it would be {ALONE:,}" in page
    # "About 10,000"; each second until the plan is there costs a few hundred more.
    print(f"{store_reads} reads of the store")
    assert 9_500 <= int(store_reads.replace(",", "")) <= 12_000
    log = (tmp_path / "state" / "logs" / "sidecar-0.log").read_text()
    assert "stream=default/local/samples/train-2 " in log
    assert "order unknown" not in log


RANK = """
import sys
import optcache
from optcache.torch import attach
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

rank, seed = int(sys.argv[1]), int(sys.argv[2])
data = optcache.Dataset()
sampler = DistributedSampler(data, num_replicas=2, rank=rank, seed=seed)
loader = attach(DataLoader(data, batch_size=50, sampler=sampler, collate_fn=list))
print("attached", flush=True)
for epoch in map(int, sys.stdin):
    sampler.set_epoch(epoch)
    print(sum(len(batch) for batch in loader), flush=True)
"""


def test_ranks_of_two_jobs_find_each_other(start_cache: Callable[..., Cluster]) -> None:
    """They attach in turn, by one name, and each job has a seed of its own."""
    cluster = start_cache()
    begun = len(cluster.log_of("sidecar-0"))
    with contextlib.ExitStack() as stack:

        def start(job: int, rank: int) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-c", RANK, str(rank), str(job)],
                env={
                    **os.environ,
                    "OPTCACHE_SOCKET": str(cluster.socket(0)),
                    "MASTER_ADDR": "localhost",
                    "MASTER_PORT": str(29500 + job),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert said(process) == "attached"
            return process

        processes = [start(job, rank) for job, rank in [(1, 0), (2, 1), (1, 1), (2, 0)]]
        for epoch in range(2):
            for process in processes:
                tell(process, epoch)
            assert [int(said(process)) for process in processes] == [750] * 4
    log = cluster.log_of("sidecar-0")[begun:]
    attached = re.findall(r"loader attached.*?stream=\S*/(\S+) .*?rank=(\d)", log)
    assert attached == [("train", "0"), ("train-2", "1"), ("train", "1"), ("train-2", "0")]
    assert "order unknown" not in log


PACED = """
import sys, time
import optcache
from optcache.torch import attach
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

seed, pause, passes = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
data = optcache.Dataset()
sampler = DistributedSampler(data, num_replicas=1, rank=0, seed=seed)
loader = DataLoader(data, batch_size=10, sampler=sampler, collate_fn=list)
attach(loader, name=f"job-{seed}", epochs=passes)
print("attached", flush=True)
sys.stdin.readline()
for epoch in range(passes):
    sampler.set_epoch(epoch)
    for batch in loader:
        time.sleep(pause)
"""
PAUSES = (0.002, 0.004, 0.008, 0.012)  # of the jobs, for each batch
MARGIN = 1.01  # two that ask at one moment on a busy machine may both read a sample


@pytest.mark.long
@pytest.mark.parametrize("passes", [1, 2])
def test_jobs_that_drift_apart_read_what_fits_once(
    start_cache: Callable[..., Cluster], store: Store, dataset: Dataset, passes: int
) -> None:
    """In passes too short to measure speeds in, up to the end of the last one."""
    cluster = start_cache(share=1.0)
    with contextlib.ExitStack() as stack:
        jobs = []
        for seed, pause in enumerate(PAUSES):
            job = subprocess.Popen(
                [sys.executable, "-c", PACED, str(seed), str(pause), str(passes)],
                env={**os.environ, "OPTCACHE_SOCKET": str(cluster.socket(0))},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(job.wait)
            stack.callback(job.kill)
            jobs.append(job)
        assert [said(job) for job in jobs] == ["attached"] * len(jobs)
        begin = store.log_size()
        for job in jobs:
            tell(job, 0)
        assert [job.wait() for job in jobs] == [0] * len(jobs)
    read = store.read_bytes(begin) / dataset.total_bytes
    print(f"{read:.3f} times the dataset")
    assert read <= MARGIN


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], epoch: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{epoch}\n")
    process.stdin.flush()
