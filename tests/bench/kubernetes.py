"""On a real Kubernetes: how soon things are ready, and what a thousand machines cost the operator."""

from __future__ import annotations

from bench.context import Context
from bench.figures import Figure
from harness.errors import HarnessError


def run(context: Context) -> list[Figure]:
    from cluster import figures
    from cluster.errors import ClusterError

    try:
        return figures.measure(context.quick, context.say)
    except ClusterError as error:
        raise HarnessError(str(error)) from error
