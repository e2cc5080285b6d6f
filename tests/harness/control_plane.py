"""What nodes of a cluster talk to, played: the operator's control API, and an API server that
reviews tokens. Both by TLS, with certificates of an authority made here."""

from __future__ import annotations

import json
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from harness.errors import HarnessError

OPERATOR = "localhost"  # checked as the host of --coordinator
API_SERVER = "kubernetes.default.svc"
NODE = "optcache-node"
POLL_SECONDS = 20.0


class Authority:
    """Signs what nodes and servers show. Its files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.certificate = folder / "ca.crt"
        self._key = folder / "ca.key"
        _openssl(
            *"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(),
            *("-subj", "/CN=test", "-keyout", str(self._key), "-out", str(self.certificate)),
            *("-addext", "keyUsage=critical,keyCertSign"),
        )

    def sign(self, request: bytes, names: list[str], days: int = 1) -> bytes:
        """The certificate of a request in PEM."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            csr, extensions, chain = (Path(folder) / name for name in ("csr", "ext", "chain"))
            csr.write_bytes(request)
            extensions.write_text(
                f"subjectAltName={','.join('DNS:' + name for name in names)}\n"
                "extendedKeyUsage=serverAuth,clientAuth\nkeyUsage=critical,digitalSignature\n"
                "basicConstraints=critical,CA:FALSE\n"
            )
            _openssl(
                *("x509", "-req", "-in", str(csr), "-out", str(chain), "-days", str(days)),
                *("-CA", str(self.certificate), "-CAkey", str(self._key), "-CAcreateserial"),
                *("-extfile", str(extensions)),
            )
            return chain.read_bytes()

    def make_pair(self, name: str, names: list[str]) -> tuple[Path, Path]:
        """Files with a certificate for `names` and its key."""
        key, csr, chain = (self._folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        _openssl(
            *"req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes".split(),
            *("-subj", f"/CN={name}", "-keyout", str(key), "-out", str(csr)),
        )
        chain.write_bytes(self.sign(csr.read_bytes(), names))
        return chain, key


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        raise HarnessError(f"openssl {arguments[0]}: {done.stderr.decode(errors='replace')}")


@dataclass(frozen=True)
class Pod:
    """Who a token belongs to."""

    namespace: str
    name: str


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    routes: ClassVar[dict[tuple[str, str], Callable[[_Handler], None]]] = {}

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def answer(self, status: int, body: bytes = b"", kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _route(self) -> None:
        path = urlsplit(self.path).path
        action = self.routes.get((self.command, path))
        if action is None:
            self.body()
            self.answer(404, b"no such page")
        else:
            action(self)

    do_GET = do_POST = _route


class _TlsServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, handler: type[_Handler], context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self._context = context
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(30)
        try:
            with self._context.wrap_socket(request, server_side=True) as channel:
                super().finish_request(channel, client_address)
        except OSError:
            pass  # the client went; that is its right

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass

    def close(self) -> None:
        self.shutdown()
        self.server_close()


def _context(authority: Authority, name: str, names: list[str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.make_pair(name, names))
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


class ApiServer:
    """Reviews tokens; `pods` says whose they are. Runs from construction to `close`."""

    def __init__(self, authority: Authority) -> None:
        self.pods: dict[str, Pod] = {}
        self.reviewed: list[str] = []
        routes = {("POST", "/apis/authentication.k8s.io/v1/tokenreviews"): self._review}
        handler = type("Api", (_Handler,), {"routes": routes})
        self._server = _TlsServer(0, handler, _context(authority, "api", [API_SERVER]))
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"

    def _review(self, request: _Handler) -> None:
        review = json.loads(request.body())
        token = review["spec"]["token"]
        self.reviewed.append(token)
        pod = self.pods.get(token)
        if pod is None or review["spec"].get("audiences") != ["optcache"]:
            review["status"] = {"authenticated": False, "error": "unknown token"}
        else:
            review["status"] = {
                "authenticated": True,
                "audiences": ["optcache"],
                "user": {
                    "username": f"system:serviceaccount:{pod.namespace}:default",
                    "extra": {"authentication.kubernetes.io/pod-name": [pod.name]},
                },
            }
        request.answer(201, json.dumps(review).encode())

    def close(self) -> None:
        self._server.close()


class Operator:
    """The control API with a state that tests publish. Can be stopped and started again."""

    def __init__(self, authority: Authority, node_tokens: dict[str, str]) -> None:
        """`node_tokens`: the pod's name by token, for certificates."""
        self._authority = authority
        self._node_tokens = node_tokens
        self._context = _context(authority, "operator", [OPERATOR])
        self._changed = threading.Condition()
        self._state: dict[str, Any] = {"version": "1.0", "members": [], "datasets": []}
        self.reports: dict[str, dict[str, Any]] = {}  # the latest by node
        self.certificates = 0
        self._server: _TlsServer | None = None
        self._port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"https://{OPERATOR}:{self._port}"

    def start(self) -> None:
        routes = {
            ("POST", "/v1/certificates"): self._certificate,
            ("POST", "/v1/report"): self._report,
            ("POST", "/v1/inventory"): self._take_inventory,
            ("GET", "/v1/state"): self._give_state,
        }
        handler = type("Control", (_Handler,), {"routes": routes})
        self._server = _TlsServer(self._port, handler, self._context)
        self._port = self._server.server_address[1]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def publish(self, members: list[dict[str, Any]], datasets: list[dict[str, Any]]) -> None:
        with self._changed:
            counter = int(self._state["version"].split(".")[1]) + 1
            self._state = {"version": f"1.{counter}", "members": members, "datasets": datasets}
            self._changed.notify_all()

    def _certificate(self, request: _Handler) -> None:
        csr = request.body()
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        name = self._node_tokens.get(token)
        if name is None:
            request.answer(403, b"unknown token")
            return
        self.certificates += 1
        request.answer(200, self._authority.sign(csr, [NODE, name]), "application/x-pem-file")

    def _is_node(self, request: _Handler) -> bool:
        names = (request.connection.getpeercert() or {}).get("subjectAltName", ())
        if ("DNS", NODE) in names:
            return True
        request.answer(403, b"a node's certificate is needed")
        return False

    def _report(self, request: _Handler) -> None:
        report = json.loads(request.body())
        if not self._is_node(request):
            return
        self.reports[report["node"]] = report
        member = {m["name"]: m["id"] for m in self._state["members"]}.get(report["node"], 0)
        answer = {"member": member, "version": self._state["version"]}
        request.answer(200, json.dumps(answer).encode())

    def _take_inventory(self, request: _Handler) -> None:
        request.body()
        request.answer(204)

    def _give_state(self, request: _Handler) -> None:
        if not self._is_node(request):
            return
        after = parse_qs(urlsplit(request.path).query)["after"][0]
        with self._changed:
            self._changed.wait_for(lambda: _newer(self._state["version"], after), POLL_SECONDS)
            state = dict(self._state)
        if _newer(state["version"], after):
            request.answer(200, json.dumps(state).encode())
        else:
            request.answer(204)


def _newer(version: str, than: str) -> bool:
    return [int(part) for part in version.split(".")] > [int(part) for part in than.split(".")]
