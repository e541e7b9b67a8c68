"""Images to records of every format, and what of a folder of images is refused."""

import os
import re
import shutil
import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image
from reperf.data.images.formats import FORMATS
from reperf.errors import ReperfError

from tests.unit.data import record_readers
from tests.unit.data.pictures import encoded, jpeg, make_set, picture
from tests.unit.data.sets import content, convert, small, write

formats = pytest.mark.parametrize("format_name", FORMATS)
CMYK, PNG = encoded(picture(1, "CMYK")), encoded(picture(1), "PNG")


@pytest.fixture
def images(tmp_path):
    return make_set(tmp_path / "images", n01=7, n02=1, n03=4)


@pytest.fixture
def refusal(images, tmp_path):
    """Why images are refused, in one line, of which nothing is written then."""

    def said(parts: int = 1) -> str:
        with pytest.raises(ReperfError) as caught:
            convert(small("images", images, parts=parts), tmp_path / "out")
        assert content(tmp_path / "out") == {}
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return said


@formats
def test_every_image_is_in_the_parts_once_under_its_label_unchanged(images, tmp_path, format_name):
    manifest = convert(small("images", images, parts=5), tmp_path / "out", format_name, workers=2)
    assert (manifest.format, manifest.source, manifest.seed) == (format_name, str(images), 3)
    assert manifest.classes == ["n01", "n02", "n03"]
    assert manifest.images_per_class == [7, 1, 4]
    assert {part.images for part in manifest.parts} == {2, 3}
    expected = [
        (label, path.read_bytes())
        for label, synset in enumerate(manifest.classes)
        for path in (images / "train" / synset).iterdir()
    ]
    found = record_readers.read_images(tmp_path / "out", format_name)
    assert Counter(found) == Counter(expected)


def test_the_order_depends_on_the_seed_alone(images, tmp_path):
    def order(**changes):
        convert(small("images", images, **changes), tmp_path, "ofrecord")
        return record_readers.read_images(tmp_path, "ofrecord")

    assert order(parts=1, seed=1) == order(parts=4, seed=1) != order(parts=1, seed=2)


def test_dalis_index_gives_offset_and_size_of_every_tfrecord(images, tmp_path):
    convert(small("images", images, parts=2), tmp_path)
    part = (tmp_path / "part-00000").read_bytes()
    end = 0
    for line in (tmp_path / "part-00000.idx").read_text().splitlines():
        offset, size = map(int, line.split(" "))
        assert offset == end
        (_,) = record_readers.tfrecords(part[offset : offset + size])
        end = offset + size
    assert end == len(part)


def test_recordio_has_an_index_and_a_list_for_each_part_and_an_index_for_all(images, tmp_path):
    convert(small("images", images, parts=3), tmp_path, "recordio", workers=2)
    listed, joint, before = [], [], 0
    for name in ("part-00000", "part-00001", "part-00002"):
        part = (tmp_path / f"{name}.rec").read_bytes()
        index, rows = (
            [line.split("\t") for line in (tmp_path / f"{name}{suffix}").read_text().splitlines()]
            for suffix in (".idx", ".lst")
        )
        found = record_readers.recordio(part)
        for (key, begin), row, (offset, record) in zip(index, rows, found, strict=True):
            row_key, label, path = row
            assert (key, int(begin)) == (row_key, offset)
            image = (float(label), int(key), (images / "train" / path).read_bytes())
            assert record_readers.image_record(record) == image
            listed.append(int(key))
            joint.append(f"{key}\t{before + offset}\n")
        before += len(part)
    assert sorted(listed) == list(range(12))
    assert (tmp_path / "all.idx").read_text() == "".join(joint)


@formats
def test_only_cmyk_jpegs_and_pngs_are_encoded_anew(images, tmp_path, format_name):
    odd = {"n01/cmyk.JPEG": CMYK, "n03/png.JPEG": PNG}
    kept = {"n01/grey.jpg": encoded(picture(3, "L")), "n02/steps.jpeg": jpeg(9, progressive=True)}
    write(images / "train", odd | kept)
    manifest = convert(small("images", images), tmp_path / "out", format_name)
    written = [data for _, data in record_readers.read_images(tmp_path / "out", format_name)]
    assert manifest.reencoded == ["n01/cmyk.JPEG", "n03/png.JPEG"]
    assert set(kept.values()) <= set(written)
    assert not set(odd.values()) & set(written)
    assert all(data.startswith(b"\xff\xd8") for data in written)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_a_png_of_up_to_8_bits_a_sample_is_encoded_anew(images, tmp_path, mode):
    image = picture(1).convert(mode)
    twice = {"save_all": True, "append_images": [image]}  # an animation: the first is the image
    odd = {"odd.JPEG": encoded(image, "PNG", **twice), "one.JPEG": encoded(picture(1, size=(1, 1)))}
    write(images / "train" / "n02", odd)
    assert convert(small("images", images), tmp_path / "out").reencoded == ["n02/odd.JPEG"]


