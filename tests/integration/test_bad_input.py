"""Every mistake in YAML and on the command line is answered by one sentence that says what is wrong and what to do."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import optcache
import pytest
from harness import commands
from harness.commands import Ended
from harness.processes import stop, wait_until

DATASET = """\
apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {name: images}
spec:
  source: {file: {path: data}}
  cache: {capacity: 50%}
"""
PLAN = """\
---
apiVersion: optcache.io/v1alpha1
kind: CachePlan
metadata: {name: plan}
spec: {dataset: images}
"""
QUANTITY = (
    "is not a quantity of bytes: write a number with one of the units Ki Mi Gi Ti Pi Ei k M G T P E, "
    "for example 500Gi"
)
SUBDOMAIN = "a-z, 0-9, - and dots, a letter or digit at both ends of each part"


class Shell:
    """`optcache` in a folder with `data`, two images, and `empty`."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs = programs
        self.folder = folder
        for name in ("data/a/1.png", "data/b/2.png"):
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_bytes(name.encode())
        (folder / "empty").mkdir()

    def run(self, *words: str) -> Ended:
        return commands.run([self.programs / "optcache", *words], self.folder)

    def refused(self, *words: str) -> str:
        """What a command says that fails."""
        ended = self.run(*words)
        assert ended.code == 1, ended
        assert commands.running_in(self.folder) == []
        return ended.err.removesuffix("\n")

    def up(self, *words: str) -> str:
        return self.refused("up", "-f", "f.yaml", "--state", f"{self.folder}/state", *words)

    def up_with(self, text: str) -> str:
        (self.folder / "f.yaml").write_text(text)
        return self.up("--port", "0")

    def misused(self, *words: str) -> str:
        """What a command says whose words are wrong."""
        ended = self.run(*words)
        assert (ended.code, ended.out) == (2, ""), ended
        return ended.err.removesuffix("\n")


@pytest.fixture
def shell(programs: Path, tmp_path: Path) -> Iterator[Shell]:
    yield Shell(programs, tmp_path)
    wait_until(lambda: commands.running_in(tmp_path) == [], "everything has ended")


# --- YAML


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("capacity: 50%", "capcity: 50%", "6: spec.cache.capacity: missing, allowed: a quantity (500Gi) or a share (30%)"),
        ("capacity: 50%", "capacity: 50%, size: 3", "6: spec.cache.size is not known, allowed: capacity, minCapacity, tiers"),
        ("capacity: 50%", "capacity: [1, 2]", "6: spec.cache.capacity: a list or mapping, allowed: a single value"),
        ("capacity: 50%", "capacity: 0", "6: spec.cache.capacity: 0 would cache nothing, write a capacity above 0"),
        ("capacity: 50%", "capacity: 0%", "6: spec.cache.capacity: '0%', allowed: above 0% and at most 1000%"),
        ("capacity: 50%", "capacity: 12Qi", f"6: spec.cache.capacity: '12Qi' {QUANTITY}, or a share as 30%"),
        ("capacity: 50%", "capacity: -5", f"6: spec.cache.capacity: '-5' {QUANTITY}, or a share as 30%"),
        ("{capacity: 50%}", "yes", "6: spec.cache: not a mapping, allowed: {key: value}"),
        ("  cache: {capacity: 50%}\n", "", "5: spec.cache: missing, write cache: {capacity: 30%}"),
        ("  source: {file: {path: data}}\n", "", "5: spec.source: missing, allowed: file, http or s3"),
        ("{file: {path: data}}", "{}", "5: spec.source: needs exactly one of file, http and s3"),
        ("{path: data}", "{}", "5: spec.source.file.path: missing or empty, allowed: a folder"),
        ("{path: data}", "{path: data}, http: {baseURL: 'http://x'}", "5: spec.source: needs exactly one of file, http and s3"),
        ("file: {path: data}", "http: {baseURL: x}", "5: spec.source.http.baseURL: 'x', allowed: http://… or https://…"),
        ("kind: Dataset", "kind: Datset", "2: kind: 'Datset' is not known, allowed: Dataset, CachePlan"),
        ("kind: Dataset\n", "", "1: kind: missing or empty, allowed: Dataset, CachePlan"),
        ("v1alpha1", "v2", "1: apiVersion: 'optcache.io/v2' is not known, allowed: optcache.io/v1alpha1"),
        ("metadata: {name: images}\n", "", "1: metadata: missing, write metadata: {name: …}"),
        ("name: images", "name: My_Images", f"3: metadata.name: 'My_Images', allowed: {SUBDOMAIN}"),
        ("spec:", "spec:\n  include: '*.png'", "5: spec.include: not a list, allowed: [one, two]"),
        ("spec:", "spec:\n  order: Random", "5: spec.order: 'Random' is not known, allowed: ImageFolder, Path, List"),
        ("spec:", "spec:\n  kapazität: 3", "5: spec.kapazität is not known, allowed: source, format, include, index, order, verify, limits, cost, cache, placement, access"),
        ("dataset: images", "dataset: imgs", "11: spec.dataset: there is no Dataset default/imgs in the files given"),
        ("dataset: images", "dataset: images, retention: FIFO", "11: spec.retention: 'FIFO' is not known, allowed: Optimal, Pin, LRU, None"),
        ("dataset: images", "dataset: images, jobs: [{name: j, sampler: {worldSize: many}}]", "11: spec.jobs[0].sampler.worldSize: 'many', allowed: a whole number from 1 to 65536"),
        ("dataset: images", "dataset: images, rollout: {paused: maybe}", "11: spec.rollout.paused: 'maybe' is not known, allowed: true, false"),
        (PLAN, f"---\n{DATASET}", "8: Dataset default/images is there twice"),
    ],
)  # fmt: skip
def test_yaml_names_file_line_and_what_is_allowed(
    shell: Shell, old: str, new: str, sentence: str
) -> None:
    assert shell.up_with((DATASET + PLAN).replace(old, new, 1)) == f"optcache: f.yaml:{sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "f.yaml: empty, allowed: Dataset, CachePlan"),
        ("just words\n", "f.yaml:1: document: not a mapping, allowed: {key: value}"),
        ("a: [b", "f.yaml:1: not YAML: end of sequence flow not found"),
        ("a: &x b\n", "f.yaml:1: anchors and aliases (& and *) are not allowed, write it out"),
        ("\0\1\2", "f.yaml: not a text file"),
        (PLAN, "f.yaml:5: spec.dataset: there is no Dataset default/images in the files given"),
    ],
)
def test_what_is_no_configuration_is_refused(shell: Shell, text: str, sentence: str) -> None:
    assert shell.up_with(text) == f"optcache: {sentence}"


