"""`optcache order --recipe` against the samplers of frameworks, over random cases; each is skipped
where its package is not installed.

    OPTCACHE_BIN_DIR=build/dev/bin pytest tests/python/test_framework_live.py

TEST_SEED=n replays a run, SAMPLER_CASES=n makes it longer.
"""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from conftest import find_program

torch = pytest.importorskip("torch")

SEED = int(os.environ.get("TEST_SEED", "1"))
CASES = int(os.environ.get("SAMPLER_CASES", 40))


def chooser(kind: str, case: int) -> random.Random:
    print(f"TEST_SEED={SEED}")  # pytest shows it where a case fails
    return random.Random(f"{kind} {SEED} {case}")


def order(recipe: str, epoch: int, rank: int) -> list[int]:
    command = [find_program("optcache"), "order", "--recipe", recipe]
    command += ["--epoch", str(epoch), "--rank", str(rank)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=180)
    return [int(text) for text in done.stdout.split()]


@pytest.mark.parametrize("case", range(CASES))
def test_accelerate(case: int) -> None:
    samplers = pytest.importorskip("accelerate.data_loader")
    choose = chooser("accelerate", case)
    world, block = choose.choice([2, 3, 8]), choose.randrange(1, 20)
    size, seed, epoch = choose.randrange(1, 2000), choose.randrange(2**62), choose.randrange(99)
    split, drop, rank = choose.random() < 0.5, choose.random() < 0.5, choose.randrange(world)
    sampler = samplers.SeedableRandomSampler(range(size), data_seed=seed)
    sampler.set_epoch(epoch)
    batches = torch.utils.data.BatchSampler(sampler, block * world if split else block, drop)
    shard = samplers.BatchSamplerShard(batches, world, rank, split_batches=split)
    expected = [i for batch in shard for i in batch]
    recipe = f"torch-distributed size={size} seed={seed} world={world} block={block}"
    assert order(recipe + (" drop_last=true" if drop else ""), epoch, rank) == expected
    assert sampler.epoch == epoch + 1


@pytest.mark.parametrize("case", range(CASES))
def test_torchdata(case: int) -> None:
    samplers = pytest.importorskip("torchdata.stateful_dataloader.sampler")
    choose = chooser("torchdata", case)
    world, size = choose.randrange(1, 9), choose.randrange(1, 2000)
    seed, epoch, rank = choose.randrange(2**62), choose.randrange(99), choose.randrange(world)
    sampler = samplers.StatefulDistributedSampler(range(size), world, rank, seed=seed)
    sampler.set_epoch(epoch)
    skipped = choose.randrange(len(sampler) + 1)
    sampler.load_state_dict({"yielded": skipped})
    recipe = f"torch-distributed size={size} seed={seed} world={world}"
    assert order(recipe, epoch, rank)[skipped:] == list(sampler)


@pytest.mark.parametrize("case", range(CASES))
def test_spdl(case: int) -> None:
    source = pytest.importorskip("spdl.source")
    choose = chooser("spdl", case)
    world, rank_draws = choose.randrange(1, 9), choose.randrange(1, 2000)
    drawn = world * rank_draws
    size, seed = drawn + choose.choice([0, 5, 30 * drawn]), choose.randrange(2**62)
    rank = choose.randrange(world)
    sampler = source.DistributedRandomSampler(size, rank=rank, world_size=world, num_draws=drawn)
    sampler.shuffle(seed)
    recipe = f"spdl-random size={size} world={world} drop_last=true draws={drawn}"
    assert order(recipe, seed, rank) == list(sampler)


@pytest.mark.parametrize("case", range(CASES))
def test_megatron(case: int) -> None:
    samplers = nemo_samplers()
    choose = chooser("megatron", case)
    world, micro = choose.randrange(1, 9), choose.randrange(1, 9)
    rounds, rank = choose.randrange(1, 100), choose.randrange(world)
    size = rounds * world * micro + choose.randrange(world * micro)
    seed, epoch = choose.randrange(2**31), choose.randrange(30)
    read = choose.randrange(rounds)  # of the epoch, before this iteration
    recipe = f"size={size} world={world} drop_last=true block={micro}"
    consumed = read * world * micro
    single = samplers.MegatronPretrainingSampler(size, consumed, micro, rank, world)
    expected = [i for batch in single for i in batch]
    assert order(f"torch-distributed {recipe} shuffle=false", 0, rank)[read * micro :] == expected
    consumed += epoch * rounds * world * micro
    cyclic = samplers.MegatronPretrainingRandomSampler(
        size, consumed, micro, rank, world, seed=seed
    )
    expected = [i for batch in cyclic for i in batch]
    recipe = f"megatron-cyclic {recipe} seed={seed}"
    assert order(recipe, epoch, rank)[read * micro :] == expected


def nemo_samplers() -> Any:
    """Megatron's samplers as NeMo has them, without all of NeMo."""
    nemo = importlib.util.find_spec("nemo")
    path = Path(nemo.submodule_search_locations[0]) if nemo and nemo.submodule_search_locations else Path()
    path /= "collections/nlp/data/language_modeling/megatron/data_samplers.py"
    if not path.exists():
        pytest.skip("no package has Megatron's samplers: pip install --no-deps nemo_toolkit==1.23.0")
    spec = importlib.util.spec_from_file_location("nemo_data_samplers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    utils = types.ModuleType("nemo.utils")
    utils.logging = types.SimpleNamespace(info=lambda text: None)  # type: ignore[attr-defined]
    before = sys.modules.get("nemo.utils")
    sys.modules["nemo.utils"] = utils
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["nemo.utils"]
        if before is not None:
            sys.modules["nemo.utils"] = before
    return module


def test_lightning_injects_a_distributed_sampler() -> None:
    """What Lightning puts into loaders is torch's own class, which `attach` knows."""
    lightning = pytest.importorskip("lightning_utilities")
    assert lightning
    module = pytest.importorskip("pytorch_lightning.overrides.distributed")
    from torch.utils.data.distributed import DistributedSampler

    assert module.DistributedSampler is DistributedSampler
