"""The parts of the cluster tool that need neither root nor a cluster."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import doors, older, processes, prometheus, story
from cluster.deadline import CaseTooLate, case_deadline
from cluster.errors import ClusterError
from cluster.host import run, utc, wait_until
from cluster.images import Image, digest
from cluster.processes import Daemon


def test_a_wait_does_not_take_the_end_of_a_case_for_a_busy_api_server() -> None:
    with pytest.raises(CaseTooLate), case_deadline(0.3):
        wait_until(lambda: run(["sleep", "60"]).stdout, "what never comes", 600)


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon("sleeper", tmp_path / "run", tmp_path / "log" / "sleeper.log")


def test_a_daemon_is_found_again_and_ends(daemon: Daemon) -> None:
    pid = daemon.start(["sleep", "100"])
    again = Daemon(daemon.name, daemon.folder, daemon.log)
    assert again.pid == pid
    again.stop()
    assert daemon.pid is None
    daemon.stop()  # once more does nothing


def test_a_daemon_that_ends_by_itself_is_not_running(daemon: Daemon) -> None:
    daemon.start(["sh", "-c", "echo said; exit 3"])
    wait_until(lambda: daemon.pid is None, "its end", 60)
    assert daemon.log.read_text() == "said\n"


def test_a_stubborn_daemon_is_killed(daemon: Daemon) -> None:
    code = "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(100)"
    daemon.start([sys.executable, "-c", code])
    wait_until(lambda: daemon.log.read_text() == "1\n", "it listens to nobody", 60)
    daemon.stop(seconds=0.2)
    assert daemon.pid is None


def test_an_id_that_somebody_else_has_now_is_not_the_daemon(daemon: Daemon) -> None:
    pid = daemon.start(["sleep", "100"])
    file = daemon.folder / "sleeper.pid"
    mine = file.read_text()
    file.write_text(f"{pid} 1\n")  # it began at another time
    assert daemon.pid is None
    file.write_text(mine)
    daemon.stop()


def test_a_command_that_fails_says_its_last_words() -> None:
    with pytest.raises(ClusterError, match="exit code 3\nno such thing"):
        run(["sh", "-c", "echo no such thing >&2; exit 3"])
    with pytest.raises(ClusterError, match="not done after 0 s"):
        run(["sleep", "10"], seconds=0.1)
    with pytest.raises(ClusterError, match="there is no program"):
        run(["no-program-of-this-name"])


def image(context: Path, **changes: object) -> Image:
    fields = {"reference": "a:1", "context": context, "dockerfile": context / "Dockerfile"}
    return Image(**{**fields, **changes})  # type: ignore[arg-type]


def test_an_image_changes_with_its_inputs_alone(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "program").write_text("1")
    before = digest(image(tmp_path))
    assert digest(image(tmp_path)) == before
    assert digest(image(tmp_path, reference="a:2")) != before
    assert digest(image(tmp_path, target="prebuilt")) != before
    (tmp_path / "program").chmod(0o755)
    executable = digest(image(tmp_path))
    assert executable != before
    (tmp_path / "program").write_text("2")
    assert digest(image(tmp_path)) != executable


def test_an_older_commit_is_checked_out_once(tmp_path: Path) -> None:
    repository, folder = tmp_path / "repository", tmp_path / "older"
    repository.mkdir()
    git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"]
    run([*git, "init", "--quiet"])
    commits = []
    for text in ("1", "2"):
        (repository / "file").write_text(text)
        run([*git, "add", "file"])
        run([*git, "commit", "--quiet", f"--message={text}"])
        commits.append(run([*git, "rev-parse", "HEAD"]).stdout.strip())
    assert older.missing(commits[0], repository) == ""
    older.check_out(folder, commits[0], repository)
    assert (folder / "file").read_text() == "1"
    (folder / "made").touch()
    older.check_out(folder, commits[0], repository)
    assert (folder / "made").exists()
    older.check_out(folder, commits[1], repository)
    assert (folder / "file").read_text() == "2" and not (folder / "made").exists()


def test_a_clone_without_the_older_commit_says_so(tmp_path: Path) -> None:
    run(["git", "init", "--quiet", tmp_path])
    assert "commit 0000000 is not in this clone" in older.missing("0" * 40, tmp_path)


def test_a_token_is_signed_by_the_key(tmp_path: Path) -> None:
    key, public = tmp_path / "key", tmp_path / "public"
    run(["openssl", "genrsa", "-out", key, "2048"])
    run(["openssl", "rsa", "-in", key, "-pubout", "-out", public])
    token = doors.signed_token(key, doors.service_account_claims("space", "uid", "optcache", -5))
    text, _, signature = token.rpartition(".")
    (tmp_path / "signature").write_bytes(doors.decoded(signature))
    verify = ["openssl", "dgst", "-sha256", "-verify", public, "-signature", tmp_path / "signature"]
    done = subprocess.run(verify, input=text.encode(), capture_output=True, check=False)
    assert done.stdout == b"Verified OK\n"


def test_processes_of_a_namespace_are_found() -> None:
    inode = Path("/proc/self/ns/net").stat().st_ino
    assert processes.in_namespace("net", [inode])
    assert processes.in_namespace("net", [1]) == []


def test_times_are_in_order_as_text() -> None:
    """Beside those of the audit log, which have microseconds: "11.9Z" stands before "11Z"."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", utc())


def test_pods_are_targets_as_prometheus_names_them() -> None:
    pod = {
        "metadata": {
            "namespace": "vision",
            "name": "train-0",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "train"},
            "annotations": {"optcache.io/owner": "resnet"},
            "ownerReferences": [{"name": "other"}, {"name": "train-0", "controller": True}],
        },
        "spec": {
            "nodeName": "n1",
            "initContainers": [{"ports": [{"name": "optcache-pages", "containerPort": 4103}]}],
            "containers": [{}],
        },
        "status": {"podIP": "10.78.1.5", "phase": "Running"},
    }
    (found,) = prometheus.targets([pod, {**pod, "status": {}}, {**pod, "status": {**pod["status"], "phase": "Failed"}}])
    assert found["targets"] == ["10.78.1.5:4103"]
    assert found["labels"] == {
        "__meta_kubernetes_namespace": "vision",
        "__meta_kubernetes_pod_name": "train-0",
        "__meta_kubernetes_pod_node_name": "n1",
        "__meta_kubernetes_pod_controller_name": "train-0",
        "__meta_kubernetes_pod_label_jobset_sigs_k8s_io_jobset_name": "train",
        "__meta_kubernetes_pod_annotation_optcache_io_owner": "resnet",
        "__meta_kubernetes_pod_container_port_name": "optcache-pages",
    }


def test_a_story_shows_the_end_of_each_pods_log(tmp_path: Path) -> None:
    (tmp_path / "objects.txt").write_text("NAME\n")
    for name in story.LOGS:
        (tmp_path / name).write_text("")
    lines = [f"[pod/node-{n % 2}/node] line {n}" for n in range(120)] + ["error: stream closed"]
    (tmp_path / "node.log").write_text("\n".join(lines))
    shown = dict(story.ends(tmp_path))
    assert shown["node.log of pod/node-0/node"].splitlines() == [f"line {n}" for n in range(20, 120, 2)]
    assert shown["node.log of pod/node-1/node"].splitlines()[-2:] == ["line 119", "error: stream closed"]