def test_too_large_a_file_is_refused(shell: Shell) -> None:
    assert shell.up_with("#" * (2 << 20)) == "optcache: f.yaml: larger than the limit of 1.00 MiB"


# --- optcache up


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("nowhere", "{folder}/nowhere: there is no such folder: check the address of the source"),
        ("f.yaml", "{folder}/f.yaml is not a folder: check the address of the source"),
        ("empty", "file://{folder}/empty: there is no object: check the address of the source"),
    ],
)
def test_up_says_that_the_source_has_nothing(shell: Shell, path: str, sentence: str) -> None:
    said = shell.up_with(DATASET.replace("path: data", f"path: {path}"))
    assert said == f"optcache: dataset default/images: {sentence.format(folder=shell.folder)}"


def test_up_says_that_no_web_server_answers(shell: Shell) -> None:
    source = "patience: 1s, http: {baseURL: 'http://127.0.0.1:1/'}"
    said = shell.up_with(DATASET.replace("file: {path: data}", source))
    assert re.fullmatch(
        r"optcache: dataset default/images: given up after \d+ attempts in \d+\.\d s: listing "
        r"http://127\.0\.0\.1:1/index\.txt: Failed to connect to 127\.0\.0\.1 port 1 after \d+ ms: "
        r"Couldn't connect to server; check the address of the source",
        said,
    )


def test_up_says_which_port_is_in_use(shell: Shell) -> None:
    (shell.folder / "f.yaml").write_text(DATASET)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert shell.up("--port", str(port)) == (
            f"optcache: port {port} is in use: stop what listens there (another `optcache up`?) or "
            "choose another with --port"
        )


@pytest.mark.parametrize(
    ("arena", "sentence"),
    [
        ("900Ti", "1 machine with 13 B for samples and 900 TiB for .*; lower --memory, --arena or the capacity of .*"),
        ("1", "sidecar-0 does not start: an arena of 1 B holds nothing: give it at least a few batches"),
    ],
)  # fmt: skip
def test_up_ends_when_the_arena_cannot_be_made(shell: Shell, arena: str, sentence: str) -> None:
    (shell.folder / "f.yaml").write_text(DATASET)
    said = shell.up("--port", "0", "--arena", arena)
    assert re.fullmatch(f"optcache: {sentence}", said), said


