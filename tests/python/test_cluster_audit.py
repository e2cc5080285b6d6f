"""What the cluster's cases conclude from the API server's audit log."""

from __future__ import annotations

import json
from typing import Any

from cluster import audit

USER = "system:serviceaccount:optcache-system:optcache-operator"


def event(verb: str, resource: str, code: int = 200, user: str = USER, **target: str) -> str:
    document: dict[str, Any] = {
        "verb": verb,
        "user": {"username": user, "extra": {"authentication.kubernetes.io/pod-name": ["o-1"]}},
        "objectRef": {"resource": resource, **target},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        "sourceIPs": ["10.78.1.2"],
    }
    return json.dumps(document) + "\n"


def role(resource: str, verbs: list[str], names: list[str] | None = None) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [""], "resources": [resource], "verbs": verbs}
    if names:
        rule["resourceNames"] = names
    return {"metadata": {"name": "r"}, "rules": [rule]}


def read(*lines: str) -> list[audit.Request]:
    return list(audit.read_requests(lines, USER))


def test_requests_of_others_and_half_lines_are_left_out() -> None:
    other = event("get", "pods", user="system:serviceaccount:a:b")
    requests = read(other, event("list", "pods"), event("get", "pods")[:-10])
    assert [(r.verb, r.pod, r.address) for r in requests] == [("list", "o-1", "10.78.1.2")]


def test_a_refusal_is_found() -> None:
    requests = read(event("get", "secrets", 403), event("get", "secrets", 404))
    assert [r.code for r in audit.refused(requests)] == [403]


def test_a_right_that_nobody_used_is_named() -> None:
    requests = read(event("list", "pods"), event("watch", "pods", 403))
    rights = audit.rights_of(role("pods", ["list", "watch"]))
    assert [str(right) for right in audit.unused(rights, requests)] == ["r: watch pods.core"]


def test_a_right_to_one_name_is_not_used_by_another() -> None:
    requests = read(event("get", "secrets", name="b"))
    rights = list(audit.rights_of(role("secrets", ["get"], ["a"])))
    assert audit.unused(rights, requests) == rights


def test_a_subresource_is_a_resource_of_its_own() -> None:
    requests = read(event("patch", "datasets", subresource="status"))
    assert requests[0].writes
    rights = list(audit.rights_of(role("datasets", ["patch"])))
    assert audit.unused(rights, requests) == rights
    assert audit.unused(audit.rights_of(role("datasets/status", ["patch"])), requests) == []


def test_an_apply_that_makes_something_needs_the_right_to_create_it() -> None:
    rights = list(audit.rights_of(role("jobs", ["patch", "create"])))
    assert audit.unused(rights, read(event("patch", "jobs", 201))) == []
    assert [right.verb for right in audit.unused(rights, read(event("patch", "jobs")))] == ["create"]
