"""Import circles of a Python package: modules each of which needs the others.

An import under TYPE_CHECKING or in a function counts like any other: Python does not stumble there, but a
reader does. That `package.module` imports `package` first does not count.
"""

from __future__ import annotations

import ast
import collections
import importlib.util
from collections.abc import Iterator

import tables
from tree import Finding, Findings, Tree

Graph = dict[str, dict[str, int]]  # the line of the first import, by who imports and what

ADVICE = (
    "move what both need into the module below, or state there as a Protocol what it needs of its arguments"
)


def check_import_circles(tree: Tree) -> Findings:
    for folder in tables.PYTHON_PACKAGES:
        yield from circles_in(folder, tree)


def circles_in(folder: str, tree: Tree) -> Findings:
    """Of the package in that folder."""
    root = folder.rpartition("/")[2]
    inside = [path for path in tree if path.startswith(f"{folder}/") and path.endswith(".py")]
    paths = {_module_at(path.removeprefix(folder), root): path for path in inside}
    graph = {name: _imports(name, path, tree[path].text, set(paths)) for name, path in paths.items()}
    for circle in _circles(graph):
        chain = [*circle, circle[0]]
        lines = [graph[module][imported] for module, imported in zip(chain, chain[1:])]
        files = [f"{paths[at].removeprefix(folder + '/')}:{line}" for at, line in zip(circle, lines)]
        shown = " -> ".join(module.removeprefix(f"{root}.") for module in chain)
        message = f"{shown} is an import circle ({', '.join(files)}), {ADVICE}"
        yield Finding(paths[circle[0]], lines[0], message)


def _module_at(path: str, root: str) -> str:
    """The dotted name of the module at "/a/b.py" in the package `root`."""
    return (root + path.removesuffix(".py").replace("/", ".")).removesuffix(".__init__")


def _imports(module: str, path: str, text: str, known: set[str]) -> dict[str, int]:
    """The modules among `known` that a module imports, each with the line of its first import."""
    package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
    lines: dict[str, int] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [_target(package, node, alias.name, known) for alias in node.names]
        else:
            continue
        for name in known.intersection(named):
            lines[name] = min(node.lineno, lines.get(name, node.lineno))
    return lines


def _target(package: str, node: ast.ImportFrom, name: str, known: set[str]) -> str:
    """The module that `from … import name` takes: that of the name, or the one that has it."""
    base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    return f"{base}.{name}" if f"{base}.{name}" in known else base


def _circles(graph: Graph) -> Iterator[list[str]]:
    """The shortest circle of each module that is in one, but for modules of those that it gave before."""
    given: set[str] = set()
    for module in sorted(graph):
        if module not in given:
            circle = _shortest_circle(graph, module)
            given.update(circle)
            if circle:
                yield circle


def _shortest_circle(graph: Graph, start: str) -> list[str]:
    """From that module until before it comes again; empty: it is in none."""
    ways = collections.deque([[start]])
    seen: set[str] = set()
    while ways:
        way = ways.popleft()
        for imported in sorted(graph[way[-1]]):
            if imported == start:
                return way
            if imported not in seen:
                seen.add(imported)
                ways.append([*way, imported])
    return []
