"""The package where a sidecar has put it: on PYTHONPATH, behind `_injected.py`, with its entry points."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from conftest import ROOT, Server

PACKAGE = ROOT / "sidecar" / "python" / "src" / "optcache"


def put(package: Path, folder: Path) -> None:
    """As CopyPythonPackage of the sidecar does."""
    target = folder / "optcache"
    shutil.copytree(package, target / "_copy", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(package / "_injected.py", target / "__init__.py")
    shutil.copytree(package / "_dist_info", folder / "optcache_injected.dist-info")


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


def test_its_entry_points_are_those_of_an_installed_one(injected: Path) -> None:
    project = tomllib.loads((ROOT / "sidecar" / "python" / "pyproject.toml").read_text())["project"]
    found = PathDistribution(injected / "optcache_injected.dist-info")
    assert (found.name, found.version) == ("optcache-injected", project["version"])
    assert {(e.group, e.name, e.value) for e in found.entry_points} == {
        (group, name, value)
        for group, entries in project["entry-points"].items()
        for name, value in entries.items()
    }


def test_fsspec_finds_its_file_system(injected: Path, server: Server, samples: Path) -> None:
    pytest.importorskip("fsspec")
    path = "class 1/0077.png"
    code = "import fsspec, sys; sys.stdout.buffer.write(fsspec.open(sys.argv[1]).open().read())"
    found = subprocess.run(
        [sys.executable, "-c", code, f"optcache://test/{path}"],
        env={**os.environ, "PYTHONPATH": str(injected)},
        check=True,
        capture_output=True,
    ).stdout
    assert found == (samples / path).read_bytes()
