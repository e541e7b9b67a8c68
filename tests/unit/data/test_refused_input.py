"""Input of each kind that cannot be converted: refused in one line, and nothing is left."""

from pathlib import Path

import pytest
from reperf.data import text_files
from reperf.errors import ReperfError

from tests.unit.data.sets import content, convert, small, write

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
CLICK = ["1", "3", "-2", "", "0", "64000", *8 * ["12"], "68fd1e64", "", *24 * ["00ff00aa"]]
LINE = "\t".join(CLICK) + "\n"
LONGER = "line 3 belongs to no other: source.txt has"
TOO_LONG = "has 42 tokens with its end; allowed: up to 41, `longest`"


def refusal(data, tmp_path: Path) -> str:
    """Why a set is refused."""
    with pytest.raises(ReperfError) as caught:
        convert(data, tmp_path / "out")
    assert content(tmp_path / "out") == {}
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"{tmp_path}/")
    return said.removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("kind", "written", "said"),
    [
        ("tokens", b"", "own: an empty text; allowed: text in UTF-8, with a line <|endoftext|> "),
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
        ("clicks", LINE, "own: part 1 of 2 would hold no line; allowed: at least one for each"),
        ("clicks", b"x" * 10_000, "own, line 1: 1 columns; allowed: 40, 0 or 1, 13 integers"),
        ("text", b"One.\n\n" * 9 + b"\xff\n", r"own: byte 54: got b'\xff'; allowed: a sentence "),
        ("text", b"1.\n\n1.\n\n\0\n\n\0", "own: part 1 of 2 would hold no word; allowed: words in"),
    ],
)
def test_input_that_cannot_be_converted_is_named_and_leaves_nothing(kind, written, said, tmp_path):
    if kind == "pairs":
        written = dict(zip(("source.txt", "target.txt"), written, strict=False))
    keys = {"longest": 41}
    if kind == "text":
        mine = write(tmp_path / "mine.txt", "".join(f"{token}\n" for token in VOCABULARY))
        keys = {"vocabulary": mine, "vocabulary_size": len(VOCABULARY)}
    data = small(kind, write(tmp_path / "own", written), parts=2, **keys)
    assert refusal(data, tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("column", "found", "said"),
    [
        (40, [], "39 columns; allowed: 40, 0 or 1, 13 integers and 26 words of 8 hexadecimal"),
        (40, ["00ff00aa", ""], "41 columns; allowed: 40"),
        (1, ["2"], "column 1: got '2'; allowed: 0 or 1"),
        (1, ["10"], "column 1: got '10'; allowed: 0 or 1"),
        (2, ["1.5"], "column 2: got '1.5'; allowed: a whole number of up to 18 digits, or nothing"),
        (2, ["-"], "column 2: got '-'; allowed: a whole number"),
        (14, ["9" * 19], "column 14: got '9999999999999999999'; allowed: a whole number"),
        (40, ["xyzw0000"], "column 40: got 'xyzw0000'; allowed: 8 hexadecimal digits, 0 to 9 and"),
        (15, ["0123456"], "column 15: got '0123456'; allowed: 8 hexadecimal"),
        (40, ["00ff00aa\r"], r"column 40: got '00ff00aa\r'; allowed: 8 hexadecimal"),
    ],
)
def test_a_bad_line_of_clicks_is_named_by_line_and_column(
    tmp_path, monkeypatch, column, found, said
):
    monkeypatch.setattr(text_files, "PIECE", 1000)
    bad = "\t".join([*CLICK[: column - 1], *found, *CLICK[column:]]) + "\n"
    own = write(tmp_path / "own", 30 * LINE + bad + 9 * LINE)
    assert refusal(small("clicks", own), tmp_path).startswith(f"own, line 31: {said}")


def test_the_longest_number_of_clicks_has_eighteen_digits(tmp_path):
    longest = "\t".join([CLICK[0], "9" * 18, *CLICK[2:]]) + "\n"
    assert convert(small("clicks", write(tmp_path / "own", 9 * longest)), tmp_path).samples == 9


@pytest.mark.parametrize(
    ("first", "end", "becomes", "said"),
    [
        (4, 5, ["x"], "has no [MASK]; allowed: one with [UNK], [CLS], [SEP], [MASK]"),
        (6, 7, ["a"], "line 7: got a, as in line 6; allowed: each token once"),
        (7, 7, ["c"], "has 8 tokens; allowed: 7, vocabulary_size"),
        (6, 7, [], "has 6 tokens; allowed: 7, vocabulary_size"),
        (5, 6, [" "], "line 6: empty; allowed: a token a line"),
        (1, 7, [b"caf\xe9"], "byte 9: allowed: text in UTF-8"),
        (0, 7, None, "no such file; allowed: a vocabulary, a token a line"),
    ],
)
def test_a_vocabulary_of_text_that_cannot_be_meant_is_named(tmp_path, first, end, becomes, said):
    if becomes is not None:
        tokens = [*VOCABULARY[:first], *becomes, *VOCABULARY[end:]]
        lines = [one if isinstance(one, bytes) else one.encode() for one in tokens]
        write(tmp_path / "mine.txt", b"".join(line + b"\n" for line in lines))
    keys = {"vocabulary": tmp_path / "mine.txt", "vocabulary_size": 7, "parts": 1}
    data = small("text", write(tmp_path / "own", "a.\n\nb.\n"), **keys)
    assert refusal(data, tmp_path) == f"mine.txt: {said}"
    assert not (tmp_path / "out").exists()


def test_wrong_input_does_not_cost_what_was_converted_before(tmp_path):
    own = write(tmp_path / "own", "the cat.\n\nthe dog.\n" * 9)
    data = small("text", own, parts=1)
    convert(data, tmp_path / "out")
    before = content(tmp_path / "out")
    for wrong in ({"text": "no"}, {"parts": 40}, {"vocabulary": Path("no")}):
        with pytest.raises(ReperfError, match="allowed: "):
            convert(data.model_copy(update=wrong), tmp_path / "out")
        assert content(tmp_path / "out") == before
