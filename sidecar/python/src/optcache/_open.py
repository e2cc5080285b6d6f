"""What is open in this process: connections to sidecars, and batches whose views are in use."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._channel import Channel


class _BatchRef(weakref.ref):  # type: ignore[type-arg]
    """Knows what to release when the last view of a batch has died."""

    __slots__ = ("channel", "batch")
    channel: Channel
    batch: int


# Every batch with views in use. Keeps their channels: the sidecar takes a batch back when its
# connection closes.
_live: dict[int, _BatchRef] = {}  # by id
_channels: weakref.WeakValueDictionary[int, Channel] = weakref.WeakValueDictionary()  # by id


def add(channel: Channel) -> None:
    _channels[id(channel)] = channel


def hold(exporter: Any, channel: Channel, batch: int) -> None:
    """Until the exporter has died, which is when the last view of it has."""
    ref = _BatchRef(exporter, _on_batch_dead)
    ref.channel = channel
    ref.batch = batch
    _live[id(ref)] = ref


def _on_batch_dead(ref: Any) -> None:
    # Called wherever the last view dies, also within this module's own code: takes no lock that
    # it would have to wait for.
    _live.pop(id(ref), None)
    ref.channel.release(ref.batch)


def live_batches() -> int:
    """How many batches have views in use in this process; for tests."""
    return len(_live)


def _all_channels() -> list[Channel]:
    # A list of references is made in one step, whatever other threads do.
    found = [reference() for reference in _channels.valuerefs()]
    return [channel for channel in found if channel is not None]


def forsake_ended(path: str) -> None:
    """Gives back what came with connections that the sidecar there has ended. Each would keep its
    arena until its own thread reads again. Their sockets are for their threads to close.
    """
    for channel in _all_channels():
        if channel.path == path and channel.healthy and channel.ended():
            channel.forsake()


def _after_fork_in_child() -> None:
    # The batches are the parent's to release, and its connections end when it closes them.
    _live.clear()
    for channel in _all_channels():
        channel.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
