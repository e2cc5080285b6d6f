"""What the API server's audit log says of our ServiceAccounts, against the rights they have.

Nothing here does I/O. A *use* is one request; a *right* is one verb of one rule of a role.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Optional


@dataclass(frozen=True)
class Request:
    time: str  # RFC 3339, so in order as text
    user: str
    pod: str  # of the token, or ""
    address: str
    verb: str
    group: str
    resource: str  # with its subresource: datasets/status
    namespace: str
    name: str
    code: int
    message: str
    agent: str

    @property
    def writes(self) -> bool:
        return self.verb in ("create", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True)
class Right:
    role: str
    verb: str
    group: str
    resource: str
    names: frozenset[str]  # empty: all

    def __str__(self) -> str:
        names = f" {sorted(self.names)}" if self.names else ""
        return f"{self.role}: {self.verb} {self.resource}.{self.group or 'core'}{names}"


def read_requests(lines: Iterable[str], user_prefix: str) -> Iterator[Request]:
    """Those of users whose name begins so. A line that is being written is left out."""
    for line in lines:
        if user_prefix not in line or not line.endswith("\n"):
            continue
        request = _request(json.loads(line))
        if request and request.user.startswith(user_prefix):
            yield request


def _request(event: Mapping[str, Any]) -> Optional[Request]:
    target = event.get("objectRef")
    if not target:
        return None
    subresource = target.get("subresource")
    user = event["user"]
    pods = user.get("extra", {}).get("authentication.kubernetes.io/pod-name", [""])
    return Request(
        time=event["requestReceivedTimestamp"],
        user=user.get("username", ""),
        pod=pods[0],
        address=event.get("sourceIPs", [""])[0],
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource=target["resource"] + (f"/{subresource}" if subresource else ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        message=event.get("responseStatus", {}).get("message", ""),
        agent=event.get("userAgent", ""),
    )


def rights_of(role: Mapping[str, Any]) -> Iterator[Right]:
    """Of a Role or ClusterRole."""
    for rule in role["rules"]:
        names = frozenset(rule.get("resourceNames", []))
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(role["metadata"]["name"], verb, group, resource, names)


def _verbs(request: Request) -> tuple[str, ...]:
    """Whoever applies what was not there needs the right to create it, too."""
    made = request.verb == "patch" and request.code == HTTPStatus.CREATED
    return ("patch", "create") if made else (request.verb,)


def unused(rights: Iterable[Right], requests: Iterable[Request]) -> list[Right]:
    """Rights that no request needed. Names are not compared where a request has none (list, watch)."""
    used = {(use, r.group, r.resource, r.name) for r in requests if r.code < 400 for use in _verbs(r)}

    def needed(right: Right) -> bool:
        return any(
            (verb, group, resource) == (right.verb, right.group, right.resource)
            and (not right.names or not name or name in right.names)
            for verb, group, resource, name in used
        )

    return [right for right in rights if not needed(right)]


def refused(requests: Iterable[Request]) -> list[Request]:
    """For want of a right: 403 is also what who writes into a namespace that just ends is told."""
    return [
        request
        for request in requests
        if request.code == HTTPStatus.FORBIDDEN and "because it is being terminated" not in request.message
    ]
