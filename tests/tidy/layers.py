"""Who may include what: libraries by their layers, rooms of programs by their order, third parties by their owners."""

from __future__ import annotations

import re

import tables
from tree import File, Finding, Findings, Tree, cpp_files


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


def check_rooms(tree: Tree) -> Findings:
    """A program's folders are rooms: one includes itself and those before it, its root all of them."""
    for file in cpp_files(tree):
        if not file.program:
            continue
        rooms = tables.ROOMS[file.program]
        room = room_of(file.path)
        if room and room not in rooms:
            yield Finding(file.path, 1, f"{room} is no room of {file.program}, add it to ROOMS in tables.py")
            continue
        below = rooms[: rooms.index(room) + 1] if room else ("", *rooms)
        for line, name in file.includes():
            target = name.strip('"')
            if target.startswith(file.program + "/") and room_of(target) not in below:
                yield Finding(
                    file.path,
                    line,
                    f"{room} comes before {room_of(target) or 'the root'}, which includes it and not the other "
                    "way: move what both need into the lower room, or declare an interface there",
                )


def room_of(path: str) -> str:
    """`serving` of cache-node/serving/node_dataset.h; nothing for files of the program's root."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else ""
