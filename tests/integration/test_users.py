"""A machine that several users share: who may read what another one serves."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import optcache
import pytest
from harness import garbage
from harness.cluster import Budget, Cluster, ClusterOptions
from harness.dataset import Dataset, generate
from harness.processes import wait_until

OWNER, FRIEND, OTHER = 65532, 65533, 65534
SAMPLES = 40
PROGRAMS = ("optcache", "optcache-node", "optcache-sidecar")
READ = "import sys, optcache; print(len(optcache.Dataset(socket=sys.argv[1], wait=0)[3]))"
CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
            print("connected")
        except OSError as error:
            print(type(error).__name__)
"""
LISTENING = "0A"  # in /proc/net/tcp

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")


@pytest.fixture
def folder() -> Iterator[Path]:
    """That every user can reach, with the Python package."""
    path = Path(tempfile.mkdtemp(prefix="oc-"))
    path.chmod(0o755)
    shutil.copytree(Path(optcache.__file__).parent, path / "package" / "optcache")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def samples(folder: Path) -> Dataset:
    return generate(folder / "data", SAMPLES, seed=1)


def run_as(user: int, command: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        user=user,
        group=user,
        extra_groups=[],
        cwd="/",
        env={"PYTHONPATH": str(folder / "package"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def read_as(user: int, socket: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_as(user, [sys.executable, "-c", READ, socket], folder)


def listening_ports(pids: Sequence[int]) -> set[int]:
    """At which these processes listen by TCP."""
    sockets = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has been closed
                sockets.add(os.readlink(descriptor))
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {
        int(line[1].rsplit(":", 1)[1], 16)
        for line in lines
        if line[3] == LISTENING and f"socket:[{line[9]}]" in sockets
    }


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_other_users_are_told_to_be_allowed(
    programs: Path, samples: Dataset, folder: Path, tmp_path: Path
) -> None:
    options = ClusterOptions(
        programs=programs,
        base_url=str(samples.root),
        listing="",
        machines=1,
        budget=Budget(samples.total_bytes, 8 << 20),
        state=tmp_path / "state",
        sockets=folder,
        allowed=[FRIEND],
    )
    with Cluster(options, "Optimal", tmp_path) as cluster:
        friend = read_as(FRIEND, cluster.socket(0), folder)
        assert friend.stdout.strip() == str(samples.sizes[3]), friend.stderr
        other = read_as(OTHER, cluster.socket(0), folder)
        assert other.returncode != 0
        assert f"this sidecar is not for user {OTHER}: train as the user that started it" in other.stderr
        refused = 'optcache_channel_refused_total{reason="user"}'
        assert cluster.metrics_of("sidecar-0")[refused] >= 1
        for path in (tmp_path / "state", tmp_path / "state" / "logs", tmp_path / "state" / "run"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.fixture
def of_owner(programs: Path, samples: Dataset, folder: Path) -> Iterator[Cluster]:
    """A cache that OWNER runs, who is not root, in a state folder that every user can reach."""
    for name in ("bin", "home", "home/state", "home/sockets"):
        (folder / name).mkdir()
    for name in ("home", "home/state", "home/sockets"):
        os.chown(folder / name, OWNER, OWNER)
        (folder / name).chmod(0o755)
    for program in PROGRAMS:
        shutil.copy(programs / program, folder / "bin")
    options = ClusterOptions(
        programs=folder / "bin",
        base_url=str(samples.root),
        listing="",
        machines=2,
        budget=Budget(samples.total_bytes, 8 << 20),
        state=folder / "home" / "state",
        sockets=folder / "home" / "sockets",
        user=OWNER,
    )
    with Cluster(options, "Optimal", folder / "home") as cluster:
        yield cluster


def test_nodes_and_coordinator_answer_their_user_alone(
    of_owner: Cluster, samples: Dataset, folder: Path
) -> None:
    addresses = [of_owner.control, *(member["address"] for member in of_owner.status()["members"])]
    assert len(addresses) == 3 and all(address.startswith("unix:") for address in addresses)
    sockets = [address.removeprefix("unix:") for address in addresses]
    connect = [sys.executable, "-c", CONNECT, *sockets]
    status = [folder / "bin" / "optcache", "status", "--state", folder / "home" / "state"]

    assert run_as(OWNER, connect, folder).stdout.split() == ["connected"] * 3
    assert "default/images" in run_as(OWNER, status, folder).stdout
    own = read_as(OWNER, of_owner.socket(1), folder)
    assert own.stdout.strip() == str(samples.sizes[3]), own.stderr

    assert run_as(OTHER, connect, folder).stdout.split() == ["PermissionError"] * 3
    refused = run_as(OTHER, status, folder)
    assert refused.returncode == 1
    assert "is another user's: it answers that user and root alone" in refused.stderr
    # The folder is not all that keeps it out.
    Path(sockets[0]).parent.chmod(0o755)
    assert run_as(OTHER, connect, folder).stdout.split() == ["PermissionError"] * 3
    (folder / "home" / "state").chmod(0o700)
    refused = run_as(OTHER, status, folder)
    assert refused.returncode == 1
    assert "is another user's: an `optcache up` answers its user and root alone" in refused.stderr


def test_by_tcp_there_are_pages_alone(of_owner: Cluster) -> None:
    ports: set[int] = set()

    def all_are_found() -> bool:
        # The kernel does not list sockets and children at one moment, and may pass over some.
        ports.update(listening_ports(of_owner.groups()))
        return len(ports) >= 5

    wait_until(all_are_found, "ports of the coordinator, two nodes and two sidecars")
    assert len(ports) == 5
    for port in ports:
        base = f"http://127.0.0.1:{port}"
        assert status_of(f"{base}/metrics") == 200
        for path in ("/v1/status", "/v1/state?after=0.0", "/v1/manifests/aa", "/v1/base/aa"):
            assert status_of(f"{base}{path}") == 404, path
        assert not garbage.wire_door(f"127.0.0.1:{port}").welcomes()
