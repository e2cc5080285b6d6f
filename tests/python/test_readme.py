"""What README and the pages for users say of the Python package can be typed as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, find_program

INSTALL_S = 1200
WHERE = "python3 -c 'import optcache; print(optcache.__file__)'"
PAGES = [
    ROOT / "README.md",
    ROOT / "sidecar" / "python" / "README.md",
    *sorted((ROOT / "docs" / "user").glob("*.md")),
]


def code(page: Path) -> str:
    return "\n".join(re.findall(r"```\w*\n(.*?)```", page.read_text(), re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_attach_a_loader_in_one_way(page: Path) -> None:
    calls = re.findall(r"^.*\battach\((?!loader\) +│).*$", code(page), re.MULTILINE)
    assert [call for call in calls if "loader = attach(" not in call] == []
    if page.name != "opt4torch.md":  # whose own names these are
        assert re.findall(r"\b(?:passes|batches_per_pass|maxsize)=|index_of", page.read_text()) == []


def say(folder: Path, *commands: str) -> str:
    """What a user's shell prints, which has nothing of this repository's environment."""
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
    environment["PIP_REQUIRE_VIRTUALENV"] = "1"  # also of a pip that Debian has not marked
    ran = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *commands])],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.long  # pip fetches what makes wheels
def test_the_wheel_is_installed_by_readmes_commands(tmp_path: Path) -> None:
    programs, out = find_program("optcache").parent, tmp_path / "build" / "wheel"
    say(ROOT, f"./dev wheel --programs '{programs}' --out '{out}'")
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (block,) = (text for text in blocks if "pip install" in text)
    commands = [line for line in block.splitlines() if not line.startswith(("./dev ", "optcache up "))]
    said = say(tmp_path, *commands, WHERE, "command -v optcache", "optcache --version")
    package, command, version = said.splitlines()[-3:]
    assert package.startswith(str(tmp_path / ".venv"))
    assert command == str(tmp_path / ".venv" / "bin" / "optcache")
    assert version == say(ROOT, f"'{programs}/optcache' --version").strip()


@pytest.mark.long  # pip fetches what builds the package
def test_the_package_alone_is_installed_without_programs(tmp_path: Path) -> None:
    package = Path("sidecar", "python")
    shutil.copytree(
        ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("build", "*.egg-info")
    )
    said = say(
        tmp_path, "python3 -m venv .venv", ". .venv/bin/activate", "pip install ./sidecar/python", WHERE
    )
    assert said.splitlines()[-1].startswith(str(tmp_path / ".venv"))
    assert not (tmp_path / ".venv" / "bin" / "optcache").exists()
