"""The tables of docs/user/crds.md say what the schemas in manifests/crds say."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import crd_tables

SPEC = """
required: [name]
properties:
  name:
    description: Of a ship.
    type: string
    maxLength: 63
    x-kubernetes-validations:
    - {rule: a, message: "allowed: a-z"}
    - {rule: b, message: "is immutable"}
  sail:
    description: |-
      One of two. `Main`: a large
      one (docs/user/s3.md#keys).
    type: string
    enum: [Main, Jib]
    default: Main
  masts:
    description: How many|how high.
    type: array
    maxItems: 3
    items:
      type: object
      required: [height]
      properties:
        height: {description: In metres, type: integer, minimum: 1, maximum: 60, default: 9}
        share: {description: Of all, type: string, maxLength: 8, default: "0.5"}
        flag: {description: Whether it has one, type: boolean, default: false}
"""
TABLE = """\
| field of spec | type | default | meaning |
| --- | --- | --- | --- |
| `name` | string | required | Of a ship. Allowed: a-z. At most 63 characters. |
| `sail` | string | `Main` | One of two. `Main`: a large one ([s3.md](s3.md#keys)). Allowed: `Main`, `Jib`. |
| `masts[]` | list of objects | – | How many\\|how high. At most 3 entries. |
| `masts[].height` | integer | required | In metres. Allowed: 1 to 60. |
| `masts[].share` | string | `"0.5"` | Of all. |
| `masts[].flag` | boolean | `false` | Whether it has one. |
"""


def schema(spec: str, part: str = "spec") -> dict[str, Any]:
    return {"properties": {part: yaml.safe_load(spec)}}


def row_of(field: str) -> str:
    described = field.replace("{", "{description: An `A`, ", 1)
    return crd_tables.table(schema(f"properties: {{x: {described}}}"), "spec", []).splitlines()[2]


def test_a_row_says_type_default_and_limits() -> None:
    assert crd_tables.table(schema(SPEC), "spec", []) == TABLE


def test_a_status_has_neither_defaults_nor_limits_and_may_leave_fields_out() -> None:
    table = crd_tables.table(schema(SPEC, "status"), "status", ["masts[].*", "sail"])
    assert table.splitlines()[2:] == [
        "| `name` | string | Of a ship. |",
        "| `masts[]` | list of objects | How many\\|how high. |",
    ]


@pytest.mark.parametrize(
    ("field", "row"),
    [
        ("{type: string, format: date-time, maxLength: 64}", "time | –"),
        ("{x-kubernetes-int-or-string: true, maxLength: 8, default: 25%}", "integer or string | `25%`"),
        ("{type: object, additionalProperties: {type: string}, default: {}}", "map of strings | –"),
        ("{type: array, items: {type: string, enum: [A]}, default: [A], maxItems: 2}", "list of strings | `[A]`"),
        ('{type: string, default: ""}', 'string | `""`'),
    ],
)
def test_types_and_defaults(field: str, row: str) -> None:
    assert row_of(field) == f"| `x` | {row} | An `A`. |"


@pytest.mark.parametrize(
    ("field", "limits"),
    [
        ("{type: string, minLength: 3, maxLength: 63}", "3 to 63 characters"),
        ("{type: string, minLength: 1, maxLength: 63}", "At most 63 characters"),
        (
            "{type: string, maxLength: 63, x-kubernetes-validations: [{message: 'allowed: at most 63 of a-z'}]}",
            "Allowed: at most 63 of a-z",
        ),
        (
            "{type: string, x-kubernetes-validations: [{message: 'allowed: https://… or http://…'}]}",
            "Allowed: `https://…` or `http://…`",
        ),
        ("{type: integer, minimum: 0}", "At least 0"),
        ("{type: integer, maximum: 9}", "At most 9"),
        ("{type: array, items: {type: string, maxLength: 9}, maxItems: 8}", "At most 8 entries of at most 9 characters"),
    ],
)
def test_limits(field: str, limits: str) -> None:
    assert row_of(field).endswith(f" | – | An `A`. {limits}. |")


def test_links_lead_from_the_page() -> None:
    said = "(docs/metrics.md, docs/user/crds.md#who-gets-memory)"
    assert crd_tables.linked(said) == "([metrics.md](../metrics.md), [on this page](#who-gets-memory))"


def test_text_around_the_tables_stays(tmp_path: Path) -> None:
    crd = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema(SPEC)}}]}}
    places = {"manifests/crds/ships.yaml": yaml.safe_dump(crd, sort_keys=False), crd_tables.PAGE: ""}
    for name in places:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(places[name])
    opening, end = "# Ships\n<!-- ./dev generate: ships spec -->\n", "<!-- end -->\nMore.\n"
    for before in ("", "| an | earlier | table |\n"):
        (tmp_path / crd_tables.PAGE).write_text(f"{opening}{before}{end}")
        assert crd_tables.page(tmp_path) == f"{opening}\n{TABLE}\n{end}"


def test_the_page_has_a_table_of_each_spec_and_status() -> None:
    page = (ROOT / crd_tables.PAGE).read_text()
    places = [match.group(2, 3) for match in crd_tables.PLACE.finditer(page)]
    kinds = {path.stem for path in (ROOT / "manifests/crds").glob("*.yaml")}
    assert sorted(places) == sorted((kind, part) for kind in kinds for part in ("spec", "status"))
    assert len(re.findall(r"(?m)^\| field of ", page)) == len(places), "a table that nothing writes"


def test_each_heading_that_a_schema_names_is_on_its_page() -> None:
    """tests/tidy checks that the pages exist."""
    for path in (ROOT / "manifests/crds").glob("*.yaml"):
        for page, anchor in re.findall(r"\b(docs/[\w./-]+\.md)#([\w-]+)", path.read_text()):
            headings = re.findall(r"(?m)^#+ (.+)$", (ROOT / page).read_text())
            anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{path.name}: {page}#{anchor}"


@pytest.mark.parametrize("path", sorted((ROOT / "manifests/crds").glob("*.yaml")), ids=lambda path: path.stem)
def test_a_description_has_no_line_breaks(path: Path) -> None:
    """kubectl explain would keep them, and wrap the lines between them."""
    schema = yaml.safe_load(path.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert [field.name for field in crd_tables.fields(schema) if "\n" in field.schema.get("description", "")] == []
