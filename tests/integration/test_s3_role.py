"""Keys of a role, by a web identity: moto gives them out as AWS's token service, and its bucket is read
with them alone. Skipped where moto is not installed; `./dev test frameworks` installs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import s3_server
from harness.ports import free_port
from harness.processes import last_lines, stop, wait_until

pytest.importorskip("moto", reason="moto is not installed")

BUCKET = "data"
SAMPLES = {"a.bin": b"one", "b.bin": b"two and more"}
ROLE = "reader"
READING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetObject"], "Resource": "*"}],
}
TRUST = {"Version": "2012-10-17", "Statement": []}  # moto does not ask whom a role trusts


class Amazon:
    """moto, as a process: IAM, the token service and S3 at one endpoint."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self._log = folder / "moto.log"
        command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(self._port)]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def __enter__(self) -> Amazon:
        wait_until(self._answers, "moto answers")
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._process)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def client(self, service: str) -> Any:
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=s3_server.ANY_KEYS.access,
            aws_secret_access_key=s3_server.ANY_KEYS.secret,
        )

    def check_all_but(self, requests: int) -> None:
        """From now on it looks at signature, token and rights of each request, but of so many first ones."""
        asked = urllib.request.Request(
            f"{self.endpoint}/moto-api/reset-auth",
            data=str(requests).encode(),
            headers={"Content-Type": "text/plain"},
        )
        urllib.request.urlopen(asked, timeout=60).close()

    def _answers(self) -> bool:
        assert self._process.poll() is None, last_lines(self._log)
        try:
            urllib.request.urlopen(f"{self.endpoint}/moto-api/data.json", timeout=60).close()
        except OSError:
            return False
        return True


@pytest.fixture
def amazon(tmp_path: Path) -> Iterator[Amazon]:
    """With a bucket, and two roles, of which ROLE may read it."""
    with Amazon(tmp_path) as running:
        iam, s3 = running.client("iam"), running.client("s3")
        for role in (ROLE, "stranger"):
            iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(TRUST))
        iam.put_role_policy(RoleName=ROLE, PolicyName="reads", PolicyDocument=json.dumps(READING))
        s3.create_bucket(Bucket=BUCKET)
        for key, body in SAMPLES.items():
            s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        yield running


def arn(role: str) -> str:
    return f"arn:aws:iam::123456789012:role/{role}"


def web_identity(folder: Path, role: str) -> dict[str, str]:
    """As EKS sets it for pods whose ServiceAccount has a role."""
    (folder / "token").write_text("a.b.c")
    return {"AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / "token"), "AWS_ROLE_ARN": arn(role)}


def optcache(
    programs: Path, verb: str, endpoint: str, manifest: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    words = ["--source", f"s3://{BUCKET}?endpoint={endpoint}"]
    words += ["-o", str(manifest)] if verb == "build" else [str(manifest)]
    return subprocess.run(
        [programs / "optcache", "manifest", verb, *words],
        env={**clean, "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.parametrize("by", ["environment", "profile"])
def test_a_bucket_is_read_with_the_keys_of_a_role(
    programs: Path, amazon: Amazon, tmp_path: Path, by: str
) -> None:
    variables = web_identity(tmp_path, ROLE)
    if by == "profile":
        (tmp_path / "config").write_text(
            f"[default]\nrole_arn = {arn(ROLE)}\nweb_identity_token_file = {tmp_path / 'token'}\n"
        )
        variables = {"AWS_CONFIG_FILE": str(tmp_path / "config")}
    for verb in ("build", "verify"):
        amazon.check_all_but(1)  # the question for keys, which nothing signs
        done = optcache(programs, verb, amazon.endpoint, tmp_path / "m", variables)
        assert done.returncode == 0, done.stderr
    shown = subprocess.run(
        [programs / "optcache", "manifest", "show", "--paths", tmp_path / "m"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(shown.stdout.split()) == sorted(SAMPLES)


def test_a_role_without_the_right_is_refused(
    programs: Path, amazon: Amazon, tmp_path: Path
) -> None:
    amazon.check_all_but(1)
    refused = optcache(
        programs, "build", amazon.endpoint, tmp_path / "m", web_identity(tmp_path, "stranger")
    )
    assert refused.returncode == 1
    assert "AccessDenied" in refused.stderr


def test_keys_of_no_role_are_refused(programs: Path, amazon: Amazon, tmp_path: Path) -> None:
    """So that what is read above was read with the role's."""
    amazon.check_all_but(0)
    keys = {"AWS_ACCESS_KEY_ID": "ASIANOBODY", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "y"}
    refused = optcache(programs, "build", amazon.endpoint, tmp_path / "m", keys)
    assert refused.returncode == 1
    assert "InvalidAccessKeyId" in refused.stderr
