"""Frames of the hand-over protocol on their way through a socket; docs/formats/handoff.md."""

from __future__ import annotations

import socket
import struct
from typing import NoReturn, Optional

from . import _protocol as protocol
from ._faults import ChannelBrokenError, SilentError

_BUFFER_BYTES = 64 * 1024
_TIMEVAL = struct.Struct("ll")


def fail(why: str) -> NoReturn:
    """Raises ChannelBrokenError; "": what came is no frame of the protocol."""
    raise ChannelBrokenError(why or "the program at the socket is not a sidecar of this release")


class Frames:
    """A socket of which whole frames are read. One thread reads, and one at a time sends.

    Attributes:
        descriptors: those that came with frames; None: none are expected.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.descriptors: Optional[list[int]] = None
        self._silence_s = 0
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._begin = 0
        self._end = 0

    def bear_silence(self, seconds: int) -> None:
        """How long the other side may take from now on to say something, or to take something."""
        if seconds == self._silence_s:
            return
        # Of the kernel, not of Python, which would make a second system call a read of it.
        self._silence_s = seconds
        limit = _TIMEVAL.pack(seconds, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def connect(self, path: str) -> None:
        """Raises OSError, or SilentError."""
        try:
            self._socket.connect(path)
        except BlockingIOError:  # its queue of connections is full
            self._fail_of_silence()

    def close(self) -> None:
        self._socket.close()

    def ended(self) -> bool:
        """Whether either side has ended the connection. Does not wait."""
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    # --- Sending

    def send(self, data: bytes) -> None:
        """All of it, or raises ChannelBrokenError: then a part may be sent."""
        try:
            self._socket.sendall(data)
        except BlockingIOError:
            self._fail_of_silence()
        except OSError as error:
            raise ChannelBrokenError(f"the connection to the sidecar broke: {error}") from error

    def send_now(self, data: bytes) -> int:
        """How many of the bytes the socket takes without waiting. Raises OSError if it has ended."""
        try:
            return self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0

    # --- Reading

    def read(self) -> tuple[int, int, memoryview]:
        """Type, request and body of the next frame; the body is good until the next call. Raises
        ChannelBrokenError.
        """
        header = protocol.HEADER
        while self._end - self._begin < header.size:
            self._fill()
        length, kind, request = header.unpack_from(self._buffer, self._begin)
        if not protocol.WELCOME <= kind <= protocol.READS:
            fail("")
        if header.size + length > _BUFFER_BYTES:
            self._begin += header.size
            return kind, request, self._read_long(length)
        if self._begin + header.size + length > _BUFFER_BYTES:
            self._move_to_front()
        while self._end - self._begin < header.size + length:
            self._fill()
        start = self._begin + header.size
        self._begin = start + length
        if self._begin == self._end:
            self._begin = self._end = 0
        return kind, request, self._view[start : start + length]

    def lasting(self, part: memoryview) -> memoryview:
        """A part of a body, good also after the next call of `read`."""
        return memoryview(bytes(part)) if part.obj is self._buffer else part

    def _read_long(self, length: int) -> memoryview:
        body = memoryview(bytearray(length))
        have = self._end - self._begin
        body[:have] = self._view[self._begin : self._end]
        self._begin = self._end = 0
        while have < length:
            have += self._receive(body[have:])
        return body

    def _move_to_front(self) -> None:
        rest = bytes(self._view[self._begin : self._end])
        self._view[: len(rest)] = rest
        self._begin, self._end = 0, len(rest)

    def _fill(self) -> None:
        self._end += self._receive(self._view[self._end :])

    def _receive(self, into: memoryview) -> int:
        try:
            if self.descriptors is None:
                count = self._socket.recv_into(into)
            else:
                count = self._receive_with_descriptors(into, self.descriptors)
        except BlockingIOError:
            self._fail_of_silence()
        except OSError as error:
            fail(f"the connection to the sidecar broke: {error}")
        if count == 0:
            fail("the sidecar closed the connection")
        return count

    def _receive_with_descriptors(self, into: memoryview, descriptors: list[int]) -> int:
        size = struct.calcsize("i")
        count, control, _, _ = self._socket.recvmsg_into(
            [into], socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, data in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.extend(struct.unpack(f"{len(data) // size}i", data))
        return count

    def _fail_of_silence(self) -> NoReturn:
        raise SilentError(f"the sidecar was silent for {self._silence_s} s")
