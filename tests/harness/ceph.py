"""A second real server of S3, independent of the first: Ceph's RADOS Gateway, from Debian's packages, over
a monitor and a store in memory of its own, all on loopback.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from cluster.host import run
from harness.ports import free_port
from harness.processes import stop
from harness.s3_client import S3Client
from harness.s3_server import BucketServer

GATEWAY = "radosgw"
PROGRAMS = (GATEWAY, "radosgw-admin", "ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool")
USER = "tester"
START_SECONDS = 300.0
LOG_RESTS_SECONDS = 0.5
# The gateway's log: "GET /bucket/key?query HTTP/1.1" status …
REQUEST = re.compile(r' beast: .* "(\w+) /[^/ ?]+(/[^ ?]+)?/?(?:\?\S*)? HTTP/1\.1" \d+ ')

CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = {monitor}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
keyring = {folder}/keyring
log file = {folder}/$name.log
log to stderr = false
run dir = {folder}/run
admin socket =
pid file =
crash dir = {folder}/crash
mon data = {folder}/mon
mon cluster log file = {folder}/cluster.log
mon data avail warn = 1
mon data avail crit = 1
mon allow pool size one = true
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 4294967296
# What is in memory is written when it ends.
osd fast shutdown = false
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
"""


def missing_program() -> str:
    """Why there is no server, or nothing."""
    lacks = [name for name in PROGRAMS if not shutil.which(name)]
    return f"Ceph is not installed: no {', '.join(lacks)}" if lacks else ""


class Ceph(BucketServer):
    """Its monitor, its store and the gateway are three processes. It is of no region, and takes any."""

    PROGRAM = GATEWAY
    START_SECONDS = START_SECONDS

    def place(self, bucket: str, key: str, body: bytes) -> None:
        self._own_client.put(bucket, key, body)

    def gets(self) -> int:
        return sum(1 for method, key in self._requests() if method == "GET" and key)

    def listings(self) -> int:
        return sum(1 for method, key in self._requests() if method == "GET" and not key)

    def _requests(self) -> list[tuple[str, str]]:
        """Method and key of each. It is logged after the answer, so the log is awaited until it rests."""
        log = self._folder / "client.admin.log"
        size = -1
        while size != (size := log.stat().st_size):
            time.sleep(LOG_RESTS_SECONDS)
        return REQUEST.findall(log.read_text(errors="replace"))

    @cached_property
    def _own_client(self) -> S3Client:
        return self.client()

    def _prepare(self) -> None:
        """Starts what the gateway stands on."""
        self._below: list[subprocess.Popen[bytes]] = []
        is_new = not self._configuration.exists()
        if is_new:
            self._make_monitor()
        self._start_below("ceph-mon", "a")
        if is_new:
            store = str(uuid.uuid4())
            self._run("ceph", "osd", "new", store)
            self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", store)
        self._start_below("ceph-osd", "0")
        keys = (f"--access-key={self._keys.access}", f"--secret-key={self._keys.secret}")
        words = ("create", "--display-name=tester") if is_new else ("modify",)
        user = json.loads(self._run(GATEWAY + "-admin", "user", *words, f"--uid={USER}", *keys))
        for key in user["keys"]:  # those of a server before this one
            if key["access_key"] != self._keys.access:
                self._run(GATEWAY + "-admin", "key", "rm", f"--access-key={key['access_key']}")

    def _make_monitor(self) -> None:
        for name in ("mon", "osd", "run"):
            (self._folder / name).mkdir()
        fsid, monitor = str(uuid.uuid4()), f"v2:127.0.0.1:{free_port()}"
        self._configuration.write_text(
            CONFIGURATION.format(fsid=fsid, monitor=monitor, folder=self._folder)
        )
        keyring = str(self._folder / "keyring")
        for name, rights in {
            "mon.": {"mon": "allow *"},
            "client.admin": {"mon": "allow *", "osd": "allow *"},
            "osd.0": {"mon": "allow profile osd", "osd": "allow *"},
        }.items():
            words = [word for service, right in rights.items() for word in ("--cap", service, right)]
            new = [] if name != "mon." else ["--create-keyring"]
            self._run("ceph-authtool", keyring, *new, "--gen-key", "-n", name, *words)
        members = str(self._folder / "monmap")
        self._run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[{monitor}]", members)
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", members)

    def _start_below(self, name: str, number: str) -> None:
        with open(self._folder / f"{name}.out", "ab") as output:
            process = subprocess.Popen(
                [name, "-f", "-i", number],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )
        self._below.append(process)

    def _run(self, *command: str) -> str:
        return run(command, seconds=START_SECONDS, environment=dict(self._variables())).stdout

    @property
    def _configuration(self) -> Path:
        return self._folder / "ceph.conf"

    def _command(self) -> Sequence[str | Path]:
        door = f"endpoint=127.0.0.1:{self.port}"
        if self._certificate:
            door = f"ssl_{door} ssl_certificate={self._certificate} ssl_private_key={self._private_key}"
        return [GATEWAY, "-f", "-n", "client.admin", f"--rgw-frontends=beast {door}"]

    def _variables(self) -> Mapping[str, str]:
        return {"CEPH_CONF": str(self._configuration)}

    def _end(self) -> None:
        super()._end()
        for process in reversed(self._below):
            stop(process)