def test_up_says_which_file_it_cannot_write(shell: Shell) -> None:
    (shell.folder / "f.yaml").write_text(DATASET)
    assert shell.refused("up", "-f", "f.yaml", "--state", "/proc/x") == (
        "optcache: cannot make the folder /proc/x: No such file or directory"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-f", "none.yaml"], "--file: File does not exist: none.yaml"),
        (["-f", "data"], "--file: File is actually a directory: data"),
        ([], "--file is required"),
        (["-f", "f.yaml", "--port", "70000"], "--port: Value 70000 not in range 0 to 65535"),
        (["-f", "f.yaml", "--machines", "0"], "--machines: Value 0 not in range 1 to 64"),
        (["-f", "f.yaml", "--arena", "1x"], f"--arena: '1x' {QUANTITY}"),
        (["-f", "f.yaml", "--memory", "lots"], f"--memory: 'lots' {QUANTITY}"),
    ],
)
def test_up_says_which_word_is_wrong(shell: Shell, words: list[str], sentence: str) -> None:
    (shell.folder / "f.yaml").write_text(DATASET)
    assert shell.misused("up", *words) == (
        f"optcache: {sentence}\nSee 'optcache up --help' for usage."
    )


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (["keys"], "'keys' is not NAME=FOLDER, with the NAME of one Dataset"),
        (["images=none"], "'images=none': there is no folder none"),
        (["images=.", "default/images=."], "'default/images=.': keys of default/images are given twice"),
        (["birds=."], "'birds=.': default/birds lies in a folder, which is read without"),
    ],
)
def test_up_refuses_keys_before_it_begins(shell: Shell, keys: list[str], sentence: str) -> None:
    birds = DATASET.replace("images", "birds")
    images = DATASET.replace("{file: {path: data}}", "{http: {baseURL: http://127.0.0.1:1/}}")
    (shell.folder / "f.yaml").write_text(f"{birds}---\n{images}")
    words = [word for each in keys for word in ("--keys", each)]
    result = shell.run("up", "-f", "f.yaml", "--state", "state", *words)
    assert (result.code, result.err) == (1, f"optcache: --keys {sentence}\n")


@pytest.mark.parametrize(
    ("sampler", "sentence"),
    [
        ("images", "is not NAME=SAMPLER, with the NAME of one Dataset"),
        ("birds=sequential", "': there is no dataset birds; there are: default/images"),
        ("images=random", ": unknown sampler 'random'"),
        ("default/images=sequential,wrld=2", "'wrld=2' is not known to this version"),
    ],
)
def test_up_refuses_a_sampler_before_it_begins(shell: Shell, sampler: str, sentence: str) -> None:
    (shell.folder / "f.yaml").write_text(DATASET)
    words = ["up", "-f", "f.yaml", "--state", "state", "--s3-endpoint", "--sampler", sampler]
    result = shell.run(*words)
    assert result.code == 1
    assert result.err.startswith(f"optcache: --sampler '{sampler}'")
    assert sentence in result.err
    assert "samples" not in result.out, "nothing was indexed"


def test_more_capacity_than_bytes_works_and_is_noted(shell: Shell) -> None:
    (shell.folder / "f.yaml").write_text(DATASET.replace("50%", "1Gi"))
    log = shell.folder / "up.log"
    program = str(shell.programs / "optcache")
    command = [program, "up", "-f", "f.yaml", "--state", "state", "--port", "0"]
    command += ["--socket-dir", "."]
    with open(log, "wb") as out:
        up = subprocess.Popen(
            command, cwd=shell.folder, stdout=out, stderr=out, start_new_session=True
        )
    try:
        socket_path = shell.folder / "machine-0.sock"
        wait_until(socket_path.is_socket, "the sidecar listens")
        assert bytes(optcache.Dataset(socket=str(socket_path))[1]) == b"data/b/2.png"
        other = shell.run("up", "-f", "f.yaml", "--state", "state", "--port", "0")
        assert (other.code, other.err) == (
            1,
            f"optcache: `optcache up`, process {up.pid}, works in {shell.folder}/state: stop it or choose "
            "another folder with --state\n",
        )
    finally:
        assert stop(up) == 0
    said = log.read_text()
    note = "the capacity (1.00 GiB) is larger than the dataset (24 B): all of it is kept"
    assert f"default/images: {note}\n" in said
    assert f"export OPTCACHE_SOCKET={socket_path}" in said.splitlines()
    url = r"http://127\.0\.0\.1:\d+/metrics"
    assert re.search(rf"^machine 0: metrics at {url} \(node\), {url} \(sidecar\)$", said, re.M)


