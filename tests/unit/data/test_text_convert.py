from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reperf.data.text import corpus as corpus_module
from reperf.data.text.convert_text import convert
from reperf.data.text.corpus import Corpus
from reperf.data.text.embedded_text import make as make_text
from reperf.data.text.kind import KIND
from reperf.data.text.manifest import TextManifest
from reperf.data.text.records import FORMATS
from reperf.data.text.sequences import Sequences
from reperf.data.text.settings import TextSettings
from reperf.data.text.vocab_file import read_vocabulary
from reperf.data.text.vocabulary import train_vocabulary
from reperf.errors import ReperfError
from reperf.files import sha256

from tests.helpers.small_text import text_settings
from tests.unit.data import record_readers

SIZE = 2000
PARTS = 3


def asked(text: Path, **changes) -> TextSettings:
    return text_settings(text, **{"parts": PARTS} | changes)


@pytest.fixture
def small_chunks(monkeypatch):
    """Several chunks in each part of a text."""
    monkeypatch.setattr(corpus_module, "CHUNK", 5_000)


@pytest.fixture(scope="module")
def short_text(embedded_text, tmp_path_factory):
    """A few documents of the embedded text."""
    path = tmp_path_factory.mktemp("short") / "text.txt"
    path.write_text("\n\n".join(embedded_text.read_text().split("\n\n")[:16]) + "\n")
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_both_formats_hold_the_same_sequences_with_the_originals_keys(
    short_text, tmp_path, small_chunks
):
    both = {}
    for name in KIND.formats:
        manifest = convert(asked(short_text), tmp_path / name, name, workers=1)
        both[name] = record_readers.read_lists(tmp_path / name, name)
        assert len(both[name]) == manifest.sequences > 30
    assert both["tfrecord"] == both["ofrecord"]
    vocabulary = (tmp_path / "tfrecord" / "vocab.txt").read_text().split("\n")[:-1]
    assert len(vocabulary) == SIZE
    for record in both["tfrecord"]:
        lengths = {key: len(values) for key, values in record.items()}
        assert list(lengths.items()) == [
            ("input_ids", 64),
            ("input_mask", 64),
            ("masked_lm_ids", 10),
            ("masked_lm_positions", 10),
            ("masked_lm_weights", 10),
            ("next_sentence_labels", 1),
            ("segment_ids", 64),
        ]
        real = sum(record["input_mask"])
        tokens = [vocabulary[number] for number in record["input_ids"]]
        assert tokens[0] == "[CLS]"
        assert tokens[real - 1] == "[SEP]"
        assert set(tokens[real:]) <= {"[PAD]"}


@pytest.mark.parametrize("format_name", KIND.formats)
def test_the_bytes_do_not_depend_on_the_workers(short_text, tmp_path, small_chunks, format_name):
    for workers in (1, 2):
        settings = asked(short_text, passes=2)
        convert(settings, tmp_path / str(workers), format_name, workers=workers)
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_the_manifest_says_what_lies_there(embedded_text, tmp_path, small_chunks):
    settings = asked(embedded_text, passes=2)
    manifest = convert(settings, tmp_path, "tfrecord", workers=2)
    assert TextManifest.read(tmp_path / "manifest.json") == manifest
    assert manifest.settings == settings
    assert manifest.is_of(settings)
    assert not manifest.is_of(asked(embedded_text, passes=2, seed=2))
    assert manifest.documents == len(Corpus(embedded_text)) == 79
    assert manifest.sentences == len(embedded_text.read_text().split("\n")) - 1 - 79
    assert manifest.bytes == sum(part.bytes for part in manifest.parts)
    assert manifest.sequences == sum(part.sequences for part in manifest.parts)
    assert [part.name for part in manifest.parts] == [f"part-0000{number}" for number in range(3)]
    for part in manifest.parts:
        index = (tmp_path / f"{part.name}.idx").read_text().splitlines()
        assert len(index) == part.sequences
        assert sum(map(int, index[-1].split())) == part.bytes
        assert part.bytes == (tmp_path / part.name).stat().st_size
    assert 55 < manifest.tokens / manifest.sequences < 64
    assert 8 < manifest.predictions / manifest.sequences < 10
    assert 0.5 < manifest.random_next / manifest.sequences < 0.65
    assert manifest.vocabulary_sha256 == sha256(tmp_path / "vocab.txt")


