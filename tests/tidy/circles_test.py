#!/usr/bin/env python3
"""Small packages, each with the import circles that are found in it."""

from __future__ import annotations

import unittest

from circles import ADVICE, circles_in
from tree import File


def found(texts: dict[str, str]) -> list[str]:
    """What is found in a package of these modules, each without the advice."""
    files = [File(f"src/pkg/{name}.py", len(text), text) for name, text in texts.items()]
    findings = list(map(str, circles_in("src/pkg", {file.path: file for file in files})))
    assert all(finding.endswith(f", {ADVICE}") for finding in findings), findings
    return [finding.removesuffix(f", {ADVICE}") for finding in findings]


class CirclesTest(unittest.TestCase):
    def test_a_package_without_circles(self) -> None:
        texts = {
            "__init__": "import os\nfrom . import _a\nfrom ._b import b\n",
            "_a": "from . import _b, _c\nfrom ._c import c\n",
            "_b": "from ._c import c\n",
            "_c": "import json\n",
        }
        self.assertEqual(found(texts), [])

    def test_two_modules(self) -> None:
        texts = {"_a": "import os\n\nfrom . import _b\n", "_b": "from ._a import A\n", "_c": "from ._a import A\n"}
        circle = "_a -> _b -> _a is an import circle (_a.py:3, _b.py:1)"
        self.assertEqual(found(texts), [f"src/pkg/_a.py:3: {circle}"])

    def test_three_modules(self) -> None:
        texts = {"_a": "from ._c import C\n", "_b": "\nfrom ._a import A\n", "_c": "\n\nimport pkg._b\n"}
        circle = "_a -> _c -> _b -> _a is an import circle (_a.py:1, _c.py:3, _b.py:2)"
        self.assertEqual(found(texts), [f"src/pkg/_a.py:1: {circle}"])

    def test_imports_for_types_alone(self) -> None:
        checking = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ._b import B\n"
        circle = "_a -> _b -> _a is an import circle (_a.py:3, _b.py:1)"
        self.assertEqual(found({"_a": checking, "_b": "from ._a import A\n"}), [f"src/pkg/_a.py:3: {circle}"])

    def test_imports_in_functions(self) -> None:
        texts = {"_a": "def f():\n    from ._b import b\n", "_b": "from pkg._a import f\n"}
        circle = "_a -> _b -> _a is an import circle (_a.py:2, _b.py:1)"
        self.assertEqual(found(texts), [f"src/pkg/_a.py:2: {circle}"])

    def test_the_package_itself(self) -> None:
        texts = {"__init__": "from ._a import A\n", "_a": "from . import version\n", "_b": "import pkg\n"}
        circle = "pkg -> _a -> pkg is an import circle (__init__.py:1, _a.py:1)"
        self.assertEqual(found(texts), [f"src/pkg/__init__.py:1: {circle}"])

    def test_packages_in_the_package(self) -> None:
        texts = {
            "__init__": "",
            "_a": "from .inner import _b\n",
            "inner/__init__": "",
            "inner/_b": "from . import _c\n",
            "inner/_c": "from .._a import A\n",
        }
        circle = "_a -> inner._b -> inner._c -> _a is an import circle (_a.py:1, inner/_b.py:1, inner/_c.py:1)"
        self.assertEqual(found(texts), [f"src/pkg/_a.py:1: {circle}"])

    def test_each_module_in_a_circle_is_in_a_finding(self) -> None:
        texts = {
            "_a": "from . import _b, _c\n",  # _a and _b; _a, _c and _d
            "_b": "from . import _a\n",
            "_c": "from . import _d\n",
            "_d": "from . import _a\n",
            "_e": "from . import _a\n",  # in none
        }
        first = "_a -> _b -> _a is an import circle (_a.py:1, _b.py:1)"
        second = "_c -> _d -> _a -> _c is an import circle (_c.py:1, _d.py:1, _a.py:1)"
        self.assertEqual(found(texts), [f"src/pkg/_a.py:1: {first}", f"src/pkg/_c.py:1: {second}"])


if __name__ == "__main__":
    unittest.main()