# --- The other verbs


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("status --state none", "no coordinator: `optcache up` does not run in none; name one by --coordinator ADDRESS or OPTCACHE_COORDINATOR"),
        ("status --coordinator http://127.0.0.1:1", "the coordinator at http://127.0.0.1:1 does not answer: http://127.0.0.1:1/v1/status: Failed to connect to any resolved endpoint"),
        ("status --coordinator x", "the coordinator at x does not answer: x/v1/status: not an http:// or https:// URL"),
        ("manifest build --source none -o m", "none: there is no such folder: check the address of the source"),
        ("manifest build --source empty -o m", "file://empty: there is no object: check the address of the source"),
        ("manifest build --source ftp://x/ -o m", '"ftp://x/" is no address of a source: give a folder, file:///folder, http://host/prefix, https://host/prefix or s3://bucket/prefix'),
        ("manifest build --source data --include *.gif -o m", "file://data: none of the 2 objects is a sample: check the include patterns"),
        ("manifest build --source data --order random -o m", "order random: there are image-folder, path and list"),
        ("manifest build --source data -o none/m", "cannot write none/m: No such file or directory"),
        ("manifest show none", "open none: No such file or directory"),
        ("manifest show data/a/1.png", "data/a/1.png: manifest: this is not a manifest file, at byte 0"),
        ("order --size 0", "the dataset has size 0: give the number of its samples"),
        ("order --size 99999999999", "size 99999999999 is above the limit of 4294967294 samples: split the dataset"),
        ("order --size 10 --world 0", "world 0 is outside 1 to 65536: give the number of training processes"),
        ("order --size 10 --world 2 --rank 2", "there is no rank 2 in a world of 2: ranks count from 0"),
        ("order --size 10 --sampler random", "unknown sampler 'random': write one of sequential, torch-distributed, torch-random, megatron-cyclic, spdl-random"),
        ("order --size 10 --base-seed x", "unknown base seed 'x': write one of every-pass, first-pass, never"),
        ("order --size 10 --output csv f", "unknown output format 'csv': write --output npy FILE"),
        ("order --size 10 --output npy none/f", "cannot write none/f: No such file or directory"),
        ("convert dlcpod -f none", "open none: No such file or directory"),
        ("doctor --memory x", "--memory: 'x' is not a quantity of bytes: write a number with one of the units Ki Mi Gi Ti Pi Ei k M G T P E, for example 500Gi"),
        ("simulate --until hits", "until: 'hits', allowed: waiting=2% or cost=12.5"),
        ("simulate --until waiting=2%", "until: waiting needs one --store-bandwidth: what the store delivers, as a share of what the jobs could read"),
        ("simulate --samples 0", "samples: 0; there must be one at least"),
        ("simulate --nodes 0", "nodes: 0; it takes 1 to 4096"),
        ("simulate --jobs 0", "jobs: 0; it takes 1 to 64"),
        ("simulate --epochs 0", "epochs: 0; there must be one at least"),
        ("simulate --capacity 2", "capacity: it is a share of the dataset, 0 to 1"),
        ("simulate --capacity nan", "capacity: it is a share of the dataset, 0 to 1"),
        (
            "simulate --policies belady",
            "policies: belady; there are optimal, min, min-forced, opt4torch, nopfs, pin, lfu, "
            "lfu-for-ever, sieve, random, fifo, lru, none",
        ),
    ],
)  # fmt: skip
def test_each_verb_says_what_it_cannot_do(shell: Shell, words: str, sentence: str) -> None:
    assert shell.refused(*words.split()) == f"optcache: {sentence}"


@pytest.mark.parametrize(
    ("words", "sentence", "verb"),
    [
        ("fly", 'unknown command "fly"', ""),
        ("order", "Exactly 1 option from [--size,--recipe] is required", " order"),
        (
            "order --size ten",
            "--size: 'ten': it takes a whole number from 0 to 18446744073709551615",
            " order",
        ),
        (
            "plan generate --output f --world 0",
            "--world: '0': it takes a whole number from 1 to 65536",
            " plan generate",
        ),
        (
            "simulate --seed 18446744073709551616",
            "--seed: '18446744073709551616': it takes a whole number from 0 to 18446744073709551615",
            " simulate",
        ),
        (
            "order --size 10 --seed 1.5",
            "--seed: '1.5': it takes a whole number from -9223372036854775808 to 9223372036854775807",
            " order",
        ),
        ("simulate --output xml", "--output: xml not in {table,json,csv}", " simulate"),
        (
            "simulate --samples 99999999999999",
            "--samples: '99999999999999': it takes a whole number from 0 to 4294967295",
            " simulate",
        ),
        ("manifest", "A subcommand is required", " manifest"),
        ("rollout stat x", 'unknown command "stat x"', " rollout"),
        ("manifest build", "--source is required", " manifest build"),
    ],
)  # fmt: skip
def test_each_verb_says_which_word_is_wrong(
    shell: Shell, words: str, sentence: str, verb: str
) -> None:
    assert shell.misused(*words.split()) == (
        f"optcache: {sentence}\nSee 'optcache{verb} --help' for usage."
    )
