"""What the sidecar of a pod sends to the server of a Dataset of another namespace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from harness.cluster_side import BIRDS, ClusterSide, serve
from harness.control_plane import Pod
from harness.processes import wait_until
from harness.store import Store

import optcache

BORROWER = Pod("speech", "train-0")
TOKEN = "a-token-of-the-borrower"
REFUSAL = b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"


@dataclass
class Collector:
    """A server of whoever owns the Dataset: keeps what it is sent, and refuses it."""

    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)  # method; headers and body

    def methods(self) -> set[str]:
        return {method for method, _ in self.requests}

    def text(self) -> str:
        return "\n".join(text for _, text in self.requests)


@pytest.fixture
def collector() -> Iterator[Collector]:
    collected = Collector()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            collected.requests.append((self.command, f"{self.headers}{body.decode()}"))
            self.send_response(403)
            self.send_header("Content-Length", str(len(REFUSAL)))
            self.end_headers()
            self.wfile.write(REFUSAL)

        do_GET = do_POST = do_PUT = do_HEAD = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collected.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield collected
        server.shutdown()
        thread.join()


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As EKS makes them for the containers of a pod whose ServiceAccount has a role."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/borrower")


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize("lent", [False, True], ids=["not lent", "lent"])
def test_the_pods_identity_goes_where_the_pod_says(
    side: ClusterSide, store: Store, collector: Collector, lent: bool
) -> None:
    serve(side, store, ["vision", BORROWER.namespace])
    flags = () if lent else ("--no-ambient-keys", BIRDS)
    source = f"s3://images/?endpoint={collector.url}&region=eu-west-1"
    _, where = side.start_sidecar(BORROWER, BIRDS, source, None, *flags)
    samples = optcache.Dataset(socket=str(where), copy=True)
    with pytest.raises(optcache.OptcacheError):
        samples[0]
    wait_until(lambda: bool(collector.requests), "the server is asked")
    assert (TOKEN in collector.text()) == lent
    assert collector.methods() == ({"POST"} if lent else {"GET"})
    assert lent or "authorization" not in collector.text().lower()
