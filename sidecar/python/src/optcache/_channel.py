"""One connection to the sidecar: requests, answers, and the views that they give."""

from __future__ import annotations

import array
import collections
import logging
import os
import struct
import threading
import time
import weakref
from typing import Callable, NoReturn, Optional, TypeVar, Union

from . import _protocol as protocol
from ._arena import Arena
from ._faults import ChannelBrokenError, RefusedError, SampleFailedError
from ._frames import Frames, fail
from ._stats import counters
from .errors import code_name

log = logging.getLogger("optcache")

_TELL_OF_WAITING_EVERY_S = 9.0  # at the next word of the sidecar, which comes every 2 s

T = TypeVar("T")


class Channel:
    """A connection with the arena that came with it.

    Requests are made by one thread at a time, which waits for the answer. Batches may be released by
    any thread at any moment. Closes itself when neither its thread nor a view needs it any more:
    until then the sidecar keeps what the views show.

    Attributes:
        healthy: False while a request is under way, so also after one was interrupted: then an
            answer may still come, and the channel must not be asked again.
        version: of the protocol.
        path: of the sidecar's socket.
        handles: what the sidecar calls the datasets that were opened here.
        computed: the memory of computed samples, by what the sidecar calls them.
    """

    def __init__(self, path: str, silence_s: int = protocol.SILENCE_S) -> None:
        """Raises OSError if no process listens at `path`, ChannelBrokenError if it is no sidecar.

        Args:
            silence_s: how long a request waits for the sidecar's next word.
        """
        self._frames = Frames()
        self.path = path
        self.healthy = False
        self.pid = os.getpid()
        self.handles: dict[str, int] = {}
        self.computed: dict[int, memoryview] = {}
        self._stand_ins: set[int] = set()  # streams whose samples are others, at the last look
        self._request = 0
        self._released: collections.deque[int] = collections.deque()
        self._unsent = b""  # the rest of a frame that the socket did not take whole
        self._arena: Optional[Arena] = None
        self._send_lock = threading.Lock()
        self.bear_silence(min(protocol.HELLO_S, silence_s))
        self._frames.connect(path)
        _channels[id(self)] = self
        self._arena = self._hello()
        self.bear_silence(silence_s)

    def __del__(self) -> None:
        if hasattr(self, "_frames"):  # none where a process has too many files
            self.close()

    def close(self) -> None:
        self.forsake()
        self._frames.close()

    def forsake(self) -> None:
        """Is not asked again: its memory is kept only for views that are in use."""
        self.healthy = False
        self._arena = None
        self.computed.clear()

    def alive(self) -> bool:
        """False if the sidecar has ended the connection. Does not wait."""
        return self.healthy and not self.ended()

    def ended(self) -> bool:
        """Whether the sidecar has, or this process. Does not wait."""
        return self._frames.ended()

    def bear_silence(self, seconds: int) -> None:
        """How long requests wait for the sidecar's next word from now on."""
        self._frames.bear_silence(seconds)

    # --- Requests

    def open(self, name: str) -> tuple[protocol.Opened, int]:
        """Opens a dataset: what it is, and its manifest as a file descriptor that the caller owns."""
        opened, descriptor = self._call_for_descriptor(
            protocol.OPEN, protocol.open_dataset(name), protocol.OPENED, protocol.parse_opened
        )
        self.handles[name] = self.handles[opened.name] = opened.handle
        return opened, descriptor

    def attach(
        self,
        handle: int,
        loader: str,
        recipe: protocol.Recipe,
        passes_from: Optional[int],
        job: str,
    ) -> protocol.Attached:
        body = protocol.attach(handle, loader, recipe, passes_from, self.version, job)
        return self._call(protocol.ATTACH, body, protocol.ATTACHED, protocol.parse_attached)

    def begin_pass(self, stream: int, rank: int, number: int, what: protocol.Pass) -> None:
        body = protocol.begin_pass(stream, rank, number, what)
        self._call(protocol.PASS, body, protocol.DONE, lambda _: None)

    def trace(
        self, stream: int, rank: int, number: int, first: int, length: int, ids: array.array[int]
    ) -> None:
        """Hands over ids of the rank's list from `first` on; `length` 0: the list grows."""
        for begin in range(0, len(ids), protocol.IDS_MAX):
            part = ids[begin : begin + protocol.IDS_MAX]
            body = protocol.trace(stream, rank, number, first + begin, length, part)
            self._call(protocol.TRACE, body, protocol.DONE, lambda _: None)

    def detach(self, stream: int, rank: int) -> None:
        self._send(protocol.frame(protocol.DETACH, 0, protocol.detach(stream, rank)))

    def get(
        self, handle: int, ids: array.array[int], tag: Optional[protocol.Tag]
    ) -> list[memoryview]:
        """The samples' bytes, at most IDS_MAX of them, in one round trip.

        Raises SampleFailedError for the first that the sidecar could not read.
        """
        began = time.monotonic()
        where = tag if tag is not None else (0, 0, 0, 0)
        head = protocol.GET_BODY.pack(handle, *where)

        def views(body: memoryview) -> list[memoryview]:
            batch, count, others = protocol.SAMPLES_BODY.unpack_from(body)
            entries = body[protocol.SAMPLES_BODY.size :]
            kinds = bytes(entries[16 * count : 17 * count]) if others else b""
            stand_ins = kinds.count(protocol.KIND_STAND_IN)
            counters.add(
                samples=count,
                round_trips=1,
                wait_seconds=time.monotonic() - began,
                copies=others - stand_ins,
            )
            self._tell_of_stand_ins(where[0], stand_ins > 0)
            if others:
                return self._mixed_views(batch, count, entries)
            whole = self._hold(batch)
            return [
                whole[place : place + length]
                for place, length in protocol.ENTRY.iter_unpack(entries)
            ]

        return self._call(protocol.GET, head + ids.tobytes(), protocol.SAMPLES, views)

    def _tell_of_stand_ins(self, stream: int, given: bool) -> None:
        """Once when they begin in a stream and once when they end, in each process that reads it."""
        if given == (stream in self._stand_ins):
            return
        if given:
            self._stand_ins.add(stream)
            log.warning(
                "headspace: from now on the sidecar delivers other samples than are requested, at once"
            )
        else:
            self._stand_ins.remove(stream)
            log.warning("headspace: from now on the sidecar delivers the samples that are requested")

    def read_counts(self, handle: int) -> protocol.Reads:
        """What the sidecar has delivered of that dataset, to all processes."""
        if self.version < 2:
            raise RefusedError("the sidecar is of an earlier release, which does not count", "not_found")
        body = protocol.ID.pack(handle)
        return self._call(protocol.READ_COUNTS, body, protocol.READS, protocol.parse_reads)

    # --- Computed samples

    def open_computed(
        self, name: str, what: str, samples: int, max_bytes: int
    ) -> protocol.ComputedOpened:
        """Opens computed samples by that name, if the sidecar keeps any."""
        if self.version < 2:
            raise RefusedError("the sidecar is of an earlier release, which keeps none", "not_found")
        opened, descriptor = self._call_for_descriptor(
            protocol.OPEN_COMPUTED,
            protocol.open_computed(name, what, samples, max_bytes),
            protocol.COMPUTED_OPENED,
            protocol.parse_computed_opened,
        )
        try:
            memory = Arena(descriptor, opened.memory)
        finally:
            os.close(descriptor)
        self.computed[opened.handle] = memoryview(memory.exporter()).cast("B")
        return opened

    def get_computed(
        self, handle: int, index: int, tag: Optional[protocol.Tag]
    ) -> Union[bytearray, protocol.Compute]:
        """A copy of the value's bytes, or leave to compute it."""
        where = tag if tag is not None else (0, 0, 0, protocol.NO_INDEX)
        body = protocol.GET_BODY.pack(handle, *where) + protocol.ID.pack(index)

        def copy(kind: int, reply: memoryview) -> Union[bytearray, protocol.Compute]:
            if kind == protocol.COMPUTE:
                return protocol.parse_compute(reply)
            value = protocol.parse_value(reply)
            memory = self.computed.get(handle)
            if memory is None:
                fail("the sidecar has ended")
            return bytearray(memory[value.offset : value.offset + value.length])

        return self._call_for(
            protocol.GET, body, (protocol.VALUE, protocol.COMPUTE), copy
        )

    def put_computed(self, lease: int, value: Optional[bytes]) -> None:
        """What was computed by that leave; None: it is not to be kept."""
        if value is None:
            self._send(protocol.frame(protocol.COMPUTED_PUT, 0, protocol.PUT_BODY.pack(lease, 0, 0)))
            return
        for at in range(0, len(value), protocol.PUT_MAX):
            part = value[at : at + protocol.PUT_MAX]
            body = protocol.PUT_BODY.pack(lease, len(value), at) + part
            self._send(protocol.frame(protocol.COMPUTED_PUT, 0, body))

    def computed_counts(self, handle: int) -> protocol.Counts:
        body = protocol.ID.pack(handle)
        return self._call(protocol.COMPUTED_COUNTS, body, protocol.COUNTS, protocol.parse_counts)

    def _mixed_views(self, batch: int, count: int, rest: memoryview) -> list[memoryview]:
        whole = self._hold(batch) if batch else memoryview(b"")
        entries, rest = rest[: 16 * count], rest[16 * count :]
        kinds, tail = bytes(rest[:count]), self._frames.lasting(rest[count:])
        sources = {
            protocol.KIND_ARENA: whole,
            protocol.KIND_STAND_IN: whole,
            protocol.KIND_INLINE: tail.toreadonly(),
        }
        views = []
        for position, (place, length) in enumerate(protocol.ENTRY.iter_unpack(entries)):
            kind = kinds[position]
            if kind == protocol.KIND_ERROR:
                code, text = tail[place], str(tail[place + 1 : place + length], "utf-8", "replace")
                raise SampleFailedError(position, code_name(code), text)
            views.append(sources[kind][place : place + length])
        return views

    def _hold(self, batch: int) -> memoryview:
        """The whole arena; when the last view of what this returns has died, so has the batch."""
        arena = self._arena
        if arena is None:
            fail("the sidecar has ended")
        return arena.lend(batch, self.release)

    # --- Releasing

    def release(self, batch: int) -> None:
        """Gives a batch back, at once if possible. Never waits."""
        self._released.append(batch)
        self._flush()

    def _flush(self) -> None:
        # The thread that holds the lock looks at the queue again after giving it up, so nothing stays.
        while self._released and self._send_lock.acquire(blocking=False):
            try:
                if not self._send_releases():
                    return
            finally:
                self._send_lock.release()

    def _send_releases(self) -> bool:
        """False: the socket takes nothing now; the next request takes it along."""
        data = self._take_unsent()
        try:
            sent = self._frames.send_now(data)
        except OSError:
            return False  # the connection has ended, and all batches with it
        self._unsent = data[sent:]
        return not self._unsent

    def _take_unsent(self) -> bytes:
        batches = array.array("Q")
        while self._released and len(batches) < protocol.RELEASES_MAX:
            batches.append(self._released.popleft())
        data, self._unsent = self._unsent, b""
        if batches:
            data += protocol.frame(protocol.RELEASE, 0, batches.tobytes())
        return data

    # --- Calls

    def _hello(self) -> Arena:
        (self.version, size), descriptor = self._call_for_descriptor(
            protocol.HELLO, protocol.hello(self.pid), protocol.WELCOME, protocol.parse_welcome
        )
        try:
            return Arena(descriptor, size)
        finally:
            os.close(descriptor)

    def _call_for_descriptor(
        self, kind: int, body: bytes, answer: int, parse: Callable[[memoryview], T]
    ) -> tuple[T, int]:
        descriptors: list[int] = []
        self._frames.descriptors = descriptors
        try:
            reply = self._call(kind, body, answer, parse)
            if len(descriptors) != 1:
                fail("the sidecar passed no memory")
            return reply, descriptors.pop()
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
            self._frames.descriptors = None

    def _call(
        self, kind: int, body: bytes, answer: int, parse: Callable[[memoryview], T]
    ) -> T:
        """What `parse` makes of the answer's body, which is good until the next call."""
        return self._call_for(kind, body, (answer,), lambda _, reply: parse(reply))

    def _call_for(
        self,
        kind: int,
        body: bytes,
        answers: tuple[int, ...],
        parse: Callable[[int, memoryview], T],
    ) -> T:
        self.healthy = False
        self._request += 1
        self._send(protocol.frame(kind, self._request, body))
        try:
            return parse(*self._answer(answers))
        except (struct.error, IndexError):
            self.healthy = False
            fail("")

    def _answer(self, answers: tuple[int, ...]) -> tuple[int, memoryview]:
        asked_at = told_at = time.monotonic()
        while True:
            got, request, reply = self._frames.read()
            if request != self._request:
                self._last_words(reply if got == protocol.ERROR else None)
            if got == protocol.WAITING:
                now = time.monotonic()
                if now - told_at >= _TELL_OF_WAITING_EVERY_S:
                    told_at = now
                    why = protocol.parse_string(reply)
                    log.warning("waiting for samples for %.0f s: %s", now - asked_at, why)
                continue
            if got == protocol.ERROR:
                self.healthy = True
                code, text = protocol.parse_error(reply)
                raise RefusedError(text, code_name(code))
            if got not in answers:
                fail("")
            self.healthy = True
            return got, reply

    def _send(self, request: bytes) -> None:
        try:
            with self._send_lock:
                self._frames.send(self._take_unsent() + request)
        except ChannelBrokenError:
            self.healthy = False  # half a frame may be sent
            raise
        self._flush()

    def _last_words(self, error: Optional[memoryview]) -> NoReturn:
        """The sidecar has given this connection up, or is none."""
        code, text = protocol.parse_error(error) if error is not None else (0, "")
        if code_name(code) == "invalid_argument":  # so it would be the next time
            raise RefusedError(text, code_name(code))
        fail(text)


# Those that are open in this process, by id.
_channels: weakref.WeakValueDictionary[int, Channel] = weakref.WeakValueDictionary()


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
    # They are the parent's, and end when it closes them.
    for channel in _all_channels():
        channel.close()


os.register_at_fork(after_in_child=_after_fork_in_child)
