#!/usr/bin/env python3
"""Write the files that are made from other files.

  charts/optcache/files/crds   copies of manifests/crds: a chart cannot reach outside itself
  manifests/install.yaml       the chart with its default values, by helm
  tests/chart/golden           what the chart renders with each file of charts/optcache/ci, by helm
  docs/user/crds.md            the tables, from manifests/crds
  docs/metrics.md              the tables, from lib/metrics, by metrics_test
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import crd_tables

ROOT = Path(__file__).resolve().parents[1]
# What `helm template` takes the cluster for, so that the result does not depend on helm's age.
KUBERNETES = "1.33.0"
PREFIX = "registry.example.com/team/"
INSTALL_HEADER = f"""\
# The chart with its default values, for those who do not use helm. Instead of {PREFIX}
# say where your images are:
#   kubectl create namespace optcache
#   sed "s,{PREFIX},$REGISTRY/," install.yaml | kubectl apply --server-side --filename -
"""
METRICS_PAGE = "docs/metrics.md"
METRICS_TEST = "build/dev/tests/metrics_test"

# What files should hold, by their paths in the repository; None: the file should not be there.
Made = dict[str, str | None]


class GenerateError(Exception):
    """Some files cannot be made."""


def crds(root: Path) -> Made:
    """The chart's copies."""
    copies = "charts/optcache/files/crds"
    made: Made = {f"{copies}/{path.name}": None for path in (root / copies).glob("*.yaml")}
    for path in (root / "manifests/crds").glob("*.yaml"):
        made[f"{copies}/{path.name}"] = path.read_text()
    return made


def crd_page(root: Path) -> Made:
    return {crd_tables.PAGE: crd_tables.page(root)}


def template(
    helm: Path, *arguments: str, release: str = "optcache", chart: Path = ROOT / "charts/optcache"
) -> subprocess.CompletedProcess[str]:
    command = [str(helm), "template", release, str(chart), "--namespace=optcache"]
    command += [f"--set=image.prefix={PREFIX}", *arguments]
    if not any(each.startswith("--kube-version") for each in arguments):
        command.append(f"--kube-version={KUBERNETES}")
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def without_crds(text: str) -> str:
    """The CRDs are compared with their source; in every golden they would only be long."""
    documents = re.split(r"(?m)^---\n", text)
    return "---\n".join(d for d in documents if "kind: CustomResourceDefinition\n" not in d)


def rendered(root: Path) -> Made:
    """What helm makes of the chart."""
    helm = root / (os.environ.get("OPTCACHE_CLUSTER_BIN") or "build/cluster/bin") / "helm"
    if not helm.is_file():
        raise GenerateError(f"{helm} is missing: run ./dev cluster programs kubernetes, which builds it")

    def render(*arguments: str) -> str:
        done = template(helm, *arguments, chart=root / "charts/optcache")
        if done.returncode != 0:
            raise GenerateError(done.stderr.strip())
        return done.stdout

    golden = "tests/chart/golden"
    made: Made = {f"{golden}/{path.name}": None for path in (root / golden).glob("*.yaml")}
    for values in (root / "charts/optcache/ci").glob("*-values.yaml"):
        name = values.name.replace("-values", "")
        made[f"{golden}/{name}"] = without_crds(render(f"--values={values}"))
    made["manifests/install.yaml"] = INSTALL_HEADER + render("--skip-tests")
    return made


def metrics(root: Path) -> Made:
    """The page is written by a test, from the catalog that the programs use."""
    page = root / METRICS_PAGE
    before = page.read_text()
    try:
        done = subprocess.run(
            [root / METRICS_TEST, "--gtest_filter=Catalog.IsTheTablesOfThePage"],
            env={**os.environ, "UPDATE_GOLDEN": "1"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode != 0:
            raise GenerateError(done.stdout.strip())
        return {METRICS_PAGE: page.read_text()}
    finally:
        page.write_text(before)


# What helm renders has the CRDs in it, so that they come first.
PARTS = (crds, crd_page, rendered, metrics)


def out_of_date(root: Path, made: Made) -> list[str]:
    def text(path: Path) -> str | None:
        return path.read_text() if path.exists() else None

    return [name for name in sorted(made) if text(root / name) != made[name]]


def generate(root: Path, check: bool) -> bool:
    """Whether all is well: with `check`, whether nothing is out of date."""
    well = True
    for part in PARTS:
        try:
            made = part(root)
        except GenerateError as error:
            print(f"generate: {error}", file=sys.stderr)
            well = False
            continue
        for name in out_of_date(root, made):
            text = made[name]
            if check:
                print(f"{name} is out of date: run ./dev generate, then read the diff")
                well = False
            elif text is None:
                (root / name).unlink()
                print(f"removed {name}")
            else:
                (root / name).write_text(text)
                print(f"wrote {name}")
    return well


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev generate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file is out of date")
    return 0 if generate(ROOT, parser.parse_args().check) else 1


if __name__ == "__main__":
    sys.exit(main())
