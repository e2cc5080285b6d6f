"""What the programs say, and what docs/user says about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

MISSING: Any = object()
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


def test_pages_name_the_memory_that_a_node_requests() -> None:
    golden = (ROOT / "tests/chart/golden/default.yaml").read_text()
    (node,) = (it for it in yaml.safe_load_all(golden) if it and it["kind"] == "DaemonSet")
    (container,) = node["spec"]["template"]["spec"]["containers"]
    request = container["resources"]["requests"]["memory"]
    words = f"{int(request.removesuffix('Mi')) / 1024:.1f} GiB"
    for page in ("quickstart.md", "install.md"):
        assert words in (ROOT / "docs/user" / page).read_text(), page


# What is written like a reason and is none: kinds and words of Kubernetes, values of our fields,
# types of conditions.
NO_REASONS = {
    "CachePlan",
    "ConfigMap",
    "ContainerCreating",
    "FallbackToLogsOnError",
    "GoBack",
    "IfNotPresent",
    "ImageFolder",
    "ManifestLost",
    "MutatingWebhookConfiguration",
    "NamespaceTerminating",
    "NoSchedule",
    "NotIn",
    "PodInitializing",
    "PodScheduled",
    "RuntimeDefault",
    "SourceReachable",
    "TokenReview",
}
# Where reasons of conditions, Events and the index Job are made.
REASONS_OF = (
    "lib/coordinator/rollout.cc",
    "lib/coordinator/rollout_report.cc",
    "operator/pki",
    "operator/reconcile",
    "operator/manager",
    "sidecar/programs/termination.cc",
)


def sources() -> dict[str, str]:
    found: dict[str, str] = {}
    for where in REASONS_OF:
        path = ROOT / where
        for source in [path] if path.is_file() else sorted(path.rglob("*.cc")):
            found[str(source.relative_to(ROOT))] = source.read_text()
    return found


def table(name: str) -> set[str]:
    """Of operator/reconcile/reasons.h, against which conditions and Events are checked when made."""
    text = (ROOT / "operator/reconcile/reasons.h").read_text()
    array = r"\s*=\s*std::to_array<std::string_view>\(\s*\{(.*?)\}\)"
    found = re.search(name + array, text, re.DOTALL)
    assert found
    return set(re.findall(r'"(\w+)"', found.group(1)))


def told() -> set[str]:
    """The words in the columns `reason` and `Event` of all tables, but for the injector's."""
    words: set[str] = set()
    column = 0
    for line in TROUBLESHOOTING.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            column = 0
        elif column == 0:
            named = [cells.index(name) for name in ("reason", "Event") if name in cells]
            column = max(named, default=-1)
        elif column > 0:
            words |= set(re.findall(r"`([A-Z][A-Za-z]+)`", cells[column]))
    return words


def test_every_reason_of_a_condition_or_event_is_explained_and_no_other() -> None:
    assert told() == table("kReasons") | table("kIndexReasons")


def test_every_reason_of_the_table_is_given_somewhere() -> None:
    text = "".join(sources().values())
    reasons = table("kReasons") | table("kIndexReasons")
    assert {reason for reason in reasons if f'"{reason}"' not in text} == set()


def test_what_looks_like_a_reason_is_in_the_table() -> None:
    known = table("kReasons") | table("kIndexReasons") | NO_REASONS
    unknown = {
        word: where
        for where, text in sources().items()
        for word in re.findall(r'"((?:[A-Z][a-z]+){2,})"', text)
        if word not in known
    }
    assert unknown == {}


def test_every_test_that_the_list_of_lib_kube_names_is_one() -> None:
    folders = ("tests/unit/kube", "tests/unit/operator", "tests/kube", "tests/operator")
    text = "".join(
        source.read_text()
        for folder in folders
        for source in (ROOT / folder).iterdir()
        if source.suffix in (".cc", ".py")
    )
    made = re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", text, re.MULTILINE)
    known = {".".join(each) for each in made}
    known |= set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))
    page = (ROOT / "tests/unit/kube/README.md").read_text()
    named = set(re.findall(r"`(\w+\.\w+|test_\w+)`", page))
    assert len(named) > 60
    assert named - known == set()


ANNOTATIONS = (ROOT / "docs/user/annotations.md").read_text()
CONTRACT = (ROOT / "docs/kubernetes.md").read_text().split("## Annotations of a pod")[1]


