"""A real server of S3: versitygw over a folder, on loopback, strict about signatures."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster import programs
from cluster.settings import Paths
from harness.errors import HarnessError
from harness.ports import free_port
from harness.processes import last_lines, stop, wait_until
from harness.s3_client import S3Client

START_SECONDS = 60.0
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


class S3Server:
    """Runs from construction to the end of its `with`. Buckets are folders of `folder`/buckets.

    With `certificate` and its key, by https, as localhost. With `port`, one that was free before.
    """

    def __init__(
        self,
        folder: Path,
        keys: Keys,
        region: str = "us-east-1",
        certificate: Path | None = None,
        private_key: Path | None = None,
        port: int = 0,
    ) -> None:
        self._keys = keys
        self._buckets = folder / "buckets"
        self.region = region
        self._secure = certificate is not None
        self.port = port or free_port()
        self._log = folder / "versitygw.log"
        self._requests = folder / "requests.log"
        for name in ("buckets", "metadata"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        secure: list[str | Path] = []
        if certificate and private_key:
            secure = ["--cert", certificate, "--key", private_key]
        command: list[str | Path] = [
            program(),
            *("--port", f"127.0.0.1:{self.port}"),
            *("--region", region),
            *("--access-log", self._requests),
            *("--keep-alive", "--quiet"),
            *secure,
            "posix",
            *("--sidecar", folder / "metadata"),
            folder / "buckets",
        ]
        names = {"ROOT_ACCESS_KEY_ID": keys.access, "ROOT_SECRET_ACCESS_KEY": keys.secret}
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | names,
                start_new_session=True,
            )
        try:
            wait_until(self._listens, "versitygw listens", START_SECONDS)
        except BaseException:
            stop(self._process)
            raise

    def __enter__(self) -> S3Server:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._process)

    @property
    def endpoint(self) -> str:
        host = "https://localhost" if self._secure else "http://127.0.0.1"
        return f"{host}:{self.port}"

    def client(self, ca_file: Path | None = None) -> S3Client:
        return S3Client(
            self.endpoint, self._keys.access, self._keys.secret, self.region, str(ca_file or "")
        )

    def place(self, bucket: str, key: str, body: bytes) -> None:
        """As put, quicker for thousands: past the server, which then tells no ETag of its own."""
        path = self._buckets / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def requests(self, operation: str) -> int:
        """How many of one kind it has answered, as its log names them: "s3_GetObject"."""
        return self.log().count(operation)

    def log(self) -> str:
        """A line for each request. It is written after the answer, so it is awaited until it rests."""
        size = -1
        while size != (size := self._requests.stat().st_size):
            time.sleep(LOG_RESTS_SECONDS)
        return self._requests.read_text(errors="replace")

    def _listens(self) -> bool:
        if self._process.poll() is not None:
            raise HarnessError(f"versitygw does not start:\n{last_lines(self._log)}")
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True
