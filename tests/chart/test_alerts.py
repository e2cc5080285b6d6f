"""The chart's alerts, by promtool: they fire when they should, and only then."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CHART = ROOT / "charts" / "optcache"
CASES = HERE / "cases" / "alerts.yaml"
HEALTHY = HERE / "cases" / "healthy.yaml"

Object = dict[str, Any]


@pytest.fixture(scope="module")
def groups(helm: Path) -> list[Object]:
    command = [helm, "template", "optcache", CHART, "--namespace=optcache"]
    command += ["--set=image.prefix=r/", "--set=monitoring.rules=true", "--show-only=templates/prometheusrule.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: list[Object] = yaml.safe_load(done.stdout)["spec"]["groups"]
    return found


@pytest.fixture(scope="module")
def rules(groups: list[Object]) -> list[Object]:
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("no promtool: it is in Debian's package prometheus")
    return found


def run(promtool: str, *arguments: str, folder: Path) -> None:
    command = [promtool, *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_understands_them(promtool: str, groups: list[Object], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    run(promtool, "check", "rules", "rules.yaml", folder=tmp_path)


def run_cases(promtool: str, rules: list[Object], cases: str, folder: Path) -> None:
    # Without annotations, which promtool would compare with those of the cases, too.
    plain = [{key: rule[key] for key in rule if key != "annotations"} for rule in rules]
    group = {"name": "optcache", "rules": plain}
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [group]}))
    (folder / "cases.yaml").write_text(cases)
    run(promtool, "test", "rules", "cases.yaml", folder=folder)


def test_they_fire_when_they_should(promtool: str, rules: list[Object], tmp_path: Path) -> None:
    run_cases(promtool, rules, CASES.read_text(), tmp_path)


def test_none_fires_in_a_healthy_cluster(
    promtool: str, rules: list[Object], tmp_path: Path
) -> None:
    # Texts stay texts: 0x480 is 480 times 0 here.
    cases = yaml.load(HEALTHY.read_text(), Loader=yaml.BaseLoader)
    cases["tests"][0]["alert_rule_test"] = [
        {"alertname": rule["alert"], "eval_time": f"{minute}m"}
        for rule in rules
        for minute in range(5, 480, 25)
    ]
    run_cases(promtool, rules, yaml.safe_dump(cases), tmp_path)


def test_the_healthy_cluster_has_what_alerts_look_at(rules: list[Object]) -> None:
    """Or they would be silent for want of numbers. The API server's own are not ours."""
    series = yaml.safe_load(HEALTHY.read_text())["tests"][0]["input_series"]
    there = {each["series"].split("{")[0] for each in series}
    asked = {name for rule in rules for name in re.findall(r"\b([a-z_]+)\{", rule["expr"])}
    asked |= {name for rule in rules for name in re.findall(r"\boptcache_[a-z_]+", rule["expr"])}
    assert {name for name in asked if not name.startswith("apiserver_")} <= there


def test_each_has_a_case_in_which_it_fires_and_one_in_which_it_does_not(
    rules: list[Object],
) -> None:
    cases = yaml.safe_load(CASES.read_text())["tests"]
    seen = {(e["alertname"], "exp_alerts" in e) for c in cases for e in c["alert_rule_test"]}
    assert seen == {(rule["alert"], fires) for rule in rules for fires in (True, False)}


def test_each_links_to_a_heading_about_it(rules: list[Object]) -> None:
    for rule in rules:
        page, anchor = rule["annotations"]["runbook_url"].split("#")
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
        assert rule["alert"] in headings
        assert anchor == rule["alert"].lower()


def test_every_heading_about_an_alert_is_of_one(rules: list[Object]) -> None:
    page = (ROOT / "docs/user/troubleshooting.md").read_text()
    headings = re.findall(r"^### (Optcache\w+)$", page, re.MULTILINE)
    assert headings == [rule["alert"] for rule in rules]


def test_each_says_what_it_means(rules: list[Object]) -> None:
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning")
        annotations = rule["annotations"]
        assert annotations["summary"] and annotations["description"].endswith("."), rule["alert"]
