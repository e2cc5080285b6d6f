"""A CachePlan, what is changed in it, and what its status told meanwhile."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Optional

from cluster import objects
from cluster.errors import ClusterError
from cluster.objects import Object
from cluster.workspace import Workspace

POLL_SECONDS = 0.3
SETTLED = ("Complete", "Stopped")
SETTLED_SECONDS = 150  # a patch is taken up within less, also by a leader that comes


@dataclass(frozen=True)
class Moment:
    """What a status said, in short."""

    phase: str
    prepared: int
    active: int
    reason: str  # of Progressing
    passes: tuple[tuple[str, int], ...]  # of each job

    @staticmethod
    def of(plan: Object) -> Optional[Moment]:
        """None until the operator has seen the newest spec."""
        status = plan.get("status", {})
        if status.get("observedGeneration") != plan["metadata"]["generation"]:
            return None
        nodes = status.get("nodes", {})
        jobs = ((job["name"], int(job["pass"])) for job in status.get("jobs", []))
        return Moment(
            status.get("rollout", {}).get("phase", ""),
            nodes.get("prepared", 0),
            nodes.get("active", 0),
            condition(status, "Progressing").get("reason", ""),
            tuple(sorted(jobs)),
        )

    def since(self, before: Moment) -> dict[str, int]:
        """So many passes has each job begun."""
        then = dict(before.passes)
        return {job: number - then.get(job, 0) for job, number in self.passes}


class Rollout:
    """Its status is looked at while something is awaited; `story` keeps each moment that differs."""

    def __init__(self, workspace: Workspace, name: str) -> None:
        self._workspace = workspace
        self._name = name
        self.story: list[Moment] = []

    def create(self, dataset: str, **spec: Any) -> None:
        plan = objects.cache_plan(self._workspace.name, self._name, dataset)
        plan["spec"].update(spec)
        self._workspace.apply(plan)

    def patch(self, **spec: Any) -> None:
        words = ("patch", f"cacheplan/{self._name}", "--type=merge")
        self._workspace.kubectl(*words, f"--patch={json.dumps({'spec': spec})}")

    def plan(self) -> Object:
        found: Object = self._workspace.get(f"cacheplan/{self._name}")
        return found

    def status(self) -> Object:
        """{} until the operator has seen the newest spec."""
        plan = self.plan()
        status: Object = plan.get("status", {})
        return status if status.get("observedGeneration") == plan["metadata"]["generation"] else {}

    def moment(self) -> Optional[Moment]:
        seen = Moment.of(self.plan())
        if seen is not None and (not self.story or self.story[-1] != seen):
            self.story.append(seen)
        return seen

    def _look(self) -> Optional[Moment]:
        """As `moment`; None, too, where the API server has no time to answer."""
        try:
            return self.moment()
        except ClusterError:
            return None

    def wait(self, what: str, seconds: float, **wanted: Any) -> Moment:
        """Until a moment has these values; ClusterError with the story otherwise.

        A rollout that has settled in another phase, and stays there, is not waited for.
        """
        begin = moving = time.monotonic()
        while True:
            seen = self._look()
            if seen is not None and all(getattr(seen, name) == value for name, value in wanted.items()):
                return seen
            now = time.monotonic()
            if seen is None or seen.phase not in SETTLED or seen.phase == wanted.get("phase", seen.phase):
                moving = now
            if now > min(begin + seconds, moving + SETTLED_SECONDS):
                told = "\n".join(map(str, self.story[-20:]))
                raise ClusterError(f"{what}: not within {now - begin:.0f} s; {json.dumps(self.status())}\n{told}")
            time.sleep(POLL_SECONDS)

    def wait_for_passes(self, count: int, seconds: float, jobs: int) -> Moment:
        """Until each of so many jobs has begun `count` passes more."""
        deadline = time.monotonic() + seconds
        before: Optional[Moment] = None
        while True:
            seen = self._look()
            if seen is not None and len(seen.passes) == jobs:
                before = before or seen
                if min(seen.since(before).values()) >= count:
                    return seen
            if time.monotonic() > deadline:
                raise ClusterError(f"{count} passes of {jobs} jobs: not within {seconds:.0f} s, {seen}")
            time.sleep(POLL_SECONDS)


def condition(status: Object, kind: str) -> Object:
    held: list[Object] = status.get("conditions", [])
    return next((item for item in held if item["type"] == kind), {})


def ratio(numbers: Object, kind: str) -> float:
    """The hit ratio that a status, or its `rollout`, has under that name."""
    return float(numbers[kind]["hitRatio"])
