"""`optcache order` against the PyTorch that runs this test, over random cases.

    OPTCACHE_CLI=build/dev/bin/optcache pytest tests/python/test_sampler_live.py

TEST_SEED=n replays a run, SAMPLER_CASES=n makes it longer.
"""

import os
import random
import subprocess
import zlib

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
data = pytest.importorskip("torch.utils.data")

CLI = os.environ.get("OPTCACHE_CLI")
SEED = int(os.environ.get("TEST_SEED", "1"))
CASES = int(os.environ.get("SAMPLER_CASES", 100))
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
VERSION_FLAGS = [] if TORCH >= (1, 12) else ["--no-tail-permutation"]

pytestmark = pytest.mark.skipif(not CLI, reason="OPTCACHE_CLI does not name the program optcache")


def optcache(*arguments):
    command = [CLI, "order", *[str(argument) for argument in arguments]]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=180).stdout


def order(*arguments):
    return [int(text) for text in optcache(*arguments).split()]


def crc(ids):
    return f"{zlib.crc32(numpy.asarray(ids, dtype='<u4').data):08x}\n"


def any_seed(choose):
    if choose.random() < 0.3:
        return choose.choice([0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, -1, -(2**32), -(2**63)])
    return choose.randrange(-(2**63), 2**63)


def any_size(choose):
    return choose.randrange(1, choose.choice([12, 1300, 60_000]))


def chooser(kind, case):
    print(f"TEST_SEED={SEED}")  # pytest shows it where a case fails
    return random.Random(f"{kind} {SEED} {case}")


@pytest.mark.parametrize("case", range(CASES))
def test_distributed_sampler(case):
    choose = chooser("distributed", case)
    size, seed, world = any_size(choose), any_seed(choose), choose.randrange(1, 70)
    epoch, rank = choose.randrange(1000), choose.randrange(world)
    shuffle, drop_last = choose.random() < 0.8, choose.random() < 0.5
    sampler = data.distributed.DistributedSampler(
        range(size), num_replicas=world, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop_last
    )
    sampler.set_epoch(epoch)
    expected = list(sampler)

    arguments = ["--sampler", "torch-distributed", "--size", size, "--seed", seed]
    arguments += ["--epoch", epoch, "--world", world, "--rank", rank]
    arguments += [] if shuffle else ["--no-shuffle"]
    arguments += ["--drop-last"] if drop_last else []
    assert order(*arguments) == expected
    assert optcache(*arguments, "--crc") == crc(expected)


@pytest.mark.parametrize("case", range(CASES))
def test_random_sampler_through_a_loader(case):
    choose = chooser("random", case)
    size, seed = any_size(choose), any_seed(choose)
    batch, passes = choose.randrange(1, size + 2), choose.randrange(1, 5)
    base_seed = choose.choice(["every-pass", "never"])
    generator = torch.Generator()
    generator.manual_seed(seed)
    if base_seed == "every-pass":
        loader = data.DataLoader(range(size), batch, shuffle=True, generator=generator)
    else:
        sampler = data.RandomSampler(range(size), generator=generator)
        loader = data.DataLoader(range(size), batch, sampler=sampler)
    for epoch in range(passes):
        expected = torch.cat(list(loader)).tolist()
        arguments = ["--sampler", "torch-random", "--size", size, "--seed", seed]
        arguments += ["--epoch", epoch, "--base-seed", base_seed, *VERSION_FLAGS]
        assert order(*arguments) == expected


@pytest.mark.parametrize("workers, persistent", [(1, True), (2, True), (2, False)])
def test_random_sampler_with_workers(workers, persistent):
    generator = torch.Generator()
    generator.manual_seed(11)
    loader = data.DataLoader(range(100), 7, shuffle=True, generator=generator, num_workers=workers,
                             persistent_workers=persistent)
    for epoch in range(3):
        expected = torch.cat(list(loader)).tolist()
        base_seed = "first-pass" if persistent else "every-pass"
        assert expected == order("--sampler", "torch-random", "--size", 100, "--seed", 11,
                                 "--epoch", epoch, "--base-seed", base_seed, *VERSION_FLAGS)


def test_dropped_batches_change_no_order():
    generator = torch.Generator()
    generator.manual_seed(3)
    loader = data.DataLoader(range(100), 7, shuffle=True, generator=generator, drop_last=True)
    for epoch in range(3):
        expected = torch.cat(list(loader)).tolist()
        assert len(expected) == 98
        assert expected == order("--sampler", "torch-random", "--size", 100, "--seed", 3,
                                 "--epoch", epoch, *VERSION_FLAGS)[:98]


def test_sequential_sampler():
    expected = list(data.SequentialSampler(range(1000)))
    assert order("--sampler", "sequential", "--size", 1000, "--epoch", 4) == expected


def test_imagenet_size():
    generator = torch.Generator()
    generator.manual_seed(12)
    expected = torch.randperm(1_281_167, generator=generator).tolist()
    assert optcache("--size", 1_281_167, "--seed", 5, "--epoch", 7, "--crc") == crc(expected)


def test_numpy_loads_what_it_writes(tmp_path):
    path = tmp_path / "order.npy"
    assert optcache("--size", 1000, "--world", 3, "--output", "npy", path) == ""
    loaded = numpy.load(path)
    assert loaded.dtype == numpy.dtype("<u4")
    assert loaded.tolist() == order("--size", 1000, "--world", 3)


@pytest.mark.parametrize("arguments, status", [
    (["order"], 2),                                     # no size
    (["order", "--size", "-3"], 2),
    (["order", "--size", "3", "--rank", "-1"], 2),
    (["order", "--size", "3", "--output", "npy"], 2),   # no file
    (["nonsense"], 2),
    ([], 2),
    (["order", "--size", "3", "--output", "csv", "f"], 1),
    (["order", "--size", "3", "--sampler", "torch"], 1),
    (["order", "--size", "0"], 1),
])
def test_errors_are_told_on_standard_error(arguments, status):
    done = subprocess.run([CLI, *arguments], capture_output=True, text=True, timeout=180)
    assert done.returncode == status
    assert done.stdout == ""
    assert "optcache" in done.stderr
