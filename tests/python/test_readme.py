"""What README says of the Python package can be typed as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

INSTALL_S = 600


@pytest.mark.long  # pip fetches what builds the package
def test_the_package_is_installed_by_readmes_commands(tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (block,) = (text for text in blocks if "pip install" in text)
    commands = [line for line in block.splitlines() if not line.startswith("./dev ")]
    package = Path("sidecar", "python")
    shutil.copytree(
        ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("build", "*.egg-info")
    )
    ask = "python3 -c 'import optcache; print(optcache.__file__)'"
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
    environment["PIP_REQUIRE_VIRTUALENV"] = "1"  # also of a pip that Debian has not marked
    ran = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *commands, ask])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1].startswith(str(tmp_path / ".venv"))
