"""`optcache doctor` on this machine, as a shell sees it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from conftest import Server, find_program

SECONDS = 120


def doctor(
    folder: Path, socket: object, *words: str, coordinator: str = ""
) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit status, and the findings by what they are about."""
    environment = {key: os.environ[key] for key in os.environ if not key.startswith("OPTCACHE_")}
    environment |= {"OPTCACHE_SOCKET": str(socket), "OPTCACHE_COORDINATOR": coordinator}
    ended = subprocess.run(
        [find_program("optcache"), "doctor", "--state", str(folder), "--output", "json", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return ended.returncode, {each["about"]: each for each in json.loads(ended.stdout)["findings"]}


def test_a_sidecar_that_answers_and_one_that_has_ended(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_bytes(b"a")
    server = Server(tmp_path / "sock", tmp_path / "files")
    try:
        code, findings = doctor(tmp_path, server.socket)
        assert findings["sidecar's socket"]["severity"] == "ok"
        assert findings["running cache"]["severity"] == "warning"
        assert findings["running cache"]["what"] == f"`optcache up` does not run in {tmp_path}"
        assert code == 0
    finally:
        server.kill()
    code, findings = doctor(tmp_path, server.socket)
    assert code == 1
    assert findings["sidecar's socket"]["severity"] == "fault"
    assert "no process listens" in findings["sidecar's socket"]["what"]
    assert "optcache up" in findings["sidecar's socket"]["do"]


def test_more_memory_than_the_machine_has_is_a_fault(tmp_path: Path) -> None:
    code, findings = doctor(tmp_path, "", "--memory", "1Ei")
    assert code == 1 and findings["memory"]["severity"] == "fault"
    code, findings = doctor(tmp_path, "", "--memory", "1Mi")
    assert code == 0 and findings["memory"]["severity"] == "ok"


class Pages(BaseHTTPRequestHandler):
    """A coordinator whose node answers, and whose sidecar has another page."""

    def do_GET(self) -> None:
        url = f"http://{self.headers['Host']}"
        status = {
            "members": [{"name": "node-0", "metrics": f"{url}/node"}],
            "sidecars": [{"name": "sidecar-0", "metrics": f"{url}/gone"}],
        }
        body = {"/v1/status": json.dumps(status), "/node": "# metrics"}.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        pass


def test_pages_of_a_running_cache(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            code, findings = doctor(tmp_path, "", coordinator=url)
        finally:
            server.shutdown()
            thread.join()
    assert code == 1
    assert "running cache" not in findings
    assert findings["node-0"]["severity"] == "ok"
    assert findings["sidecar-0"]["severity"] == "fault"
    assert findings["sidecar-0"]["what"] == f"{url}/gone does not answer: status 404"
