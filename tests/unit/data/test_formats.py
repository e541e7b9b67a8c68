"""Records of images are what others write, and hold what is put into them."""

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reperf.data.images.formats import LONGEST, OFRECORD, RECORDIO, TFRECORD
from reperf.data.images.image import Image
from reperf.data.wire import masked, varint

from tests.unit.data import record_readers
from tests.unit.data.record_readers import MAGIC, crc32c

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

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)
images = st.builds(
    Image,
    data=st.binary(max_size=300),
    height=st.integers(1, 65535),
    width=st.integers(1, 65535),
    label=st.integers(0, 2**24),  # what RecordIO's float holds exactly
    synset=names,
    name=names,
    index=st.integers(0, 2**31),
    reencoded=st.just(False),
)


def framed(record_format, image):
    return b"".join(record_format.frame(image))


def test_the_readers_checksum_is_crc32c():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the CRC catalogue
    assert record_readers.unmasked(masked(0xE3069283)) == 0xE3069283


@pytest.mark.parametrize(
    ("record_format", "image", "written"),
    [
        (TFRECORD, TENCH, TENCH_BY_TENSORFLOW),
        (OFRECORD, TENCH, TENCH_BY_ONEFLOW),
        (RECORDIO, TENCH._replace(data=MAGICAL, index=70000), MAGICAL_BY_MXNET),
    ],
)
def test_a_record_is_what_others_write(record_format, image, written):
    assert framed(record_format, image) == written


@given(images)
@pytest.mark.parametrize("name", ["tfrecord", "ofrecord"])
def test_every_image_is_given_back_with_keys_in_the_order_that_makes_messages_deterministic(
    name, image
):
    wanted = {
        "channels": [3],
        "class/label": [image.label],
        "class/synset": image.synset.encode(),
        "colorspace": b"RGB",
        "data_id": str(image.index).encode(),
        "encoded": image.data,
        "filename": image.name.encode(),
        "format": b"JPEG",
        "height": [image.height],
        "width": [image.width],
    }
    if name == "tfrecord":
        del wanted["data_id"]
        wanted = {f"image/{key}": value for key, value in wanted.items()}
        wanted["image/class/label"] = [image.label + 1]
    record_format = {"tfrecord": TFRECORD, "ofrecord": OFRECORD}[name]
    (found,) = record_readers.records(framed(record_format, image), name)
    assert list(found.items()) == sorted(wanted.items())


@given(images, st.lists(st.sampled_from([WORD, WORD[:2], b"a", b"bc", b"defg"]), max_size=12))
@example(TENCH, [])
@example(TENCH, [WORD])
@example(TENCH, [WORD, WORD])
@example(TENCH, [b"defg", WORD])
@example(TENCH, [b"a", WORD, WORD])
def test_recordio_gives_every_image_back_wherever_the_magic_word_stands(image, pieces):
    """And at multiples of four that word stands only where a piece begins."""
    image = image._replace(data=b"".join(pieces) + image.data)
    record = framed(RECORDIO, image)
    ((offset, content),) = record_readers.recordio(record)
    assert offset == 0
    assert record_readers.image_record(content) == (image.label, image.index, image.data)
    words = struct.unpack(f"<{len(record) // 4}I", record)
    at, begins = 0, []
    while at < len(record):
        begins.append(at // 4)
        at += 8 + (words[at // 4 + 1] & LONGEST) + 3 & ~3
    assert [place for place, word in enumerate(words) if word == MAGIC] == begins


@given(st.integers(0, 2**64 - 1))
def test_a_varint_gives_its_number_back(number):
    assert record_readers.varint(varint(number) + b"\x80", 0) == (number, len(varint(number)))


def test_an_image_too_large_for_recordio_is_refused():
    largest = LONGEST - 24  # MXNet's header
    with pytest.raises(ValueError, match=f"{largest + 1} bytes; allowed in RecordIO: {largest}"):
        RECORDIO.frame(TENCH._replace(data=bytes(largest + 1)))
