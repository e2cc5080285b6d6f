"""After all other cases: what our ServiceAccounts were refused, and which rights they never used."""

from __future__ import annotations

import pytest
from cluster import audit, release as releases
from cluster.cluster import Cluster
from cluster.release import Release

ACCOUNTS = f"system:serviceaccount:{releases.SPACE}:optcache-"
# What no run of the cases needs, and why the role has it all the same.
RESERVED = {
    ("update", "datasets/finalizers"): "only where the API server runs OwnerReferencesPermissionEnforcement",
    ("update", "cacheplans/finalizers"): "the same",
    ("update", "warmups/finalizers"): "the same",
    ("delete", "controllerrevisions"): "beyond revisionHistoryLimit alone",
    ("create", "leases"): "the first leader makes the Lease; one that an installation before left is taken over",
}


@pytest.fixture(scope="module")
def requests(release: Release, cluster: Cluster) -> list[audit.Request]:
    """Of this session, while the chart was installed and the API server knew its rights."""
    away = [*release.removals, *cluster.control.starts]
    with open(cluster.paths.audit_log, encoding="utf-8") as log:
        return [
            request
            for request in audit.read_requests(log, ACCOUNTS)
            if request.time >= away[0][1] and not any(a <= request.time <= b for a, b in away)
        ]


def test_nothing_was_refused(requests: list[audit.Request]) -> None:
    assert requests
    assert {(r.user, r.verb, r.resource, r.namespace, r.message) for r in audit.refused(requests)} == set()


def test_every_right_was_used(
    request: pytest.FixtureRequest, requests: list[audit.Request], cluster: Cluster, installed: Release
) -> None:
    chosen = request.config.getoption("--part") or request.config.getoption("--order")
    if chosen or len({item.path for item in request.session.items}) < 4:
        pytest.skip("says something only after all cases: ./dev cluster test")
    roles = [cluster.get("clusterrole", f"optcache-{part}") for part in ("operator", "node")]
    roles.append(cluster.get("role", "optcache-operator", f"--namespace={releases.SPACE}"))
    rights = [right for role in roles for right in audit.rights_of(role)]
    idle = [right for right in audit.unused(rights, requests) if (right.verb, right.resource) not in RESERVED]
    assert [str(right) for right in idle] == []
