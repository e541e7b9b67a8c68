"""Images: what is known of a JPEG without decoding it, records of every format, embedded images."""

import io
import json
import struct
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest
from PIL import Image as pillow
from reperf.data.images.convert import FOLDER, PHOTOGRAPHS, make
from reperf.data.images.formats import FORMATS, LONGEST
from reperf.data.images.image import Image, read_headers

from tests.helpers.written_files import write
from tests.unit.data import record_readers
from tests.unit.data.record_readers import MAGIC
from tests.unit.data.sets import convert, encoded, images, jpeg, picture, small

KINDS = {
    "baseline": jpeg(),
    "progressive": jpeg(progressive=True),
    "optimised": jpeg(optimize=True),
    "restarts": jpeg(restart_marker_blocks=2),
    "with a comment": jpeg(comment=b"\xff\xd9 no end"),
    "with EXIF": jpeg(exif=b"Exif\0\0" + jpeg(seed=7)),
    "grey": encoded(picture(0, "L")),
    "CMYK": encoded(picture(0, "CMYK")),
}
WHOLE = KINDS["baseline"]


def sized(height: int, width: int, components: int = 3) -> bytes:
    """A JPEG whose header says that it is as large."""
    return WHOLE.replace(b"\0\x20\0\x30\3", struct.pack(">HHB", height, width, components))


@pytest.mark.parametrize("kind", KINDS)
def test_the_headers_are_what_a_decoder_sees_and_every_cut_is_refused(kind):
    data = KINDS[kind]
    height, width, colours = read_headers(data)
    decoded = pillow.open(io.BytesIO(data))
    assert (width, height) == decoded.size
    assert colours == {"L": "Gray", "RGB": "YCbCr", "CMYK": "CMYK"}[decoded.mode]
    for size in range(len(data)):
        with pytest.raises(ValueError, match=r"cut|not a JPEG"):
            read_headers(data[:size])


@pytest.mark.parametrize(
    "data",
    [WHOLE + bytes(100), *(WHOLE[:2] + more + WHOLE[2:] for more in (b"\xff\xff", b"\xff\x01"))],
    ids=["after the end", "fill bytes", "a marker without a segment"],
)
def test_bytes_after_the_end_and_before_a_marker_are_allowed(data):
    assert read_headers(data) == read_headers(WHOLE)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a JPEG"),
        (b"<html>not found</html>", "not a JPEG"),
        (encoded(picture(0), "GIF"), "not a JPEG"),
        (sized(0, 48), "damaged"),
        (sized(8_001, 10_000), "10000x8001 pixels, more than 80000000"),
        (sized(32, 48, components=2), "damaged"),
        (WHOLE.replace(b"\xff\xc0", b"\xff\xe5"), "damaged"),
    ],
)
def test_what_no_decoder_takes_is_refused_with_the_reason(data, reason):
    with pytest.raises(ValueError, match=reason):
        read_headers(data)
    assert read_headers(sized(8_000, 10_000))[:2] == (8_000, 10_000)


# What others write for these: TensorFlow 2.21, MXNet 1.9.1, and Protocol Buffers 7.36 with
# OneFlow's message definition.
TENCH = Image(b"\xff\xd8JPEG\xff\xd9", 375, 500, 999, "n01440764", "tänch.JPEG", 0, False)
TENCH_BY_TENSORFLOW = bytes.fromhex(
    "06010000000000007599456f0a83020a170a0e696d6167652f6368616e6e656c7312051a030a01030a1b0a11696d61"
    "67652f636c6173732f6c6162656c12061a040a02e8070a230a12696d6167652f636c6173732f73796e736574120d0a"
    "0b0a096e30313434303736340a1b0a10696d6167652f636f6c6f72737061636512070a050a035247420a1d0a0d696d"
    "6167652f656e636f646564120c0a0a0a08ffd84a504547ffd90a210a0e696d6167652f66696c656e616d65120f0a0d"
    "0a0b74c3a46e63682e4a5045470a180a0c696d6167652f666f726d617412080a060a044a5045470a160a0c696d6167"
    "652f68656967687412061a040a02f7020a150a0b696d6167652f776964746812061a040a02f403700a92cc"
)
TENCH_BY_ONEFLOW = bytes.fromhex(
    "df000000000000000a110a086368616e6e656c73120522030a01030a150a0b636c6173732f6c6162656c120622040a"
    "02e7070a1d0a0c636c6173732f73796e736574120d0a0b0a096e30313434303736340a150a0a636f6c6f7273706163"
    "6512070a050a035247420a100a07646174615f696412050a030a01300a170a07656e636f646564120c0a0a0a08ffd8"
    "4a504547ffd90a1b0a0866696c656e616d65120f0a0d0a0b74c3a46e63682e4a5045470a120a06666f726d61741208"
    "0a060a044a5045470a100a06686569676874120622040a02f7020a0f0a057769647468120622040a02f403"
)
WORD = struct.pack("<I", MAGIC)
MAGICAL = b"\xff\xd8JP" + WORD + b"EG" + WORD + b"xx" + WORD + WORD + b"\xff\xd9!"
MAGICAL_BY_MXNET = bytes.fromhex(
    "0a23d7ce1c0000200000000000c0794470110100000000000000000000000000ffd84a500a23d7ce08000040"
    "45470a23d7ce78780a23d7ce000000400a23d7ce03000060ffd92100"
)


