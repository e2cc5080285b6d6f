#!/usr/bin/env python3
"""The rules of this repository that no compiler checks; the tables are in tables.py.

    tests/tidy/tidy.py [ROOT]

Prints one finding a line, `file:line: what, use what instead`, and fails if there is one.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import tables
from circles import check_import_circles
from layers import check_declared_layers, check_includes, check_rooms, check_third_parties
from tree import CPP, LISTS, SHOWS_METRICS, Finding, Findings, Tree, ask_git, cpp_files, read_tree, shows_lines

METRIC = re.compile(r'"(optcache_[a-z0-9_]+)"')
CATALOG = "lib/metrics/catalog"  # and its parts


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
        nearby = nearest_lists(file.path, lists)
        name = Path(file.path).stem.removesuffix("_fuzz")  # fuzz targets are listed by what they fuzz
        if nearby and file.path.endswith(".cc") and name not in named:
            yield Finding(file.path, 1, f"is never compiled, use {nearby[0]}")


def nearest_lists(path: str, lists: dict[str, str]) -> list[str]:
    """Those of its folder, else of the one above it, and so on."""
    while "/" in path:
        path = path.rpartition("/")[0]
        if found := sorted(one for one in lists if one.rpartition("/")[0] == path):
            return found
    return []


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
    check_rooms,
    check_third_parties,
    check_import_circles,
    check_purity,
    check_tests_exist,
    check_sources_are_built,
    check_metrics,
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
