import os
import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image
from reperf.data.images.convert_images import convert
from reperf.data.images.formats import FORMATS
from reperf.data.images.kind import KIND
from reperf.data.images.manifest import ImageManifest
from reperf.data.manifest import read_of_set
from reperf.errors import ReperfError

from tests.unit.data import record_readers
from tests.unit.data.pictures import encoded, jpeg, make_set, picture

formats = pytest.mark.parametrize("format_name", FORMATS)


@pytest.fixture
def images(tmp_path):
    return make_set(tmp_path / "images", n01=7, n02=1, n03=4)


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def records(folder: Path, manifest: ImageManifest) -> list[tuple[int, bytes]]:
    """The (label, JPEG) of every record, in the order of the parts."""
    return [
        record
        for part in manifest.parts
        for record in record_readers.read_part(folder / part.name, manifest.format)
    ]


def test_every_format_of_the_configuration_can_be_made():
    assert tuple(FORMATS) == KIND.formats


@formats
def test_every_image_is_in_the_parts_once_under_its_label_unchanged(images, tmp_path, format_name):
    manifest = convert(images, tmp_path / "out", format_name, parts=5, workers=2, seed=1)
    expected = [
        (label, path.read_bytes())
        for label, synset in enumerate(["n01", "n02", "n03"])
        for path in (images / "train" / synset).iterdir()
    ]
    assert Counter(records(tmp_path / "out", manifest)) == Counter(expected)


@formats
def test_the_manifest_says_what_lies_there(images, tmp_path, format_name):
    manifest = convert(images, tmp_path / "out", format_name, parts=5, workers=2, seed=3)
    assert ImageManifest.read(tmp_path / "out" / "manifest.json") == manifest
    assert (manifest.format, manifest.source, manifest.seed) == (format_name, str(images), 3)
    assert manifest.classes == ["n01", "n02", "n03"]
    assert manifest.images_per_class == [7, 1, 4]
    assert manifest.images == sum(part.images for part in manifest.parts) == 12
    assert manifest.bytes == sum(part.bytes for part in manifest.parts)
    said = read_of_set(str(tmp_path / "out"))
    assert said == {
        "name": tmp_path.name,
        "counted": "images",
        "samples": 12,
        "bytes": manifest.bytes,
    }
    suffix = FORMATS[format_name].suffix
    assert [part.name for part in manifest.parts] == [f"part-0000{k}{suffix}" for k in range(5)]
    assert {part.images for part in manifest.parts} == {2, 3}
    for part in manifest.parts:
        written = (tmp_path / "out" / part.name).read_bytes()
        checksum = f"{record_readers.crc32c(written):08x}"
        assert (len(written), checksum) == (part.bytes, part.crc32c)


@formats
def test_the_bytes_do_not_depend_on_the_workers(images, tmp_path, format_name):
    one, three = tmp_path / "one", tmp_path / "three"
    convert(images, one, format_name, parts=4, workers=1, seed=1)
    convert(images, three, format_name, parts=4, workers=3, seed=1)
    assert content(one) == content(three)


def test_the_order_depends_on_the_seed_alone(images, tmp_path):
    def order(parts, seed):
        folder = tmp_path / f"{parts}-{seed}"
        return records(
            folder, convert(images, folder, "ofrecord", parts=parts, workers=1, seed=seed)
        )

    assert order(parts=1, seed=1) == order(parts=4, seed=1)
    assert order(parts=1, seed=1) != order(parts=1, seed=2)


def test_dalis_index_gives_offset_and_size_of_every_tfrecord(images, tmp_path):
    convert(images, tmp_path, "tfrecord", parts=2, workers=1, seed=1)
    part = (tmp_path / "part-00000").read_bytes()
    end = 0
    for line in (tmp_path / "part-00000.idx").read_text().splitlines():
        offset, size = map(int, line.split(" "))
        assert offset == end
        (_,) = record_readers.tfrecords(part[offset : offset + size])
        end = offset + size
    assert end == len(part)


def test_recordio_has_an_index_and_a_list_for_each_part_and_an_index_for_all(images, tmp_path):
    convert(images, tmp_path, "recordio", parts=3, workers=2, seed=1)
    listed, joint, before = [], [], 0
    for name in ("part-00000", "part-00001", "part-00002"):
        part = (tmp_path / f"{name}.rec").read_bytes()
        index = [line.split("\t") for line in (tmp_path / f"{name}.idx").read_text().splitlines()]
        rows = [line.split("\t") for line in (tmp_path / f"{name}.lst").read_text().splitlines()]
        found = record_readers.recordio(part)
        assert [int(offset) for _, offset in index] == [offset for offset, _ in found]
        for (key, _), (row_key, label, path), (offset, record) in zip(
            index, rows, found, strict=True
        ):
            in_record = record_readers.image_record(record)
            assert key == row_key
            assert in_record == (float(label), int(key), (images / "train" / path).read_bytes())
            joint.append(f"{key}\t{before + offset}\n")
        listed += [int(key) for key, _ in index]
        before += len(part)
    assert sorted(listed) == list(range(12))
    assert (tmp_path / "all.idx").read_text() == "".join(joint)


