"""The embedded images are like ImageNet's."""

import json
from pathlib import Path
from statistics import mean

import pytest
from PIL import Image
from reperf.data.images.convert import FOLDER, PHOTOGRAPHS
from reperf.data.images.convert import make as make_images
from reperf.data.images.image import read_headers


@pytest.fixture(scope="module")
def images(embedded) -> Path:
    return embedded("images")[0]


def test_layout_sizes_and_entropy_are_like_imagenets_and_no_two_images_are_alike(images):
    classes = sorted(path.name for path in (images / "train").iterdir())
    assert len(classes) == 8
    assert all(name[0] == "n" and len(name) == 9 and name[1:].isdigit() for name in classes)
    for name in classes:
        found = {path.name for path in (images / "train" / name).iterdir()}
        assert found == {f"{name}_{number}.JPEG" for number in range(32)}
    data = [path.read_bytes() for path in images.glob("train/*/*.JPEG")]
    assert len(set(data)) == len(data) == 8 * 32
    frames = [read_headers(one) for one in data]
    assert 100_000 < mean(map(len, data)) < 120_000
    assert {max(frame[:2]) for frame in frames} == {500}
    assert {min(frame[:2]) for frame in frames} == {333, 375}
    made = json.loads((images / "manifest.json").read_text())
    assert (made["images"], made["bytes"]) == (len(data), sum(map(len, data)))
    assert made["classes"] == classes


def test_the_same_versions_make_the_same_bytes_and_nothing_of_a_larger_set_is_left(
    images, tmp_path
):
    (tmp_path / "train" / "n09999999").mkdir(parents=True)
    (tmp_path / ".train.partial" / "n08888888").mkdir(parents=True)
    make_images(tmp_path, images_per_class=1)
    assert {path.name for path in tmp_path.iterdir()} == {"train", "manifest.json"}
    files = [path for path in (tmp_path / "train").rglob("*") if not path.is_dir()]
    assert len(files) == len(PHOTOGRAPHS)
    assert {path.parent.name for path in files} == {*PHOTOGRAPHS}
    for path in files:
        assert path.read_bytes() == (images / path.relative_to(tmp_path)).read_bytes()
        Image.open(path).load()


def test_every_photograph_is_shipped_with_its_source_and_licence():
    table = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in Path(FOLDER, "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and ".jpg" in line
    ]
    assert {row[0] for row in table} == set(PHOTOGRAPHS.values())
    assert {path.name for path in FOLDER.glob("*.jpg")} == set(PHOTOGRAPHS.values())
    assert all(len(row) == 4 and all(row) for row in table)
