"""Input of each kind that cannot be converted: refused in one line, and nothing is left."""

import gzip
import os
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from reperf.data import text_files
from reperf.data.kinds import KINDS
from reperf.data.text_files import END
from reperf.errors import ReperfError

from tests.helpers.written_files import write
from tests.unit.data.sets import (
    byte_pairs,
    content,
    convert,
    encoded,
    headers,
    images,
    jpeg,
    picture,
    small,
)

VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n"
CLICK = ["1", "3", "-2", "", "0", "64000", *8 * ["12"], "68fd1e64", "", *24 * ["00ff00aa"]]
LINE = "\t".join(CLICK) + "\n"
LONGER = "line 3 belongs to no other: source.txt has"
TOO_LONG = "has 42 tokens with its end; allowed: up to 41, `longest`"
OF_TEXT = "allowed: a sentence a line, an empty line between documents, UTF-8"
OF_IMAGES = "allowed: a folder that holds train/<synset>/*.JPEG"
CMYK, PNG = encoded(picture(1, "CMYK")), encoded(picture(1), "PNG")


def refusal(data, tmp_path: Path) -> str:
    """Why a set is refused."""
    with pytest.raises(ReperfError) as caught:
        convert(data, tmp_path / "out")
    assert content(tmp_path / "out") == {}
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"{tmp_path}/")
    return said.removeprefix(f"{tmp_path}/")


def holding(make: Callable[[Path], None], *folders: str) -> Callable[[Path], None]:
    """What makes a folder that holds `odd`, which is no usual file, perhaps in further folders."""

    def fill(path: Path) -> None:
        path.joinpath(*folders).mkdir(parents=True)
        make(path.joinpath(*folders, "odd"))

    return fill


def line_with(column: int, *found: str) -> str:
    """A line of clicks with another field, or several, or none, in a column, from 1."""
    return "\t".join([*CLICK[: column - 1], *found, *CLICK[column:]]) + "\n"


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def named(raw: bytes) -> dict[str, bytes]:
    """Images of which one has such a name."""
    return {f"train/n02/{os.fsdecode(raw)}": headers(1)} | images(n02=1)


