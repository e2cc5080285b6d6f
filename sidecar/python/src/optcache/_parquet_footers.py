"""Row groups of Parquet files, from their footers, in a process of its own.

Some damaged footers make pyarrow abort the process that reads them. Here a child reads them, so the
program that lists a data set goes on and names the file.

The child says "ready" once it has imported pyarrow. It reads footers from standard input, each after
its length (8 bytes, little-endian), and answers with a line of JSON each: [[begin, end], ...], or
{"error": "..."}.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from typing import IO, Any, Optional

MAGIC = b"PAR1"
_LENGTH = struct.Struct("<Q")
_READY = b"ready\n"
_END_SECONDS = 10.0
_DEADLINE_SECONDS = 120.0  # of an answer: the largest footers take seconds


class FooterError(Exception):
    """What is wrong with a footer."""


def extent(metadata: Any, group: int) -> tuple[int, int]:
    """Where the columns of a row group lie: they follow one another.

    Raises FooterError: it has none.
    """
    row_group = metadata.row_group(group)
    begins, ends = [], []
    for column in map(row_group.column, range(row_group.num_columns)):
        begin = column.data_page_offset
        if column.has_dictionary_page and column.dictionary_page_offset:
            begin = min(begin, column.dictionary_page_offset)
        begins.append(begin)
        ends.append(begin + column.total_compressed_size)
    if not begins:
        raise FooterError("a row group without columns holds no bytes")
    return min(begins), max(ends)


class Footers:
    """The child, which ends with the block. Not thread-safe."""

    def __init__(self) -> None:
        self._child: Optional[subprocess.Popen[bytes]] = None

    def __enter__(self) -> Footers:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def extents(self, footer: bytes) -> list[tuple[int, int]]:
        """Where each row group of the file lies.

        Args:
            footer: the end of the file, from the metadata to the last byte.

        Raises FooterError.
        """
        child = self._child or self._start()
        line = self._ask(child, footer)
        if not line.endswith(b"\n"):
            code = self._end()
            if code == -signal.SIGKILL:
                raise FooterError(
                    "the process that reads its footer was killed, for want of memory or after "
                    f"{_DEADLINE_SECONDS:.0f} s"
                )
            raise FooterError("pyarrow cannot read its footer: copy the file again")
        answer = json.loads(line)
        if isinstance(answer, dict):
            raise FooterError(answer["error"])
        return [(begin, end) for begin, end in answer]

    def _start(self) -> subprocess.Popen[bytes]:
        if not sys.executable:
            raise FooterError("this Python cannot start another one to read the footer")
        self._child = child = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if self._ask(child, b"") != _READY:
            self._end()
            raise FooterError(f"{sys.executable} cannot import pyarrow to read its footer")
        return child

    def _ask(self, child: subprocess.Popen[bytes], footer: bytes) -> bytes:
        """The next line; empty or a part of one if the child ends. Sends nothing of no bytes."""
        assert child.stdin is not None and child.stdout is not None
        timer = threading.Timer(_DEADLINE_SECONDS, child.kill)
        timer.start()
        try:
            if footer:
                child.stdin.write(_LENGTH.pack(len(footer)) + footer)
                child.stdin.flush()
            return child.stdout.readline()
        except BrokenPipeError:
            return b""
        finally:
            timer.cancel()

    def _end(self) -> int:
        """How the child ended; 0: there is none."""
        child, self._child = self._child, None
        if child is None:
            return 0
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # what it has not read
                pipe.close()
        try:
            return child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()


def _answer(pyarrow: Any, footer: bytes) -> Any:
    try:
        metadata = pyarrow.parquet.read_metadata(pyarrow.BufferReader(MAGIC + footer))
        return [extent(metadata, group) for group in range(metadata.num_row_groups)]
    except (pyarrow.ArrowException, FooterError, ValueError, OSError) as error:
        return {"error": str(error)}


def _serve(questions: IO[bytes]) -> None:
    import pyarrow
    import pyarrow.parquet

    print(_READY.decode(), end="", flush=True)
    while length := questions.read(_LENGTH.size):
        footer = questions.read(_LENGTH.unpack(length)[0])
        print(json.dumps(_answer(pyarrow, footer)), flush=True)


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules are no others' (torch.py, grain.py)
    _serve(sys.stdin.buffer)