def documented_annotations(page: str) -> set[str]:
    """In the first column of its table."""
    columns = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    return set(re.findall(r"`optcache\.io/([a-z]+)`", " ".join(columns)))


def test_the_annotations_are_those_that_the_injector_reads() -> None:
    source = (ROOT / "operator/webhook/request.cc").read_text()
    # Each is read by Read(pod, "name", ...), or the shorter read("name", ...).
    read = set(re.findall(r'\b(?:Read\(pod, |read\(\s*)"([a-z]+)"', source))
    assert len(read) >= 8
    contract = documented_annotations(CONTRACT) - {"injected", "results"}  # which the injector writes
    table = ANNOTATIONS.split("| annotation | value | default |")[1].split("\n## ")[0]
    assert read == contract == documented_annotations(table)


def test_annotations_that_are_read_are_known_and_no_others() -> None:
    """Others are told to be unknown."""
    source = (ROOT / "operator/webhook/unknown_annotations.cc").read_text()
    tables = re.findall(r"(?:kKnown|kOwn) =\s.*?\(\s*\{(.*?)\}\)", source, re.DOTALL)
    assert len(tables) == 2
    known = re.findall(r'"([a-z]+)"', "".join(tables))
    assert len(known) >= 9
    assert set(known) == documented_annotations(CONTRACT)


def test_defaults_of_annotations_are_those_of_the_injector() -> None:
    header = (ROOT / "operator/webhook/request.h").read_text()
    fields = {"arena": "arena", "resources": "cpu"}
    for annotation, field in fields.items():
        found = re.search(rf'std::string {field} = "([^"]+)"', header)
        assert found, field
        row = next(line for line in ANNOTATIONS.splitlines() if f"`optcache.io/{annotation}`" in line)
        assert f"`{found.group(1)}`" in row or f"={found.group(1)}`" in row, row


def test_pages_that_install_say_where_the_images_are() -> None:
    """They are not published, and the chart refuses to guess. `./dev cluster images` makes those of optcache.test."""
    pages = [ROOT / "README.md", ROOT / "charts/optcache/README.md", *(ROOT / "docs/user").glob("*.md")]
    commands = [
        command
        for page in pages
        for command in re.findall(r"^ *helm install (?:.*\\\n)*.*", page.read_text(), re.MULTILINE)
    ]
    assert len(commands) >= 3
    said = re.compile(r"--set image\.prefix=(\$REGISTRY|optcache\.test)/")
    assert [command for command in commands if not said.search(command)] == []


def test_the_images_that_the_page_builds_are_those_of_the_chart() -> None:
    page = (ROOT / "docs/user/install.md").read_text()
    (parts,) = re.findall(r"^for part in (.*); do$", page, re.MULTILINE)
    (tag,) = set(re.findall(r"\$REGISTRY/optcache/\$part:(\S+)", page))
    values = yaml.safe_load((ROOT / "charts/optcache/values.yaml").read_text())
    images = {values[component]["image"] for component in ("operator", "node", "sidecar")}
    assert {f"optcache/{part}" for part in parts.split()} == images
    assert all((ROOT / part / "Dockerfile").is_file() for part in parts.split())
    about = yaml.safe_load((ROOT / "charts/optcache/Chart.yaml").read_text())
    assert tag == about["appVersion"]


def values_of(page: str) -> list[str]:
    """`--set a.b=c` and `a.b` in code, as docs name values of the chart."""
    tops = "image|operator|node|sidecar|index(?!.txt|.json|.interval)|webhook|crds|podDisruptionBudget|networkPolicy|monitoring|tests"
    return re.findall(rf"(?<![\w/.-])((?:{tops})\.[a-z][A-Za-z.]+[A-Za-z])(?=[`=: ])", page)


def test_values_that_pages_name_are_values() -> None:
    values = yaml.safe_load((ROOT / "charts/optcache/values.yaml").read_text())
    unknown = set()
    for path in sorted((ROOT / "docs/user").glob("*.md")):
        for name in values_of(path.read_text()):
            node = values
            for part in name.split("."):
                node = node.get(part, MISSING) if isinstance(node, dict) else MISSING
            if node is MISSING:
                unknown.add(f"{path.name}: {name}")
    assert unknown == set()


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
