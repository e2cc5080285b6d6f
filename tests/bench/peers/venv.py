"""The peers' packages from PyPI, in a virtual environment below build/, on Debian's PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.context import REPOSITORY
from harness.errors import HarnessError

FOLDER = REPOSITORY / "build" / "peers"
INSTALL_SECONDS = 900.0
# Which would ask for a newer PyTorch than Debian's, or for clouds that are not read here; both work
# without, and what they do need stands below.
ALONE = (
    "s3torchconnector==1.5.0",
    "s3torchconnectorclient==1.5.0",
    "mosaicml-streaming==0.13.0",
    "webdataset==1.0.2",
    "spdl-core==0.8.0",
)
WITH_ALL = (
    "multi-storage-client[boto3]==1.3.1",
    "aiobotocore==3.10.0",  # else pip tries every version that might go with another
    "awscli==1.46.3",
    "boto3==1.43.117",
    "datasets==4.8.5",
    # For datasets; newer ones need another NumPy than Debian's, which Debian's PyTorch is made for.
    "numpy<2",
    "pandas==2.3.3",
    "pyarrow==21.0.0",
    "s3fs==2026.2.0",  # of the newest fsspec that datasets takes
    "braceexpand==0.1.7",
    "brotli",
    "catalogue",
    "paramiko<4",
    "python-snappy<1",
    "transformers>=4.40,<5",
    "xxhash<4",
    "zstd",
)
VERSIONS = (
    "s3torchconnector 1.5.0, multi-storage-client 1.3.1, s3fs 2026.2.0, MosaicML Streaming 0.13.0, "
    "webdataset 1.0.2, AWS CLI 1.46.3, datasets 4.8.5, SPDL 0.8.0"
)


def python() -> Path:
    """Its interpreter; made the first time, which takes two minutes."""
    interpreter = FOLDER / "bin" / "python"
    done = FOLDER / "done"
    wanted = "\n".join([*ALONE, *WITH_ALL])
    if not (done.exists() and done.read_text() == wanted):
        _run(sys.executable, "-m", "venv", "--clear", "--system-site-packages", str(FOLDER))
        pip = (str(interpreter), "-m", "pip", "install", "--quiet")
        _run(*pip, "--no-deps", *ALONE)
        _run(*pip, *WITH_ALL)
        done.write_text(wanted)
    return interpreter


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
    )
    if done.returncode != 0:
        raise HarnessError(f"{' '.join(command[:5])} ends with {done.returncode}: {done.stderr}")
