"""What a type checker tells users of the package, in their own strict programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "sidecar" / "python"
CHECK_S = 600

PROGRAM = '''
import torch.utils.data
import optcache
from optcache.torch import Attached, DataLoader, ImageFolder, attach


class Faces(torch.utils.data.Dataset[tuple[bytes, int]]):
    split = "train"

    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> tuple[bytes, int]:
        return b"", index


class Words(torch.utils.data.Dataset[str]):
    def __len__(self) -> int:
        return 9

    @optcache.cached(name="words")
    def __getitem__(self, index: int) -> str:
        return str(index)


def takes_any(dataset: torch.utils.data.Dataset[object]) -> None: ...
def takes_faces(faces: Faces) -> None: ...
def frame(index: int) -> bytes: return b""


data = optcache.Dataset()
takes_any(data)
takes_any(optcache.WebDataset())
takes_any(ImageFolder(socket="/run/s", allow_empty=True))
takes_any(data + data)
reveal_type(len(data))  # int
reveal_type(data.paths())  # list[str]
reveal_type(data.index("a"))  # int

loader = attach(torch.utils.data.DataLoader(data, batch_size=8), epochs=9, limit_batches=None)
reveal_type(loader.optcache)  # LoaderControl
loader.optcache.start_at(8)
reveal_type(loader.optcache.stats())  # Union[SidecarStats, None]
loader.optcache.nothing  # error: "LoaderControl" has no attribute "nothing"
faces_loader = attach(torch.utils.data.DataLoader(Faces(), batch_size=8), dataset=data)
reveal_type(faces_loader)  # Attached[tuple[bytes, int]]
plain: torch.utils.data.DataLoader[tuple[bytes, int]] = faces_loader
named: Attached[tuple[bytes, int]] = faces_loader
own = DataLoader(Faces(), batch_size=8, attach={"name": "own"})
reveal_type(own)  # DataLoader[tuple[bytes, int]]
reveal_type(own.optcache)  # LoaderControl
attach(plain, "train")  # error: Too many positional arguments for "attach"
attach(plain, passes=9)  # error: Unexpected keyword argument "passes" for "attach"

faces = optcache.cached(Faces(), name="faces", max_bytes="4Gi")
takes_faces(faces)
reveal_type(faces.split)  # str
reveal_type(faces[0])  # tuple[bytes, int]
faces.nothing  # error: "Faces" has no attribute "nothing"
assert isinstance(faces, optcache.Computed)
reveal_type(faces.stats()["hits"])  # Any
reveal_type(Words()[0])  # str
reveal_type(optcache.cached(frame, name="frames", size=9)(3))  # bytes
optcache.cached(Faces())  # error: No overload variant of "cached" matches argument type "Faces"

try:
    data[0]
except (optcache.SidecarUnavailableError, optcache.SidecarUnavailable) as why:
    reveal_type(why.code)  # str
optcache.nothing  # error: Module has no attribute "nothing"
'''


def said(program: Path, mypy_path: str) -> dict[int, str]:
    """What mypy says, by line: a type, or "error: " and the message."""
    mypy = shutil.which("mypy")
    if mypy is None:
        pytest.skip("mypy is not installed")
    words = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--no-error-summary"]
    words += ["--python-version=3.9", "--config-file=", "--cache-dir=cache", program.name]
    done = subprocess.run(
        [mypy, *words],
        cwd=program.parent,
        env={**os.environ, "MYPYPATH": mypy_path},
        capture_output=True,
        text=True,
        timeout=CHECK_S,
        check=False,
    )
    assert done.stderr == "" and done.stdout, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        _, number, kind, message = re.split(r":(\d+): (error|note): ", line)
        shown = re.sub(r"  \[[a-z-]+\]$", "", message)
        if kind == "note":
            shown = (re.findall(r'Revealed type is "(.*)"', message) or [""])[0]
            shown = re.sub(r"builtins\.|typing\.|optcache\.\w+\.|\*", "", shown)
            shown = re.sub(r"\b(Tuple|List|Dict)\[", lambda match: match[0].lower(), shown)
        if shown:
            found[int(number)] = shown if kind == "note" else f"error: {shown}"
    return found


def check(folder: Path, mypy_path: str) -> None:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    lines = enumerate(PROGRAM.splitlines(), 1)
    expected = {n: line.split("  # ")[1] for n, line in lines if "  # " in line}
    assert said(program, mypy_path) == expected


def test_a_strict_program_has_types(tmp_path: Path) -> None:
    check(tmp_path, f"{PACKAGE / 'src'}:{PACKAGE / 'typings'}")


@pytest.mark.long  # mypy reads all of PyTorch: a minute
def test_a_strict_program_has_types_of_the_real_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    check(tmp_path, str(PACKAGE / "src"))