@formats
def test_only_cmyk_jpegs_and_pngs_are_encoded_anew(images, tmp_path, format_name):
    odd = {
        "n01/cmyk.JPEG": encoded(picture(1, "CMYK")),
        "n03/png.JPEG": encoded(picture(2), "PNG"),
    }
    kept = {"n01/grey.jpg": encoded(picture(3, "L")), "n02/steps.jpeg": jpeg(9, progressive=True)}
    for name, data in (odd | kept).items():
        (images / "train" / name).write_bytes(data)
    manifest = convert(images, tmp_path / "out", format_name, parts=1, workers=1, seed=1)
    written = [data for _, data in records(tmp_path / "out", manifest)]
    assert manifest.reencoded == ["n01/cmyk.JPEG", "n03/png.JPEG"]
    assert set(kept.values()) <= set(written)
    assert not set(odd.values()) & set(written)
    assert all(data.startswith(b"\xff\xd8") for data in written)


def test_names_may_hold_any_letters_and_spaces(images, tmp_path):
    (images / "train" / "n02" / "ein Fisch, 魚.JPEG").write_bytes(jpeg(5))
    manifest = convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
    messages = record_readers.tfrecords((tmp_path / "out" / "part-00000").read_bytes())
    names = [record_readers.example(message)["image/filename"].decode() for message in messages]
    assert "ein Fisch, 魚.JPEG" in names
    assert manifest.images_per_class == [7, 2, 4]


def test_hidden_files_are_passed_over_and_others_that_are_no_jpegs_counted(images, tmp_path):
    (images / "train" / "n01" / ".DS_Store").touch()
    (images / "train" / ".cache").mkdir()
    (images / "train" / "n01" / "README.txt").touch()
    (images / "train" / "notes.txt").touch()
    manifest = convert(images, tmp_path / "out", "ofrecord", parts=1, workers=1, seed=1)
    assert (manifest.images, manifest.ignored) == (12, 1)