def test_names_may_hold_any_letters_and_hidden_or_other_files_are_passed_over(images, tmp_path):
    more = {"n02/ein Fisch, 魚.JPEG": jpeg(5), "n01/.DS_Store": "", ".cache/x": "", "notes.txt": ""}
    write(images / "train", more | {"n01/README.txt": ""})
    manifest = convert(small("images", images), tmp_path / "out")
    found = record_readers.read_folder(tmp_path / "out", "tfrecord")
    assert "ein Fisch, 魚.JPEG" in [one["image/filename"].decode() for one in found]
    assert manifest.images_per_class == [7, 2, 4]
    assert manifest.ignored == 1


def chunked(kind: bytes, data: bytes) -> bytes:
    """A PNG with one more chunk behind its header."""
    chunk = struct.pack(">I", len(data)) + kind + data
    return PNG[:33] + chunk + struct.pack(">I", zlib.crc32(kind + data)) + PNG[33:]


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header says that it is as large."""
    header = b"IHDR" + struct.pack(">II", width, height) + PNG[24:29]
    return PNG[:12] + header + struct.pack(">I", zlib.crc32(header)) + PNG[33:]


LARGE = "does not decode: 40000x40000 pixels, more than 80000000"
BROKEN = {
    "empty": (b"", "an empty file"),
    "cut": (jpeg()[:500], "does not decode: its headers are cut short or damaged"),
    "cut PNG": (PNG[:900], "does not decode: .*"),
    "cut CMYK": (CMYK[:-700], "does not decode: cut: .*"),
    "bomb": (claiming(60_000, 60_000), "does not decode: .*decompression bomb.*"),
    "large": (claiming(10_000, 10_000), "does not decode: 10000x10000 pixels, more than 80000000"),
    "large JPEG": (jpeg().replace(b"\0\x20\0\x30\3", b"\x9c\x40\x9c\x40\3"), LARGE),
    "large CMYK": (CMYK.replace(b"\0\x20\0\x30\4", b"\x9c\x40\x9c\x40\4"), LARGE),
    "large text": (chunked(b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 24))), "does not .*: .+"),
    "16 bits": (encoded(Image.new("I;16", (8, 8)), "PNG"), ".*: more than 8 bits per sample.*"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_an_image_that_is_broken_or_would_fill_the_memory_or_lose_its_bits_is_named(
    images, refusal, data, reason
):
    bad = write(images / "train" / "n02" / "bad.JPEG", data)
    assert re.fullmatch(f"{bad}: {reason}; allowed: a JPEG", refusal())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (os.mkfifo, "is not a file; allowed: a JPEG"),
        (Path.mkdir, "is not a file; allowed: a JPEG"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a file; allowed: a JPEG"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
        (lambda path: path.symlink_to("nowhere"), "cannot be read: No such file or directory"),
        (lambda path: grow(path, 1 << 40), f"has {1 << 40} bytes; allowed: up to {1 << 27}"),
        (lambda path: grow(path, (1 << 27) + 1), f"has {(1 << 27) + 1} bytes; allowed: up to .*"),
        (lambda path: grow(path, 1 << 27), "does not decode: not a JPEG; allowed: a JPEG"),
    ],
)
def test_what_is_called_an_image_and_is_none_is_named_and_not_waited_for(
    images, refusal, make, said
):
    odd = images / "train" / "n02" / "odd.JPEG"
    make(odd)
    assert re.fullmatch(f"{odd}: {said}", refusal())


def grow(path: Path, size: int) -> None:
    """Make a file of so many bytes, of which nothing is written."""
    path.touch()
    os.truncate(path, size)


@pytest.mark.parametrize("name", [b"caf\xe9.JPEG", b"tab\t.JPEG", b"line\n.JPEG"])
def test_a_name_that_the_formats_cannot_carry_is_shown(images, refusal, name):
    write(images / "train" / "n02" / os.fsdecode(name), jpeg())
    assert refusal().startswith(f"{images}/train/n02: file name {name!r}; allowed: names ")


def test_classes_that_cannot_be_listed_or_shared_are_named(images, refusal):
    assert refusal(parts=13).startswith(f"{images}/train: 12 images for 13 parts; allowed: at leas")
    write(images / "train" / "n04" / "readme.txt", "")
    empty = f"{images}/train/n04: an empty class; allowed: at least one *.JPEG"
    assert refusal() == empty
    (images / "train" / "n00").symlink_to("n00")
    assert refusal().startswith(f"{images}/train: cannot be read: Too many levels of symbolic")
    layout = "allowed: a folder that holds train/<synset>/*.JPEG"
    shutil.rmtree(images)
    assert refusal() == f"{images}: no such folder; {layout}"
    images.mkdir()
    assert refusal() == f"{images}/train: no such folder; {layout}"
    (images / "train").mkdir()
    assert refusal() == f"{images}/train: holds no images; {layout}"
