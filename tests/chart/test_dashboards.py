"""The chart's dashboards: what they show exists, is understood by promtool, and is explained."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from harness.prometheus import documented_scrape
from test_render import CHART, objects, render, unknown_metrics

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((CHART / "dashboards").glob("*.json"))
DASHBOARDS = {path.name: json.loads(path.read_text()) for path in FILES}
UIDS = {"optcache-overview", "optcache-rollout", "optcache-nodes", "optcache-control-plane"}
UNITS = {"percentunit", "bytes", "Bps", "ops", "s", "short", "none"}
KINDS = {"timeseries", "stat", "gauge", "table", "state-timeline"}
BUILT_IN = {"__rate_interval", "__range"}
# What Grafana puts in.
FILLED = {"$__rate_interval": "5m", "$__range": "3h"}


def panels(dashboard: Object) -> list[Object]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries() -> list[tuple[str, str, str]]:
    return [
        (name, panel["title"], target["expr"])
        for name, dashboard in DASHBOARDS.items()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def filled(expression: str) -> str:
    for name, value in FILLED.items():
        expression = expression.replace(name, value)
    return re.sub(r"\$[a-z]+", ".*", expression)


def test_the_chart_ships_each_in_a_config_map_of_its_own(helm: Path) -> None:
    rendered = objects(render(helm, "--set=monitoring.dashboards=true"))
    maps = [o for o in rendered if o["metadata"]["name"].startswith("optcache-dashboard-")]
    shipped = {name: json.loads(text) for each in maps for name, text in each["data"].items()}
    assert shipped == DASHBOARDS
    assert len(maps) == len(DASHBOARDS)
    assert all(each["metadata"]["labels"]["grafana_dashboard"] == "1" for each in maps)


def test_their_names_stay() -> None:
    """Links and bookmarks of people go by uid."""
    assert {dashboard["uid"] for dashboard in DASHBOARDS.values()} == UIDS
    assert all(name == f"{dashboard['uid']}.json" for name, dashboard in DASHBOARDS.items())


def run_promtool(*arguments: str | Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool: it is in Debian's package prometheus")
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_understands_every_query(tmp_path: Path) -> None:
    rules = [{"record": "r:r", "expr": filled(expr)} for _, _, expr in queries()]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    run_promtool("check", "rules", "--lint=none", path)


def test_promtool_understands_the_scrape_that_is_documented(tmp_path: Path) -> None:
    entry = documented_scrape()
    # Which Debian's Prometheus is built without.
    assert entry.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    path = tmp_path / "prometheus.yaml"
    path.write_text(yaml.safe_dump({"scrape_configs": [entry]}))
    run_promtool("check", "config", path)


def test_workers_that_are_ahead_do_not_count_as_waiting(tmp_path: Path) -> None:
    """In the alert's case of three pods with eight workers each, of which the last one's are ahead."""
    (expr,) = (expr for _, title, expr in queries() if title == "Trainer wait")
    cases = yaml.safe_load((ROOT / "tests/chart/cases/alerts.yaml").read_text())["tests"]
    (case,) = (each for each in cases if each["name"] == "workers that wait for samples")
    del case["alert_rule_test"]
    waiting = {"labels": "{}", "value": (144 + 48 + 0) / (3 * 8 * 60)}
    case["promql_expr_test"] = [{"expr": filled(expr), "eval_time": "100m", "exp_samples": [waiting]}]
    path = tmp_path / "cases.yaml"
    path.write_text(yaml.safe_dump({"tests": [case]}))
    run_promtool("test", "rules", path)


def test_they_show_metrics_that_exist() -> None:
    assert len(queries()) > 80
    for name, title, expr in queries():
        assert not unknown_metrics(expr), (name, title)


def test_counters_are_shown_as_rates() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    counters = set(re.findall(r"(?m)^\| `([a-z_]+)` \| counter \|", page))
    assert len(counters) > 50
    for name, title, expr in queries():
        for use in re.finditer(r"\b[a-z][a-z_0-9]+\b(\{[^}]*\})?(\[[^]]*\])?", expr):
            metric = use.group().partition("{")[0].partition("[")[0]
            if metric in counters:
                before = expr[: use.start()]
                assert before.endswith(("rate(", "increase(")), (name, title, metric)
                assert use.group().endswith("]"), (name, title, metric)


def test_each_panel_has_a_unit_a_sentence_and_a_place() -> None:
    for name, dashboard in DASHBOARDS.items():
        assert dashboard["description"].endswith(".")
        taken: set[tuple[int, int]] = set()
        for panel in dashboard["panels"]:
            at = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & taken and at["x"] + at["w"] <= 24, (name, panel["title"])
            taken |= cells
        for panel in panels(dashboard):
            assert panel["type"] in KINDS
            assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
            assert panel["description"].endswith("."), (name, panel["title"])
        titles = [panel["title"] for panel in panels(dashboard) if panel["type"] == "timeseries"]
        assert len(titles) == len(set(titles)), name
        ids = [panel["id"] for panel in dashboard["panels"]]
        assert len(ids) == len(set(ids)), name


def test_variables_are_declared_and_used() -> None:
    for name, dashboard in DASHBOARDS.items():
        declared = {variable["name"] for variable in dashboard["templating"]["list"]} - {"source"}
        asked = [variable.get("query") for variable in dashboard["templating"]["list"]]
        text = json.dumps([asked, [panel.get("targets") for panel in dashboard["panels"]]])
        used = set(re.findall(r"\$\{?([a-z_]+)", text)) - BUILT_IN
        assert used == declared, name
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                assert variable["multi"] and variable["includeAll"]
                assert not unknown_metrics(variable["query"].partition("(")[2])


def test_reads_of_earlier_manifests_are_counted_everywhere() -> None:
    """Nodes name these NAME@DIGEST: figures that stand side by side would be of different reads."""
    counters = r"optcache_(?:plan_[a-z]+_)?request(?:s|_bytes)_total(\{[^}]*\})"
    chosen = [each for _, _, expr in queries() for each in re.findall(counters, expr) if "$dataset" in each]
    assert len(chosen) > 10
    assert [each for each in chosen if 'dataset=~"$dataset(@.+)?"' not in each] == []


def test_jobs_are_chosen_by_the_labels_of_their_sidecars() -> None:
    """So that what the operator and what sidecars say of one job can be shown, and joined, together."""
    for name, title, expr in queries():
        for selector in re.findall(r"optcache_job_[a-z_]+(\{[^}]*\})", expr):
            assert 'namespace=~"$namespace"' in selector, (name, title)
            assert 'training_job=~"$job"' in selector, (name, title)


def selectors(expr: str) -> list[tuple[str, str]]:
    """Its metrics, each with what is selected of it."""
    return re.findall(r"\b([a-z]+_[a-z_0-9]+)(\{[^}]*\})", expr)


def choices(selector: str) -> set[str]:
    """The variables by which it is selected."""
    return set(re.findall(r"\$([a-z]+)", selector))


def test_what_is_divided_or_subtracted_is_chosen_alike() -> None:
    for name, title, expr in queries():
        chosen = [choices(selector) for _, selector in selectors(expr)]
        assert all(each == chosen[0] for each in chosen), (name, title, expr)


def compared() -> list[tuple[str, str, list[tuple[str, str]]]]:
    """The panels that show what was predicted beside what is observed, with all that they select."""
    found = []
    for name, dashboard in DASHBOARDS.items():
        for panel in panels(dashboard):
            selected = [pair for target in panel["targets"] for pair in selectors(target["expr"])]
            if "predicted" in json.dumps([panel["title"], panel["targets"]]):
                found.append((name, panel["title"], selected))
    return found


def test_what_is_predicted_and_observed_is_chosen_alike() -> None:
    """What nodes say has the Dataset as a label, and no job: so no side of such a panel is of one job."""
    assert len(compared()) >= 7
    for name, title, selected in compared():
        chosen = [choices(selector) for _, selector in selected]
        assert all(each == chosen[0] for each in chosen), (name, title, selected)


def test_what_sidecars_and_nodes_say_is_of_the_same_manifests() -> None:
    """Sidecars do not tell an earlier manifest apart, which nodes call NAME@DIGEST."""
    sidecars = (ROOT / "docs/metrics.md").read_text().partition("## Sidecar\n")[2].partition("\n## ")[0]
    of_sidecars = set(re.findall(r"(?m)^\| `([a-z_]+)` ", sidecars))
    assert "optcache_fetched_samples_total" in of_sidecars
    for name, title, selected in compared():
        metrics = {metric for metric, _ in selected}
        if not metrics & of_sidecars or metrics <= of_sidecars:
            continue
        for metric, selector in selected:
            of_all = 'dataset=~"$dataset"' if metric in of_sidecars else 'dataset=~"$dataset(@.+)?"'
            assert of_all in selector, (name, title, metric)


def test_what_was_saved_is_defined_as_in_the_docs() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    (defined,) = re.findall(r"likewise of `([a-z_]+)` and `([a-z_]+)`", page)
    (expr,) = (expr for _, title, expr in queries() if title == "Store bytes saved")
    assert " - " in expr and tuple(metric for metric, _ in selectors(expr)) == defined


def test_each_is_described_for_people() -> None:
    page = (ROOT / "docs/user/dashboards.md").read_text()
    for dashboard in DASHBOARDS.values():
        assert f"## {dashboard['title'].removeprefix('optcache / ')}\n" in page
        for panel in dashboard["panels"]:
            if panel["type"] == "row":
                assert f"**{panel['title']}**" in page, (dashboard["title"], panel["title"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_picture_shows_what_it_shows_now(path: Path) -> None:
    """test_a_patch_is_rolled_out draws them from the data of a cluster: build/cluster/log/dashboards."""
    picture = (ROOT / "docs/images" / f"{path.stem.replace('optcache', 'dashboard', 1)}.svg").read_text()
    titles = re.findall(r'font-size="(?:13|15|20)" font-weight="bold">([^<]*)</text>', picture)
    dashboard = DASHBOARDS[path.name]
    wanted = [dashboard["title"], *(panel["title"] for panel in dashboard["panels"])]
    assert sorted(map(html.unescape, titles)) == sorted(wanted)
    described = {html.unescape(text) for text in re.findall(r"<title>([^<]*)</title>", picture)}
    assert described >= {panel["description"] for panel in panels(dashboard)}
