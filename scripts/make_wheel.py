"""Makes a wheel of the Python package that also brings the programs of one machine.

The package itself stays pure Python, so that `pip install ./sidecar/python` compiles nothing. This
script takes its wheel and adds the programs and the command `optcache`. auditwheel adds the shared
libraries that other machines may lack, and finds out which machines can run the result.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Union

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "wheel"
PROGRAMS = ("optcache", "optcache-node", "optcache-sidecar")
# Their headers are compiled into the programs; auditwheel sees shared libraries alone.
HEADER_PACKAGES = ("libboost1.74-dev", "libcli11-dev", "nlohmann-json3-dev")
COMMAND = "\n[console_scripts]\noptcache = optcache._command:main\n"
COMMON_LICENSES = Path("/usr/share/common-licenses")
NOTICE = """\
The programs and libraries in this wheel contain code of the Debian packages below. Each line names a
package, its source package, and the version of the source. The file with the name of a package has
the licence of the package.

"""
PACKAGE_FORMAT = "${Package} ${source:Package} ${source:Version}\n"


class WheelError(Exception):
    pass


@dataclass(frozen=True, order=True)
class Package:
    """Of Debian, with the source package that it is made from."""

    name: str
    source: str
    source_version: str


def platform_metadata(pure: str, platform: str) -> str:
    """The file WHEEL for one platform, from that of a wheel for all."""
    text = pure.replace("Root-Is-Purelib: true\n", "Root-Is-Purelib: false\n")
    text = text.replace("-none-any\n", f"-none-{platform}\n")
    if "Root-Is-Purelib: false\n" not in text or f"-none-{platform}\n" not in text:
        raise WheelError(f"the wheel of the package is not pure Python:\n{pure}")
    return text


def original_name(library: str) -> str:
    """As Debian has it: auditwheel puts a digest before the first dot."""
    return re.sub(r"-[0-9a-f]{8}(?=\.)", "", library, count=1)


def owners(found: str) -> dict[str, str]:
    """The package of each file name, from what dpkg-query --search prints."""
    lines = re.findall(r"^([a-z0-9][^:, ]*)(?::\S+)?: .*/(.*)$", found, re.MULTILINE)
    return {name: package for package, name in lines}


def notice(packages: Sequence[Package]) -> str:
    lines = [f"{package.name}: {package.source} {package.source_version}\n" for package in packages]
    return NOTICE + "".join(lines)


def common_licenses(copyright_text: str) -> set[str]:
    """The texts that a copyright file of Debian refers to."""
    return set(re.findall(rf"{COMMON_LICENSES}/([\w.+-]*\w)", copyright_text))


def run(*command: Union[str, Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise WheelError(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def module(*words: Union[str, Path]) -> None:
    run(sys.executable, "-m", *words)


def only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "nothing"
        raise WheelError(
            f"one {pattern} was to be made in {folder}, and there is {names}. Remove the folder .venv-wheel, "
            "so that the tools are installed again, and run ./dev wheel again."
        )
    return found[0]


def unpack(wheel: Path, folder: Path) -> Path:
    module("wheel", "unpack", "--dest", folder, wheel)
    return only(folder, "*")


def pack(tree: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    module("wheel", "pack", "--dest-dir", folder, tree)
    return only(folder, "*.whl")


def pure_wheel(work: Path) -> Path:
    source = work / "source"
    leftovers = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "sidecar" / "python", source, ignore=leftovers)
    words = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation")
    module("pip", "wheel", *words, "--wheel-dir", work / "pure", source)
    return only(work / "pure", "*.whl")


def add_programs(tree: Path, programs: Path) -> None:
    folder = tree / "optcache" / "_bin"
    folder.mkdir()
    for name in PROGRAMS:
        shutil.copy(programs / name, folder / name)
    info = only(tree, "*.dist-info")
    with open(info / "entry_points.txt", "a") as entry_points:
        entry_points.write(COMMAND)
    metadata = info / "WHEEL"
    platform = re.sub(r"[.-]", "_", sysconfig.get_platform())
    metadata.write_text(platform_metadata(metadata.read_text(), platform))


def packages_in_programs(tree: Path) -> list[Package]:
    libraries = [original_name(path.name) for path in (tree / "optcache.libs").iterdir()]
    places = [f"*/{sysconfig.get_config_var('MULTIARCH')}/{name}" for name in libraries]
    owner = owners(run("dpkg-query", "--search", *places))
    if strays := set(libraries) - set(owner):
        raise WheelError(f"no Debian package owns {', '.join(sorted(strays))}")
    names = {*HEADER_PACKAGES, *owner.values()}
    shown = run("dpkg-query", "--show", f"--showformat={PACKAGE_FORMAT}", *names)
    return sorted({Package(*line.split()) for line in shown.splitlines()})


def add_licenses(tree: Path) -> None:
    folder = only(tree, "*.dist-info") / "licenses"
    packages = packages_in_programs(tree)
    folder.mkdir(exist_ok=True)
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")
    (folder / "NOTICE").write_text(notice(packages))
    for package in packages:
        text = Path("/usr/share/doc", package.name, "copyright").read_text()
        (folder / package.name).write_text(text)
        for name in common_licenses(text):
            shutil.copy(COMMON_LICENSES / name, folder / name)


def remove_older(wheel: Path) -> None:
    """The wheels that were made before, in the folder of this one."""
    for path in wheel.parent.glob("optcache-*.whl"):
        if path != wheel:
            path.unlink()


def make(programs: Path, out: Path, work: Path) -> Path:
    tree = unpack(pure_wheel(work), work / "tree")
    add_programs(tree, programs)
    wheel = pack(tree, work / "packed")
    module("auditwheel", "repair", "--strip", "--wheel-dir", work / "repaired", wheel)
    repaired = unpack(only(work / "repaired", "*.whl"), work / "repaired-tree")
    add_licenses(repaired)
    return Path(shutil.copy(pack(repaired, work / "done"), out))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev wheel",
        description="Makes a wheel for pip that brings optcache for one machine: the Python package, the "
        "command `optcache`, the programs of node and sidecar, and the shared libraries that they need.",
        epilog="Install it in a virtual environment: pip install build/wheel/optcache-*.whl. The machine needs "
        "glibc 2.36 or newer, which Debian 12 has, and no compiler. Then run: optcache up -f dataset.yaml",
    )
    parser.add_argument(
        "--programs",
        type=Path,
        metavar="FOLDER",
        default=ROOT / "build" / "release" / "bin",
        help="Take the programs from this folder. By default, ./dev wheel makes a release build.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        default=OUT,
        help="Put the wheel there. By default, it is build/wheel, from which wheels made before are removed.",
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as work:
            wheel = make(arguments.programs, arguments.out, Path(work))
        if arguments.out == OUT:
            remove_older(wheel)
    except (WheelError, OSError) as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 1
    print(f"wheel: {wheel}, {wheel.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
