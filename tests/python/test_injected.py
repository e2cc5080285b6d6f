"""The package where a sidecar has put it: on PYTHONPATH, behind `_injected.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "sidecar" / "python" / "src" / "optcache"


def put(package: Path, folder: Path) -> None:
    """As CopyPythonPackage of the sidecar does."""
    target = folder / "optcache"
    shutil.copytree(package, target / "_copy", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(package / "_injected.py", target / "__init__.py")


def where(*folders: Path) -> Path:
    """The folder of what `import optcache` finds, submodules too."""
    code = "import optcache, optcache.errors as e; print(optcache.__file__); print(e.__file__)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    lines = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout.split()
    package, submodule = (Path(line).parent for line in lines)
    assert package == submodule
    return package


@pytest.fixture
def injected(tmp_path: Path) -> Path:
    put(PACKAGE, tmp_path / "run")
    return tmp_path / "run"


def install(folder: Path, version: str = "") -> Path:
    """A package of its own, of another version if one is given."""
    shutil.copytree(PACKAGE, folder / "optcache")
    init = folder / "optcache" / "__init__.py"
    if version:
        lines = init.read_text().splitlines()
        changed = [f'__version__ = "{version}"' if l.startswith("__version__") else l for l in lines]
        init.write_text("\n".join(changed) + "\n")
    return folder


def test_it_is_found_behind_its_front(injected: Path) -> None:
    assert where(injected) == injected / "optcache" / "_copy"


def test_an_installed_one_of_the_same_version_is_used(injected: Path, tmp_path: Path) -> None:
    installed = install(tmp_path / "site")
    assert where(injected, installed) == installed / "optcache"


def test_another_version_would_not_fit_the_sidecar(injected: Path, tmp_path: Path) -> None:
    installed = install(tmp_path / "site", "0.0.1")
    assert where(injected, installed) == injected / "optcache" / "_copy"