@formats
def test_a_second_conversion_leaves_nothing_of_the_first(images, tmp_path, format_name):
    convert(images, tmp_path / "again", format_name, parts=6, workers=2, seed=1)
    convert(images, tmp_path / "again", format_name, parts=2, workers=2, seed=1)
    convert(images, tmp_path / "once", format_name, parts=2, workers=2, seed=1)
    assert content(tmp_path / "again") == content(tmp_path / "once")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("empty.JPEG", b"", "an empty file; allowed: a JPEG"),
        ("cut.JPEG", jpeg()[:500], "does not decode: cut inside its headers; allowed: a JPEG"),
        ("page.JPEG", b"<html>", "does not decode: not a JPEG; allowed: a JPEG"),
        ("png.JPEG", encoded(picture(1), "PNG")[:900], "does not decode: .*; allowed: a JPEG"),
        ("cmyk.JPEG", encoded(picture(1, "CMYK"))[:-700], "does not decode: cut: .*"),
    ],
)
def test_an_image_that_does_not_decode_is_named_and_leaves_no_part(
    images, tmp_path, name, data, reason
):
    bad = images / "train" / "n02" / name
    bad.write_bytes(data)
    with pytest.raises(ReperfError, match=f"^{bad}: {reason}$"):
        convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
    assert content(tmp_path / "out") == {}


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header says that it is as large."""
    small = encoded(picture(1), "PNG")
    header = b"IHDR" + struct.pack(">II", width, height) + small[24:29]
    return small[:12] + header + struct.pack(">I", zlib.crc32(header)) + small[33:]


def chunked(kind: bytes, content: bytes) -> bytes:
    """A PNG with one chunk more, behind its header."""
    small = encoded(picture(1), "PNG")
    sizes = struct.pack(">I", len(content)), struct.pack(">I", zlib.crc32(kind + content))
    return small[:33] + sizes[0] + kind + content + sizes[1] + small[33:]


CMYK = encoded(picture(1, "CMYK"))
TOO_MUCH = {
    "bomb": (claiming(60_000, 60_000), "decompression bomb"),
    "large": (claiming(10_000, 10_000), "10000x10000 pixels, more than 80000000"),
    "longest": (claiming(2**31 - 1, 2**31 - 1), "."),
    "jpeg": (jpeg().replace(b"\0\x20\0\x30\3", b"\xff\xdc\xff\xdc\3"), "65500x65500 pixels"),
    "cmyk": (CMYK.replace(b"\0\x20\0\x30\4", b"\xff\xff\xff\xff\4"), "65535x65535 pixels"),
    "text": (chunked(b"zTXt", b"a\0\0" + zlib.compress(bytes(1 << 24))), "."),
    "16 bits": (encoded(Image.new("I;16", (8, 8)), "PNG"), "more than 8 bits per sample"),
    "gif": (encoded(picture(1), "GIF"), "not a JPEG"),
    "tiff": (encoded(picture(1), "TIFF"), "not a JPEG"),
    "filled": (b"\xff\xd8" + b"\xff" * 200_000 + jpeg()[2:], "more than 100000 markers"),
    "bare": (b"\xff\xd8" + b"\xff\x01" * 200_000, "more than 100000 markers"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("data", "reason"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_an_image_that_would_fill_the_memory_or_lose_its_bits_is_named(
    images, tmp_path, data, reason
):
    bad = images / "train" / "n02" / "bad.JPEG"
    bad.write_bytes(data)
    with pytest.raises(ReperfError, match=f"^{bad}: does not decode: .*{reason}.*; allowed: a J"):
        convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
    assert content(tmp_path / "out") == {}


def test_what_is_called_an_image_and_is_no_file_is_named_and_not_waited_for(images, tmp_path):
    odd = images / "train" / "n02" / "odd.JPEG"
    for make, reason in (
        (os.mkfifo, "is not a file; allowed: a JPEG"),
        (Path.mkdir, "is not a file; allowed: a JPEG"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a file; allowed: a JPEG"),
        (lambda path: path.symlink_to(path), "cannot be read: Too many levels of symbolic links"),
        (grow, f"has {1 << 40} bytes; allowed: up to {1 << 27}"),
    ):
        make(odd)
        with pytest.raises(ReperfError, match=f"^{odd}: {reason}$"):
            convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
        odd.rmdir() if odd.is_dir() else odd.unlink()


def grow(path: Path) -> None:
    """Make a file of a terabyte, of which nothing is written."""
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_a_png_of_up_to_8_bits_a_sample_is_encoded_anew(images, tmp_path, mode):
    image = picture(1).convert(mode)
    twice = {"save_all": True, "append_images": [image]}  # an animation: the first is the image
    (images / "train" / "n02" / "odd.JPEG").write_bytes(encoded(image, "PNG", **twice))
    (images / "train" / "n02" / "one.JPEG").write_bytes(encoded(picture(1, size=(1, 1))))
    made = convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
    assert made.reencoded == ["n02/odd.JPEG"]


def test_a_class_that_is_a_loop_of_links_is_named(images, tmp_path):
    (images / "train" / "n05").symlink_to("n05")
    with pytest.raises(ReperfError, match=r"train: cannot be read: Too many levels of symbolic"):
        convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)


def test_an_image_that_cannot_be_read_is_named(images, tmp_path):
    (images / "train" / "n02" / "gone.JPEG").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ReperfError, match=r"n02/gone.JPEG: cannot be read: No such file"):
        convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)


def test_an_empty_class_is_named(images, tmp_path):
    (images / "train" / "n04").mkdir()
    (images / "train" / "n04" / "readme.txt").touch()
    with pytest.raises(ReperfError, match=r"train/n04: an empty class; allowed: at least one"):
        convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)


@pytest.mark.parametrize("name", [b"caf\xe9.JPEG", b"tab\t.JPEG", b"line\n.JPEG"])
def test_a_name_that_the_formats_cannot_carry_is_shown(images, tmp_path, name):
    (images / "train" / "n02" / os.fsdecode(name)).write_bytes(jpeg())
    with pytest.raises(ReperfError) as refusal:
        convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
    assert str(refusal.value).startswith(f"{images}/train/n02: file name {name!r}; allowed: names ")


def test_a_missing_folder_and_one_without_images_are_named(tmp_path):
    def refusal(images):
        with pytest.raises(ReperfError) as caught:
            convert(images, tmp_path / "out", "tfrecord", parts=1, workers=1, seed=1)
        return str(caught.value)

    layout = "allowed: a folder that holds train/<synset>/*.JPEG"
    assert refusal(tmp_path / "no") == f"{tmp_path}/no: no such folder; {layout}"
    (tmp_path / "no").mkdir()
    assert refusal(tmp_path / "no") == f"{tmp_path}/no/train: no such folder; {layout}"
    (tmp_path / "no" / "train").mkdir()
    assert refusal(tmp_path / "no") == f"{tmp_path}/no/train: holds no images; {layout}"


def test_fewer_images_than_parts_are_refused(images, tmp_path):
    with pytest.raises(ReperfError, match=r"12 images for 13 parts; allowed: at least one image"):
        convert(images, tmp_path / "out", "tfrecord", parts=13, workers=1, seed=1)


def test_wrong_input_does_not_cost_what_was_converted_before(images, tmp_path):
    convert(images, tmp_path / "out", "tfrecord", parts=2, workers=1, seed=1)
    before = content(tmp_path / "out")
    (images / "train" / "n04").mkdir()
    with pytest.raises(ReperfError):
        convert(images, tmp_path / "out", "tfrecord", parts=2, workers=1, seed=1)
    assert content(tmp_path / "out") == before
