"""Ports on the loopback for servers that cannot choose one by themselves."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

# Below those that the kernel gives to clients (net.ipv4.ip_local_port_range): none of theirs can
# take a port between the moment when it is chosen and the moment when its server listens.
FIRST, LAST = 20_000, 32_000

_claims: list[IO[str]] = []


def free_port() -> int:
    """Nobody listens there, and no other process that asks here gets it while this one runs."""
    folder = Path(tempfile.gettempdir()) / f"optcache-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    # SystemRandom: tests that seed `random` all alike would all try the same ports.
    for port in random.SystemRandom().sample(range(FIRST, LAST), LAST - FIRST):
        claim = open(folder / str(port), "w", encoding="utf-8")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            claim.close()
            continue
        if _is_free(port):
            _claims.append(claim)
            return port
        claim.close()
    raise RuntimeError(f"no port is free between {FIRST} and {LAST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
