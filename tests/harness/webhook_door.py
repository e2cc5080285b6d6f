"""A webhook of the cluster at an address that an API server outside of it can reach."""

from __future__ import annotations

import http.server
import ssl
import threading
import urllib.request
from pathlib import Path

ANSWER_SECONDS = 30.0
BODY_MAX = 8 << 20  # a pod has at most 1.5 MiB, as etcd does


class WebhookDoor:
    """Passes on what is posted to localhost by https, with this certificate, to `target`, host and port.

    Runs from construction to the end of its `with`.
    """

    def __init__(self, chain: Path, key: Path, target: tuple[str, int]) -> None:
        self.target = target  # may change
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                if length > BODY_MAX:
                    self.send_error(413)
                    return
                code, answer = outer._ask(self.path, self.rfile.read(length))
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://localhost:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> WebhookDoor:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        request = urllib.request.Request(
            f"https://{self.target[0]}:{self.target[1]}{path}", body, {"Content-Type": "application/json"}
        )
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS, context=context) as answer:
                return answer.status, answer.read()
        except OSError as error:
            return 502, str(error).encode()
