import json
from pathlib import Path
from statistics import mean

import pytest
from PIL import Image
from reperf.data.images.embedded_images import FOLDER, PHOTOGRAPHS
from reperf.data.images.embedded_images import make as make_images
from reperf.data.images.jpeg import read_frame


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedded")
    make_images(folder, images_per_class=6)
    return folder


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*.*")
        if path.is_file()
    }


def test_the_layout_is_imagenets(embedded):
    classes = sorted(path.name for path in (embedded / "train").iterdir())
    assert len(classes) == 8
    assert all(name[0] == "n" and len(name) == 9 and name[1:].isdigit() for name in classes)
    for name in classes:
        images = sorted(path.name for path in (embedded / "train" / name).iterdir())
        assert images == [f"{name}_{number}.JPEG" for number in range(6)]


def test_sizes_and_entropy_are_like_imagenets(embedded):
    paths = list(embedded.glob("train/*/*.JPEG"))
    frames = [read_frame(path.read_bytes()) for path in paths]
    assert 100_000 < mean(path.stat().st_size for path in paths) < 120_000
    assert {max(frame.height, frame.width) for frame in frames} == {500}
    assert {min(frame.height, frame.width) for frame in frames} == {333, 375}


def test_every_image_decodes_and_no_two_are_alike(embedded):
    paths = list(embedded.glob("train/*/*.JPEG"))
    for path in paths:
        Image.open(path).load()
    assert len({path.read_bytes() for path in paths}) == 48


def test_the_same_versions_make_the_same_bytes(embedded, tmp_path):
    make_images(tmp_path, images_per_class=6)
    assert contents(tmp_path) == contents(embedded)


def test_the_manifest_counts_what_lies_there(embedded):
    made = json.loads((embedded / "manifest.json").read_text())
    sizes = [path.stat().st_size for path in embedded.glob("train/*/*.JPEG")]
    assert (made["images"], made["bytes"]) == (len(sizes), sum(sizes))
    assert made["classes"] == sorted(path.name for path in (embedded / "train").iterdir())


def test_a_smaller_set_leaves_nothing_of_a_larger_one(tmp_path):
    (tmp_path / "train" / "n09999999").mkdir(parents=True)
    (tmp_path / ".train.partial" / "n08888888").mkdir(parents=True)
    make_images(tmp_path, images_per_class=1)
    assert len(contents(tmp_path)) == 8 + 1
    assert {path.name for path in tmp_path.iterdir()} == {"train", "manifest.json"}


def test_every_photograph_is_shipped_with_its_source_and_licence():
    table = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in Path(FOLDER, "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and ".jpg" in line
    ]
    assert {row[0] for row in table} == set(PHOTOGRAPHS.values())
    assert {path.name for path in FOLDER.glob("*.jpg")} == set(PHOTOGRAPHS.values())
    assert all(len(row) == 4 and all(row) for row in table)
