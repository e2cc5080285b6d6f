"""ImageFolder: torchvision's, and which dataset a root means."""

from __future__ import annotations

import importlib.util
import inspect
import io
import os
import pickle
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import numpy
import pytest
from conftest import IMAGES as COUNT
from conftest import Server, list_source

torchvision = pytest.importorskip("torchvision")
pytest.importorskip("PIL.Image")

import PIL.Image  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402
from torchvision.datasets.folder import default_loader, pil_loader  # noqa: E402

import optcache  # noqa: E402
from optcache import _image_folder  # noqa: E402
from optcache._recipes import ranges_of  # noqa: E402
from optcache.torch import ImageFolder, attach  # noqa: E402


@pytest.fixture
def server(serve: Callable[..., Server], images: Path) -> Server:
    return serve(images)


@pytest.fixture
def train(server: Server) -> ImageFolder:
    return ImageFolder()


def test_image_folder_is_torchvisions(train: ImageFolder, server: Server, images: Path) -> None:
    list_source(server)
    theirs = torchvision.datasets.ImageFolder(str(images))
    ours = ImageFolder(str(images))
    assert len(ours) == len(theirs) == COUNT
    assert ours.classes == theirs.classes
    assert ours.class_to_idx == theirs.class_to_idx
    assert ours.samples == ours.imgs == theirs.samples
    assert ours.targets == theirs.targets
    for (image, target), (expected, their_target) in zip(ours, theirs):
        assert target == their_target
        assert image.mode == expected.mode and image.tobytes() == expected.tobytes()
    assert ours.__getitems__([3])[0][0].tobytes() == theirs[3][0].tobytes()


def test_a_root_that_is_not_served(server: Server, images: Path, tmp_path: Path) -> None:
    list_source(server)
    (tmp_path / "validation").mkdir()
    for root in ("/no/such/dir", str(tmp_path / "validation"), str(images.parent)):
        with pytest.raises(optcache.OptcacheError) as caught:
            ImageFolder(root)
        assert root in str(caught.value)
        assert f"it serves local/test ({images})" in str(caught.value)
        assert "name='local/test'" in str(caught.value)


