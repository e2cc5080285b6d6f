"""The wheel of `./dev wheel` in a Debian that has no compiler and none of the programs' libraries."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.images import mirror
from cluster.settings import DEBIAN_RELEASE
from harness.commands import Ended, run

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = 40
SECONDS = 1200.0  # of each step: a minute on a quiet machine
LACKS = ("gcc", "libcpprest2.10", "libcurl4", "libfmt9", "libisal2", "libspdlog1.10", "libyaml-cpp0.7")

DATASET = """\
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {name: photos}
spec: {source: {file: {path: /data}}, cache: {capacity: 30%}}
"""
# In the new Debian: with nothing of this machine's environment, and all that it starts ends with it.
ENTER = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--root")
ENVIRONMENT = ("env", "-i", "HOME=/root", "PATH=/usr/bin:/usr/sbin")
INSTALL = """
set -e
python3 -m venv /venv
. /venv/bin/activate
pip install --no-index /optcache-*.whl
optcache up --help
"""
READ = """
import os, re, signal, subprocess
from pathlib import Path

import optcache

command = ["optcache", "up", "-f", "/dataset.yaml", "--port", "0"]
with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as up:
    for line in up.stdout:
        print(line, end="")
        if found := re.match("export OPTCACHE_SOCKET=(.*)", line):
            break
    samples = optcache.Dataset(socket=found[1])
    for number in range(len(samples)):
        assert bytes(samples[number]) == Path("/data", samples.path(number)).read_bytes()
    read, fallbacks = len(samples), optcache.stats().fallbacks
    up.send_signal(signal.SIGINT)
    up.communicate()
print(f"read {read}, {fallbacks} of them from the folder, up ended with {up.returncode}")
"""

pytestmark = [
    pytest.mark.long,  # it installs a Debian
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can install a Debian beside its own"),
]


@pytest.fixture
def deadline_seconds() -> int:
    return 3600


@pytest.fixture
def wheel(programs: Path, tmp_path: Path) -> Path:
    """With the programs that the other tests run."""
    done = run([ROOT / "dev", "wheel", "--programs", programs, "--out", tmp_path], ROOT, SECONDS)
    assert done.code == 0, done.out + done.err
    (path,) = tmp_path.glob("optcache-*.whl")
    return path


@pytest.fixture
def debian() -> Iterator[Path]:
    """The root folder of a Debian with Python alone."""
    root = Path(tempfile.mkdtemp(prefix="oc-debian-"))
    command = ["debootstrap", "--variant=minbase", "--include=python3-venv", DEBIAN_RELEASE, root, mirror()]
    done = run(command, root, SECONDS)
    assert done.code == 0, done.out + done.err
    yield root
    shutil.rmtree(root)


def enter(root: Path, *command: str) -> Ended:
    return run([*ENTER, root, *ENVIRONMENT, *command], root, SECONDS)


def test_the_wheel_is_installed_and_read_through_without_a_compiler(wheel: Path, debian: Path) -> None:
    installed = enter(debian, "dpkg-query", "--show", "--showformat=${Package}\n").out.split()
    assert "python3-venv" in installed
    assert not set(LACKS) & set(installed)
    shutil.copy(wheel, debian)
    chance = random.Random(1)
    (debian / "data").mkdir()
    for number in range(SAMPLES):
        (debian / "data" / f"{number}.bin").write_bytes(chance.randbytes(10_000))
    (debian / "dataset.yaml").write_text(DATASET)
    (debian / "read.py").write_text(READ)

    done = enter(debian, "sh", "-c", INSTALL)
    assert done.code == 0, done.out + done.err
    done = enter(debian, "sh", "-c", ". /venv/bin/activate && python3 /read.py")
    assert done.code == 0, done.out + done.err
    assert done.out.splitlines()[-1] == f"read {SAMPLES}, 0 of them from the folder, up ended with 0"