def test_passes_and_seeds_give_other_sequences_of_the_same_text(short_text, tmp_path):
    made = {
        (passes, seed): convert(
            asked(short_text, passes=passes, seed=seed),
            tmp_path / f"{passes}-{seed}",
            "ofrecord",
            workers=1,
        )
        for passes, seed in ((1, 1), (3, 1), (1, 2))
    }
    assert made[3, 1].sequences == pytest.approx(3 * made[1, 1].sequences, rel=0.2)
    assert made[1, 1].parts[0].crc32c != made[1, 2].parts[0].crc32c
    assert made[1, 1].sentences == made[3, 1].sentences


def test_a_second_conversion_leaves_nothing_of_the_first(short_text, tmp_path):
    convert(asked(short_text, parts=5), tmp_path / "again", "tfrecord", workers=2)
    convert(asked(short_text, parts=2), tmp_path / "again", "tfrecord", workers=2)
    convert(asked(short_text, parts=2), tmp_path / "once", "tfrecord", workers=2)
    assert content(tmp_path / "again") == content(tmp_path / "once")


def test_the_users_vocabulary_decides_the_ids(short_text, tmp_path):
    tokens = ["[UNK]", "[MASK]", "[SEP]", "[CLS]", *"abcdefghijklmnopqrstuvwxyz"]
    given = tmp_path / "mine.txt"
    given.write_text("".join(f"{token} \r\n" for token in tokens))
    settings = asked(short_text, vocabulary=str(given), vocabulary_size=30)
    manifest = convert(settings, tmp_path / "out", "ofrecord", workers=1)
    assert (tmp_path / "out" / "vocab.txt").read_text().split() == tokens
    assert {
        record["input_ids"][0] for record in record_readers.read_lists(tmp_path / "out", "ofrecord")
    } == {3}
    assert manifest.is_of(settings)
    given.write_text(given.read_text().replace("a", "ä"))
    assert not manifest.is_of(settings)
    given.unlink()
    assert manifest.is_of(settings)  # once converted, it is no longer needed


def test_googles_chinese_vocabulary_and_what_editors_put_first_are_taken(tmp_path):
    given = tmp_path / "mine.txt"
    given.write_text("\ufeff[UNK]\n[MASK]\n\u2028\n[SEP]\n\u3000\n[CLS]\n", encoding="utf-8")
    assert read_vocabulary(given, 6) == ["[UNK]", "[MASK]", "\u2028", "[SEP]", "\u3000", "[CLS]"]


def vocabulary_with(change) -> str:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
    return "\n".join(change(tokens)) + "\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            vocabulary_with(lambda tokens: [*tokens[:4], "x", *tokens[5:]]),
            r": has no \[MASK\]; allowed: one with \[UNK\], \[CLS\], \[SEP\], \[MASK\]",
        ),
        (
            vocabulary_with(lambda tokens: [*tokens[:6], "a"]),
            r": line 7: got a, as in line 6; allowed: each token once",
        ),
        (
            vocabulary_with(lambda tokens: [*tokens, "c"]),
            r": has 8 tokens; allowed: 7, vocabulary_size",
        ),
        (
            vocabulary_with(lambda tokens: [*tokens[:5], " ", "b"]),
            r": line 6: empty; allowed: a token a line",
        ),
        (b"[PAD]\ncaf\xe9\n", r": byte 9: allowed: text in UTF-8"),
        (None, r": no such file; allowed: a vocabulary, a token a line"),
    ],
)
def test_a_vocabulary_that_cannot_be_meant_is_refused_and_nothing_is_written(
    short_text, tmp_path, content, reason
):
    given = tmp_path / "mine.txt"
    if content is not None:
        given.write_bytes(content if isinstance(content, bytes) else content.encode())
    settings = asked(short_text, vocabulary=str(given), vocabulary_size=7)
    with pytest.raises(ReperfError, match=f"^{given}{reason}$"):
        convert(settings, tmp_path / "out", "tfrecord", workers=1)
    with pytest.raises(ReperfError, match=f"^{given}{reason}$"):
        read_vocabulary(given, 7)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "holds no text; allowed: a sentence a line, .*"),
        (b"One.\nTwo.\n", "1 documents for 3 parts; allowed: at least 2 per part, .*"),
        (b"One.\n\n" * 5, "5 documents for 3 parts; allowed: at least 2 per part, .*"),
        (b"One.\n\n" * 9 + b"\xff\n", r"byte 54: got b'\\xff'; allowed: text in UTF-8"),
        (b"One.\n\n" * 4 + b"\0\n\n" * 2, "part 2 of 3 would hold no word; allowed: words in .*"),
    ],
)
def test_a_text_that_cannot_be_meant_is_refused_and_leaves_nothing(tmp_path, text, reason):
    path, given = tmp_path / "text", tmp_path / "mine.txt"
    path.write_bytes(text)
    given.write_text(vocabulary_with(list))
    settings = asked(path, vocabulary=str(given), vocabulary_size=7)
    with pytest.raises(ReperfError, match=f"^{path}: {reason}$"):
        convert(settings, tmp_path / "out", "tfrecord", workers=2)
    assert content(tmp_path / "out") == {}


