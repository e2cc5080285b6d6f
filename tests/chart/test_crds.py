"""What a real API server makes of Datasets, CachePlans and Warmups."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_server import ApiServer, Object

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLURALS = {"Dataset": "datasets", "CachePlan": "cacheplans", "Warmup": "warmups"}
KINDS = {"dataset": "Dataset", "cacheplan": "CachePlan", "warmup": "Warmup"}
CASES = [
    pytest.param(KINDS[file], case, id=f"{file}: {case['name']}")
    for file in KINDS
    for case in yaml.safe_load((HERE / "cases" / f"{file}.yaml").read_text())
]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def path_of(kind: str, name: str = "", subresource: str = "") -> str:
    path = f"/apis/optcache.io/v1alpha1/namespaces/default/{PLURALS[kind]}"
    return "/".join(part for part in (path, name, subresource) if part)


def obj(kind: str, name: str, spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "optcache.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def contains(whole: Any, part: Any) -> bool:
    """Whether all that `part` says is in `whole`."""
    if isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


def complaints(status: Object) -> list[tuple[str, str]]:
    """Field and sentence of each thing that the API server found."""
    causes = status.get("details", {}).get("causes") or [{"message": status["message"]}]
    return [(cause.get("field", ""), cause["message"]) for cause in causes]


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_case(api: ApiServer, kind: str, case: Object) -> None:
    name = case.get("object_name", "case")
    api.request("DELETE", path_of(kind, name))
    answer = api.request("POST", path_of(kind), obj(kind, name, case["spec"]))
    if "then" in case:
        assert answer.code == 201, answer.out
        changed = {**answer.json(), "spec": case["then"]}
        answer = api.request("PUT", path_of(kind, name), changed)
    if refused := case.get("refused"):
        assert answer.code in (400, 422), answer.out
        found = complaints(answer.json())
        assert any(
            refused.get("at", field) == field and refused["says"] in message
            for field, message in found
        ), found
        return
    assert answer.code in (200, 201), answer.out
    spec = answer.json()["spec"]
    assert contains(spec, case.get("then", case["spec"])), spec
    assert contains(spec, case.get("defaults", {})), spec


@pytest.mark.parametrize("sample", sorted((ROOT / "manifests/samples").glob("*.yaml")), ids=str)
def test_samples_are_taken(api: ApiServer, sample: Path) -> None:
    for document in yaml.safe_load_all(sample.read_text()):
        kind, name = document["kind"], document["metadata"]["name"]
        api.request("DELETE", path_of(kind, name))
        answer = api.request("POST", path_of(kind), obj(kind, name, document["spec"]))
        if "file" in document["spec"].get("source", {}):
            assert "for `optcache up` alone" in answer.out
        else:
            assert answer.code == 201, answer.out


def test_unknown_fields_are_pruned(api: ApiServer) -> None:
    spec = {"source": {"http": {"baseURL": "http://a"}}, "cache": {"capacity": "1Gi"}, "colour": 1}
    body = obj("Dataset", "pruned", spec)
    # As a client that validates nothing sends it.
    done = api.kubectl("create", "--filename=-", "--validate=ignore", "--output=json", stdin=body)
    assert done.code == 0, done.err
    assert "colour" not in done.json()["spec"]


CONDITION_TIME = "2026-01-01T00:00:00Z"


def condition(kind: str) -> Object:
    return {
        "type": kind,
        "status": "True",
        "reason": "AllGood",
        "message": "it is",
        "observedGeneration": 1,
        "lastTransitionTime": CONDITION_TIME,
    }


STATUS: dict[str, Object] = {
    "Dataset": {
        "observedGeneration": 1,
        "indexHash": "abc",
        "manifestDigest": "8b1f",
        "manifestHolders": 3,
        "samples": 14059,
        "bytes": 133333333,
        "largestSample": 1234567,
        "cachedBytes": 40000000,
        "size": "127 MiB",
        "cached": "38.1 MiB",
        "hitRatio": "0.302",
        "predictedHitRatio": "0.300",
        "capacity": {
            "granted": 40000000,
            "guaranteed": 10000000,
            "maximum": 40000000,
            "readBytesPerSecond": 9000000,
            "savedBytesPerSecond": 2700000,
        },
        "saved": {
            "requests": 870000,
            "bytes": 95563022336,
            "size": "89.0 GiB",
            "waitedSeconds": 41,
            "cost": "8.36",
            "time": CONDITION_TIME,
        },
        "lastChange": {
            "added": 3,
            "changed": 1,
            "removed": 2,
            "message": "3 objects added (first a.jpg), 1 changed (first b.jpg), 2 gone (first c.jpg)",
            "time": CONDITION_TIME,
        },
        "nodes": [{"name": "a", "bytes": 40000000}],
        "conditions": [condition("Ready"), condition("Indexed")],
    },
    "CachePlan": {
        "observedGeneration": 1,
        "currentRevision": "images-1",
        "updateRevision": "images-2",
        "digest": "5b0c",
        "nodes": {"desired": 4, "prepared": 3, "active": 2},
        "predicted": {"hitRatio": "0.3", "storeBytesPerEpoch": 9, "movedBytesPerEpoch": 1},
        "observed": {"hitRatio": "0.3", "storeBytesPerEpoch": 9, "movedBytesPerEpoch": 1},
        "jobs": [
            {"name": "j", "pass": 1, "position": 9, "length": 90, "ranks": 8, "rate": "1.5", "order": "Known"}
        ],
        "conditions": [condition("Available")],
    },
    "Warmup": {
        "observedGeneration": 1,
        "manifestDigest": "8b1f",
        "progress": "63%",
        "samples": 2657,
        "bytes": 25200000,
        "totalBytes": 40000000,
        "startTime": CONDITION_TIME,
        "completionTime": CONDITION_TIME,
        "conditions": [condition("Complete"), condition("Failed")],
    },
}
# As the operator writes it; tests of tests/unit/operator make the files.
GOLDEN = ROOT / "tests/golden/operator"
WRITTEN = {
    **STATUS,
    "CachePlan": json.loads((GOLDEN / "cacheplan-status.json").read_text()),
    "Warmup": json.loads((GOLDEN / "warmup-status.json").read_text()),
}
SPEC: dict[str, Object] = {
    "Dataset": {"source": {"http": {"baseURL": "http://a"}}, "cache": {"capacity": "30%"}},
    "CachePlan": {"dataset": "images"},
    "Warmup": {"dataset": "images"},
}


@pytest.fixture(params=sorted(STATUS))
def with_status(api: ApiServer, request: pytest.FixtureRequest) -> Object:
    kind: str = request.param
    api.request("DELETE", path_of(kind, "whole"))
    made = api.request("POST", path_of(kind), obj(kind, "whole", SPEC[kind])).json()
    answer = api.request("PUT", path_of(kind, "whole", "status"), {**made, "status": STATUS[kind]})
    assert answer.code == 200, answer.out
    result: Object = answer.json()
    return result


def test_status_keeps_every_field(with_status: Object) -> None:
    assert with_status["status"] == STATUS[with_status["kind"]]


def test_spec_and_status_are_written_apart(api: ApiServer, with_status: Object) -> None:
    path = path_of(with_status["kind"], "whole")
    answer = api.request("PUT", path, {**with_status, "status": {}})
    assert answer.json()["status"] == with_status["status"]


def test_every_column_has_a_value(api: ApiServer, with_status: Object) -> None:
    kind = with_status["kind"]
    status = {**with_status, "status": WRITTEN[kind]}
    assert api.request("PUT", path_of(kind, "whole", "status"), status).code == 200
    table = api.request("GET", path_of(kind, "whole"), Accept=TABLE).json()
    columns = [column["name"] for column in table["columnDefinitions"]]
    cells = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    assert [name for name, cell in cells.items() if cell in (None, "", "<unknown>")] == []
    shown = [column for column in table["columnDefinitions"] if column["priority"] == 0]
    assert len(shown) <= 9  # the name and eight: a CachePlan's tell what its rollout does


@pytest.mark.parametrize(
    "wrong",
    [
        {"conditions": [condition("Ready"), condition("Ready")]},
        {"conditions": [{**condition("Ready"), "reason": "not a word"}]},
        {"conditions": [{"type": "Ready", "status": "True"}]},
        {"conditions": [{**condition("Ready"), "status": "Maybe"}]},
    ],
    ids=["twice", "reason", "incomplete", "status"],
)
def test_conditions_are_checked(api: ApiServer, with_status: Object, wrong: Object) -> None:
    path = path_of(with_status["kind"], "whole", "status")
    assert api.request("PUT", path, {**with_status, "status": wrong}).code == 422


def test_short_names_and_category(api: ApiServer) -> None:
    resources = api.request("GET", "/apis/optcache.io/v1alpha1").json()["resources"]
    main = {each["name"]: each for each in resources if "/" not in each["name"]}
    assert {name: each["shortNames"] for name, each in main.items()} == {
        "datasets": ["ocds"],
        "cacheplans": ["ocplan"],
        "warmups": ["ocwarm"],
    }
    assert all(each["categories"] == ["optcache"] for each in main.values())


@pytest.mark.parametrize("kind", sorted(STATUS))
def test_every_field_is_explained(kind: str) -> None:
    """`kubectl explain` says something about each field that a user writes."""
    text = (ROOT / "manifests" / "crds" / f"{PLURALS[kind]}.yaml").read_text()
    schema = yaml.safe_load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    # Whose name says all.
    plain = {"metadata", "type", "status", "observedGeneration", "lastTransitionTime"}

    def unexplained(node: Object, path: str) -> list[str]:
        found = []
        for name, field in node.get("properties", {}).items():
            here = f"{path}.{name}"
            if "description" not in field and name not in plain:
                found.append(here)
            found += unexplained(field, here) + unexplained(field.get("items", {}), here)
        return found

    assert unexplained(schema, kind) == []


def examples() -> list[Any]:
    """What users are told to apply, in docs/user, README.md and the chart's notes; not what is for
    `optcache up`, with files of one machine, and not what is for DLCache."""
    pages = sorted((ROOT / "docs/user").glob("*.md"))
    pages.append(ROOT / "charts/optcache/templates/NOTES.txt")
    found = []
    for page in pages:
        blocks = re.findall(r"(?ms)<<'?YAML'?[^\n]*\n(.*?)^ *YAML$", page.read_text())
        blocks += re.findall(r"(?ms)^```yaml\n(.*?)^```$", page.read_text())
        for block in blocks:
            expanded = re.sub(r"\$\w+", "x1", textwrap.dedent(block))  # as by the shell
            for document in yaml.safe_load_all(expanded):
                if not isinstance(document, dict) or "apiVersion" not in document:
                    continue
                if document["kind"] == "DLCPod":
                    continue
                if "file" not in document["spec"].get("source", {}):
                    found.append(pytest.param(document, id=f"{page.stem}: {document['kind']}"))
    return found


@pytest.mark.parametrize("document", examples())
def test_examples_are_taken(api: ApiServer, document: Object) -> None:
    document["metadata"]["namespace"] = "default"
    options = ("--filename=-", "--dry-run=server", "--validate=strict")
    done = api.kubectl("create", *options, stdin=document)
    assert done.code == 0, done.err
