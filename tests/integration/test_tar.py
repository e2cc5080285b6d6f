"""Samples in tar archives: the same, under the same numbers, as Python's tarfile and the
`webdataset` package have them; read by ranges, once.
"""

from __future__ import annotations

import io
import os
import random
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optcache
import pytest
from harness.cluster import Cluster
from harness.shards import FORMATS, Sample, make_shards, samples_of, write_shard
from harness.store import LISTING, Store
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from optcache._manifest import Manifest
from optcache._source_reads import read_samples
from optcache.torch import attach

SHARDS = 5
SAMPLES = 40  # of a shard
RANKS = 2
EPOCHS = 3
LARGE_BYTES = 9 << 30
SMALL = b"behind the large one"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shards")
    make_shards(root, SHARDS, SAMPLES, random.Random(1))
    return root


@pytest.fixture(scope="module")
def shard_store(shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store(shards, tmp_path_factory.mktemp("store")) as running:
        paths = sorted(str(path.relative_to(shards)) for path in shards.rglob("*.tar"))
        running.listing_file.write_text("".join(f"{path}\n" for path in paths))
        yield running


def as_list(dataset: optcache.WebDataset) -> list[Sample]:
    return [dataset[index] for index in range(len(dataset))]


def test_groups_of_a_web_server_are_those_of_tarfile(
    cache_over: Callable[..., Path], shards: Path, shard_store: Store
) -> None:
    socket = cache_over(shard_store.base_url, LISTING, "Tar")
    expected = samples_of(shards)
    assert len(expected) == SHARDS * SAMPLES
    dataset = optcache.WebDataset(socket=str(socket))
    assert as_list(dataset) == expected
    begin = shard_store.log_size()
    assert as_list(dataset) == expected
    assert shard_store.access_log(begin) == "", "all of it is held"
    views = optcache.WebDataset(socket=str(socket), views=True)
    assert isinstance(views[0]["jpg"], memoryview)
    assert {**views[7]} == expected[7]


def test_every_read_of_a_sample_is_one_range(
    cache_over: Callable[..., Path], shards: Path, shard_store: Store
) -> None:
    socket = cache_over(shard_store.base_url, LISTING, "Tar")
    begin = shard_store.log_size()
    dataset = optcache.WebDataset(socket=str(socket))
    order = list(range(len(dataset)))
    random.Random(2).shuffle(order)
    expected = samples_of(shards)
    for index in order:
        assert dataset[index] == expected[index]
    reads = [line.split(" ") for line in shard_store.access_log(begin).splitlines()]
    assert {(read[1], read[2]) for read in reads} == {("GET", "206")}
    assert len(reads) <= len(dataset)


def test_groups_of_a_folder_through_a_loader(cache_over: Callable[..., Path], shards: Path) -> None:
    socket = cache_over(str(shards), "", "Tar", memory=1 << 20)
    expected = samples_of(shards)
    dataset = optcache.WebDataset(socket=str(socket))
    loader = attach(
        DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, collate_fn=list)
    )
    for _ in range(2):
        read = [sample for batch in loader for sample in batch]
        by_bytes = sorted(read, key=lambda sample: (sample["__key__"], sample["jpg"]))
        assert by_bytes == sorted(expected, key=lambda s: (s["__key__"], s["jpg"]))


def test_ranks_read_archives_in_the_order_of_their_sampler(
    cluster_over: Callable[..., Cluster], shards: Path, shard_store: Store
) -> None:
    """Shards are shuffled sample by sample: each epoch of each rank is PyTorch's own."""
    expected = samples_of(shards)
    numbers = {(sample["__key__"], sample["jpg"]): n for n, sample in enumerate(expected)}
    assert len(numbers) == len(expected)
    held = sum(path.stat().st_size for path in shards.rglob("*.tar")) // 6  # by each of two nodes
    cluster = cluster_over(shard_store.base_url, LISTING, "Tar", held, machines=RANKS)
    loaders, samplers = [], []
    for rank in range(RANKS):
        dataset = optcache.WebDataset(socket=str(cluster.socket(rank)))
        samplers.append(sampler_of(rank, len(expected)))
        loader = DataLoader(
            dataset, 8, sampler=sampler_of(rank, len(dataset)), num_workers=1, collate_fn=list
        )
        loaders.append(attach(loader, epochs=EPOCHS))
    for epoch in range(EPOCHS):
        for it in (*samplers, *(loader.sampler for loader in loaders)):
            it.set_epoch(epoch)
        read: list[list[Sample]] = [[] for _ in range(RANKS)]
        for batches in zip(*loaders, strict=True):
            for rank, batch in enumerate(batches):
                read[rank] += batch
        for rank in range(RANKS):
            order = list(samplers[rank])
            assert [numbers[it["__key__"], it["jpg"]] for it in read[rank]] == order
            assert read[rank] == [expected[number] for number in order]
    for metrics in cluster.sidecar_metrics():
        assert metrics["optcache_unpredicted_reads_total"] == 0
        assert metrics["optcache_unknown_orders_total"] == 0


def sampler_of(rank: int, samples: int) -> Any:
    return DistributedSampler(range(samples), num_replicas=RANKS, rank=rank, seed=5)  # type: ignore[arg-type]


