"""Networks of a test's own, whose packets it can take away."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000  # linux/sched.h
HUB = "10.77.0.1"  # of own_network, for its hosts

_libc = ctypes.CDLL(None, use_errno=True)


def missing() -> str:
    """Why there can be none here; empty if there can."""
    if os.geteuid() != 0:
        return "it takes root"
    lacking = [program for program in ("ip", "iptables") if shutil.which(program) is None]
    return f"there is no {' and no '.join(lacking)}" if lacking else ""


@contextmanager
def own_network() -> Iterator[None]:
    """This thread, and what it starts, are in a namespace with a loopback interface alone, and HUB."""
    with _back_afterwards():
        _check(_libc.unshare(CLONE_NEWNET), "unshare")
        _ip("link set lo up")
        _ip(f"addr add {HUB}/32 dev lo")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")  # between hosts
        yield


class Host:
    """A namespace with an address of its own, whose link ends in `own_network`, as those of other hosts do.

    After `close` it is gone with the last process in it.
    """

    def __init__(self, number: int) -> None:
        self.address = f"10.77.{number}.2"
        gateway, link = f"10.77.{number}.1", f"host{number}"
        hub = _this_network()
        try:
            with _back_afterwards():
                _check(_libc.unshare(CLONE_NEWNET), "unshare")
                self._network = _this_network()
                _ip("link set lo up")
                _ip(f"link add eth0 type veth peer name {link} netns /proc/self/fd/{hub}", hub)
                _ip(f"addr add {self.address}/24 dev eth0")
                _ip("link set eth0 up")
                _ip(f"route add default via {gateway}")
        finally:
            os.close(hub)
        _ip(f"addr add {gateway}/24 dev {link}")
        _ip(f"link set {link} up")

    def close(self) -> None:
        os.close(self._network)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread, and what it starts, are there."""
        with _back_afterwards():
            _check(_libc.setns(self._network, CLONE_NEWNET), "setns")
            yield


@contextmanager
def without_packets_of(user: int) -> Iterator[None]:
    """What that user's processes send is lost, acknowledgements too: as if their machine were gone."""
    with _lost(["OUTPUT", "-m", "owner", "--uid-owner", str(user)]):
        yield


@contextmanager
def cut_off(address: str, other: str = "") -> Iterator[None]:
    """Packets between this host and the other address, if none is given any, are lost both ways."""
    to, by = (["-d", other], ["-s", other]) if other else ([], [])
    with _lost(
        ["PREROUTING", "-t", "raw", "-s", address, *to],
        ["POSTROUTING", "-t", "mangle", "-d", address, *by],
    ):
        yield


@contextmanager
def _lost(*rules: Sequence[str]) -> Iterator[None]:
    """Packets that a rule fits, which begins with its chain."""
    done: list[Sequence[str]] = []
    try:
        for rule in rules:
            _iptables("-A", rule)
            done.append(rule)
        yield
    finally:
        for rule in done:
            _iptables("-D", rule)


def _iptables(what: str, rule: Sequence[str]) -> None:
    subprocess.run(["iptables", "-w", what, *rule, "-j", "DROP"], check=True)


def _ip(words: str, *inherited: int) -> None:
    subprocess.run(["ip", *words.split()], check=True, pass_fds=inherited)


def _this_network() -> int:
    """A descriptor of the one in which this thread is."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def _back_afterwards() -> Iterator[None]:
    """In the end this thread is in the network again in which it is now."""
    before = _this_network()
    try:
        yield
    finally:
        _check(_libc.setns(before, CLONE_NEWNET), "setns")
        os.close(before)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
