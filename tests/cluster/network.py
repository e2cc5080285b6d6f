"""Network namespaces: one for the control plane with a bridge, one for each worker behind it.

Nothing is connected to the machine's own network.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cluster import settings
from cluster.host import Word, run

NETNS = Path("/run/netns")
BRIDGE = "oc0"


def inside(namespace: str, *command: Word) -> list[Word]:
    """The command, in that namespace. Not `ip netns exec`, which would hide the cgroups."""
    return ["nsenter", f"--net={NETNS / namespace}", *command]


def ours() -> list[str]:
    """The names of all our namespaces that exist, whoever made them."""
    if not NETNS.is_dir():
        return []
    return sorted(path.name for path in NETNS.glob(f"{settings.PREFIX}-*"))


def links() -> list[str]:
    """Interfaces of ours in the machine's own namespace, where none belongs."""
    names = [line.split(": ")[1].partition("@")[0] for line in run(["ip", "-oneline", "link"]).stdout.splitlines()]
    return [name for name in names if name == BRIDGE or re.fullmatch(r"ocv\d+", name)]


def inode(namespace: str) -> int:
    return os.stat(NETNS / namespace).st_ino


def make_control() -> None:
    name = settings.CONTROL_NAMESPACE
    run(["ip", "netns", "add", name])
    _shell(
        name,
        f"""
        ip link set lo up
        ip link add {BRIDGE} type bridge
        ip addr add {settings.CONTROL_ADDRESS}/24 dev {BRIDGE}
        ip link set {BRIDGE} up
        sysctl -qw net.ipv4.ip_forward=1
        """,
    )


def make_worker(number: int) -> None:
    """A namespace whose eth0 is on the bridge; the control plane routes its pods' range to it."""
    name, control = settings.worker_namespace(number), settings.CONTROL_NAMESPACE
    run(["ip", "netns", "add", name])
    veth = _veth(number)
    run(["ip", "link", "add", veth, "netns", control, "type", "veth", "peer", "eth0", "netns", name])
    _shell(
        control,
        f"""
        ip link set {veth} master {BRIDGE} up
        ip route add {settings.pod_range(number)} via {settings.worker_address(number)}
        """,
    )
    _shell(
        name,
        f"""
        ip link set lo up
        ip addr add {settings.worker_address(number)}/24 dev eth0
        ip link set eth0 up
        ip route add {settings.CLUSTER_RANGE} via {settings.CONTROL_ADDRESS}
        sysctl -qw net.ipv4.ip_forward=1
        sysctl -qw net.bridge.bridge-nf-call-iptables=1
        """,
    )


def cut_worker(number: int) -> None:
    """As if its cable were pulled."""
    run(inside(settings.CONTROL_NAMESPACE, "ip", "link", "set", _veth(number), "down"))


def mend_worker(number: int) -> None:
    run(inside(settings.CONTROL_NAMESPACE, "ip", "link", "set", _veth(number), "up"))


def remove(namespace: str) -> None:
    """Its processes are gone already. Its interfaces and their peers go with it."""
    run(["ip", "netns", "del", namespace])


def _veth(number: int) -> str:
    return f"ocv{number}"


def _shell(namespace: str, script: str) -> None:
    run(inside(namespace, "sh", "-e", "-c", script))
