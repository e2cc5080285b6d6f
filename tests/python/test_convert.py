"""`optcache convert dlcpod`: what docs/user/dlcache.md shows, word for word."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, find_program

yaml = pytest.importorskip("yaml")

PAGE = ROOT / "docs" / "user" / "dlcache.md"
GOLDEN = ROOT / "tests" / "golden" / "cli" / "dlcpod"
SECONDS = 60


def convert(folder: Path, *words: str, piped: str = "") -> subprocess.CompletedProcess[str]:
    command = [find_program("optcache"), "convert", "dlcpod", *words]
    return subprocess.run(
        command,
        cwd=folder,
        input=piped,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_example_of_the_user_page(tmp_path: Path) -> None:
    before, after = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "pod.yaml").write_text(before)
    ended = convert(tmp_path, "-f", "pod.yaml")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == after
    assert convert(tmp_path, "-f", "-", piped=before).stdout == after


def test_the_refusal_of_the_user_page(tmp_path: Path) -> None:
    page = PAGE.read_text()
    before = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0]
    (refusal,) = re.findall(r"`(pod\.yaml:\d+: [^`]+)`", page)
    (tmp_path / "pod.yaml").write_text(before.replace("qos: {", "qos: {maxmemorymill: 10000, "))
    ended = convert(tmp_path, "-f", "pod.yaml")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"optcache: {refusal}\n"


def test_pods_of_one_file_do_not_share_data_by_chance(tmp_path: Path) -> None:
    before = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    other = before.replace("name: imagenet\n", "name: other\n")
    other = other.replace("Imagenet-Mini/train", "other/train")
    (tmp_path / "pods.yaml").write_text(f"{before}---\n{other}")
    ended = convert(tmp_path, "-f", "pods.yaml")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(
        "optcache: pods.yaml: DLCPod other: two jobs have a datasource that makes a Dataset "
        "imagenet-mini-train, with another bucket"
    )
    unnamed = (tmp_path / "pods.yaml").read_text().replace("      name: Imagenet-Mini\n", "")
    ended = convert(tmp_path, "-f", "-", piped=unnamed)
    assert (ended.returncode, ended.stderr) == (0, "")
    read = {
        each["metadata"]["name"]: each["spec"]["source"]["s3"]["prefix"]
        for each in yaml.safe_load_all(ended.stdout)
        if each["kind"] == "Dataset"
    }
    assert read == {
        "imagenet-job-train": "Imagenet-Mini/train/",
        "imagenet-job-validation": "Imagenet-Mini/val/",
        "other-job-train": "other/train/",
        "other-job-validation": "Imagenet-Mini/val/",
    }


@pytest.mark.parametrize("name", ["several", "uncached"])
def test_the_output_is_what_kubectl_reads(tmp_path: Path, name: str) -> None:
    """Another YAML parser finds the containers as they were, and nothing behind the comments."""
    source = GOLDEN / f"{name}.in.yaml"
    spec = yaml.safe_load(source.read_text())["spec"]
    ended = convert(tmp_path, "-f", str(source), "--region", "eu-west-1")
    assert ended.returncode == 0, ended.stderr
    *datasets, job = yaml.safe_load_all(ended.stdout)
    assert {each["kind"] for each in datasets} <= {"Dataset"} and job["kind"] == "Job"
    assert {each["spec"]["source"]["s3"]["region"] for each in datasets} <= {"eu-west-1"}
    pod = job["spec"]["template"]
    listed = pod.get("metadata", {}).get("annotations", {}).get("optcache.io/dataset", "")
    assert [each["metadata"]["name"] for each in datasets] == [*filter(None, listed.split(","))]
    carried = set(spec["jobs"][0]) - {"datasource", "qos", "configurationsfromconfigmap"}
    for before, after in zip(spec["jobs"], pod["spec"]["containers"], strict=True):
        for field in carried & set(before):
            if field in ("env", "volumeMounts"):
                assert after[field][: len(before[field])] == before[field]
            else:
                assert after[field] == before[field]
    for volume in spec.get("volumes", []):
        assert volume in pod["spec"]["volumes"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = convert(tmp_path, "-f", "nowhere.yaml")
    assert ended.returncode == 1 and "nowhere.yaml" in ended.stderr
    (tmp_path / "large.yaml").write_bytes(b" " * (2 << 20))
    ended = convert(tmp_path, "-f", "large.yaml")
    assert ended.returncode == 1 and "large.yaml" in ended.stderr
    assert convert(tmp_path).returncode == 2
