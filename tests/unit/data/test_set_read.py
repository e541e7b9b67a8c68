"""What a run's record says of the images that it read, and who notices that they were others."""

import os
import shutil
from pathlib import Path

import pytest
from reperf.data import set_read
from reperf.data.set_read import read_of_set

from tests.helpers.written_files import write

NAMES = ("a/1.JPEG", "b/2.jpg", "b/3.jpeg", "b/notes.txt", "../val/4.jpg")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three images of two classes, and what no reader takes."""
    (tmp_path / "mine/train").mkdir(parents=True)
    return write(tmp_path / "mine/train", {name: f"train/{name}" for name in NAMES}).parent


def read(folder: Path) -> tuple:
    return read_of_set(str(folder), "folder")


def test_a_folder_is_told_by_its_images_and_not_by_a_manifest_that_came_along(images):
    digest, held = read(images)
    assert held == {"name": "mine", "counted": "images", "samples": 3, "bytes": 41, "times": ""}
    for name in ("manifest.json", "train/b/notes.txt", "val/4.jpg"):
        (images / name).write_text("{}")
        assert read(images)[0] == digest
    assert read(shutil.copytree(images, images.parent / "copy"))[0] == digest


@pytest.mark.parametrize(
    ("change", "same_size"),
    [
        (lambda image: image.write_text("train/a/9.JPEG"), True),
        (lambda image: image.write_text("longer than before"), False),
        (lambda image: image.rename(image.parents[1] / "b/1.JPEG"), False),
    ],
    ids=["of equal size", "longer", "renamed"],
)
@pytest.mark.parametrize("most", [1 << 26, 10])
def test_other_images_under_the_same_name_are_noticed(images, monkeypatch, change, same_size, most):
    """Of many images, one of equal size is told by when it was written."""
    monkeypatch.setattr(set_read, "CONTENTS", most)
    digest, held = read(images)
    change(images / "train/a/1.JPEG")
    os.utime(images / "train/b/2.jpg", ns=(0, 0))
    now, holds = read(images)
    assert (now == digest) == (same_size and most == 10)
    assert (holds["times"] != held["times"]) == (most == 10)


@pytest.mark.parametrize("form", ["folder", "tfrecord"])
def test_what_cannot_be_read_has_no_digest(form, tmp_path):
    (tmp_path / "train").mkdir()
    for folder in (str(tmp_path), str(tmp_path / "none"), None):
        assert read_of_set(folder, form) == (None, None)