@pytest.mark.parametrize(
    ("kind", "written", "said"),
    [
        ("tokens", b"", f"own: an empty text; allowed: text in UTF-8, with a line {END} "),
        ("tokens", b"good\n" * 99 + b"\xff\n", r"own: byte 495: got b'\xff'; allowed: text in UTF"),
        ("tokens", b"all in one line", "own: part 1 of 2 would hold no text; allowed: at least a "),
        ("words", b"one 1\none 2", "own: the most frequent word, 'one', is there 2 times; allowed"),
        ("words", b"?!\n", "own: holds no word; allowed: text"),
        ("words", b"a\n" * 30, "own: part 0 of 2 would hold no line with two words; allowed: more"),
        ("pairs", (b"a\n" * 4, b"a\n" * 2), f"own/source.txt: {LONGER} 4 lines and target.txt 2; "),
        ("pairs", (b"a\nb\n", b"a\nb\nc"), f"own/target.txt: {LONGER} 2 lines and target.txt 3; "),
        ("pairs", (b"a\nb\n", b""), "own/target.txt: an empty file; allowed: a folder that holds "),
        ("pairs", (b"a\n" * 2, b"a\n\xff\n"), r"own/target.txt: byte 2: got b'\xff'; allowed: a f"),
        ("pairs", (b"a\n" * 2, b"a\n" + b"c" * 41), f"own/target.txt: line 2: {TOO_LONG}"),
        ("pairs", (b"a\n",), "own/target.txt: no such file; allowed: a folder that holds source."),
        ("pairs", (b"a\n", b"b\n"), "own: has 1 pairs; allowed: one or more for each of 2 parts"),
        *(
            ("clicks", 30 * LINE + line_with(column, *found) + 9 * LINE, f"own, line 31: {said}")
            for column, found, said in (
                (40, [], "39 columns; allowed: 40, 0 or 1, 13 integers and 26 words of 8 hexadeci"),
                (40, ["00ff00aa", ""], "41 columns; allowed: 40"),
                (1, ["2"], "column 1: got '2'; allowed: 0 or 1"),
                (1, ["10"], "column 1: got '10'; allowed: 0 or 1"),
                (
                    2,
                    ["1.5"],
                    "column 2: got '1.5'; allowed: a whole number of up to 18 digits, or ",
                ),
                (2, ["-"], "column 2: got '-'; allowed: a whole number"),
                (14, ["9" * 19], "column 14: got '9999999999999999999'; allowed: a whole number"),
                (40, ["xyzw0000"], "column 40: got 'xyzw0000'; allowed: 8 hexadecimal digits, 0 "),
                (15, ["0123456"], "column 15: got '0123456'; allowed: 8 hexadecimal"),
                (40, ["x" * 41], f"column 40: got '{'x' * 40}...'; allowed: 8 hexadecimal"),
                (40, ["00ff00aa\r"], r"column 40: got '00ff00aa\r'; allowed: 8 hexadecimal"),
            )
        ),
        *((kind, None, f"own{'/source.txt' * (kind == 'pairs')}: no such f") for kind in KINDS),
        ("clicks", LINE, "own: part 1 of 2 would hold no line; allowed: at least one for each"),
        ("clicks", b"x" * 10_000, "own, line 1: 1 columns; allowed: 40, 0 or 1, 13 integers"),
        ("text", b"One.\n\n" * 9 + b"\xff\n", r"own: byte 54: got b'\xff'; allowed: a sentence "),
        ("text", b"1.\n\n1.\n\n\0\n\n\0", "own: part 1 of 2 would hold no word; allowed: words in"),
        ("text", "", f"own: an empty text; {OF_TEXT}"),
        ("text", "\ufeff\n \n", f"own: holds no text; {OF_TEXT}"),
        ("text", "One.\nTwo.\n", "own: 1 documents for 2 parts; allowed: at least 2 per part, an "),
        # Before anything is said about its lines.
        ("text", b"\xff\xfeO\0\n\0", rf"own: byte 0: got b'\xff'; {OF_TEXT}"),
        ("text", gzip.compress(b"One.\n\nTwo.", mtime=0), f"own: compressed by gzip; {OF_TEXT}"),
        ("text", {}, f"own: holds no files; {OF_TEXT}"),
        ("text", holding(os.mkfifo), f"own/odd: is not a file; {OF_TEXT}"),
        ("text", holding(link("odd")), "own/odd: cannot be read: Too many levels"),
        ("text", holding(link("..")), f"own/odd: is not a file; {OF_TEXT}"),
        ("images", images(n01=1), "own/train: 1 images for 2 parts; allowed: at least one image"),
        ("images", {"train/n04/readme.txt": ""}, "own/train/n04: an empty class; allowed: at lea"),
        ("images", holding(link("odd"), "train"), "own/train: cannot be read: Too many levels of "),
        ("images", {}, f"own/train: no such folder; {OF_IMAGES}"),
        ("images", {"train/a file": ""}, f"own/train: holds no images; {OF_IMAGES}"),
        *(
            ("images", named(raw), f"own/train/n02: file name {raw!r}; allowed: names ")
            for raw in (b"caf\xe9.JPEG", b"tab\t.JPEG", b"line\n.JPEG")
        ),
    ],
)
def test_input_that_cannot_be_converted_is_named_and_leaves_nothing(
    kind, written, said, tmp_path, monkeypatch
):
    keys = {"longest": 41}
    if isinstance(written, tuple):
        written = dict(zip(("source.txt", "target.txt"), written, strict=False))
    if kind == "text":
        keys = {"vocabulary": write(tmp_path / "mine.txt", VOCABULARY), "vocabulary_size": 7}
    if kind == "clicks":
        monkeypatch.setattr(text_files, "PIECE", 1000)  # several pieces in each part
    if written is None:
        written = Path.exists
    (written if callable(written) else lambda path: write(path, written))(tmp_path / "own")
    assert refusal(small(kind, tmp_path / "own", parts=2, **keys), tmp_path).startswith(said)