def test_a_root_counts_more_than_the_environment(
    server: Server, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_source(server)
    monkeypatch.setenv("OPTCACHE_DATASET", "local/other")
    assert ImageFolder(str(images)).data.name == "local/test"
    assert ImageFolder("test").data.name == "local/test"


def test_a_name_counts_more_than_a_root(
    server: Server, images: Path, caplog: pytest.LogCaptureFixture
) -> None:
    list_source(server, name="local/other")
    ours = ImageFolder("/some/where", name="test")
    assert ours.samples[0][0].startswith("/some/where/")
    assert not caplog.records
    assert len(ImageFolder(str(images), name="test")) == COUNT
    assert f"root={images} is the source of local/other, but name=test is used" in caplog.text


@pytest.mark.parametrize("content", [None, "{"])
def test_a_root_where_sources_are_not_known(
    server: Server, images: Path, monkeypatch: pytest.MonkeyPatch, content: Optional[str]
) -> None:
    if content is not None:
        Path(f"{server.socket}.sources").write_text(content)
    with pytest.raises(optcache.OptcacheError, match="write name="):
        ImageFolder(str(images))
    monkeypatch.setenv("OPTCACHE_FALLBACK_ROOT", str(images))  # which says it
    assert len(ImageFolder(str(images))) == COUNT


def test_a_root_while_the_sidecar_is_away(server: Server, images: Path) -> None:
    list_source(server)
    ImageFolder(str(images))  # it has been there
    server.kill()
    with pytest.raises(optcache.OptcacheError, match="it serves local/test"):
        ImageFolder("/no/such/dir")


def test_arguments_are_torchvisions(train: ImageFolder) -> None:
    theirs = [*inspect.signature(torchvision.datasets.ImageFolder).parameters]
    ours = inspect.signature(ImageFolder).parameters
    by_place = [name for name, it in ours.items() if it.kind is not it.KEYWORD_ONLY]
    assert by_place[: len(theirs)] == theirs
    assert by_place[len(theirs) :] in ([], ["allow_empty"])  # torchvision 0.20 has it
    with pytest.raises(TypeError, match="write name='test'"):
        ImageFolder("", None, None, pil_loader, "test")  # type: ignore[arg-type]


def is_chosen(path: str) -> bool:
    return int(Path(path).stem) % 5 != 2


def test_a_choice_of_files_is_torchvisions(server: Server, images: Path) -> None:
    list_source(server)
    asked: tuple[list[str], list[str]] = ([], [])
    theirs, ours = (
        kind(str(images), None, None, pil_loader, lambda path, to=to: to.append(path) or is_chosen(path))
        for kind, to in zip((torchvision.datasets.ImageFolder, ImageFolder), asked)
    )
    assert asked[0] == asked[1] and len(asked[0]) == COUNT
    assert ours.samples == theirs.samples and ours.targets == theirs.targets
    assert ours.classes == theirs.classes and 0 < len(ours) == len(theirs) < COUNT
    expected = [(image.tobytes(), target) for image, target in theirs]
    assert [(image.tobytes(), target) for image, target in map(ours.__getitem__, range(len(ours)))] == expected
    assert [(i.tobytes(), t) for i, t in ours.__getitems__(range(len(ours)))] == expected
    assert ours[-1][0].tobytes() == expected[-1][0]
    with pytest.raises(IndexError, match=f"it has {len(ours)} samples"):
        ours[len(ours)]
    assert pickle.loads(pickle.dumps(ours))[3][0].tobytes() == expected[3][0]


@pytest.fixture
def splits(images: Path, tmp_path: Path) -> Path:
    """A source whose folders train and val have the classes."""
    for split in ("train", "val"):
        shutil.copytree(images, tmp_path / "splits" / split)
    shutil.rmtree(tmp_path / "splits" / "val" / "A")
    return tmp_path / "splits"


def pixels(folder: Any) -> list[tuple[bytes, int]]:
    return [(image.tobytes(), target) for image, target in map(folder.__getitem__, range(len(folder)))]


@pytest.mark.parametrize("choose", [None, is_chosen])
def test_a_folder_below_a_source_is_torchvisions(
    serve: Callable[..., Server], splits: Path, choose: Optional[Callable[[str], bool]]
) -> None:
    list_source(serve(splits))
    for split in ("train", "val"):
        theirs = torchvision.datasets.ImageFolder(str(splits / split), is_valid_file=choose)
        ours = ImageFolder(str(splits / split), is_valid_file=choose)
        assert ours.classes == theirs.classes and ours.class_to_idx == theirs.class_to_idx
        assert ours.samples == theirs.samples and ours.targets == theirs.targets
        assert pixels(ours) == pixels(theirs)
        assert pixels(pickle.loads(pickle.dumps(ours))) == pixels(theirs)
        batch = ours.__getitems__([0, len(ours) - 1])
        assert [target for _, target in batch] == [theirs.targets[0], theirs.targets[-1]]


def test_a_folder_that_has_all_of_a_source_is_torchvisions(
    serve: Callable[..., Server], images: Path, tmp_path: Path
) -> None:
    """By path, the files of `b-c` come before those of `b/x`."""
    image = next(path for path in images.rglob("*") if path.is_file())
    for name in ("b/1.png", "b-c/2.png", "b/x/3.png"):
        path = tmp_path / "all" / "train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, path)
    list_source(serve(tmp_path / "all"))
    root = str(tmp_path / "all" / "train")
    for choose in (None, lambda path: True):
        theirs = torchvision.datasets.ImageFolder(root, is_valid_file=choose)
        ours = ImageFolder(root, is_valid_file=choose)
        assert ours.samples == theirs.samples and ours.classes == theirs.classes


def test_what_is_no_image_makes_no_class() -> None:
    paths = ["train/b/1.PNG", "train/b/readme.txt", "train/meta/a.json", "train/c.png", "val/b/2.png"]
    assert _image_folder.samples_below("train/", paths, images_only=True) == [0]
    assert _image_folder.samples_below("train/", paths, images_only=False) == [0, 1, 2]


def test_images_end_as_torchvisions() -> None:
    assert _image_folder.IMG_EXTENSIONS == torchvision.datasets.folder.IMG_EXTENSIONS


def test_a_folder_below_a_source_is_announced(serve: Callable[..., Server], splits: Path) -> None:
    server = serve(splits)
    list_source(server)
    folder = ImageFolder(str(splits / "val"))
    loader = DataLoader(folder, 4, collate_fn=list)
    read = [image.tobytes() for batch in attach(loader) for image, _ in batch]
    assert read == [image for image, _ in pixels(folder)]
    assert " subset=" in server.of("attach")[0]["order"]


def test_computed_values_of_a_folder_below_a_source_are_its_own(
    serve: Callable[..., Server], splits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its classes have other numbers than the whole dataset's."""
    list_source(serve(splits))
    made_by = []
    monkeypatch.setattr(_image_folder, "kept", lambda *arguments: made_by.append(arguments[3]))
    for root in (splits, splits / "train", splits / "val"):
        ImageFolder(str(root), computed=True)
    assert len(set(made_by)) == 3


def test_a_folder_below_a_source_without_samples(
    serve: Callable[..., Server], splits: Path, caplog: pytest.LogCaptureFixture
) -> None:
    list_source(serve(splits))
    for root in (splits / "test", splits / "train" / "b" / "deep"):
        with pytest.raises(optcache.OptcacheError, match="has no samples in class folders below"):
            ImageFolder(str(root))
    whole = ImageFolder(str(splits / "train"), name="local/test")
    assert whole.classes == ["train", "val"]
    assert "leave name= out to take the part" in caplog.text


@pytest.mark.parametrize("workers", [0, 2])
def test_a_choice_of_files_is_announced(server: Server, images: Path, workers: int) -> None:
    chosen = ImageFolder(is_valid_file=is_chosen)
    sampler = DistributedSampler(chosen, num_replicas=2, rank=1, seed=5)
    loader = DataLoader(chosen, 4, sampler=sampler, num_workers=workers, collate_fn=list)
    read = [image.tobytes() for batch in attach(loader) for image, _ in batch]
    assert read == [chosen[index][0].tobytes() for index in sampler]
    ids = [at for at in range(COUNT) if is_chosen(chosen.data.path(at))]
    runs = ",".join(f"{first}+{count}" for first, count in ranges_of(ids) or [])
    assert server.of("attach")[0]["order"].endswith(f" subset={runs}")
    gets = sorted((g["first"], g["count"]) for g in server.of("get") if g["stream"])
    assert gets == [(at, min(4, len(sampler) - at)) for at in range(0, len(sampler), 4)]


def test_classes_without_files(server: Server, images: Path) -> None:
    list_source(server)
    for kind in (torchvision.datasets.ImageFolder, ImageFolder):
        with pytest.raises(FileNotFoundError, match="^Found no valid file for the classes A, b"):
            kind(str(images), is_valid_file=lambda path: "/a" in path)
    ours = ImageFolder(str(images), None, None, pil_loader, lambda path: "/a" in path, True)
    assert ours.classes == sorted(path.name for path in images.iterdir())
    assert set(ours.targets) == {1, 2} and 0 < len(ours) < COUNT
    assert len(ImageFolder(is_valid_file=lambda path: False, allow_empty=True)) == 0


def by_another_process(path: str) -> bytes:
    return subprocess.run(["cat", path], check=True, capture_output=True, timeout=60).stdout


LOADERS: dict[str, Callable[[str], Any]] = {
    "torchvision's": default_loader,
    "torchvision's, of PIL": pil_loader,
    "open": lambda path: open(path, "rb").read(),
    "open twice": lambda path: (open(path, "rb").read(9), Path(path).read_bytes()),
    "PIL, later": PIL.Image.open,
    "NumPy": lambda path: numpy.fromfile(path, numpy.uint8).tobytes(),
    "mapped": lambda path: bytes(numpy.memmap(path, numpy.uint8, "r")),
    "torchvision.io": torchvision.io.read_file,
    "another process": by_another_process,
}
if importlib.util.find_spec("cv2"):
    LOADERS["cv2"] = lambda path: importlib.import_module("cv2").imread(path).tobytes()


def plain(loaded: Any) -> Any:
    if isinstance(loaded, PIL.Image.Image):
        return loaded.mode, loaded.tobytes()
    return loaded.tolist() if hasattr(loaded, "tolist") else loaded


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
def test_loaders_are_given_a_path(
    server: Server, images: Path, loader: Callable[[str], Any]
) -> None:
    list_source(server)
    theirs = torchvision.datasets.ImageFolder(str(images), loader=loader)
    ours = ImageFolder(str(images), loader=loader)
    assert [(plain(it), target) for it, target in ours.__getitems__(range(9))] == [
        (plain(theirs[index][0]), theirs[index][1]) for index in range(9)
    ]
    assert plain(ours[4][0]) == plain(theirs[4][0])


def test_the_path_of_a_sample_is_good_while_the_loader_runs(train: ImageFolder) -> None:
    failing = ImageFolder(loader=lambda path: 1 / 0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            failing[0]
    (path, _), (other, _) = ImageFolder(loader=str).__getitems__([0, 1])
    assert not os.path.exists(path) and not os.path.exists(other)
    held = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert [it for it in held if "optcache-sample" in it] == []


def test_a_loader_that_takes_bytes_is_told_of_decode(train: ImageFolder) -> None:
    def takes_bytes(data: Any) -> Any:
        return PIL.Image.open(io.BytesIO(data)).size

    with pytest.raises(TypeError, match="'str'.*takes the bytes, write decode="):
        ImageFolder(loader=takes_bytes)[0]
    assert ImageFolder(decode=takes_bytes)[0][0] == (4, 4)


def test_bytes_are_decoded_where_they_lie(train: ImageFolder) -> None:
    assert ImageFolder(decode=type)[0][0] is memoryview
    assert ImageFolder(loader=by_another_process, decode=len)[0][0] == train.data.size(0)


def test_the_loader_that_torchvision_has_chosen(
    train: ImageFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another image backend it has its own way to open a file."""
    given: list[str] = []
    monkeypatch.setattr(torchvision.datasets.folder, "accimage_loader", given.append)
    monkeypatch.setattr(torchvision, "get_image_backend", lambda: "accimage")
    ImageFolder(loader=default_loader)[0]
    assert given[0].startswith("/proc/")


def test_a_root_of_other_kinds(
    server: Server, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_source(server)
    monkeypatch.setenv("HOME", str(images.parent))
    expected = torchvision.datasets.ImageFolder(f"~/{images.name}").samples
    assert ImageFolder(f"~/{images.name}").samples == expected
    assert ImageFolder(images).samples == expected


def test_image_folder_transforms(train: ImageFolder) -> None:
    plain = train[5]
    ours = ImageFolder(
        transform=lambda image: image.size, target_transform=lambda target: -target, loader=None
    )
    ours.loader = train.loader
    assert ours[5] == ((4, 4), -plain[1])
    assert ours.__getitems__([5, 6])[0] == ours[5]


def test_image_folder_pickles(train: ImageFolder) -> None:
    assert len(train.samples) == COUNT
    again = pickle.loads(pickle.dumps(train))
    assert again[4][0].tobytes() == train[4][0].tobytes()
    assert len(pickle.dumps(train)) < 1000


def test_image_folder_wants_classes(serve: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "a").write_bytes(b"a")
    serve(tmp_path / "flat")
    with pytest.raises(optcache.OptcacheError, match="no classes"):
        ImageFolder()
