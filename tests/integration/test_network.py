"""Packets that a test takes away are lost both ways, and connections outlive that."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from harness.network import HUB, Host, cut_off, missing, own_network

PORT = 7000
LOST_SECONDS = 0.3  # what is lost never comes, so that a slow machine changes nothing
DEADLINE_SECONDS = 120.0


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    if why := missing():
        pytest.skip(f"there is no network to cut: {why}")
    with own_network(), ExitStack() as made:
        pair = Host(1), Host(2)
        for host in pair:
            made.callback(host.close)
        yield pair


def listen(address: str) -> socket.socket:
    return socket.create_server((address, PORT))


def connect(host: Host, address: str, seconds: float = DEADLINE_SECONDS) -> socket.socket:
    with host.entered():
        return socket.create_connection((address, PORT), seconds)


def test_a_connection_between_hosts_outlives_a_cut(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    with two.entered():
        server = listen(two.address)
    with server, connect(one, two.address) as client, server.accept()[0] as accepted:
        for sender, receiver in ((client, accepted), (accepted, client)):
            with cut_off(two.address):
                sender.sendall(b"word")
                receiver.settimeout(LOST_SECONDS)
                with pytest.raises(TimeoutError):
                    receiver.recv(4)
            receiver.settimeout(DEADLINE_SECONDS)
            assert receiver.recv(4) == b"word"


def test_a_cut_between_two_spares_others(hosts: tuple[Host, Host]) -> None:
    one, two = hosts
    with two.entered():
        server = listen(two.address)
    with server, listen(HUB):
        with cut_off(one.address, HUB):
            with pytest.raises(TimeoutError):
                connect(one, HUB, LOST_SECONDS)
            connect(two, HUB).close()
            connect(one, two.address).close()
        connect(one, HUB).close()
