"""Plan files of OPT4TorchDataset, by an oracle of their own: numpy, and its runtimes as documented."""

from __future__ import annotations

import json
import random
import re
import shlex
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, find_program

np = pytest.importorskip("numpy")

NONE = -1
Tensors = dict[str, Any]


def optcache(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [find_program("optcache"), *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180)


def done(folder: Path, *words: object) -> str:
    ended = optcache(folder, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


# --- The container, by its description alone


def load(path: Path) -> Tensors:
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    tensors = {}
    for name, entry in header.items():
        assert entry["dtype"] == "I64"
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], dtype="<i8").reshape(entry["shape"])
    assert set(tensors) == {"future_index", "decision_table", "config"}
    return tensors


def save(path: Path, tensors: Tensors) -> None:
    header: dict[str, Any] = {}
    data = b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        dtype = {"int64": "I64", "float64": "F64", "int32": "I32"}[tensor.dtype.name]
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


# --- The runtimes, as docs/formats/opt4torch.md describes them


def one_process(plan: Tensors) -> tuple[int, int]:
    """Hits, and how many samples were held at most."""
    held: set[int] = set()
    hits = most = 0
    for sample, row in zip(plan["future_index"].tolist(), plan["decision_table"].tolist()):
        should_cache, victim, release = row
        if sample in held:
            hits += 1
        elif should_cache == 1:
            held.discard(victim)
            held.add(sample)
            most = max(most, len(held))
        held.discard(release)
    return hits, most


def shared(plan: Tensors) -> int:
    maxsize, dataset_size = plan["config"].tolist()[:2]
    slot_of = [NONE] * dataset_size
    free = list(range(maxsize))

    def drop(sample: int) -> None:
        if sample != NONE and slot_of[sample] != NONE:
            free.append(slot_of[sample])
            slot_of[sample] = NONE

    hits = 0
    for sample, row in zip(plan["future_index"].tolist(), plan["decision_table"].tolist()):
        should_cache, victim, release = row
        if slot_of[sample] != NONE:
            hits += 1
            drop(release)
            continue
        if should_cache != 0:
            drop(victim)
            if free:
                slot_of[sample] = free.pop()
        if release != sample:
            drop(release)
    return hits


def most_hits(reads: list[int], maxsize: int) -> int:
    """Belady's MIN with bypass, the slow way: looks through the whole future each time."""
    held: set[int] = set()
    hits = 0
    for now, sample in enumerate(reads):
        hits += sample in held
        held.add(sample)
        if len(held) > maxsize:
            rest = reads[now + 1 :]
            held.remove(max(held, key=lambda s: rest.index(s) if s in rest else len(reads)))
    return hits


def test_generated_plans_are_optimal_in_both_runtimes(tmp_path: Path) -> None:
    for seed in range(4):
        size, maxsize = 30 + 10 * seed, 4 + 7 * seed
        words = ["--dataset-size", size, "--total-iter", 300, "--seed", seed]
        done(tmp_path, "plan", "generate", *words, "--maxsize", maxsize, "--output", "a")
        plan = load(tmp_path / "a")
        assert plan["config"].tolist() == [maxsize, size, 300, seed]
        best = most_hits(plan["future_index"].tolist(), maxsize)
        hits, most = one_process(plan)
        assert (hits, shared(plan)) == (best, best)
        assert most <= maxsize


def test_figures_are_what_the_runtimes_do(tmp_path: Path) -> None:
    words = ["--dataset-size", 150, "--total-iter", 1500, "--maxsize", 45]
    done(tmp_path, "plan", "generate", *words, "--planner", "opt4torch", "--output", "a")
    plan = load(tmp_path / "a")
    figures = json.loads(done(tmp_path, "plan", "stats", "a", "--output", "json"))
    hits, most = one_process(plan)
    assert figures["oneProcess"]["hits"] == hits == figures["published"]["hits"]
    assert figures["oneProcess"]["mostHeld"] == most
    assert figures["shared"]["hits"] == shared(plan) < hits
    assert figures["optimal"]["hits"] == most_hits(plan["future_index"].tolist(), 45) > hits
    assert figures["unlikeRows"] == 0

    done(tmp_path, "plan", "export", "a", "--output", "b")
    better = load(tmp_path / "b")
    assert (better["future_index"] == plan["future_index"]).all()
    assert (better["config"] == plan["config"]).all()
    assert one_process(better)[0] == shared(better) == figures["optimal"]["hits"]


