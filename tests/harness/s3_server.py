"""Real servers of S3 on loopback, strict about signatures: what all have, and versitygw over a folder.

ceph.py has another one; s3_tested.py says which of them a run of tests is against.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cluster import programs
from cluster.settings import Paths
from harness.errors import HarnessError
from harness.ports import free_port
from harness.processes import last_lines, stop, wait_until
from harness.s3_client import S3Client

LOG_RESTS_SECONDS = 0.5
PROGRAM = "versitygw"


def missing_program() -> str:
    """Why there is no server and none can be built, or nothing."""
    if _program().exists() or shutil.which("go"):
        return ""
    how = "./dev cluster programs s3 builds it with Go, which is not installed"
    return f"no {PROGRAM} in {_program().parent}: {how}"


def program() -> Path:
    """The server's program; built from its Go module the first time, which takes a minute or two."""
    programs.ensure(Paths.default(), ["s3"])
    return _program()


def _program() -> Path:
    return Paths.default().program(PROGRAM)


@dataclass(frozen=True)
class Keys:
    access: str
    secret: str


ANY_KEYS = Keys("anybody", "anything")


def boto3_client(endpoint: str, keys: Keys = ANY_KEYS, **words: Any) -> Any:
    """boto3 is not installed everywhere."""
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=keys.access,
        aws_secret_access_key=keys.secret,
        **words,
    )


@contextmanager
def keys_in_environment(keys: Keys, region: str) -> Iterator[Mapping[str, str]]:
    """Also for `optcache up`, which has no other way to them here. Nothing else of AWS is found."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID=keys.access,
        AWS_SECRET_ACCESS_KEY=keys.secret,
        AWS_REGION=region,
        AWS_DEFAULT_REGION=region,
        AWS_CONFIG_FILE="/dev/null",
        AWS_SHARED_CREDENTIALS_FILE="/dev/null",
        AWS_EC2_METADATA_DISABLED="true",
        TQDM_DISABLE="1",
    )
    try:
        yield dict(os.environ)
    finally:
        os.environ.clear()
        os.environ.update(before)


class BucketServer(ABC):
    """A server of S3 as tests know it. Runs from construction to the end of its `with`.

    With `certificate` and its key, by https, as localhost. With `port`, one that was free before.
    Another one over the same folder finds what lies in it.
    """

    PROGRAM = ""
    START_SECONDS = 60.0

    def __init__(
        self,
        folder: Path,
        keys: Keys,
        region: str = "us-east-1",
        certificate: Path | None = None,
        private_key: Path | None = None,
        port: int = 0,
    ) -> None:
        self._folder = folder
        self._keys = keys
        self.region = region
        self._certificate, self._private_key = certificate, private_key
        self.port = port or free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self._output = folder / f"{self.PROGRAM}.log"
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._prepare()
            with open(self._output, "ab") as output:
                self._process = subprocess.Popen(
                    self._command(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._environment(),
                    start_new_session=True,
                )
            wait_until(self._is_up, f"{self.PROGRAM} listens", self.START_SECONDS)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def endpoint(self) -> str:
        host = "https://localhost" if self._certificate else "http://127.0.0.1"
        return f"{host}:{self.port}"

    def client(self, ca_file: Path | None = None) -> S3Client:
        return S3Client(
            self.endpoint, self._keys.access, self._keys.secret, self.region, str(ca_file or "")
        )

    @abstractmethod
    def place(self, bucket: str, key: str, body: bytes) -> None:
        """As put, the quickest way for thousands."""

    @abstractmethod
    def gets(self) -> int:
        """How many GetObject it has answered, whatever it answered."""

    @abstractmethod
    def listings(self) -> int:
        """How many requests it has answered that list objects."""

    @abstractmethod
    def _prepare(self) -> None:
        """Before the command: folders, other processes."""

    @abstractmethod
    def _command(self) -> Sequence[str | Path]: ...

    @abstractmethod
    def _variables(self) -> Mapping[str, str]:
        """Of its environment."""

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._variables()}

    def _end(self) -> None:
        if self._process:
            stop(self._process)

    def _is_up(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise HarnessError(f"{self.PROGRAM} does not start:\n{last_lines(self._output)}")
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


class S3Server(BucketServer):
    """versitygw. Buckets are folders of `folder`/buckets."""

    PROGRAM = PROGRAM

    @property
    def _buckets(self) -> Path:
        return self._folder / "buckets"

    @property
    def _metadata(self) -> Path:
        return self._folder / "metadata"

    @property
    def _requests(self) -> Path:
        return self._folder / "requests.log"

    def place(self, bucket: str, key: str, body: bytes) -> None:
        """Past the server, which then tells no ETag of its own."""
        path = self._buckets / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def gets(self) -> int:
        return self.requests("s3_GetObject")

    def listings(self) -> int:
        return self.requests("ListObject")

    def requests(self, operation: str) -> int:
        """How many of one kind it has answered, as its log names them: "s3_GetObject"."""
        return self.log().count(operation)

    def log(self) -> str:
        """A line for each request. It is written after the answer, so it is awaited until it rests."""
        size = -1
        while size != (size := self._requests.stat().st_size):
            time.sleep(LOG_RESTS_SECONDS)
        return self._requests.read_text(errors="replace")

    def _prepare(self) -> None:
        for folder in (self._buckets, self._metadata):
            folder.mkdir(exist_ok=True)

    def _command(self) -> Sequence[str | Path]:
        secure: list[str | Path] = []
        if self._certificate and self._private_key:
            secure = ["--cert", self._certificate, "--key", self._private_key]
        return [
            program(),
            *("--port", f"127.0.0.1:{self.port}"),
            *("--region", self.region),
            *("--access-log", self._requests),
            *("--keep-alive", "--quiet"),
            *secure,
            "posix",
            *("--sidecar", self._metadata),
            self._buckets,
        ]

    def _variables(self) -> Mapping[str, str]:
        return {"ROOT_ACCESS_KEY_ID": self._keys.access, "ROOT_SECRET_ACCESS_KEY": self._keys.secret}
