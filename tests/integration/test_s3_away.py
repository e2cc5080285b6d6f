"""What boto3 sees of the S3 endpoint while the sidecar is away, as the page for users says. Skipped
where boto3 is not installed; `./dev test frameworks` installs it.
"""

from __future__ import annotations

import io
import os
import random
import re
import signal
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from harness import pages, s3_server
from harness.cluster import DATASET, Budget, Cluster, ClusterOptions
from harness.processes import wait_until

boto3 = pytest.importorskip("boto3")
PAGE = pages.blocks("no-code-change.md", "While the sidecar is away", "yaml")
SETTINGS = dict(re.findall(r"name: (AWS_\w+), value: \"?(\w+)", "".join(PAGE)))
LARGE = 48 << 20  # more than sockets hold


@pytest.fixture
def bodies() -> dict[str, bytes]:
    chance = random.Random(7)
    return {"small": chance.randbytes(1000), "large": chance.randbytes(LARGE)}


@pytest.fixture
def cache(programs: Path, tmp_path: Path, bodies: Mapping[str, bytes]) -> Iterator[Cluster]:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, body in bodies.items():
        (folder / name).write_bytes(body)
    options = ClusterOptions(
        programs=programs,
        base_url=str(folder),
        listing="",
        machines=1,
        budget=Budget(memory=2 * LARGE, arena=2 * LARGE),
        state=tmp_path / "state",
        sockets=tmp_path,
        order="Path",
        s3_endpoint=True,
    )
    with Cluster(options, "Optimal", tmp_path) as running:
        yield running


@pytest.fixture
def client(cache: Cluster, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """client(settings, pause): a client with these variables, which calls `pause` where it would sleep."""

    def make(settings: Mapping[str, str], pause: Callable[[float], None]) -> Any:
        for name in SETTINGS:
            monkeypatch.delenv(name, raising=False)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=pause))
        return s3_server.boto3_client(cache.s3_endpoint(0))

    return make


def answers(cache: Cluster) -> bool:
    try:
        urllib.request.urlopen(f"{cache.s3_endpoint(0)}/{DATASET}/small", timeout=120).close()
    except OSError:
        return False
    return True


def is_back(cache: Cluster) -> None:
    wait_until(lambda: answers(cache), "the sidecar was started again")


@contextmanager
def away(cache: Cluster) -> Iterator[None]:
    """The sidecar is killed, and `optcache up` cannot start it again before the `with` ends."""
    os.kill(cache.coordinator_pid, signal.SIGSTOP)
    try:
        os.kill(cache.pids()["sidecar-0"], signal.SIGKILL)
        wait_until(lambda: not answers(cache), "nothing answers")
        yield
    finally:
        os.kill(cache.coordinator_pid, signal.SIGCONT)
    is_back(cache)


@pytest.mark.parametrize(("settings", "tries"), [({}, 5), (SETTINGS, 10)], ids=["none", "page"])
def test_a_sidecar_that_is_back_before_the_last_try(
    cache: Cluster,
    client: Callable[..., Any],
    bodies: Mapping[str, bytes],
    settings: Mapping[str, str],
    tries: int,
) -> None:
    """Costs no read; one that is not ends the read."""
    from botocore.exceptions import EndpointConnectionError

    pauses: list[float] = []
    starts_again = ExitStack()

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == tries - 1:
            starts_again.close()

    reader = client(settings, pause)
    with away(cache), pytest.raises(EndpointConnectionError):
        reader.get_object(Bucket=DATASET, Key="small")
    assert len(pauses) == tries - 1
    assert max(pauses) <= 20

    pauses.clear()
    starts_again.enter_context(away(cache))
    body = reader.get_object(Bucket=DATASET, Key="small")["Body"].read()
    assert body == bodies["small"]
    assert len(pauses) == tries - 1


def test_an_answer_that_breaks_off_is_the_callers(
    cache: Cluster, client: Callable[..., Any], bodies: Mapping[str, bytes]
) -> None:
    """If it reads the body itself; what boto3 downloads to a file, it reads again."""
    from boto3.s3.transfer import TransferConfig
    from botocore.exceptions import IncompleteReadError, ResponseStreamingError

    class File(io.BytesIO):
        """The sidecar is killed when its first bytes come."""

        killed = False

        def write(self, data: Any) -> int:
            if not self.killed:
                self.killed = True
                with away(cache):
                    pass
            return super().write(data)

    reader = client({}, lambda seconds: is_back(cache))
    body = reader.get_object(Bucket=DATASET, Key="large")["Body"]
    assert body.read(1) == bodies["large"][:1]
    with away(cache), pytest.raises((ResponseStreamingError, IncompleteReadError)):
        body.read()

    file = File()
    in_one_answer = TransferConfig(multipart_threshold=2 * LARGE, use_threads=False)
    reader.download_fileobj(DATASET, "large", file, Config=in_one_answer)
    assert file.killed
    assert file.getvalue() == bodies["large"]
