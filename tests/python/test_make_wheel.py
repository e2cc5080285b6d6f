"""scripts/make_wheel.py decides rightly what goes into the wheel. tests/integration/test_wheel.py makes one."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import make_wheel
from make_wheel import Package, WheelError

from optcache import _command

PURE = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n\n"
FOUND = """\
libfmt9:amd64: /usr/lib/x86_64-linux-gnu/libfmt.so.9.1.0
libkeyutils1:amd64: /lib/x86_64-linux-gnu/libkeyutils.so.1.10
libboost1.74-dev: /usr/lib/x86_64-linux-gnu/libboost.so.1
"""


def test_the_wheel_is_for_one_platform() -> None:
    text = make_wheel.platform_metadata(PURE, "linux_x86_64")
    assert text == "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\n\n"


def test_a_package_that_is_not_pure_python_is_refused() -> None:
    with pytest.raises(WheelError, match="not pure Python"):
        make_wheel.platform_metadata(PURE.replace("py3-none-any", "cp311-cp311-linux_x86_64"), "linux_x86_64")


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("libfmt-4f700944.so.9.1.0", "libfmt.so.9.1.0"),
        ("liblber-2-64f183c1.5.so.0.1.8", "liblber-2.5.so.0.1.8"),
        ("libprometheus-cpp-core-856df8c5.so.1.0.1", "libprometheus-cpp-core.so.1.0.1"),
        ("libz.so.1", "libz.so.1"),
    ],
)
def test_libraries_have_their_names_without_digest(library: str, name: str) -> None:
    assert make_wheel.original_name(library) == name


def test_packages_are_found_by_the_names_of_their_libraries() -> None:
    assert make_wheel.owners(FOUND) == {
        "libfmt.so.9.1.0": "libfmt9",
        "libkeyutils.so.1.10": "libkeyutils1",
        "libboost.so.1": "libboost1.74-dev",
    }


def test_the_notice_names_packages_with_their_sources() -> None:
    text = make_wheel.notice([Package("libfmt9", "fmtlib", "9.1.0+ds1-2")])
    assert text.endswith("\n\nlibfmt9: fmtlib 9.1.0+ds1-2\n")


def test_a_step_that_did_not_make_one_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WheelError, match=r"and there is nothing\. Remove the folder \.venv-wheel, "):
        make_wheel.only(tmp_path, "*.whl")
    for name in ("a.whl", "b.whl"):
        (tmp_path / name).touch()
    with pytest.raises(WheelError, match=r"and there is a\.whl, b\.whl\. "):
        make_wheel.only(tmp_path, "*.whl")
    assert make_wheel.only(tmp_path, "a*") == tmp_path / "a.whl"


def test_wheels_of_other_versions_are_removed(tmp_path: Path) -> None:
    names = ("optcache-0.1.0-py3-none-any.whl", "optcache-0.2.0-py3-none-any.whl", "numpy-1.0-py3-none-any.whl")
    for name in names:
        (tmp_path / name).touch()
    make_wheel.remove_older(tmp_path / names[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == [names[2], names[1]]


def test_texts_that_a_licence_refers_to_are_found() -> None:
    text = "in '/usr/share/common-licenses/LGPL-2.1'.\nSee /usr/share/common-licenses/GPL-3, and /usr/share/doc/x."
    assert make_wheel.common_licenses(text) == {"LGPL-2.1", "GPL-3"}


def test_the_command_becomes_the_program_beside_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr("os.execv", lambda path, words: ran.append((path, words)))
    monkeypatch.setattr("sys.argv", ["/usr/bin/kubectl-optcache", "status"])
    ignored = (signal.SIGPIPE, signal.SIGXFSZ)
    before = [signal.signal(number, signal.SIG_IGN) for number in ignored]
    try:
        _command.main()
        assert [signal.getsignal(number) for number in ignored] == [signal.SIG_DFL, signal.SIG_DFL]
    finally:
        for number, handler in zip(ignored, before):
            signal.signal(number, handler)
    program = Path(_command.__file__).parent / "_bin" / "optcache"
    assert ran == [(program, ["/usr/bin/kubectl-optcache", "status"])]
