"""What the pages for users say of sources, typed as it stands there, but for names of places."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import optcache
import pytest
from harness import s3_server
from harness.pages import blocks, words
from harness.processes import stop, wait_until
from harness.ranges import write_mds, write_megatron
from harness.s3_server import Keys, S3Server, keys_in_environment
from harness.shards import write_shard
from harness.store import Store
from PIL import Image

KEYS = Keys("AKIAOPTCACHEPAGE", "a/secret+that=is/long enough")
REGION = "eu-west-1"  # as the pages have it
HEAD = "apiVersion: optcache.io/v1alpha1\nkind: Dataset\nmetadata: {name: example}\n"
CACHE = "cache: {capacity: 30%}"
FORMATS = "own-format.md"

Up = Callable[[str], None]
Objects = dict[str, bytes]


@pytest.fixture
def up(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Up]:
    """up(yaml): `optcache up` with it until the test ends, and the line that it prints in this process."""
    with ExitStack() as running:

        def start(text: str) -> None:
            (tmp_path / "dataset.yaml").write_text(text)
            log = tmp_path / "up.log"
            with open(log, "wb") as out:
                process = subprocess.Popen(
                    [
                        *(programs / "optcache", "up", "-f", tmp_path / "dataset.yaml"),
                        *("--state", tmp_path / "state", "--port", "0", "--arena", "8Mi"),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            running.callback(stop, process)
            line = "export OPTCACHE_SOCKET="

            def is_up() -> bool:
                assert process.poll() is None, log.read_text()
                return line in log.read_text()

            wait_until(is_up, f"optcache up prints {line}")
            socket = log.read_text().partition(line)[2].splitlines()[0]
            monkeypatch.setenv("OPTCACHE_SOCKET", socket)

        yield start


@pytest.fixture(scope="module")
def server_program() -> None:
    if why := s3_server.missing_program():
        pytest.skip(why)
    s3_server.program()  # the first time it is built, which no test shall wait for


@pytest.fixture
def bucket(server_program: None, tmp_path: Path) -> Iterator[Callable[[str, Objects], None]]:
    """bucket(name, objects): makes it on a server that all find by their environment."""
    with ExitStack() as running:
        running.enter_context(keys_in_environment(KEYS, REGION))
        server = running.enter_context(S3Server(tmp_path / "s3", KEYS, REGION))
        os.environ["AWS_ENDPOINT_URL_S3"] = server.endpoint  # in place of Amazon's own

        def make(name: str, objects: Objects) -> None:
            client = server.client()
            client.make_bucket(name)
            for key, body in objects.items():
                client.put(name, key, body)

        yield make


@pytest.fixture
def shell(programs: Path, tmp_path: Path) -> Callable[[str], str]:
    """shell(commands): what a user's shell prints, in a folder where `optcache` is a command."""

    def run(commands: str) -> str:
        done = subprocess.run(
            ["bash", "-e", "-c", commands],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{programs}:{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    python = tmp_path / "python"  # the one that runs this; a link to it would not know its packages
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return run


def run_script(script: str) -> dict[str, Any]:
    """The names that a script of a page leaves."""
    names: dict[str, Any] = {}
    exec(script, names)
    return names


def contents(folder: Path) -> Objects:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def samples_of(dataset: optcache.Dataset) -> list[bytes]:
    return [bytes(dataset[index]) for index in range(len(dataset))]


def test_a_bucket(
    up: Up, bucket: Callable[[str, Objects], None], shell: Callable[[str], str]
) -> None:
    images = {f"train/{kind}/{number}.png": os.urandom(99) for kind in "ab" for number in range(9)}
    bucket("my-images", {**images, "val/a/0.png": b"not below the prefix"})
    (dataset,) = blocks("s3.md", "On one machine", "yaml")
    up(dataset)
    assert samples_of(optcache.Dataset()) == list(images.values())
    shell(words("s3.md", r"`(optcache manifest build --source 's3://my-images/.*?)`"))
    shown = shell("optcache manifest show --paths images.manifest").split()
    assert [f"train/{path}" for path in shown] == list(images)


def test_tar_shards_on_a_web_server(up: Up, tmp_path: Path) -> None:
    (source,) = blocks("sources.md", "My data is in tar shards", "yaml")
    (script,) = blocks("sources.md", "My data is in tar shards", "python")
    colors = [(number, 2 * number, 3 * number) for number in range(20)]
    for shard in range(2):
        files: list[tuple[str, bytes]] = []
        for number in range(10 * shard, 10 * shard + 10):
            image = io.BytesIO()
            Image.new("RGB", (8, 8), colors[number]).save(image, "png")  # exact, which a JPEG is not
            files.append((f"train/{number:04}.jpg", image.getvalue()))
            files.append((f"train/{number:04}.cls", str(number % 7).encode()))
        write_shard(tmp_path / "shards" / f"{shard}.tar", files, tarfile.PAX_FORMAT)
    (tmp_path / "shards" / "index.txt").write_text("0.tar\n1.tar\n")
    (tmp_path / "store").mkdir()
    with Store(tmp_path / "shards", tmp_path / "store") as store:
        up(source.replace("http://files/shards/", store.base_url))
        dataset = run_script(script)["dataset"]
        assert len(dataset) == len(colors)
        for number, color in enumerate(colors):
            image, label = dataset[number]
            assert (image.getpixel((0, 0)), label) == (color, number % 7)


def test_a_folder(up: Up, shell: Callable[[str], str], tmp_path: Path) -> None:
    source = words("sources.md", r"`(\{file: .*?\})` for `optcache up`")
    (commands,) = blocks("sources.md", "When it delivers other bytes", "sh")
    folder = tmp_path / "train"
    for number in range(9):
        (folder / f"class-{number % 3}").mkdir(parents=True, exist_ok=True)
        (folder / f"class-{number % 3}" / f"{number}.png").write_bytes(os.urandom(99))
    up(f"{HEAD}spec: {{source: {source}, {CACHE}}}".replace("/data/train", str(folder)))
    assert samples_of(optcache.Dataset()) == [body for _, body in sorted(contents(folder).items())]
    shell(commands.replace("/data/train", str(folder)))


def test_a_folder_on_a_web_server(
    up: Up, shell: Callable[[str], str], tmp_path: Path
) -> None:
    source = words("sources.md", r"`source: (\{http: \{baseURL: …\}\})`")
    command = words("sources.md", r"`(\(cd FOLDER .*?\))`").replace("\\|", "|")  # in a table
    folder = tmp_path / "files"
    for name in ("a/1.png", "a/two words.png", "b/ü.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    shell(command.replace("FOLDER", "files"))
    (tmp_path / "store").mkdir()
    with Store(folder, tmp_path / "store") as store:
        up(f"{HEAD}spec: {{source: {source}, {CACHE}}}".replace("…", f'"{store.base_url}"'))
        names = ["a/1.png", "a/two words.png", "b/ü.png"]
        assert samples_of(optcache.Dataset()) == [name.encode() for name in names]


def test_a_list_of_ranges(
    up: Up,
    bucket: Callable[[str, Objects], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (source,) = blocks(FORMATS, "A list of ranges", "yaml")
    script, reader = blocks(FORMATS, "A list of ranges", "python")
    (tmp_path / "data").mkdir()
    for number in range(2):  # two records and a half
        (tmp_path / "data" / f"{number}.bin").write_bytes(os.urandom(10_240))
    records = contents(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    run_script(script)
    bucket("records", contents(tmp_path / "data"))
    up(source)
    dataset = run_script(reader)["dataset"]
    assert [dataset.path(i) for i in range(len(dataset))] == [
        *("0.bin#0", "0.bin#1"),
        *("1.bin#0", "1.bin#1"),
    ]
    expected = [records[f"{at // 2}.bin"][4096 * (at % 2) :][:4096] for at in range(4)]
    assert [dataset[i].tobytes() for i in range(4)] == expected
    assert dataset[0].dtype == np.float32


def test_one_array_a_file(up: Up, tmp_path: Path) -> None:
    (script,) = blocks(FORMATS, "One file a sample", "python")
    arrays = [np.full((2, 3), number, dtype="f4") for number in range(5)]
    (tmp_path / "arrays").mkdir()
    for number, array in enumerate(arrays):
        np.save(tmp_path / "arrays" / f"{number}.npy", array)
    up(f'{HEAD}spec: {{source: {{file: {{path: "{tmp_path / "arrays"}"}}}}, {CACHE}}}')
    dataset = run_script(script)["dataset"]
    assert [sample.tolist() for sample in dataset] == [array.tolist() for array in arrays]


def test_arrays_of_numpy(
    up: Up, bucket: Callable[[str, Objects], None], tmp_path: Path
) -> None:
    (source,) = blocks(FORMATS, "Arrays of numpy", "yaml")
    (script,) = blocks(FORMATS, "Arrays of numpy", "python")
    arrays = np.frombuffer(os.urandom(2 * 5 * 3 * 32 * 32), dtype="u1").reshape(2, 5, 3, 32, 32)
    (tmp_path / "arrays").mkdir()
    for number, array in enumerate(arrays):
        np.save(tmp_path / "arrays" / f"{number}.npy", array)
    bucket("arrays", contents(tmp_path / "arrays"))
    up(HEAD + source)
    dataset = run_script(script)["dataset"]
    assert len(dataset) == 10
    assert all((dataset[row] == arrays.reshape(10, 3, 32, 32)[row]).all() for row in range(10))


def test_tokens_of_megatron(
    up: Up, bucket: Callable[[str, Objects], None], tmp_path: Path
) -> None:
    (source,) = blocks(FORMATS, "Tokens of Megatron-LM", "yaml")
    (script,) = blocks(FORMATS, "Tokens of Megatron-LM", "python")
    sequences = [np.arange(number, 3 * number + 1, dtype="<u2") for number in range(9)]
    (tmp_path / "tokens").mkdir()
    write_megatron(tmp_path / "tokens", "a", 8, [it.tobytes() for it in sequences])
    bucket("tokens", contents(tmp_path / "tokens"))
    up(HEAD + source)
    dataset = run_script(script)["dataset"]
    assert [dataset[i].tolist() for i in range(len(dataset))] == [it.tolist() for it in sequences]


def ranges_in(folder: Path) -> str:
    """The page's Dataset of a list, over a folder."""
    (source,) = blocks(FORMATS, "A list of ranges", "yaml")
    return source.replace("{s3: {bucket: records}}", f'{{file: {{path: "{folder}"}}}}')


def test_samples_of_mosaicml_are_listed(
    up: Up, shell: Callable[[str], str], tmp_path: Path
) -> None:
    (command,) = blocks(FORMATS, "MosaicML Streaming", "sh")
    shards = [[os.urandom(50 + number) for number in range(5)] for _ in range(2)]
    write_mds(tmp_path / "shards", shards)
    shell(command.replace("FOLDER", "shards"))
    (tmp_path / "ranges.csv").rename(tmp_path / "shards" / "ranges.csv")
    up(ranges_in(tmp_path / "shards"))
    assert samples_of(optcache.Dataset()) == [*shards[0], *shards[1]]


def test_samples_of_mosaicml_are_decoded(
    up: Up, shell: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streaming = pytest.importorskip("streaming", reason="`./dev test frameworks` installs it")
    (command,) = blocks(FORMATS, "MosaicML Streaming", "sh")
    (script,) = blocks(FORMATS, "MosaicML Streaming", "python")
    columns = {"number": "int", "data": "bytes", "text": "str"}
    written = [{"number": n, "data": os.urandom(n), "text": f"sample {n}"} for n in range(60)]
    folder = tmp_path / "shards"
    with streaming.MDSWriter(out=str(folder), columns=columns, size_limit=2000) as out:
        for sample in written:
            out.write(sample)
    shell(command.replace("FOLDER", "shards"))
    (tmp_path / "ranges.csv").rename(folder / "ranges.csv")
    up(ranges_in(folder))
    monkeypatch.chdir(folder)
    dataset = run_script(script)["dataset"]
    assert [dataset[number] for number in range(len(dataset))] == written


def test_row_groups_of_parquet(up: Up, shell: Callable[[str], str], tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="`./dev test frameworks` installs it")
    parquet = pytest.importorskip("pyarrow.parquet", reason="`./dev test frameworks` installs it")
    (command,) = blocks(FORMATS, "Parquet", "sh")
    (script,) = blocks(FORMATS, "Parquet", "python")
    folder = tmp_path / "tables"
    folder.mkdir()
    for part in range(2):
        table = arrow.table({"number": list(range(1000 * part, 1000 * part + 1000))})
        parquet.write_table(table, folder / f"part-{part}.parquet", row_group_size=200)
    shell(command.replace("FOLDER", "tables"))
    (tmp_path / "ranges.csv").rename(folder / "ranges.csv")
    up(ranges_in(folder))
    table = run_script(script.replace("/data/", f"{folder}/"))["table"]
    assert table.column("number").to_pylist() == list(range(1400, 1600))  # the eighth of ten
