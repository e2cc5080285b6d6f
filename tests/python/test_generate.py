"""`./dev generate` writes what is made from other files, and `--check` names what is out of date."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import generate

SOURCE = "manifests/crds/datasets.yaml"
COPY = "charts/optcache/files/crds/datasets.yaml"
OLD = "charts/optcache/files/crds/old.yaml"
HINT = "is out of date: run ./dev generate, then read the diff\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a CRD, and a chart with an earlier one and one that has gone. It has no helm."""
    for name, text in {SOURCE: "new", COPY: "earlier", OLD: "gone"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.delenv("OPTCACHE_CLUSTER_BIN", raising=False)
    monkeypatch.setattr(generate, "PARTS", (generate.crds,))
    return tmp_path


def test_check_names_each_file_and_writes_none(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not generate.generate(root, check=True)
    assert capsys.readouterr().out == f"{COPY} {HINT}{OLD} {HINT}"
    assert (root / COPY).read_text() == "earlier"
    assert (root / OLD).exists()


def test_what_is_written_is_up_to_date(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.generate(root, check=False)
    assert capsys.readouterr().out == f"wrote {COPY}\nremoved {OLD}\n"
    assert (root / COPY).read_text() == "new"
    assert not (root / OLD).exists()
    assert generate.generate(root, check=True)
    assert generate.generate(root, check=False)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("check", [False, True])
def test_without_helm_the_rest_is_written_and_it_fails(
    check: bool, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "PARTS", (generate.rendered, generate.crds))
    assert not generate.generate(root, check=check)
    said = capsys.readouterr()
    assert "helm is missing: run ./dev cluster programs kubernetes" in said.err
    assert COPY in said.out


def test_check_leaves_the_page_of_metrics_as_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program writes the page itself."""
    page = root / generate.METRICS_PAGE
    program = root / generate.METRICS_TEST
    for path, text in {page: "earlier", program: f"#!/bin/sh\nprintf new >{page}\n"}.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    program.chmod(0o755)
    monkeypatch.setattr(generate, "PARTS", (generate.metrics,))
    assert not generate.generate(root, check=True)
    assert page.read_text() == "earlier"
    assert generate.generate(root, check=False)
    assert page.read_text() == "new"


def test_what_needs_no_program_is_up_to_date() -> None:
    """What does is compared in tests/chart and in metrics_test."""
    stale = generate.out_of_date(ROOT, generate.crds(ROOT) | generate.crd_page(ROOT))
    assert stale == [], "run ./dev generate, then read the diff"
