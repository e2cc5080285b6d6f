"""How long a pod waits for the injector, as an API server sees it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any

from bench.context import REPOSITORY, Context
from bench.figures import Figure, at_most
from injection.injector import Injector, review_of

RATE = 200.0  # pods a second
CONNECTIONS = 8
P99_MS = 10.0
PODS = "tests/golden/injection"
ANSWER_SECONDS = 20.0


def run(context: Context) -> list[Figure]:
    count = 400 if context.quick else 8000
    case = json.loads((REPOSITORY / PODS / "everything-else.json").read_text())
    body = review_of(padded(case["pod"]))
    program = context.programs / "webhook_test_server"
    with Injector(program, context.folder, before=("taskset", "--cpu-list", "0")) as injector:
        context.say(f"{count} reviews of {len(body)} B at {RATE:g} a second")
        waits = sorted(ask(injector, body, count))
    what = f"injector at {RATE:g} pods/s on one core, TLS"
    return [
        Figure(f"{what}: median", 1e3 * waits[len(waits) // 2], "ms"),
        Figure(
            f"{what}: 99th percentile",
            1e3 * waits[len(waits) * 99 // 100],
            "ms",
            goal=at_most(P99_MS),
        ),
    ]


def padded(pod: dict[str, Any]) -> dict[str, Any]:
    """As large as training pods are that other webhooks and frameworks have filled."""
    container = pod["spec"]["containers"][0]
    container["env"] = [{"name": f"SETTING_{i}", "value": "x" * 100} for i in range(50)]
    return pod


def ask(injector: Injector, body: bytes, count: int) -> list[float]:
    """Seconds from when each review was due until its answer was there."""
    waits = [float("inf")] * count
    begin = time.monotonic() + 0.1

    def connection(first: int) -> None:
        trust = injector.trust
        client = http.client.HTTPSConnection(
            "localhost", injector.port, timeout=ANSWER_SECONDS, context=trust
        )
        client.connect()
        for i in range(first, count, CONNECTIONS):
            due = begin + i / RATE
            time.sleep(max(0.0, due - time.monotonic()))
            client.request("POST", "/mutate", body, {"Content-Type": "application/json"})
            answer = json.loads(client.getresponse().read())
            waits[i] = time.monotonic() - due
            assert "patch" in answer["response"]
        client.close()

    threads = [threading.Thread(target=connection, args=(i,)) for i in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return waits
