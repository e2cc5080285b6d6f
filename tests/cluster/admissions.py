"""Creates pods as dry runs, one after the other, and says which were not injected.

    python3 -m cluster.admissions < ORDER.json     in the network namespace; the tally on standard output
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from cluster import network, objects, settings
from cluster.host import run
from cluster.settings import Paths

ANSWER_SECONDS = 15.0
EXAMPLES = 5
WEBHOOK_PORT = 9443
# Of the administrator, in the cluster's folder of keys.
FILES = {"authority": "ca.crt", "certificate": "admin.crt", "key": "admin.key"}


@dataclass
class Tally:
    asked: int = 0
    injected: int = 0
    failures: list[str] = field(default_factory=list)  # the first EXAMPLES
    slowest_seconds: float = 0.0
    certificates: int = 0  # different ones that the injector showed


def admit(paths: Paths, pod: dict[str, Any], injector: str, seconds: float, rate: float) -> Tally:
    """`injector`: an address of the webhook's port, whose certificate is looked at on the way."""
    order = {
        "pod": pod,
        "seconds": seconds,
        "rate": rate,
        "injector": injector,
        **{name: str(paths.pki / file) for name, file in FILES.items()},
    }
    command = network.inside(settings.CONTROL_NAMESPACE, sys.executable, "-m", "cluster.admissions")
    return Tally(**json.loads(run(command, stdin=json.dumps(order), seconds=seconds + 60).stdout))


class _Client:
    """The API server by one connection, made again when it breaks."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._context = ssl.create_default_context(cafile=order["authority"])
        self._context.load_cert_chain(order["certificate"], order["key"])
        self._connection: Optional[http.client.HTTPSConnection] = None
        space = order["pod"]["metadata"]["namespace"]
        self._path = f"/api/v1/namespaces/{space}/pods?dryRun=All"
        self._body = json.dumps(order["pod"])

    def create(self) -> dict[str, Any]:
        if self._connection is None:
            self._connection = http.client.HTTPSConnection(
                settings.CONTROL_ADDRESS, settings.API_PORT, timeout=ANSWER_SECONDS, context=self._context
            )
        try:
            headers = {"Content-Type": "application/json"}
            self._connection.request("POST", self._path, self._body, headers)
            answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
            return answer
        except (OSError, http.client.HTTPException):
            self._connection = None
            raise


def _run(order: dict[str, Any]) -> Tally:
    client, tally, seen = _Client(order), Tally(), set()
    end = time.monotonic() + order["seconds"]
    while (began := time.monotonic()) < end:
        tally.asked += 1
        try:
            stored = client.create()
            injected = objects.has_sidecar(stored)
            failure = "" if injected else stored.get("message", "admitted without a sidecar")
        except (OSError, http.client.HTTPException) as error:
            injected, failure = False, str(error)
        tally.injected += injected
        if not injected and len(tally.failures) < EXAMPLES:
            tally.failures.append(f"{time.strftime('%H:%M:%S', time.gmtime())} {failure}")
        tally.slowest_seconds = max(tally.slowest_seconds, time.monotonic() - began)
        seen.add(_certificate(order["injector"]))
        time.sleep(max(0.0, 1 / order["rate"] - (time.monotonic() - began)))
    tally.certificates = len(seen - {""})
    return tally


def _certificate(injector: str) -> str:
    try:
        return ssl.get_server_certificate((injector, WEBHOOK_PORT), timeout=ANSWER_SECONDS)
    except OSError:
        return ""


if __name__ == "__main__":
    json.dump(asdict(_run(json.load(sys.stdin))), sys.stdout)