def test_reads_are_those_of_random_sampler(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for words, replacement in (([], True), (["--no-replacement"], False)):
        more = ["--dataset-size", 70, "--total-iter", 60, "--seed", 8, "--maxsize", 9, *words]
        done(tmp_path, "plan", "generate", *more, "--output", "a")
        generator = torch.Generator().manual_seed(8)
        sampler = torch.utils.data.RandomSampler(
            range(70), replacement=replacement, num_samples=60, generator=generator
        )
        assert load(tmp_path / "a")["future_index"].tolist() == list(sampler)
        assert "torch-random size=70 seed=8" in done(tmp_path, "plan", "show", "a")


def test_orders_are_written(tmp_path: Path) -> None:
    words = ["--dataset-size", 50, "--epochs", 3, "--world", 2, "--rank", 1, "--capacity", "20%"]
    done(tmp_path, "plan", "generate", *words, "--output", "a")
    plan = load(tmp_path / "a")
    assert plan["config"].tolist() == [10, 50, 75, 0]
    for file in ("order.txt", "order.npy"):
        done(tmp_path, "plan", "import", "a", "--write-order", file)
    written = [int(line) for line in (tmp_path / "order.txt").read_text().split()]
    assert written == plan["future_index"].tolist() == np.load(tmp_path / "order.npy").tolist()


def test_a_capacity_in_bytes_is_kept(tmp_path: Path) -> None:
    generator = random.Random(1)
    sizes = [generator.randrange(1, 5000) for _ in range(60)]
    (tmp_path / "data").mkdir()
    for i, size in enumerate(sizes):
        (tmp_path / "data" / f"{i:03}.bin").write_bytes(b"x" * size)
    done(tmp_path, "manifest", "build", "--source", "data", "-o", "manifest")
    words = ["--dataset-size", 60, "--total-iter", 1500, "--manifest", "manifest"]
    done(tmp_path, "plan", "generate", *words, "--capacity", "40Ki", "--output", "a")
    plan = load(tmp_path / "a")
    held: set[int] = set()
    hits = 0
    for sample, row in zip(plan["future_index"].tolist(), plan["decision_table"].tolist()):
        if sample in held:
            hits += 1
        elif row[0] == 1:
            held.discard(row[1])
            held.add(sample)
            assert sum(sizes[s] for s in held) <= 40 << 10
        held.discard(row[2])
    assert (hits, shared(plan)) == (one_process(plan)[0], hits)
    assert hits > 500


# --- The package itself


def test_the_package_safetensors_reads_and_writes_the_same(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    words = ["--dataset-size", 50, "--total-iter", 300, "--maxsize", 10, "--output", "a"]
    done(tmp_path, "plan", "generate", *words)
    tensors = package.load_file(tmp_path / "a")
    assert {name: tensor.dtype.name for name, tensor in tensors.items()} == dict.fromkeys(
        ("config", "decision_table", "future_index"), "int64"
    )
    package.save_file(tensors, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    package.save_file(tensors, tmp_path / "b", metadata={"format": "pt"})
    shown = [done(tmp_path, "plan", "show", file).splitlines()[1:] for file in "ab"]
    assert shown[0] == shown[1]


# --- Files that are wrong


@pytest.fixture
def plan(tmp_path: Path) -> Tensors:
    words = ["--dataset-size", 20, "--total-iter", 100, "--maxsize", 5, "--output", "good"]
    done(tmp_path, "plan", "generate", *words)
    return {name: tensor.copy() for name, tensor in load(tmp_path / "good").items()}


def refusal(folder: Path, tensors: Tensors) -> str:
    save(folder / "bad", tensors)
    texts = set()
    for verb in (["show"], ["stats"], ["import"], ["export", "--output", "never"]):
        ended = optcache(folder, "plan", verb[0], "bad", *verb[1:])
        assert ended.returncode == 1 and ended.stdout == ""
        texts.add(ended.stderr)
    (text,) = texts  # all verbs say the same
    assert text.startswith("optcache: bad: ")
    assert not (folder / "never").exists()
    return text


def test_a_good_file_that_others_wrote_is_read(tmp_path: Path, plan: Tensors) -> None:
    save(tmp_path / "other", plan)
    assert "hit ratio" in done(tmp_path, "plan", "show", "other")


def test_errors_say_what_is_wrong_and_where(tmp_path: Path, plan: Tensors) -> None:
    def spoilt(**changes: Any) -> str:
        return refusal(tmp_path, {**plan, **changes})

    def at(name: str, where: Any, value: int) -> Any:
        changed = plan[name].copy()
        changed[where] = value
        return changed

    assert "'config' is F64 [4]" in spoilt(config=plan["config"].astype("float64"))
    assert "is I32 [100]" in spoilt(future_index=plan["future_index"].astype("int32"))
    assert "is I64 [300], it must be I64 [100, 3]" in spoilt(
        decision_table=plan["decision_table"].reshape(300)
    )
    assert "row 7: 20 is no sample; it takes 0 to 19" in spoilt(
        future_index=at("future_index", 7, 20)
    )
    assert "row 8: victim 99 is no sample" in spoilt(
        decision_table=at("decision_table", (8, 1), 99)
    )
    assert "total_iterations is 99, future_index has 100" in spoilt(config=at("config", 2, 99))
    greedy = plan["decision_table"].copy()
    greedy[:] = (1, -1, -1)
    assert "6 samples are held here, config says that maxsize is 5" in spoilt(decision_table=greedy)
    del plan["config"]
    assert "no tensor 'config'; there is: decision_table, future_index" in refusal(tmp_path, plan)


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, plan: Tensors) -> None:
    whole = (tmp_path / "good").read_bytes()
    for length in (0, 7, 8, 100, len(whole) - 1):
        (tmp_path / "bad").write_bytes(whole[:length])
        ended = optcache(tmp_path, "plan", "show", "bad")
        assert ended.returncode == 1
        assert "cut short" in ended.stderr or "no safetensors file" in ended.stderr
    assert "no such file" in optcache(tmp_path, "plan", "show", "nowhere").stderr.lower()


def test_simulate_takes_a_share_in_percent(tmp_path: Path) -> None:
    words = ("simulate", "--samples", 100, "--policies", "pin", "--capacity")
    assert done(tmp_path, *words, "30%") == done(tmp_path, *words, "0.3")
    assert optcache(tmp_path, *words, "30%%").returncode == 2
    assert "0 to 1" in optcache(tmp_path, *words, "101%").stderr


# --- What docs/user/opt4torch.md shows, word for word


def test_examples_of_the_user_page(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "user" / "opt4torch.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 7
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            program, *words = shlex.split(command)
            assert program == "optcache"
            said = done(tmp_path, *words)
            assert output in ("", said)
    (call,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    maxsize, _, reads, _ = load(tmp_path / "better.safetensors")["config"].tolist()
    assert f"maxsize={maxsize}, total_iter={reads}" in call


def test_help_shows_commands_that_work(tmp_path: Path) -> None:
    done(tmp_path, "plan", "generate", "--dataset-size", 9, "--total-iter", 90, "--maxsize", 3,
         "--planner", "opt4torch", "--output", "published.safetensors")  # fmt: skip
    for i in range(20):
        (tmp_path / f"{i}.bin").write_bytes(b"x" * 100)
    ran = 0
    for verb in ("", "generate", "import", "export", "show", "stats"):
        text = done(tmp_path, "plan", *filter(None, [verb]), "--help")
        for line in re.findall(r"^ {4}(optcache .*)$|^  (optcache .*)$", text, re.MULTILINE):
            words = shlex.split("".join(line))[1:]
            if {"--manifest", "--recipe", "suggest"} & {*words}:  # of what is not here
                continue
            done(tmp_path, *words)
            ran += 1
    assert ran >= 10
