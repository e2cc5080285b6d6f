"""Debian's Prometheus, with the chart's alerts, over whatever is to be scraped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml  # type: ignore[import]

from harness.cluster import Cluster
from harness.errors import HarnessError
from harness.processes import last_lines, stop, wait_for_end, wait_until

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "optcache"
START_SECONDS = 120.0

# Panels that have data only where there is what they are about, and the test that shows that they have.
PANELS_OF_DISKS = {  # tests/integration/test_disk.py
    "optcache-nodes: Disk use by node",
    "optcache-nodes: Out of use",
    "optcache-nodes: Read and written",
    "optcache-nodes: Write amplification",
}
PANELS_OF_S3 = {  # tests/integration/test_s3_endpoint.py
    "optcache-overview: Ranges joined",
    "optcache-overview: Refused",
    "optcache-overview: Requests by operation",
}
PANELS_OF_WARMUPS = {  # tests/cluster/cases/test_warmup.py
    "optcache-overview: Warm-ups",
    "optcache-overview: Warm-ups by state",
    "optcache-overview: Warmed",
}

Object = dict[str, Any]


def lacks() -> str:
    """What must be installed, in words, or nothing."""
    missing = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    return f"no {' and '.join(missing)}: Debian's package prometheus" if missing else ""


def chart_rules(helm: Path) -> list[Object]:
    """The groups of the chart's alerts, for a release `optcache` in a namespace of that name."""
    command: list[str | Path] = [helm, "template", "optcache", CHART, "--namespace=optcache"]
    command += ["--set=image.prefix=r/,monitoring.rules=true", "--show-only=templates/prometheusrule.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    groups: list[Object] = yaml.safe_load(done.stdout)["spec"]["groups"]
    return groups


def documented_scrape() -> Object:
    """The entry of scrape_configs that docs/user/dashboards.md gives for a cluster."""
    page = (ROOT / "docs/user/dashboards.md").read_text()
    blocks = re.findall(r"```yaml\n(.+?)```", page, re.DOTALL)
    entries: list[Object] = [entry for block in blocks for entry in yaml.safe_load(block)]
    found = [entry for entry in entries if "kubernetes_sd_configs" in entry]
    assert len(found) == 1
    return found[0]


def scrape_of(cluster: Cluster, machines: int) -> Object:
    """The entry for `optcache up`, with the labels that docs/user/dashboards.md gives pods."""

    def target(url: str, component: str, **labels: str) -> Object:
        return {"targets": [urlsplit(url).netloc], "labels": {"component": component, **labels}}

    groups = [target(cluster.url, "optcache-operator", job="optcache/optcache-operator", pod="operator")]
    for machine in range(machines):
        node, name = cluster.metrics_url(f"node-{machine}"), f"machine-{machine}"
        groups.append(
            target(node, "optcache-node", job="optcache/optcache-node", node=name, pod=f"node-{machine}")
        )
        sidecar = cluster.metrics_url(f"sidecar-{machine}")
        labels = {"namespace": "vision", "pod": f"train-{machine}", "training_job": "train"}
        groups.append(target(sidecar, "optcache-sidecar", node=name, **labels))
    return {"job_name": "optcache", "static_configs": groups}


@dataclass(frozen=True)
class Sample:
    labels: Mapping[str, str]
    value: float


class Prometheus:
    """Runs from construction to the end of its `with`. Everything is in `folder`.

    `within` stands before each command: what puts it into a network namespace.
    """

    def __init__(
        self,
        folder: Path,
        scrapes: Sequence[Object],
        rules: Sequence[Object] = (),
        interval: str = "1s",
        within: Sequence[str | Path] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._within = list(within)
        self._log = folder / "prometheus.log"
        self.interval = interval
        times = {"scrape_interval": interval, "evaluation_interval": interval}
        configuration = {
            "global": times, "rule_files": ["rules.yaml"], "scrape_configs": list(scrapes),
        }
        (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": list(rules)}))
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        self._began = time.monotonic()
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [
                    *self._within,
                    "prometheus",
                    f"--config.file={folder / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    "--web.listen-address=127.0.0.1:0",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.url = self._wait_until_ready()
        except BaseException:
            stop(self._process)
            raise

    def __enter__(self) -> Prometheus:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self._process)

    def query(self, expression: str) -> list[Sample]:
        """An instant query."""
        command = ["promtool", "query", "--format=json", "instant", self.url, expression]
        found = json.loads(self._run(*command))
        return [Sample(each["metric"], float(each["value"][1])) for each in found]

    def value(self, expression: str) -> float:
        """Of a query with one series; 0 without."""
        return sum(sample.value for sample in self.query(expression))

    def alerts(self, state: str = "firing") -> list[Mapping[str, str]]:
        """The labels of alerts: those that fire, or are `pending`."""
        return [sample.labels for sample in self.query(f'ALERTS{{alertstate="{state}"}}')]

    def wait_for(self, expression: str, what: str, seconds: float = 180.0) -> None:
        """Until the query gives something that is not 0."""
        wait_until(lambda: self.value(expression) != 0, what, seconds)

    def wait_for_targets(self, count: int, seconds: float = 180.0) -> None:
        """Until so many are scraped well, twice, so that there are rates."""
        def scraped() -> bool:
            return len(self.query("count_over_time(up[1h]) > 1 and up == 1")) >= count

        wait_until(scraped, f"Prometheus scrapes {count} targets", seconds)

    def age_seconds(self) -> int:
        """For how long it has scraped."""
        return int(time.monotonic() - self._began)

    def render(self, optcache: Path, folder: Path, *words: str) -> Object:
        """What `optcache dashboard render` says of its pictures, by which `folder` is filled."""
        command = [str(optcache), "dashboard", "render", f"--prometheus={self.url}", "-o", str(folder)]
        command += ["--output=json", f"--scrape-interval={self.interval}", *words]
        report: Object = json.loads(self._run(*command))
        return report

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            [*self._within, *command], capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            raise HarnessError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _wait_until_ready(self) -> str:
        found: list[str] = []

        def ready() -> bool:
            if wait_for_end(self._process, 0):
                raise HarnessError(f"prometheus ends at once:\n{last_lines(self._log)}")
            text = self._log.read_text(errors="replace")
            listening = re.search(r'msg="Listening on" address=(\S+)', text)
            if listening and 'msg="Server is ready to receive web requests."' in text:
                found.append(f"http://{listening[1]}")
            return bool(found)

        wait_until(ready, "Prometheus is ready", START_SECONDS)
        return found[0]


def empty_panels(report: Object) -> set[str]:
    """Of what render() says: "optcache-nodes: Up"."""
    return {
        f"{dashboard['uid']}: {panel['title']}"
        for dashboard in report["dashboards"]
        for panel in dashboard["panels"]
        if panel["empty"]
    }


def check_page(text: str) -> None:
    """What `promtool check metrics` says of a scrape; HarnessError if it finds anything."""
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0 or done.stderr or done.stdout:
        raise HarnessError(f"promtool check metrics:\n{done.stdout}{done.stderr}")
