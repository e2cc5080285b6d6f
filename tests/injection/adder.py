"""Another's webhook, which adds a container to each pod that it is asked about."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Object = dict[str, Any]


class Adder:
    """Answers by the key and certificate chain of that folder, for `localhost`."""

    def __init__(self, container: Object, folder: Path) -> None:
        patch = [{"op": "add", "path": "/spec/containers/-", "value": container}]
        self._patch = base64.b64encode(json.dumps(patch).encode()).decode()
        self._folder = folder
        self.asked = 0

    def __enter__(self) -> Adder:
        adder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                body = json.dumps(adder._answer(review)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *words: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "chain", self._folder / "key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"https://localhost:{self._server.server_address[1]}/mutate"

    def _answer(self, review: Object) -> Object:
        self.asked += 1
        response = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": self._patch,
        }
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
