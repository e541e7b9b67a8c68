"""What a run's record says of the set that it read, and who notices that it was another."""

import os
import shutil
from pathlib import Path

import pytest
from reperf.data import set_read
from reperf.data.set_read import read_of_set


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three images of two classes, and what no reader takes."""
    for name in (
        "train/a/1.JPEG",
        "train/b/2.jpg",
        "train/b/3.jpeg",
        "train/b/notes.txt",
        "val/4.jpg",
    ):
        file = tmp_path / "mine" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path / "mine"


def read(folder: Path) -> tuple:
    return read_of_set(str(folder), "folder")


def test_a_folder_is_told_by_its_images_and_not_by_a_manifest_that_came_along(images):
    digest, held = read(images)
    assert held == {"name": "mine", "counted": "images", "samples": 3, "bytes": 41, "times": ""}
    for name in ("manifest.json", "train/b/notes.txt", "val/4.jpg"):
        (images / name).write_text("{}")
        assert read(images)[0] == digest
    assert read(shutil.copytree(images, images.parent / "copy"))[0] == digest


def of_equal_size(images: Path) -> None:
    (images / "train/a/1.JPEG").write_text("train/a/9.JPEG")


def longer(images: Path) -> None:
    (images / "train/a/1.JPEG").write_text("longer than before")


def renamed(images: Path) -> None:
    (images / "train/a/1.JPEG").rename(images / "train/b/1.JPEG")


@pytest.mark.parametrize("change", [of_equal_size, longer, renamed])
@pytest.mark.parametrize("most", [1 << 26, 10])
def test_other_images_under_the_same_name_are_noticed(images, monkeypatch, change, most):
    """Of many images, one of equal size is told by when it was written."""
    monkeypatch.setattr(set_read, "CONTENTS", most)
    digest, held = read(images)
    change(images)
    os.utime(images / "train/b/2.jpg", ns=(0, 0))
    now, holds = read(images)
    assert (now == digest) == (change is of_equal_size and most == 10)
    assert (holds["times"] != held["times"]) == (most == 10)


def test_what_cannot_be_read_has_no_digest(tmp_path):
    (tmp_path / "train").mkdir()
    for folder in (tmp_path, tmp_path / "none"):
        for form in ("folder", "tfrecord"):
            assert read_of_set(str(folder), form) == (None, None)
    assert read_of_set(None, "synthetic") == (None, None)
