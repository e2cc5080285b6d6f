"""A sidecar for tests: handoff_test_server over a folder of samples."""

from __future__ import annotations

import json
import os
import random
import socket as socket_module
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120.0
IMAGES = 37
sys.path.insert(0, str(ROOT / "sidecar" / "python" / "src"))


def find_program(name: str) -> Path:
    folders = [os.environ.get("OPTCACHE_BIN_DIR"), ROOT / "build" / "dev" / "bin"]
    for folder in folders:
        if folder and (path := Path(folder) / name).exists():
            return path
    pytest.skip(f"{name} is not built: ninja -C build/dev {name}")


class Server:
    """handoff_test_server at a socket; can be killed and started again."""

    def __init__(self, socket: Path, folder: Path, *flags: str) -> None:
        self.socket = socket
        self.folder = folder
        self.events: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self._probe: Optional[socket_module.socket] = None
        self._probes = 0
        self.start(*flags)

    def start(self, *flags: str) -> None:
        program = find_program("handoff_test_server")
        known = len(self.events)
        self.process = subprocess.Popen(
            [program, "--socket", self.socket, "--folder", self.folder, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._probe = None
        threading.Thread(target=self._listen, args=(self.process,), daemon=True).start()
        self.wait_for("ready", after=known)

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(timeout=DEADLINE_S)

    def mark(self) -> int:
        """How many events there were until now."""
        self._catch_up()
        return len(self.events)

    def of(self, event: str, after: int = 0) -> list[dict[str, Any]]:
        """All such events until now."""
        self._catch_up()
        return self._of(event, after)

    def _of(self, event: str, after: int) -> list[dict[str, Any]]:
        return [e for e in self.events[after:] if e["event"] == event]

    def _catch_up(self) -> None:
        """Asks for a dataset that there is not, and waits for the report of that."""
        if self.process.poll() is not None:
            return
        if self._probe is None:
            self._probe = socket_module.socket(socket_module.AF_UNIX)
            self._probe.connect(str(self.socket))
            self._probe.sendall(struct.pack("<IIQHHI", 8, 1, 1, 1, 1, 0))
        self._probes += 1
        name = f"probe {self._probes}".encode()
        self._probe.sendall(struct.pack("<IIQH", 2 + len(name), 2, 2, len(name)) + name)
        self.wait_for("open", name=name.decode())

    def wait_for(
        self, event: str, count: int = 1, after: int = 0, **fields: Any
    ) -> dict[str, Any]:
        """The `count`-th such event with these fields, when it has come."""

        def found() -> list[dict[str, Any]]:
            return [e for e in self._of(event, after) if fields.items() <= e.items()]

        with self._changed:
            if not self._changed.wait_for(lambda: len(found()) >= count, DEADLINE_S):
                raise TimeoutError(f"no {event} {fields} among {self.events[-20:]}")
            return found()[count - 1]


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 files of random bytes, 1 B to 20 KB and some larger, in 4 class folders."""
    folder = tmp_path_factory.mktemp("samples")
    generator = random.Random(5)
    for i in range(200):
        length = generator.choice([1, 100, 5_000, generator.randrange(1, 20_000)])
        path = folder / f"class {i % 4}" / f"{i:04}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(generator.randbytes(60_000 if i == 77 else length))
    return folder


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small PNGs in class folders whose names sort in several ways, some of them deeper."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("images")
    generator = random.Random(3)
    for i in range(IMAGES):
        name = ["b", "A", "a b", "a-x"][i % 4]
        path = folder / name / ("deep" if i % 3 else ".") / f"{i:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        colour = tuple(generator.randrange(256) for _ in range(3))
        Image.new("RGB", (4, 4), colour).save(path)
    return folder


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    """Starts a server over a folder: serve(folder, *flags); the environment points to it."""
    from optcache import _endpoint

    servers: list[Server] = []

    def start(folder: Path, *flags: str) -> Server:
        server = Server(tmp_path / f"s{len(servers)}", folder, *flags)
        servers.append(server)
        monkeypatch.setenv("OPTCACHE_SOCKET", str(server.socket))
        return server

    monkeypatch.delenv("OPTCACHE_DATASET", raising=False)
    yield start
    for server in servers:
        if server.process.poll() is None:
            server.stop()
        # Else this process keeps the arena of each server mapped until it ends: gigabytes.
        _endpoint._endpoints.pop(str(server.socket), None)


@pytest.fixture
def server(serve: Callable[..., Server], samples: Path) -> Server:
    return serve(samples)


@pytest.fixture
def contents(samples: Path) -> list[bytes]:
    """The samples' bytes in the order of the dataset: class by class, by name."""
    return [path.read_bytes() for path in sorted(samples.glob("*/*"))]


def list_source(server: Server, **entry: Any) -> Path:
    """Writes what a sidecar writes beside its socket: where its dataset lies."""
    served = {"name": "local/test", "path": str(server.folder), **entry}
    path = Path(f"{server.socket}.sources")
    path.write_text(json.dumps({"version": 1, "datasets": [served]}))
    return path


def until(condition: Callable[[], bool]) -> None:
    """Waits for something that happens in another process."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the condition did not come true")
        time.sleep(0.01)


__all__ = ["Server", "find_program", "list_source", "until"]
