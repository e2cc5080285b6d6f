"""A network of a test's own, whose packets it can take away."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNET = 0x40000000  # linux/sched.h


def missing() -> str:
    """Why there can be none here; empty if there can."""
    if os.geteuid() != 0:
        return "it takes root"
    lacking = [program for program in ("ip", "iptables") if shutil.which(program) is None]
    return f"there is no {' and no '.join(lacking)}" if lacking else ""


@contextmanager
def own_network() -> Iterator[None]:
    """This thread, and what it starts, are in a namespace with a loopback interface alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(libc.unshare(CLONE_NEWNET), "unshare")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _check(libc.setns(before, CLONE_NEWNET), "setns")
    finally:
        os.close(before)


@contextmanager
def without_packets_of(user: int) -> Iterator[None]:
    """What that user's processes send is lost, acknowledgements too: as if their machine were gone."""
    rule = ["OUTPUT", "-m", "owner", "--uid-owner", str(user), "-j", "DROP"]
    subprocess.run(["iptables", "-A", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run(["iptables", "-D", *rule], check=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