def test_groups_are_those_of_webdataset(
    cache_over: Callable[..., Path], shards: Path, shard_store: Store
) -> None:
    webdataset = pytest.importorskip("webdataset", reason="`./dev test frameworks` installs it")
    urls = [str(path) for path in sorted(shards.rglob("*.tar"))]
    theirs = []
    for sample in webdataset.WebDataset(urls, shardshuffle=False):
        theirs.append({k: v for k, v in sample.items() if k not in ("__url__", "__local_path__")})
    socket = cache_over(shard_store.base_url, LISTING, "Tar")
    assert as_list(optcache.WebDataset(socket=str(socket))) == theirs


def test_files_of_archives_are_numbered_as_if_unpacked(
    cache_over: Callable[..., Path], tmp_path: Path
) -> None:
    chance = random.Random(3)
    files = {
        f"{kind}/{number}.png": chance.randbytes(chance.randrange(3000))
        for kind in ("cat", "dog")
        for number in range(20)
    }
    names = list(files)
    chance.shuffle(names)
    root = tmp_path / "archives"
    for part in range(3):
        chosen = [(f"./{name}", files[name]) for name in names[part::3]]
        write_shard(root / f"{part}.tar", chosen, FORMATS[part])
    dataset = optcache.Dataset(socket=str(cache_over(str(root), "", "TarFiles")))
    assert dataset.classes == ["cat", "dog"]
    assert [dataset.path(i) for i in range(len(dataset))] == sorted(names)
    for index, name in enumerate(sorted(names)):
        assert bytes(dataset[index]) == files[name]
        assert dataset.classes[dataset.target(index)] == name[:3]


def test_a_dataset_of_files_is_no_web_dataset(
    cache_over: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("a")
    socket = cache_over(str(tmp_path / "files"), "", "Files")
    with pytest.raises(optcache.OptcacheError, match="single files"):
        optcache.WebDataset(socket=str(socket))


def test_the_sidecar_gone_samples_come_from_the_shards(
    cache_over: Callable[..., Path], shards: Path
) -> None:
    dataset = optcache.WebDataset(socket=str(cache_over(str(shards), "", "Tar")))
    assert dataset._source is not None
    parts = read_samples(dataset._source, dataset.manifest, range(len(dataset)))
    assert [bytes(view) for view in dataset._samples(range(len(dataset)), None)] == parts


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: b"\x1f\x8b" + data[2:], "is compressed"),
        (lambda data: data[: len(data) // 2], "cut short|beyond the archive's end"),
        (lambda data: data[:3] + b"?" + data[4:], "this is no tar archive"),
    ],
)
def test_a_bad_archive_is_named(
    programs: Path, tmp_path: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    write_shard(tmp_path / "bad.tar", [("a.jpg", b"x" * 40_000)], FORMATS[0])
    (tmp_path / "bad.tar").write_bytes(damage((tmp_path / "bad.tar").read_bytes()))
    run = subprocess.run(
        [
            programs / "optcache",
            *("manifest", "build", "--format", "tar", "--source", tmp_path),
            *("-o", tmp_path / "m"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert "bad.tar: tar archive: " in run.stderr
    assert any(word in run.stderr for word in words.split("|")), run.stderr


@pytest.mark.long  # a file system without holes writes all of it
@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["gnu", "pax"])
def test_a_member_may_be_larger_than_8_gib(programs: Path, tmp_path: Path, format: int) -> None:
    """The number of a plain header ends there, and each format has a way of its own beyond it."""
    (tmp_path / "archives").mkdir()
    path = tmp_path / "archives" / "a.tar"
    large, small = tarfile.TarInfo("0.bin"), tarfile.TarInfo("1.bin")
    large.size, small.size = LARGE_BYTES, len(SMALL)
    with open(path, "wb") as file:
        file.write(large.tobuf(format))
        file.seek(LARGE_BYTES, os.SEEK_CUR)  # a hole
        with tarfile.open(fileobj=file, mode="w", format=format) as rest:
            rest.addfile(small, io.BytesIO(SMALL))
    command = [programs / "optcache", "manifest", "build", "--format", "tar", "--source", path.parent]
    subprocess.run([*command, "-o", tmp_path / "m"], check=True)
    manifest = Manifest(memoryview((tmp_path / "m").read_bytes()))
    found = [manifest.members(index)[0] for index in range(len(manifest))]
    with tarfile.open(path) as archive:
        expected = [(info.offset_data, info.size) for info in archive.getmembers()]
    assert [(member.offset, member.size) for member in found] == expected
    with open(path, "rb") as file:
        file.seek(found[1].offset)
        assert file.read(found[1].size) == SMALL


def test_an_archive_that_may_have_been_cut_is_named(programs: Path, tmp_path: Path) -> None:
    files = [("a.jpg", b"x" * 100), ("b.jpg", b"y" * 100)]
    write_shard(tmp_path / "cut.tar", files, FORMATS[0])
    with tarfile.open(tmp_path / "cut.tar") as archive:
        second = archive.getmembers()[1]
    os.truncate(tmp_path / "cut.tar", second.offset)
    command = [programs / "optcache", "manifest", "build", "--format", "tar", "--source", tmp_path]
    run = subprocess.run(
        [*command, "-o", tmp_path / "m"], capture_output=True, text=True, check=True
    )
    assert "1 archive has no end mark" in run.stdout + run.stderr
    assert "cut.tar (1 file)" in run.stdout + run.stderr