@pytest.mark.parametrize(
    ("name", "image", "written"),
    [
        ("tfrecord", TENCH, TENCH_BY_TENSORFLOW),
        ("ofrecord", TENCH, TENCH_BY_ONEFLOW),
        ("recordio", TENCH._replace(data=MAGICAL, index=70000), MAGICAL_BY_MXNET),
    ],
)
def test_a_record_is_what_others_write(name, image, written):
    assert b"".join(FORMATS[name].frame(image)) == written


@pytest.mark.parametrize(
    "pieces",
    [
        *([], [WORD], [WORD, WORD], [b"defg", WORD], [b"a", WORD, WORD], [WORD[:2], WORD]),
        *([WORD, b"a"], [WORD, b"bc", WORD], [WORD[:2], WORD[2:], b"defg", WORD, b"bc"]),
    ],
)
def test_recordio_gives_every_image_back_wherever_the_magic_word_stands(pieces):
    """And at multiples of four that word stands only where a piece begins."""
    image = TENCH._replace(data=b"".join(pieces) + TENCH.data)
    record = b"".join(FORMATS["recordio"].frame(image))
    assert record_readers.recordio(record) == [(0, image.label, image.index, image.data)]
    words = struct.unpack(f"<{len(record) // 4}I", record)
    at, begins = 0, []
    while at < len(record):
        begins.append(at // 4)
        at += 8 + (words[at // 4 + 1] & LONGEST) + 3 & ~3
    assert [place for place, word in enumerate(words) if word == MAGIC] == begins


def test_an_image_too_large_for_recordio_is_refused():
    largest = LONGEST - 24  # MXNet's header
    with pytest.raises(ValueError, match=f"{largest + 1} bytes; allowed in RecordIO: {largest}"):
        FORMATS["recordio"].frame(TENCH._replace(data=bytes(largest + 1)))


formats = pytest.mark.parametrize("format_name", FORMATS)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A set of images that a test may add to."""
    return write(tmp_path / "mine", images(n01=7, n02=1, n03=4))


@formats
def test_every_image_is_in_the_parts_once_under_its_label_unchanged(mine, tmp_path, format_name):
    manifest = convert(small("images", mine, parts=5), tmp_path / "out", format_name)
    assert (manifest.format, manifest.source, manifest.seed) == (format_name, str(mine), 3)
    assert manifest.classes == ["n01", "n02", "n03"]
    assert manifest.images_per_class == [7, 1, 4]
    assert {part.images for part in manifest.parts} == {2, 3}
    expected = [
        (label, path.read_bytes())
        for label, synset in enumerate(manifest.classes)
        for path in (mine / "train" / synset).iterdir()
    ]
    found = record_readers.read_images(tmp_path / "out", format_name)
    assert Counter(found) == Counter(expected)


def test_the_order_depends_on_the_seed_alone(mine, tmp_path):
    def order(**changes):
        convert(small("images", mine, **changes), tmp_path / "out", "ofrecord")
        return record_readers.read_images(tmp_path / "out", "ofrecord")

    assert order(parts=1, seed=1) == order(parts=4, seed=1) != order(parts=1, seed=2)


def test_recordio_has_an_index_and_a_list_for_each_part_and_an_index_for_all(mine, tmp_path):
    convert(small("images", mine, parts=3), tmp_path, "recordio")
    listed, joint, before = [], [], 0
    for name in ("part-00000", "part-00001", "part-00002"):
        part = (tmp_path / f"{name}.rec").read_bytes()
        index, rows = (
            [line.split("\t") for line in (tmp_path / f"{name}{suffix}").read_text().splitlines()]
            for suffix in (".idx", ".lst")
        )
        for (key, begin), row, record in zip(
            index, rows, record_readers.recordio(part), strict=True
        ):
            row_key, label, path = row
            assert key == row_key
            image = (mine / "train" / path).read_bytes()
            assert record == (int(begin), float(label), int(key), image)
            listed.append(int(key))
            joint.append(f"{key}\t{before + int(begin)}\n")
        before += len(part)
    assert sorted(listed) == list(range(12))
    assert (tmp_path / "all.idx").read_text() == "".join(joint)


@formats
def test_only_cmyk_jpegs_and_pngs_are_encoded_anew(mine, tmp_path, format_name):
    odd = {"n01/cmyk.JPEG": KINDS["CMYK"], "n03/png.JPEG": encoded(picture(1), "PNG")}
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):  # up to 8 bits a sample
        image = picture(1).convert(mode)
        twice = {"save_all": True, "append_images": [image]}  # an animation: its first is taken
        odd[f"n03/{mode}.JPEG"] = encoded(image, "PNG", **twice)
    kept = {"n01/grey.jpg": KINDS["grey"], "n02/steps.jpeg": KINDS["progressive"]}
    kept["n02/one.JPEG"] = encoded(picture(1, size=(1, 1)))
    write(mine / "train", odd | kept)
    manifest = convert(small("images", mine), tmp_path / "out", format_name)
    written = [data for _, data in record_readers.read_images(tmp_path / "out", format_name)]
    assert manifest.reencoded == sorted(odd)
    assert set(kept.values()) <= set(written)
    assert not set(odd.values()) & set(written)
    opened = [pillow.open(io.BytesIO(data)) for data in written if data not in kept.values()]
    anew = [image for image in opened if image.mode == "RGB"]
    assert [(image.format, image.size) for image in anew] == [("JPEG", (48, 32))] * len(odd)


def test_names_may_hold_any_letters_and_hidden_or_other_files_are_passed_over(mine, tmp_path):
    more = {"n02/ein Fisch, 魚.JPEG": jpeg(5), "n01/.DS_Store": "", ".cache/x": "", "notes.txt": ""}
    write(mine / "train", more | {"n01/README.txt": ""})
    manifest = convert(small("images", mine), tmp_path / "out")
    found = record_readers.read_folder(tmp_path / "out", "tfrecord")
    assert "ein Fisch, 魚.JPEG" in [one["image/filename"].decode() for one in found]
    assert manifest.images_per_class == [7, 2, 4]
    assert manifest.ignored == 1


def test_the_embedded_images_are_like_imagenets_and_the_same_each_time(tmp_path):
    """No two are alike, and nothing of a larger set is left."""
    again = write(tmp_path / "b", {"train/n09999999/x": "", ".train.partial/n08888888/x": ""})
    for folder in (tmp_path / "a", again):
        make(folder, images_per_class=2)
    files = {
        str(path.relative_to(again)): path.read_bytes()
        for path in again.rglob("*")
        if not path.is_dir()
    }
    assert files == {name: (tmp_path / "a" / name).read_bytes() for name in files}
    made = json.loads(files.pop("manifest.json"))
    assert files.keys() == {f"train/{one}/{one}_{k}.JPEG" for one in PHOTOGRAPHS for k in (0, 1)}
    assert len(set(files.values())) == made["images"] == 16
    assert made["bytes"] == sum(map(len, files.values()))
    assert made["classes"] == sorted(PHOTOGRAPHS)
    sizes = Counter(read_headers(one)[:2] for one in files.values())
    assert 100_000 < mean(map(len, files.values())) < 120_000
    assert sizes == {(375, 500): 6, (333, 500): 5, (500, 375): 5}


def test_every_photograph_is_shipped_with_its_source_and_licence():
    table = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in Path(FOLDER, "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and ".jpg" in line
    ]
    assert {row[0] for row in table} == set(PHOTOGRAPHS.values())
    assert {path.name for path in FOLDER.glob("*.jpg")} == set(PHOTOGRAPHS.values())
    assert all(len(row) == 4 and all(row) for row in table)
