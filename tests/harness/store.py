"""The object store: nginx on loopback, with an access log that counts what was read."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path

from harness.errors import HarnessError
from harness.ports import free_port
from harness.processes import stop, wait_until

START_SECONDS = 60.0

# The fields are those that accounting.py reads. One process, not a daemon: it ends with its pid.
CONFIGURATION = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  types {{ }}
  default_type application/octet-stream;
  sendfile on;
  tcp_nodelay on;
  keepalive_timeout 300s;
  keepalive_requests 1000000;
  open_file_cache max=10000 inactive=600s;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  log_format reads escape=default '$msec $request_method $status $body_bytes_sent $uri';
  access_log {folder}/access.log reads;
  server {{
    listen 127.0.0.1:{port}{ssl};
    {guard}
    location = /{listing} {{ alias {folder}/{listing}; }}
    location / {{ root "{root}"; }}
  }}
}}
"""

LISTING = "optcache-listing.txt"
MARK = "optcache-mark-"  # of requests that nobody counts


class Store:
    """Serves `root` from construction to the end of its `with`. Its own files are in `folder`.

    `guard` are more directives of nginx; if `secure`, with a certificate of localhost.
    """

    def __init__(self, root: Path, folder: Path, guard: str = "", secure: bool = False) -> None:
        self._folder = folder
        self._secure = secure
        self._port = free_port()
        quoted = str(root.resolve()).replace("\\", "\\\\").replace('"', '\\"')
        if "$" in quoted:
            raise HarnessError(f"nginx cannot serve {root}: there is a $ in its path")
        text = CONFIGURATION.format(
            folder=folder, port=self._port, root=quoted, listing=LISTING, guard=guard,
            ssl=" ssl" if secure else "",
        )  # fmt: skip
        (folder / "nginx.conf").write_text(text)
        self._nginx = subprocess.Popen(
            ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "error.log"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self._wait_until_it_listens()
        except BaseException:
            stop(self._nginx)
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._nginx)

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        host = "https://localhost" if self._secure else "http://127.0.0.1"
        return f"{host}:{self._port}/"

    @property
    def listing_file(self) -> Path:
        """What is written here is served as base_url + LISTING."""
        return self._folder / LISTING

    def log_size(self) -> int:
        """Where the access log ends now."""
        self._settle()
        return self._log.stat().st_size

    def access_log(self, begin: int = 0) -> str:
        """What has been written to it since it ended at `begin`."""
        self._settle()
        lines = self._log.read_bytes()[begin:].decode("ascii").splitlines(keepends=True)
        return "".join(line for line in lines if MARK not in line)

    def _settle(self) -> None:
        """Until all that has been answered is logged.

        nginx logs a request after its last byte has been sent. As it is one process, the line of a
        request that begins later comes after that.
        """
        mark = f"{MARK}{uuid.uuid4().hex}"
        context = ssl._create_unverified_context() if self._secure else None
        try:
            urllib.request.urlopen(f"{self.base_url}{mark}", timeout=START_SECONDS, context=context)
        except urllib.error.HTTPError:
            pass  # there is no such file
        except urllib.error.URLError:
            return  # it has ended
        wait_until(lambda: mark in self._log.read_text(), "nginx has logged what it has answered")

    @property
    def _log(self) -> Path:
        return self._folder / "access.log"

    def read_bytes(self, begin: int = 0) -> int:
        """Bytes of all answers since the log ended at `begin`."""
        return sum(int(line.split(" ")[3]) for line in self.access_log(begin).splitlines())

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            except OSError as error:
                ended = self._nginx.poll() is not None
                if ended or time.monotonic() > deadline:
                    log = self._folder / "error.log"
                    words = log.read_text() if log.exists() else str(error)
                    raise HarnessError(f"nginx does not start: {words.strip()}") from error
                time.sleep(0.02)