def chunked(kind: bytes, data: bytes) -> bytes:
    """A PNG with one more chunk behind its header."""
    chunk = struct.pack(">I", len(data)) + kind + data
    return PNG[:33] + chunk + struct.pack(">I", zlib.crc32(kind + data)) + PNG[33:]


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes whose header says that it is as large."""
    header = b"IHDR" + struct.pack(">II", width, height) + PNG[24:29]
    return PNG[:12] + header + struct.pack(">I", zlib.crc32(header)) + PNG[33:]


def of_size(size: int) -> Callable[[Path], None]:
    """What makes a file of so many bytes, of which nothing is written."""
    return lambda path: (path.touch(), os.truncate(path, size))


LARGE = "does not decode: 40000x40000 pixels, more than 80000000"
NO_FILE = "is not a file"
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
    "pipe": (os.mkfifo, NO_FILE),
    "folder": (Path.mkdir, NO_FILE),
    "device": (link("/dev/zero"), NO_FILE),
    "largest": (of_size(1 << 27), "does not decode: not a JPEG"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        *((made, f"{said}; allowed: a JPEG") for made, said in BROKEN.values()),
        (link("bad.JPEG"), "cannot be read: Too many levels of symbolic links"),
        (link("nowhere"), "cannot be read: No such file or directory"),
        (of_size((1 << 27) + 1), f"has {(1 << 27) + 1} bytes; allowed: up to {1 << 27}"),
    ],
    ids=[*BROKEN, "loop", "gone", "too large"],
)
def test_an_image_that_is_broken_or_would_fill_the_memory_or_lose_its_bits_is_named(
    made, said, tmp_path
):
    """And not waited for."""
    own = write(tmp_path / "own", images(n02=1))
    bad = own / "train/n02/bad.JPEG"
    made(bad) if callable(made) else bad.write_bytes(made)
    found = refusal(small("images", own, parts=1), tmp_path)
    assert re.fullmatch(f"own/train/n02/bad.JPEG: {said}", found)


def test_the_longest_number_of_clicks_has_eighteen_digits(tmp_path):
    own = write(tmp_path / "own", 9 * line_with(2, "9" * 18))
    assert convert(small("clicks", own), tmp_path).samples == 9


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ("[MASK]", "x", "has no [MASK]; allowed: one with [UNK], [CLS], [SEP], [MASK]"),
        ("b", "a", "line 7: got a, as in line 6; allowed: each token once"),
        ("b", "b\nc", "has 8 tokens; allowed: 7, vocabulary_size"),
        ("b\n", "", "has 6 tokens; allowed: 7, vocabulary_size"),
        ("a", " ", "line 6: empty; allowed: a token a line"),
        ("a", "é", "byte 31: allowed: text in UTF-8"),
        ("", None, "no such file; allowed: a vocabulary, a token a line"),
    ],
)
def test_a_vocabulary_of_text_that_cannot_be_meant_is_named(tmp_path, was, becomes, said):
    if becomes is not None:
        write(tmp_path / "mine.txt", VOCABULARY.replace(was, becomes).encode("latin-1"))
    keys = {"vocabulary": tmp_path / "mine.txt", "vocabulary_size": 7, "parts": 1}
    data = small("text", write(tmp_path / "own", "a.\n\nb.\n"), **keys)
    assert refusal(data, tmp_path) == f"mine.txt: {said}"
    assert not (tmp_path / "out").exists()


NO_IDS = "is not a vocabulary; allowed: JSON of tokens and their ids, 0, 1, "


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        (
            "vocab.json",
            None,
            "no such file; allowed: a folder that holds vocab.json and merges.txt",
        ),
        *(
            ("vocab.json", written, NO_IDS)
            for written in ("[", "[]", '{"a": "b"}', '{"a": [], "b": 0}', '{"a": 0, "b": 0}')
        ),
        ("vocab.json", '{"a": 3}', NO_IDS),
        ("vocab.json", '{"a": 0}', r"has no <\|endoftext\|>; allowed: a vocabulary with it"),
        ("vocab.json", f'{{"A": 1, "{END}": 0}}', "lacks 255 of the 256 tokens of one byte; allo"),
        ("merges.txt", "a b c\n", ".* invalid at line 1; allowed: in each line two tokens of"),
        ("merges.txt", "Q Q\n", ".* Token `QQ` out of vocabulary; allowed: in each line two"),
    ],
)
def test_a_vocabulary_that_cannot_encode_is_refused(tmp_path, name, written, said):
    files = {**byte_pairs("x x"), name: written}
    bpe = write(tmp_path / "bpe", {name: one for name, one in files.items() if one is not None})
    data = small("tokens", write(tmp_path / "own", "text\n"), bpe=bpe)
    assert re.match(f"bpe/{name}: {said}", refusal(data, tmp_path))


def test_wrong_input_does_not_cost_what_was_converted_before(tmp_path):
    own = write(tmp_path / "own", "the cat.\n\nthe dog.\n" * 9)
    data = small("text", own, parts=1)
    convert(data, tmp_path / "out")
    before = content(tmp_path / "out")
    for wrong in ({"text": "no"}, {"parts": 40}, {"vocabulary": Path("no")}):
        with pytest.raises(ReperfError, match="allowed: "):
            convert(data.model_copy(update=wrong), tmp_path / "out")
        assert content(tmp_path / "out") == before
