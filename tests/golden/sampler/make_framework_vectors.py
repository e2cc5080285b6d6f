#!/usr/bin/env python3
"""Writes golden vectors of frameworks' samplers, with the packages that run this script.

    make_framework_vectors.py accelerate          Hugging Face Accelerate
    make_framework_vectors.py spdl                SPDL
    make_framework_vectors.py megatron FILE       Megatron-LM, which is in no package: FILE is its
                                                  megatron/training/datasets/data_samplers.py

One case a line: the framework's version, what one rank reads in one epoch (as make_vectors.py
writes it), and the recipe by which it is replayed.
"""

import argparse
import importlib.util
import pathlib
import random
import sys
import types
import zlib

import numpy

FOLDER = pathlib.Path(__file__).parent
HEAD = 8


def line(version, order, epoch, rank, recipe):
    ids = numpy.asarray(order, dtype="<u4")
    head = ",".join(str(i) for i in ids[:HEAD])
    crc = f"{zlib.crc32(ids.data):08x}"
    return (f"{version} epoch={epoch} rank={rank} count={ids.size} crc={crc} head={head} "
            f"recipe={recipe}")


def accelerate_lines():
    """SeedableRandomSampler and plain order, dealt by BatchSamplerShard."""
    import accelerate
    from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler
    from torch.utils.data import BatchSampler, SequentialSampler

    choose = random.Random(7)
    for case in range(180):
        world, rank_batch = choose.choice([1, 2, 3, 8]), choose.choice([1, 2, 5, 16])
        size = choose.choice([1, 3, rank_batch * world, choose.randrange(1, 700)])
        seed, epoch, rank = choose.randrange(2**40), choose.randrange(50), choose.randrange(world)
        split, drop, shuffle = (choose.random() < 0.5 for _ in range(3))
        if drop and size < rank_batch * world:
            size = rank_batch * world
        if shuffle:
            sampler = SeedableRandomSampler(range(size), data_seed=seed)
            sampler.set_epoch(epoch)
        else:
            sampler = SequentialSampler(range(size))
        batches = BatchSampler(sampler, rank_batch * world if split else rank_batch, drop)
        shard = BatchSamplerShard(batches, world, rank, split_batches=split)
        recipe = f"torch-distributed size={size}"
        recipe += f" seed={seed}" if shuffle else ""
        recipe += f" world={world}" if world > 1 else ""
        recipe += "" if shuffle else " shuffle=false"
        recipe += " drop_last=true" if drop else ""
        recipe += f" block={rank_batch}" if rank_batch > 1 else ""
        order = [i for batch in shard for i in batch]
        yield line(f"accelerate-{accelerate.__version__}", order, epoch, rank, recipe)


def spdl_lines():
    from importlib.metadata import version

    from spdl.source import DistributedRandomSampler

    choose = random.Random(8)
    sizes = [1, 2, 3, 100, 9_999, 10_000, 10_001, 50_000, 1_281_167]
    cases = [(size, None, 1, seed) for size in sizes for seed in (0, 2**32 + 5)]
    cases += [(20_000, draws, 3, 4) for draws in (3, 399, 401, 402, 403, 19_999)]
    for _ in range(42):
        size, world = choose.randrange(64, 30_000), choose.choice([1, 2, 3, 8, 61])
        draws = choose.choice([None, choose.randrange(world, size + 1)])
        cases.append((size, draws, world, choose.randrange(2**63)))
    for size, draws, world, seed in cases:
        rank = choose.randrange(world)
        sampler = DistributedRandomSampler(size, rank=rank, world_size=world, num_draws=draws)
        sampler.shuffle(seed)
        drawn = (draws or size) // world * world
        recipe = f"spdl-random size={size}"
        recipe += f" world={world}" if world > 1 else ""
        recipe += " drop_last=true" + (f" draws={drawn}" if drawn != size else "")
        yield line(f"spdl-{version('spdl_core')}", list(sampler), seed, rank, recipe)


def megatron_samplers(path):
    """Its module, without the parts of Megatron that it imports beside the samplers."""
    for name in ["megatron", "megatron.core", "megatron.core.datasets",
                 "megatron.core.datasets.utils", "megatron.training",
                 "megatron.training.dist_signal_handler"]:
        sys.modules[name] = types.ModuleType(name)
    sys.modules["megatron.core"].mpu = None
    sys.modules["megatron.core.datasets.utils"].Split = None
    sys.modules["megatron.training"].get_args = None
    sys.modules["megatron.training.dist_signal_handler"].DistributedSignalHandler = None
    spec = importlib.util.spec_from_file_location("data_samplers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def megatron_lines(path):
    samplers = megatron_samplers(path)
    choose = random.Random(9)
    for case in range(120):
        world, micro = choose.choice([1, 2, 3, 8]), choose.choice([2, 4, 7])
        size, epoch = choose.randrange(world * micro, 3000), choose.randrange(20)
        rank, kind = choose.randrange(world), choose.choice(["single", "sharded", "whole"])
        rounds = size // (world * micro)
        recipe = f" size={size}" + (f" world={world}" if world > 1 else "")
        if kind == "single":
            sampler = samplers.MegatronPretrainingSampler(size, 0, micro, rank, world)
            recipe = f"torch-distributed{recipe} shuffle=false drop_last=true block={micro}"
        else:
            consumed = epoch * rounds * world * micro
            sampler = samplers.MegatronPretrainingRandomSampler(
                None, size, consumed, micro, rank, world, kind == "sharded")
            recipe = f"megatron-cyclic{recipe} drop_last=true block={micro}"
            recipe += "" if kind == "sharded" else " sharded=false"
        order = [i for batch in sampler for i in batch][:rounds * micro]
        yield line("megatron-lm", order, epoch, rank, recipe)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", choices=["accelerate", "spdl", "megatron"])
    parser.add_argument("file", nargs="?")
    arguments = parser.parse_args()
    if arguments.framework == "megatron":
        lines = megatron_lines(arguments.file)
    else:
        lines = accelerate_lines() if arguments.framework == "accelerate" else spdl_lines()
    (FOLDER / f"{arguments.framework}.txt").write_text("".join(text + "\n" for text in lines))


if __name__ == "__main__":
    main()
