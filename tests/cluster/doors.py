"""Knocks at the ports of the parts, as somebody in the cluster would who may or may not come in.

    python3 -m cluster.doors < ATTEMPTS.json     in the network namespace; answers on standard output

An attempt and its answer are JSON objects, see `_plain`, `_https` and `_wire`.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import lies

from cluster import network, settings
from cluster.host import run

ANSWER_SECONDS = 20.0
ANSWER_BYTES = 400
HEADER_BYTES = 28
WELCOME, REFUSAL = 2, 3

Attempt = dict[str, Any]


def knock(attempts: Sequence[Attempt]) -> list[Attempt]:
    """From the control plane's namespace, which reaches all pods. An answer for each attempt."""
    command = network.inside(settings.CONTROL_NAMESPACE, sys.executable, "-m", "cluster.doors")
    seconds = 10 + ANSWER_SECONDS * len(attempts)
    answers: list[Attempt] = json.loads(run(command, stdin=json.dumps(attempts), seconds=seconds).stdout)
    return answers


def plain(address: str, port: int, text: str) -> Attempt:
    return {"kind": "plain", "address": address, "port": port, "text": text}


def https(
    address: str, port: int, authority: str, name: str, path: str, *, token: str = "", method: str = "GET",
    body: str = "",
) -> Attempt:
    """`authority`: the CA bundle's text; `name`: what the server's certificate must bear."""
    where = {"address": address, "port": port, "authority": authority, "name": name}
    return {"kind": "https", **where, "path": path, "token": token, "method": method, "body": body}


def wire(
    address: str, port: int, authority: str, name: str, *, who: str, token: str = "",
    role: int = lies.SIDECAR,
) -> Attempt:
    """`who`: what the sidecar calls itself, NAMESPACE/POD."""
    where = {"address": address, "port": port, "authority": authority, "name": name}
    return {"kind": "wire", **where, "who": who, "token": token, "role": role}


def signed_token(key: Path, claims: dict[str, Any]) -> str:
    """A JWT by RS256, as the API server makes them: of whatever is claimed."""
    parts = [_base64(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims)]
    text = ".".join(parts)
    script = 'printf %s "$0" | openssl dgst -sha256 -sign "$1" | base64 -w0'
    signature = base64.b64decode(run(["sh", "-e", "-c", script, text, key]).stdout)
    return f"{text}.{_base64(signature)}"


def service_account_claims(space: str, uid: str, audience: str, lifetime: float) -> dict[str, Any]:
    """Of the ServiceAccount `default`; a negative lifetime has passed already."""
    now = time.time()
    account = {"name": "default", "uid": uid}
    return {
        "iss": "https://kubernetes.default.svc",
        "sub": f"system:serviceaccount:{space}:default",
        "aud": [audience],
        "iat": int(now - 7200),
        "nbf": int(now - 7200),
        "exp": int(now + lifetime),
        "kubernetes.io": {"namespace": space, "serviceaccount": account},
    }


def decoded(part: str) -> bytes:
    """A part of a JWT."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _plain(attempt: Attempt) -> Attempt:
    """-> {answer: what came, as text}; "" where the other side just hung up."""
    with socket.create_connection((attempt["address"], attempt["port"]), ANSWER_SECONDS) as client:
        client.sendall(attempt["text"].encode())
        return {"answer": _read(client, ANSWER_BYTES).decode("latin-1")}


def _https(attempt: Attempt) -> Attempt:
    """-> {status, body}"""
    connection = http.client.HTTPConnection(attempt["address"], attempt["port"], ANSWER_SECONDS)
    connection.sock = _by_tls(attempt)
    headers = {"Authorization": f"Bearer {attempt['token']}"} if attempt["token"] else {}
    connection.request(attempt["method"], attempt["path"], attempt["body"] or None, headers)
    answer = connection.getresponse()
    return {"status": answer.status, "body": answer.read(ANSWER_BYTES).decode("latin-1")}


def _wire(attempt: Attempt) -> Attempt:
    """-> {type of the answer to Hello, text of a Refusal}"""
    with _by_tls(attempt) as client:
        client.sendall(lies.hello(attempt["role"], attempt["token"], attempt["who"]))
        answer = _read(client, HEADER_BYTES)
        if len(answer) < HEADER_BYTES:
            return {"type": 0, "text": ""}
        kind, (length,) = answer[3], struct.unpack_from("<I", answer, 12)
        body = _read(client, length)
        return {"type": kind, "text": body[3:].decode("latin-1") if kind == REFUSAL else ""}


def _by_tls(attempt: Attempt) -> ssl.SSLSocket:
    context = ssl.create_default_context(cadata=attempt["authority"])
    client = socket.create_connection((attempt["address"], attempt["port"]), ANSWER_SECONDS)
    return context.wrap_socket(client, server_hostname=attempt["name"])


def _read(client: socket.socket, length: int) -> bytes:
    """Up to `length` bytes: fewer when the other side hangs up or says no more in time."""
    answer = b""
    try:
        while len(answer) < length:
            if not (part := client.recv(length - len(answer))):
                break
            answer += part
    except (TimeoutError, ConnectionError):
        pass
    return answer


def main() -> None:
    kinds = {"plain": _plain, "https": _https, "wire": _wire}
    answers = []
    for attempt in json.load(sys.stdin):
        try:
            answers.append(kinds[attempt["kind"]](attempt))
        except (OSError, http.client.HTTPException) as error:
            answers.append({"error": str(error)})
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
