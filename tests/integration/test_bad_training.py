"""Every mistake in a training process is answered by one sentence that says what is wrong and what to do."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import optcache
import pytest
from harness import commands
from harness.cluster import Cluster
from harness.dataset import Dataset
from harness.processes import wait_until
from harness.refusals import refusal, refusal_at_once
from optcache import _protocol
from optcache.torch import attach
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPTCACHE_SOCKET", raising=False)
    monkeypatch.setenv("OPTCACHE_WAIT", "0.2")


@pytest.mark.usefixtures("impatient")
def test_no_sidecar_is_said_with_where_it_was_looked_for(tmp_path: Path) -> None:
    path, left, file = tmp_path / "sock", tmp_path / "left", tmp_path / "file"
    waited = ". Waited 0.2 s: wait= or OPTCACHE_WAIT sets how long"
    assert refusal(optcache.Dataset) == (
        "the socket of the sidecar is not known: set OPTCACHE_SOCKET (`optcache up` prints the "
        "line, and in a pod with a sidecar it is set), or give socket=..."
    )
    assert refusal(lambda: optcache.Dataset(socket=str(path))) == (
        f"there is no socket at {path}: start optcache-sidecar, or set OPTCACHE_SOCKET to where it "
        "listens" + waited
    )
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(left))
    assert refusal(lambda: optcache.Dataset(socket=str(left))) == (
        f"no process listens at {left}: optcache-sidecar has ended, see its log" + waited
    )
    file.touch()
    assert refusal(lambda: optcache.Dataset(socket=str(file))) == (
        f"{file} is not a socket: set OPTCACHE_SOCKET to where the sidecar listens" + waited
    )
    long = "/" + 200 * "x"
    assert refusal(lambda: optcache.Dataset(socket=long)) == (
        f"{long} is 201 bytes long, a socket's path may have 107"
    )


def loader(data: optcache.Dataset, rank: int, world: int, seed: int) -> DataLoader[object]:
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, seed=seed)  # type: ignore[arg-type, var-annotated]
    return DataLoader(data, batch_size=8, sampler=sampler, collate_fn=list)  # type: ignore[arg-type]


def read_by_another_thread(data: optcache.Dataset) -> None:
    """Which makes a connection of its own."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(data.__getitem__, 0).result()


def test_what_a_sidecar_cannot_do_is_said_at_once(
    start_cache: Callable[..., Cluster], dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(start_cache().socket(0))
    assert refusal_at_once(lambda: optcache.Dataset("nope", socket=path)) == (
        "this sidecar does not serve dataset 'nope'; it serves: default/images"
    )
    assert optcache.Dataset("images", socket=path).name == "default/images"
    data = optcache.Dataset(socket=path)
    count = len(dataset.paths)
    for index in (count, -count - 1, 1 << 40):
        assert refusal_at_once(lambda i=index: data[i], IndexError) == (  # type: ignore[misc]
            f"sample {index} of default/images: it has {count} samples, numbered from 0"
        )
    attached = attach(loader(data, rank=0, world=2, seed=1))
    for world, seed, difference in ((2, 7, "seed: 7 and 1"), (3, 1, "world: 3 and 2")):
        assert refusal_at_once(lambda w=world, s=seed: attach(loader(data, 1, w, s))) == (  # type: ignore[misc]
            f"loader 'default/local/images/train': ranks 1 and 0 differ in {difference}: all ranks of a "
            "loader need the same sampler; if these are two jobs, give each a name of its own"
        )
    assert bytes(data[0]) == dataset.read(0), "the others go on"
    del attached
    for version in (0, 3):  # an older and a newer package than the sidecar
        monkeypatch.setattr(_protocol, "MIN_VERSION", version)
        monkeypatch.setattr(_protocol, "MAX_VERSION", version)
        assert refusal_at_once(lambda: read_by_another_thread(data)) == (
            f"the client speaks versions {version} to {version}, this sidecar 1 to 2: install the "
            "Python package and the sidecar of one release"
        )


@pytest.mark.parametrize(
    ("world", "seed", "conflict"),
    [(2, 7, "seed: 1 (rank 0), 7 (rank 1)"), (3, 1, "world size: 2 (rank 0), 3 (rank 1)")],
)
def test_ranks_on_two_machines_that_disagree_train_on_and_are_told_of(
    programs: Path,
    start_cache: Callable[..., Cluster],
    dataset: Dataset,
    manifests: Path,
    world: int,
    seed: int,
    conflict: str,
) -> None:
    cluster = start_cache(machines=2)
    first, second = (optcache.Dataset(socket=str(cluster.socket(i))) for i in (0, 1))
    logs = [manifests / "logs" / f"node-{machine}.log" for machine in (0, 1)]
    old = [log.stat().st_size for log in logs]
    ranks = [attach(loader(first, 0, 2, 1))]
    wait_until(lambda: bool(cluster.status()["datasets"][0]["streams"]), "rank 0 is known")
    ranks.append(attach(loader(second, 1, world, seed)))

    def stream() -> dict[str, object]:
        return dict(cluster.status()["datasets"][0]["streams"][0])

    wait_until(lambda: stream()["conflict"] == conflict, "the conflict is in the status")
    assert not stream()["order_known"]
    for rank in ranks:
        expected = [dataset.read(i) for i in rank.sampler]
        assert [bytes(sample) for batch in rank for sample in batch] == expected
    said = (
        "ranks disagree, their order is not known: give all the same sampler "
        f'stream=default/local/images/train conflict="{conflict}"\n'
    )
    wait_until(
        lambda: all(said.encode() in log.read_bytes()[size:] for log, size in zip(logs, old)),
        "the nodes log it",
    )
    status = commands.run([programs / "optcache", "status", "--state", str(manifests)], manifests)
    assert status.out.endswith(
        f"default/images: the ranks of default/local/images/train disagree on {conflict}; its order "
        "is not known\n"
    )
