"""ImageFolder: torchvision's, and which dataset a root means."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Optional

import pytest
from conftest import IMAGES as COUNT
from conftest import Server, list_source

torchvision = pytest.importorskip("torchvision")
pytest.importorskip("PIL.Image")

import optcache  # noqa: E402
from optcache.torch import ImageFolder  # noqa: E402


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
    assert f"root={images} is the source of local/other: name=test counts" in caplog.text


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
