"""The files that tidy.py checks, and a finding in one of them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tables

CPP = (".cc", ".h")
LISTS = (".cmake", "CMakeLists.txt")
INCLUDE = re.compile(r'^\s*#\s*include\s+(<[^>]+>|"[^"]+")')
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
CODE_SPAN = re.compile(r"`[^`]*`")
# What shows metrics to people, by the beginning of its path.
SHOWS_METRICS = (
    "charts/optcache/dashboards/",
    "charts/optcache/templates/prometheusrule.yaml",
)


@dataclass(frozen=True)
class File:
    path: str  # relative to the root, with slashes
    size: int
    text: str  # empty for files of other kinds than those checked

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def includes(self) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(self.lines, 1):
            if match := INCLUDE.match(line):
                yield number, match.group(1)

    def code(self) -> Iterator[tuple[int, str]]:
        """Lines without string contents and // comments."""
        for number, line in enumerate(self.lines, 1):
            yield number, STRING.sub('""', line).split("//", 1)[0]

    def comments(self) -> Iterator[tuple[int, str]]:
        """What stands after // in C++."""
        for number, line in enumerate(self.lines, 1):
            yield number, STRING.sub('""', line).partition("//")[2]

    def messages(self) -> Iterator[tuple[int, str]]:
        """What C++ has in quotes, but for includes."""
        for number, line in enumerate(self.lines, 1):
            if not INCLUDE.match(line):
                yield number, " ".join(STRING.findall(line))

    def python_messages(self) -> Iterator[tuple[int, str]]:
        """What Python has in quotes, but for docstrings that nothing shows."""
        tree = ast.parse(self.text)
        unseen = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr)
            and not (node is tree.body[0] and "__doc__" in self.text)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in unseen:
                yield from enumerate(node.value.splitlines(), node.lineno)

    def prose(self) -> Iterator[tuple[int, str]]:
        """Lines of a document; of code in them the quotes are left."""
        fenced = False
        for number, line in enumerate(self.lines, 1):
            fenced ^= line.lstrip().startswith("```")
            if not fenced:
                yield number, CODE_SPAN.sub("``", line)

    @property
    def library(self) -> str:
        parts = self.path.split("/")
        return parts[1] if parts[0] == "lib" and len(parts) > 2 else ""

    @property
    def program(self) -> str:
        first = self.path.split("/", 1)[0]
        return first if first in tables.PROGRAMS else ""


@dataclass(frozen=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


Tree = dict[str, File]
Findings = Iterator[Finding]


def ask_git(root: Path, *words: str) -> str:
    """What git prints; nothing where it fails, and outside a repository."""
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stdout if ran.returncode == 0 else ""


def list_paths(root: Path) -> list[str]:
    """What git tracks or would track; outside a repository, all files."""
    if listed := ask_git(root, "ls-files", "-coz", "--exclude-standard"):
        return [path for path in listed.split("\0") if path]
    return [
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(root)
        for name in names
    ]


def read_tree(root: Path) -> Tree:
    checked = (*CPP, *LISTS, ".py", ".md")
    tree: Tree = {}
    for path in sorted(list_paths(root)):
        full = root / path
        if not full.is_file():
            continue
        wanted = path.endswith(checked) or path.startswith(SHOWS_METRICS) or shows_lines(path)
        text = full.read_text(errors="replace") if wanted else ""
        tree[path] = File(path, full.stat().st_size, text)
    return tree


def cpp_files(tree: Tree) -> Iterator[File]:
    return (file for file in tree.values() if file.path.endswith(CPP))


def shows_lines(path: str) -> bool:
    return any(path == place or place.endswith("/") and path.startswith(place) for place in tables.SHOW_LINES)
