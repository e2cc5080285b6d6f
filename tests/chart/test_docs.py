"""What the programs say, and what docs/user says about it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TROUBLESHOOTING = (ROOT / "docs/user/troubleshooting.md").read_text()


def explained() -> set[str]:
    """The words in code in the first two columns of the tables."""
    words: set[str] = set()
    for line in TROUBLESHOOTING.splitlines():
        if line.startswith("|"):
            words |= set(re.findall(r"`([A-Za-z_]+)`", " ".join(line.split("|")[1:3])))
    return words


def test_every_reason_of_the_injector_is_explained() -> None:
    source = (ROOT / "operator/webhook/inject.cc").read_text()
    table = re.search(r"kReasons = .*?\(\s*\{(.*?)\}\)", source, re.DOTALL)
    assert table
    reasons = set(re.findall(r'"([a-z_]+)"', table.group(1)))
    assert len(reasons) > 10
    assert reasons - explained() == set()


# What is written like a reason and is none: kinds and words of Kubernetes, values of our fields.
NO_REASONS = {
    "CachePlan",
    "ConfigMap",
    "ContainerCreating",
    "FallbackToLogsOnError",
    "IfNotPresent",
    "ImageFolder",
    "MutatingWebhookConfiguration",
    "NamespaceTerminating",
    "PodInitializing",
    "PodScheduled",
    "RuntimeDefault",
    "TokenReview",
}
# Where reasons of conditions, Events and the index Job are made.
REASONS_OF = ("operator/pki", "operator/reconcile", "operator/manager", "sidecar/termination.cc")


def test_every_reason_of_a_condition_or_event_is_explained() -> None:
    found: dict[str, str] = {}
    for where in REASONS_OF:
        path = ROOT / where
        for source in [path] if path.is_file() else sorted(path.rglob("*.cc")):
            for reason in re.findall(r'"((?:[A-Z][a-z]+){2,})"', source.read_text()):
                found[reason] = str(source.relative_to(ROOT))
    words = explained() | NO_REASONS
    assert {reason: where for reason, where in found.items() if reason not in words} == {}


def test_every_annotation_is_explained() -> None:
    page = (ROOT / "docs/user/annotations.md").read_text()
    contract = (ROOT / "docs/kubernetes.md").read_text()
    names = set(re.findall(r"`(optcache\.io/[a-z]+)", contract.split("## Annotations of a pod")[1]))
    assert len(names) > 8
    assert {name for name in names if f"`{name}" not in page} == set()


def flags_of(template: str) -> set[str]:
    text = (ROOT / "charts/optcache/templates" / template).read_text()
    return set(re.findall(r"^ +- (--[a-z-]+)", text, re.MULTILINE))


def test_every_flag_that_the_chart_gives_is_one() -> None:
    """Of the programs' READMEs, which are what their --help says at length."""
    for template, folder in (("operator-deployment", "operator"), ("node-daemonset", "cache-node")):
        page = (ROOT / folder / "README.md").read_text()
        flags = flags_of(f"{template}.yaml")
        assert len(flags) >= 4
        unknown = {flag for flag in flags if not re.search(rf"{flag}\b", page)}
        assert unknown <= {"--json-log"}  # of all programs
