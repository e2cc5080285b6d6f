"""The injector as a program with a certificate of its own."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANSWER_SECONDS = 120.0

Object = dict[str, Any]


@dataclass
class Injector:
    program: Path | str  # webhook_test_server
    folder: Path  # empty, for key and certificate
    legacy: bool = False
    before: tuple[str, ...] = ()  # of the command line, as for taskset
    port: int = 0

    def __enter__(self) -> Injector:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
            + ["-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
            + ["-days", "1", "-keyout", self.folder / "key", "-out", self.folder / "chain"],
            check=True,
            capture_output=True,
        )
        self._process = subprocess.Popen(
            [*self.before, self.program]
            + [f"--chain={self.folder}/chain", f"--key={self.folder}/key"]
            + (["--legacy"] if self.legacy else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=ANSWER_SECONDS)

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}/mutate"

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode((self.folder / "chain").read_bytes()).decode()

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "chain")

    def review(self, pod: Object) -> Object:
        """The response to the creation of this pod."""
        request = urllib.request.Request(
            self.url, review_of(pod), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS, context=self.trust) as answer:
            response: Object = json.load(answer)["response"]
        assert response["uid"] == "u"
        return response


def review_of(pod: Object) -> bytes:
    """What an API server asks when this pod is created."""
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": pod["metadata"]["namespace"],
            "operation": "CREATE",
            "object": pod,
        },
    }
    return json.dumps(review).encode()


def patch_of(response: Object) -> list[Object]:
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    patch: list[Object] = json.loads(base64.b64decode(response["patch"], validate=True))
    return patch
