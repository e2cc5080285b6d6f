"""The tables of docs/user/crds.md, from the schemas in manifests/crds.

The page holds a table between two lines. Names after `without` are of fields that have no row of their own:

    <!-- ./dev generate: cacheplans status, without rollout.* nodes.* -->
    <!-- end -->
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PAGE = "docs/user/crds.md"
PLACE = re.compile(r"(?ms)^(<!-- \./dev generate: (\w+) (spec|status)(?:, without (.+?))? -->\n).*?(?=^<!-- end -->$)")
# Shorter texts are numbers and spans of time, of which the schema says more.
LONG_TEXT = 63

Schema = dict[str, Any]


@dataclass(frozen=True)
class Field:
    name: str  # source.s3.bucket, jobs[].name
    schema: Schema
    required: bool


def fields(schema: Schema, path: str = "") -> Iterator[Field]:
    """Those of an object, each before what is in it."""
    for name, field in schema.get("properties", {}).items():
        items = field.get("items", {})
        here = path + name + ("[]" if "properties" in items else "")
        yield Field(here, field, name in schema.get("required", []))
        yield from fields(items if "properties" in items else field, f"{here}.")


def type_of(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if field.get("format") == "date-time":
        return "time"
    if "additionalProperties" in field:
        return "map of strings"
    if "items" in field:
        return f"list of {field['items']['type']}s"
    return str(field["type"])


def default_of(field: Field) -> str:
    if field.required:
        return "required"
    default = field.schema.get("default")
    if default is None or isinstance(default, dict):
        return "–"
    if isinstance(default, list):
        return f"`[{', '.join(default)}]`"
    # As it is written in YAML: a text that looks like a number has quotes.
    plain = isinstance(default, str) and yaml.safe_load(default) == default
    return f"`{default if plain else json.dumps(default)}`"


def limits_of(field: Schema) -> Iterator[str]:
    """What a field may hold: sentences, some of them the API server's own."""
    items = field.get("items", {})
    values = field.get("enum") or items.get("enum", [])
    if any(f"`{value}`" not in field.get("description", "") for value in values):
        yield "Allowed: " + ", ".join(f"`{value}`" for value in values)
    messages = [rule["message"] for rule in field.get("x-kubernetes-validations", [])]
    for message in messages:
        if message.startswith("allowed: "):
            yield "A" + re.sub(r"(https?://\S+)", r"`\1`", message[1:])
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None:
        yield f"Allowed: {least} to {most}" if most is not None else f"At least {least}"
    elif most is not None:
        yield f"At most {most}"
    length = field.get("maxLength", 0)
    if length >= LONG_TEXT and "format" not in field and not any(f"at most {length} " in each for each in messages):
        shortest = field.get("minLength", 0)
        yield f"{shortest} to {length} characters" if shortest > 1 else f"At most {length} characters"
    entries = field.get("maxItems") or field.get("maxProperties")
    if entries and not values:
        each = f" of at most {items['maxLength']} characters" if "maxLength" in items else ""
        yield f"At most {entries} entries{each}"


def linked(text: str) -> str:
    """With links to the pages that it names by their paths in the repository."""

    def link(match: re.Match[str]) -> str:
        path, heading = match.group(1), match.group(2) or ""
        if path == PAGE:
            return f"[on this page]({heading})"
        return f"[{posixpath.basename(path)}]({posixpath.relpath(path, posixpath.dirname(PAGE))}{heading})"

    return re.sub(r"\b(docs/[\w./-]+\.md)(#[\w-]+)?", link, text)


def meaning_of(field: Schema, with_limits: bool) -> str:
    sentences = [" ".join(field.get("description", "").split()).rstrip(".")]
    if with_limits:
        sentences += limits_of(field)
    return linked(". ".join(filter(None, sentences))).replace("|", "\\|") + "."


def table(schema: Schema, part: str, without: list[str]) -> str:
    """Of the schema's part, `spec` or `status`."""
    heads = [f"field of {part}", "type", *(["default"] if part == "spec" else []), "meaning"]
    rows = [heads, ["---"] * len(heads)]
    for field in fields(schema["properties"][part]):
        if any(fnmatch.fnmatchcase(field.name, each) for each in without):
            continue
        default = [default_of(field)] if part == "spec" else []
        rows.append([f"`{field.name}`", type_of(field.schema), *default, meaning_of(field.schema, part == "spec")])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page(root: Path) -> str:
    """docs/user/crds.md as it should be."""

    def place(match: re.Match[str]) -> str:
        opening, plural, part, without = match.groups()
        crd = yaml.safe_load((root / f"manifests/crds/{plural}.yaml").read_text())
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        return f"{opening}\n{table(schema, part, (without or '').split())}\n"

    return PLACE.sub(place, (root / PAGE).read_text())
