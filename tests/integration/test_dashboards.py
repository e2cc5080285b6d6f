"""A real Prometheus over the real programs: panels have data, pages are right, no alert fires."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import prometheus
from harness.checks import Records
from harness.cluster import Cluster
from harness.prometheus import (
    PANELS_OF_DISKS,
    PANELS_OF_S3,
    PANELS_OF_WARMUPS,
    Prometheus,
    check_page,
    empty_panels,
    scrape_of,
)

ROOT = Path(__file__).resolve().parents[2]
MACHINES = 2
# Small beside the samples (some 44 MB), as arenas are: sidecars that stage a fifth of a pass ahead of
# each other ask for samples before they are moved.
ARENA = 2 << 20

# What no healthy run has: pages show nothing of what never happened. And what there is not here.
ABSENT = {"optcache-nodes: Refused"} | PANELS_OF_DISKS | PANELS_OF_S3 | PANELS_OF_WARMUPS

pytestmark = pytest.mark.skipif(bool(prometheus.lacks()), reason=prometheus.lacks())


@pytest.fixture
def helm() -> Path | None:
    folder = ROOT / (os.environ.get("OPTCACHE_CLUSTER_BIN") or "build/cluster/bin")
    path = folder / "helm"
    return path if path.is_file() else None


@pytest.fixture
def cluster(start_cache: Callable[..., Cluster]) -> Cluster:
    return start_cache(machines=MACHINES, arena=ARENA, cost='{perRequest: "0.0000004"}')


@pytest.fixture
def running(cluster: Cluster, tmp_path: Path, helm: Path | None) -> Iterator[Prometheus]:
    rules = prometheus.chart_rules(helm) if helm else []
    with Prometheus(tmp_path / "prometheus", [scrape_of(cluster, MACHINES)], rules) as it:
        it.wait_for_targets(1 + 2 * MACHINES)
        yield it


def test_a_training_job_fills_the_dashboards_and_no_alert_fires(
    cluster: Cluster,
    running: Prometheus,
    run_job: Callable[..., Records],
    programs: Path,
    tmp_path: Path,
) -> None:
    run_job([cluster.socket(machine) for machine in range(MACHINES)], epochs=4)
    hits = 'sum(optcache_requests_total{result="hit"})'
    delivered = "sum(optcache_client_samples_total)"
    running.wait_for(f"({hits} > 0) and on() ({delivered} > 0)", "the job's reads are scraped")
    report = running.render(
        programs / "optcache", tmp_path / "pictures", "--last=2m", "--step=1s",
        "--dashboard=optcache-overview", "--dashboard=optcache-nodes",
    )
    assert [each["uid"] for each in report["dashboards"]] == ["optcache-nodes", "optcache-overview"]
    assert empty_panels(report) == ABSENT
    for dashboard in report["dashboards"]:
        page = (tmp_path / "pictures" / dashboard["file"]).read_text()
        assert page.startswith("<svg ")
        for panel in dashboard["panels"]:
            assert (tmp_path / "pictures" / panel["file"]).read_text().startswith("<svg ")
    assert running.alerts() == []
    assert running.alerts("pending") == []


def test_predicted_and_observed_count_the_same_reads(
    cluster: Cluster, running: Prometheus, run_job: Callable[..., Records]
) -> None:
    """Of nearly all reads something was predicted, and in sum it came true."""
    run_job([cluster.socket(machine) for machine in range(MACHINES)], epochs=6)
    running.wait_for("sum(optcache_plan_predicted_requests_total) > 0", "reads were predicted")
    running.wait_for("sum(rate(optcache_requests_total[3s])) == bool 0", "all of them are scraped")
    predicted = running.value("sum(optcache_plan_predicted_requests_total)")
    observed = running.value("sum(optcache_requests_total)")
    assert 0.8 * observed <= predicted <= observed
    assert running.value("sum(optcache_plan_covered_requests_total)") == predicted, "of the same reads"
    hits = '{result="hit"}'
    promised = running.value(f"sum(optcache_plan_predicted_requests_total{hits})")
    came = running.value(f"sum(optcache_plan_covered_requests_total{hits})")
    assert came <= running.value(f"sum(optcache_requests_total{hits})")
    assert abs(promised - came) <= 0.05 * predicted


def test_sidecars_count_by_dataset(
    cluster: Cluster, running: Prometheus, run_job: Callable[..., Records]
) -> None:
    run_job([cluster.socket(machine) for machine in range(MACHINES)], epochs=1)
    running.wait_for("sum(optcache_client_samples_total) > 0", "the reads are scraped")
    nodes = {each.labels["dataset"] for each in running.query("optcache_requests_total")}
    samples = ("optcache_client_samples_total", "optcache_fetched_samples_total")
    for metric in (*samples, "optcache_client_wait_seconds_total"):
        assert {each.labels["dataset"] for each in running.query(metric)} == nodes
    sources = {each.labels["source"] for each in running.query("optcache_requests_total")}
    for metric in samples:
        assert {each.labels["source"] for each in running.query(metric)} == sources


def test_pages_are_as_prometheus_wants_them(
    cluster: Cluster, run_job: Callable[..., Records]
) -> None:
    run_job([cluster.socket(machine) for machine in range(MACHINES)], epochs=1)
    urls = [f"{cluster.url}/metrics", *map(cluster.metrics_url, ("node-0", "sidecar-0"))]
    for url in urls:
        with urllib.request.urlopen(url, timeout=120) as page:
            check_page(page.read().decode())


def test_a_query_that_prometheus_refuses_is_named(
    running: Prometheus, programs: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "dashboards"
    folder.mkdir()
    whole = (ROOT / "charts/optcache/dashboards/optcache-nodes.json").read_text()
    (folder / "nodes.json").write_text(whole.replace("sum(up{", "sum(up{{", 1))
    command = [programs / "optcache", "dashboard", "render", f"--prometheus={running.url}"]
    command += ["-o", tmp_path / "pictures", f"--dashboards={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "Prometheus refuses query A of optcache-nodes, panel 'Answering'" in done.stderr
    assert "parse error" in done.stderr


def test_panels_without_data_are_named_and_may_be_a_failure(
    running: Prometheus, programs: Path, tmp_path: Path
) -> None:
    command = [programs / "optcache", "dashboard", "render", f"--prometheus={running.url}"]
    command += ["-o", tmp_path / "pictures", "--dashboard=optcache-rollout", "--var=dataset=none/such"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "--var dataset=none/such: Prometheus has no such value in that time" in done.stderr
    assert "panels have no data:\n" in done.stdout
    assert "  optcache / Plan rollout / Digests\n" in done.stdout
    command += ["--require-data"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "panels have no data, see above" in done.stderr
