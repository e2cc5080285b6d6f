#!/usr/bin/env python3
"""The rules of this repository that no compiler checks; the tables are in tables.py.

    tests/tidy/tidy.py [ROOT]

Prints one finding a line, `file:line: what, use what instead`, and fails if there is one.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tables

CPP = (".cc", ".h")
LISTS = (".cmake", "CMakeLists.txt")
INCLUDE = re.compile(r'^\s*#\s*include\s+(<[^>]+>|"[^"]+")')
STRING = re.compile(r'"(?:\\.|[^"\\])*"')
CODE_SPAN = re.compile(r"`[^`]*`")
METRIC = re.compile(r'"(optcache_[a-z0-9_]+)"')
CATALOG = "lib/metrics/catalog"  # and its parts
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


def declared_deps(tree: Tree) -> dict[str, tuple[str, int, list[str]]]:
    """library -> (file, line, DEPS), from project_library() calls."""
    declared = {}
    for file in tree.values():
        if not re.fullmatch(r"lib/(CMakeLists\.txt|[^/]+/library\.cmake)", file.path):
            continue
        text = re.sub(r"#.*", "", file.text)
        for call in re.finditer(r"project_library\(\s*(\S+)([^)]*)\)", text):
            deps = re.search(r"\bDEPS\s+(.*?)(?=\b[A-Z_]{4,}\b|$)", call.group(2), re.DOTALL)
            line = text.count("\n", 0, call.start()) + 1
            declared[call.group(1)] = (file.path, line, deps.group(1).split() if deps else [])
    return declared


def check_declared_layers(tree: Tree) -> Findings:
    for library, (path, line, deps) in declared_deps(tree).items():
        if library not in tables.LAYERS:
            yield Finding(path, line, f"{library} has no layer, add it to LAYERS in tables.py")
            continue
        for extra in sorted(set(deps) - tables.LAYERS[library] - {"base"}):
            yield Finding(
                path,
                line,
                f"{library} may not depend on {extra}, use an interface that {library} declares "
                "and a program fills",
            )


def check_includes(tree: Tree) -> Findings:
    declared = declared_deps(tree)
    for file in cpp_files(tree):
        for line, name in file.includes():
            if not name.startswith('"'):
                continue
            target = name.strip('"').split("/")
            if message := include_error(file, target, declared):
                yield Finding(file.path, line, message)


def include_error(
    file: File, target: list[str], declared: dict[str, tuple[str, int, list[str]]]
) -> str:
    first = target[0]
    if not (file.library or file.program):
        return internal_error(file, target)
    if file.library:
        allowed = {file.library, "base", *declared.get(file.library, ("", 0, []))[2]}
        if first in tables.PROGRAMS or first == "tests":
            return f"a library includes {first}/, use what is in lib/"
        if first in tables.LAYERS and first not in allowed:
            return f"{file.library} includes {first}/ without naming it, use DEPS"
    elif first in tables.PROGRAMS and first != file.program:
        return f"a program includes another's {first}/, use a library for what both need"
    elif first in ("tests", "support"):
        return "a program includes test code, use what is in lib/"
    return internal_error(file, target)


def internal_error(file: File, target: list[str]) -> str:
    if "internal" not in target[:-1]:
        return ""
    owner = target[0]
    if file.library == owner or file.path.startswith(f"tests/unit/{owner}/"):
        return ""
    return f"{'/'.join(target)} is internal to {owner}, use its public headers"


def check_third_parties(tree: Tree) -> Findings:
    for file in cpp_files(tree):
        for line, name in file.includes():
            for header, owners in tables.OWNERS:
                tests = tuple("tests/unit/" + o.split("/")[1] + "/" for o in owners if "lib/" in o)
                if header.match(name) and not file.path.startswith((*owners, *tests)):
                    yield Finding(
                        file.path, line, f"{name} belongs to {', '.join(owners)}, use its interface"
                    )


def check_purity(tree: Tree) -> Findings:
    for file in cpp_files(tree):
        if file.library not in tables.PURE:
            continue
        for line, name in file.includes():
            if tables.IMPURE_HEADERS.match(name):
                yield Finding(
                    file.path, line, f"{file.library} is pure but includes {name}, use an argument"
                )
        for line, code in file.code():
            if match := tables.IMPURE_WORDS.search(code):
                yield Finding(
                    file.path,
                    line,
                    f"{file.library} is pure but says {match.group()}, use an argument",
                )


def check_tests_exist(tree: Tree) -> Findings:
    """codec_encode.cc may be tested by codec_encode_test.cc or by codec_test.cc."""
    for file in cpp_files(tree):
        if not file.library or not file.path.endswith(".cc") or file.path in tables.UNTESTED:
            continue
        folder = f"tests/unit/{file.library}"
        words = Path(file.path).stem.split("_")
        stems = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
        if not any(f"{folder}/{stem}_test.cc" in tree for stem in stems):
            yield Finding(
                file.path,
                1,
                f"has no test, use {folder}/{stems[0]}_test.cc "
                "(or UNTESTED in tables.py, with reason)",
            )


def check_sources_are_built(tree: Tree) -> Findings:
    """Nothing is globbed: a source that no list names is never compiled."""
    lists = {file.path: file.text for file in tree.values() if file.path.endswith(LISTS)}
    named = {word for text in lists.values() for word in re.findall(r"[\w-]+", text)}
    for file in cpp_files(tree):
        folder = file.path.rpartition("/")[0]
        nearby = sorted(path for path in lists if path.rpartition("/")[0] == folder)
        name = Path(file.path).stem.removesuffix("_fuzz")  # fuzz targets are listed by what they fuzz
        if nearby and file.path.endswith(".cc") and name not in named:
            yield Finding(file.path, 1, f"is never compiled, use {nearby[0]}")


def check_metrics(tree: Tree) -> Findings:
    """What the code reports, the catalog and the page name the same metrics."""
    page = tree.get("docs/metrics.md")
    if page is None:
        return
    documented = {
        name: number
        for number, line in enumerate(page.lines, 1)
        for name in re.findall(r"`(optcache_[a-z0-9_]+)", line)
    }
    reported: dict[str, tuple[str, int]] = {}
    cataloged: dict[str, tuple[str, int]] = {}
    for file in cpp_files(tree):
        if not (file.library or file.program):
            continue
        names = cataloged if file.path.startswith(CATALOG) else reported
        for number, line in enumerate(file.lines, 1):
            for name in METRIC.findall(line):
                names.setdefault(name, (file.path, number))
    for name, place in (reported | cataloged).items():
        if name not in documented:
            yield Finding(*place, f"{name} is not in docs/metrics.md, add it")
    for name, place in reported.items():
        if cataloged and name not in cataloged:
            yield Finding(*place, f"{name} is not in {CATALOG}*.cc, add it")
    for name, place in cataloged.items():
        if name not in reported:
            yield Finding(*place, f"{name} is reported by no program, take it out")
    for name in sorted(documented.keys() - reported.keys() - cataloged.keys()):
        yield Finding(page.path, documented[name], f"{name} is not in the code, take it out")
    for file in tree.values():
        if not file.path.startswith(SHOWS_METRICS):
            continue
        for number, line in enumerate(file.lines, 1):
            for name in re.findall(r"\boptcache_[a-z0-9_]+", line):
                if not {name, re.sub(r"_(bucket|sum|count)$", "", name)} & documented.keys():
                    yield Finding(file.path, number, f"{name} is not in docs/metrics.md, use one")


def check_metrics_are_shown(tree: Tree) -> Findings:
    """Each is in a dashboard, in an alert, or in NOT_SHOWN; nothing is in two of these."""
    page = tree.get("docs/metrics.md")
    if page is None:
        return
    shown: set[str] = set()
    for file in tree.values():
        if file.path.startswith(SHOWS_METRICS):
            for name in re.findall(r"\b[a-z][a-z0-9_]+", file.text):
                shown |= {name, re.sub(r"_(bucket|sum|count)$", "", name)}
    excused = {name for names in tables.NOT_SHOWN.values() for name in names.split()}
    documented = set()
    for number, line in enumerate(page.lines, 1):
        if row := re.match(r"\| `([a-z][a-z0-9_]+)` \|", line):
            documented.add(row.group(1))
            if row.group(1) not in shown | excused:
                yield Finding(
                    page.path,
                    number,
                    f"{row.group(1)} is in no dashboard and no alert, add it "
                    "(or NOT_SHOWN in tables.py, with reason)",
                )
    if "tests/tidy/tables.py" in tree:
        for name in sorted(excused & shown | excused - documented):
            yield Finding("tests/tidy/tables.py", 1, f"NOT_SHOWN names {name}, take it out")


def check_links(tree: Tree) -> Findings:
    folders = {parent.as_posix() for path in tree for parent in Path(path).parents}
    for file in tree.values():
        if not file.path.endswith(".md"):
            continue
        fenced = False
        for number, line in enumerate(file.lines, 1):
            fenced ^= line.lstrip().startswith("```")
            if fenced:
                continue
            for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                target = link.split("#", 1)[0]
                if not target or re.match(r"[a-z]+:", target):
                    continue
                path = os.path.normpath(os.path.join(os.path.dirname(file.path), target))
                if path not in tree and path not in folders:
                    yield Finding(file.path, number, f"{link} leads nowhere, use a real path")


def check_size(tree: Tree) -> Findings:
    for file in tree.values():
        if file.size > tables.MAX_BYTES:
            yield Finding(file.path, 1, f"has {file.size} bytes, use a generator or a package")
        if file.path.endswith((*CPP, ".py")) and file.path not in tables.LONG:
            if len(file.lines) > tables.MAX_LINES:
                yield Finding(
                    file.path,
                    tables.MAX_LINES,
                    f"has {len(file.lines)} lines, use two files: look for the second idea",
                )


def check_openings(tree: Tree) -> Findings:
    """docs/STYLE.md, Headers and comments: a long source says at its top how it works."""
    for file in cpp_files(tree):
        if not (file.library or file.program) or not file.path.endswith(".cc"):
            continue
        if len(file.lines) > tables.MAX_LINES_WITHOUT_OPENING and not file.text.startswith("// "):
            yield Finding(
                file.path,
                1,
                f"has {len(file.lines)} lines and no opening, "
                "use a comment: what it does, the idea, the invariants",
            )


def check_words(tree: Tree) -> Findings:
    for file in cpp_files(tree):
        banned = [
            (pattern, instead)
            for pattern, where, but, instead in tables.BANNED
            if file.path.startswith(where) and not (but and file.path.startswith(but))
        ]
        for line, code in file.code():
            for pattern, instead in banned:
                if match := pattern.search(code):
                    yield Finding(file.path, line, f"{match.group()} is banned, use {instead}")


def shows_lines(path: str) -> bool:
    return any(path == place or place.endswith("/") and path.startswith(place) for place in tables.SHOW_LINES)


def check_language(tree: Tree) -> Findings:
    """docs/STYLE.md, Language: documents, the Python package, comments in C++, messages, help."""
    for file in tree.values():
        if file.path.endswith(".md"):
            if not file.path.startswith(tables.SHOW_HARD_WORDS):
                yield from hard_words(file.path, file.prose(), tables.IN_DOCUMENTS)
        elif file.path.startswith(tables.SHOW_MESSAGES) and file.path.endswith(".py"):
            yield from hard_words(file.path, file.python_messages(), tables.IN_MESSAGES)
        elif shows_lines(file.path):
            yield from hard_words(file.path, enumerate(file.lines, 1), tables.IN_MESSAGES)
        elif file.path.endswith(CPP) and (file.library or file.program):
            yield from hard_words(file.path, file.comments(), tables.IN_COMMENTS)
            yield from hard_words(file.path, file.messages(), tables.IN_MESSAGES)


def check_subjects(root: Path) -> Findings:
    for line in ask_git(root, "log", "--format=%h %s", f"{tables.SUBJECTS_AFTER}..").splitlines():
        commit, _, subject = line.partition(" ")
        yield from hard_words(f"commit {commit}", [(1, subject)], tables.IN_MESSAGES)


def hard_words(path: str, lines: Iterable[tuple[int, str]], words: dict[str, str]) -> Findings:
    for number, line in lines:
        for word, instead in words.items():
            for match in re.finditer(word, line, re.IGNORECASE):
                what = f"'{match.group()}' is hard to read, use {instead}"
                yield Finding(path, number, what)


def check_headers(tree: Tree) -> Findings:
    for file in cpp_files(tree):
        if file.path.endswith(".h") and "#pragma once" not in file.text:
            yield Finding(file.path, 1, "can be included twice, use #pragma once")


def check_exceptions(tree: Tree) -> Findings:
    for table in ("UNTESTED", "LONG"):
        for path in getattr(tables, table):
            if path not in tree and "tests/tidy/tables.py" in tree:
                yield Finding("tests/tidy/tables.py", 1, f"{table} names {path}, take it out")


RULES: list[Callable[[Tree], Findings]] = [
    check_declared_layers,
    check_includes,
    check_third_parties,
    check_purity,
    check_tests_exist,
    check_sources_are_built,
    check_metrics,
    check_metrics_are_shown,
    check_links,
    check_size,
    check_openings,
    check_words,
    check_language,
    check_headers,
    check_exceptions,
]


def check(root: Path) -> list[str]:
    tree = read_tree(root)
    findings = [finding for rule in RULES for finding in rule(tree)]
    return [str(finding) for finding in (*findings, *check_subjects(root))]


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    findings = check(root)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