def test_wrong_input_does_not_cost_what_was_converted_before(short_text, tmp_path):
    convert(asked(short_text), tmp_path, "tfrecord", workers=1)
    before = content(tmp_path)
    for wrong in ({"text": "no"}, {"parts": 40}, {"vocabulary": "no"}):
        with pytest.raises(ReperfError):
            convert(asked(short_text).model_copy(update=wrong), tmp_path, "tfrecord", workers=1)
    assert content(tmp_path) == before


def test_the_embedded_text_is_the_same_each_time_and_readable(embedded_text, tmp_path):
    make_text(tmp_path / "text.txt")
    assert (tmp_path / "text.txt").read_bytes() == embedded_text.read_bytes()
    lines = embedded_text.read_text(encoding="utf-8").split("\n")
    assert 400_000 < embedded_text.stat().st_size < 600_000
    assert "If the object is not a context manager." not in lines
    assert all(line == line.strip() for line in lines)
    assert sum(len(line) for line in lines) / len(lines) > 60


def test_training_gives_the_same_vocabulary_each_time(embedded_text, embedded_vocabulary):
    again = train_vocabulary(Corpus(embedded_text), size=30522, lowercase=True)
    assert again == embedded_vocabulary
    assert len(set(again)) == len(again) == 30522
    assert again[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert {"the", "statement", "##ing", "[unused9]"} <= set(again)
    assert not any(token != token.lower() for token in again[5:])


def test_words_that_are_unknown_at_any_rate_train_no_vocabulary(tmp_path):
    """One of a megabyte, such as DNA, would take the library minutes."""
    path = tmp_path / "text"
    path.write_text("\n\n".join(["the cat, " + "qz" * 500_000 + "."] * 2))
    tokens = train_vocabulary(Corpus(path), size=60, lowercase=True)
    assert "cat" in tokens
    assert not any("q" in token for token in tokens)


def test_with_case_a_vocabulary_has_capitals(embedded_text):
    cased = train_vocabulary(Corpus(embedded_text), size=3000, lowercase=False)
    assert {"The", "the", "##s"} <= set(cased)


def test_a_vocabulary_too_small_for_its_letters_is_refused(embedded_text):
    with pytest.raises(ReperfError, match=r"different characters need a vocabulary of 1\d\d token"):
        train_vocabulary(Corpus(embedded_text), size=100, lowercase=True)


small = st.integers(0, 127) | st.integers(0, 40_000) | st.integers(0, (1 << 21) - 1)


@given(st.data(), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4))
@pytest.mark.parametrize("format_name", KIND.formats)
def test_every_number_is_given_back(format_name, data, count, length, predictions):
    def table(width, numbers=small):
        row = st.lists(numbers, min_size=width, max_size=width)
        return np.array(data.draw(st.lists(row, min_size=count, max_size=count)))

    weights = table(predictions, st.floats(0, 1, width=32)).astype("<f4")
    sizes = (length, length, predictions, predictions, None, 1, length)
    sequences = Sequences(*[weights if size is None else table(size) for size in sizes])
    messages = list(FORMATS[format_name].messages(sequences))
    for row, message in enumerate(messages):
        assert record_readers.lists(message, format_name) == {
            key: getattr(sequences, key)[row].tolist() for key in sorted(sequences._fields)
        }
