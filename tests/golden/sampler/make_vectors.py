#!/usr/bin/env python3
"""Writes the golden vectors of the sampler library with the PyTorch that runs this script.

    python3 tests/golden/sampler/make_vectors.py            writes torch-<version>.txt
    python3 tests/golden/sampler/make_vectors.py --large    writes torch-<version>-large.txt
                                                            (a minute, 3 GiB of memory)

One case a line: a kind, its parameters, then what PyTorch reads: how many ids, the CRC-32 of
all of them as little-endian uint32, and the first eight. An order is always one rank's.
Everything but the kind "randperm" is read through PyTorch's own classes.
"""

import argparse
import pathlib
import random
import zlib

import numpy
import torch
from torch.utils.data import DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

FOLDER = pathlib.Path(__file__).parent
HEAD = 8
WIDE_FROM = 214_748_364  # where newer versions of torch.randperm draw 64 bits


def line(kind, order, **parameters):
    ids = numpy.asarray(order, dtype="<u4")
    words = [kind]
    words += [f"{name}={value}" for name, value in parameters.items()]
    words += [f"count={ids.size}", f"crc={zlib.crc32(ids.data):08x}"]
    words += ["head=" + ",".join(str(i) for i in ids[:HEAD])]
    return " ".join(words)


def distributed(size, seed, epoch, world, rank, shuffle, drop_last):
    sampler = DistributedSampler(
        range(size), num_replicas=world, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop_last
    )
    sampler.set_epoch(epoch)
    return line("torch-distributed", list(sampler), size=size, seed=seed, epoch=epoch, world=world,
                rank=rank, shuffle=int(shuffle), drop_last=int(drop_last))


def loader(size, seed, base_seed, batch):
    """A DataLoader whose RandomSampler has a generator of its own, as Recipe::base_seed names them."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    data = range(size)
    if base_seed == "never":
        return DataLoader(data, batch, sampler=RandomSampler(data, generator=generator))
    workers = 1 if base_seed == "first-pass" else 0
    return DataLoader(data, batch, shuffle=True, generator=generator, num_workers=workers,
                      persistent_workers=workers > 0)


def random_passes(size, seed, base_seed, passes):
    reader = loader(size, seed, base_seed, batch=max(1, size // 3))
    for epoch in range(passes):
        order = [int(i) for batch in reader for i in batch]
        yield line("torch-random", order, size=size, seed=seed, epoch=epoch, base_seed=base_seed)


def random_draws(size, seed, base_seed, replacement, draws, passes):
    """As loader(), with num_samples."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    data = range(size)
    sampler = RandomSampler(data, replacement, draws, generator)
    reader = DataLoader(data, batch_size=max(1, draws // 3), sampler=sampler,
                        generator=generator if base_seed == "every-pass" else None)
    for epoch in range(passes):
        order = [int(i) for batch in reader for i in batch]
        yield line("torch-random", order, size=size, seed=seed, epoch=epoch, base_seed=base_seed,
                   replacement=int(replacement), draws=draws)


def wide_randperm(size, seed):
    """The 64-bit algorithm at a size where torch does not use it, from torch's own 64-bit draws."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    draws = torch.empty(size, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    order = [0] * size
    for i, draw in enumerate(draws.tolist()):
        place = draw % 2**64 % (i + 1)  # the draw as unsigned
        order[i] = order[place]
        order[place] = i
    return line("randperm", order, size=size, seed=seed, variant="wide")


def native_randperm(size, seed, variant):
    generator = torch.Generator()
    generator.manual_seed(seed)
    order = torch.randperm(size, generator=generator).numpy().astype("<u4")
    return line("randperm", order, size=size, seed=seed, variant=variant)


SEEDS = [0, 1, 5, 42, 2**31, 2**32 - 1, 2**32 + 5, 2**63 - 8, -1, -(2**32) - 7, -(2**63)]


def small_lines():
    choose = random.Random(20240229)
    for size in [1, 2, 3, 7, 8, 100, 623, 624, 625, 1248, 10_000, 1_281_167]:
        yield native_randperm(size, 5, "narrow")
    for seed in SEEDS:
        yield native_randperm(1000, seed, "narrow")
        yield wide_randperm(1000, seed)
    for size in [1, 2, 3, 7, 311, 312, 313, 10_000]:
        yield wide_randperm(size, 5)
    for size, world in [(1, 1), (1, 8), (3, 8), (7, 4), (8, 4), (9, 4), (5, 64), (1000, 7), (4, 9)]:
        for drop_last in [False, True]:
            yield distributed(size, 3, 2, world, world - 1, True, drop_last)
            yield distributed(size, 3, 2, world, 0, False, drop_last)
    for seed in SEEDS:
        yield distributed(101, seed, 7, 4, 1, True, False)
    for _ in range(60):
        world = choose.choice([1, 2, 3, 4, 8, 16, 61])
        yield distributed(choose.randrange(1, 5000), choose.choice(SEEDS), choose.randrange(200),
                          world, choose.randrange(world), choose.random() < 0.8,
                          choose.random() < 0.5)
    for base_seed in ["every-pass", "first-pass", "never"]:
        for size, seed in [(1, 0), (2, 9), (10, 5), (313, -1), (1000, 2**32 + 5)]:
            yield from random_passes(size, seed, base_seed, 4)
    for base_seed in ["every-pass", "never"]:
        for size, draws in [(1, 1), (7, 50), (100, 31), (100, 32), (1000, 1000), (10_000, 333)]:
            yield from random_draws(size, 11, base_seed, True, draws, 3)
        for size, draws in [(1, 3), (7, 3), (7, 14), (100, 250), (1000, 999)]:
            yield from random_draws(size, -4, base_seed, False, draws, 3)
    for size in [2**28 - 1, 2**28, 2**28 + 1]:
        yield from random_draws(size, 5, "never", True, 40, 2)
    yield line("sequential", list(SequentialSampler(range(1000))), size=1000)


def large_lines():
    for size in [WIDE_FROM - 1, WIDE_FROM, WIDE_FROM + 1]:
        newer = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 7)
        yield native_randperm(size, 5, "wide" if newer and size >= WIDE_FROM else "narrow")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="around 214,748,364 samples")
    arguments = parser.parse_args()
    version = ".".join(torch.__version__.split(".")[:2])
    name = f"torch-{version}-large.txt" if arguments.large else f"torch-{version}.txt"
    lines = large_lines() if arguments.large else small_lines()
    (FOLDER / name).write_text("".join(text + "\n" for text in lines))


if __name__ == "__main__":
    main()
