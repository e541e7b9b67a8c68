"""Text to records of pairs of sentences, and the vocabularies that they are made with."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.data.text import corpus as corpus_module
from reperf.data.text import read_vocabulary
from reperf.data.text.convert import FORMATS
from reperf.data.text.convert import make as make_text
from reperf.data.text.corpus import Corpus
from reperf.data.text.sequences import Sequences
from reperf.data.text.wordpiece import train_vocabulary
from reperf.errors import ReperfError
from reperf.files import sha256

from tests.unit.data.record_readers import features, read_folder
from tests.unit.data.sets import convert, small, write

LENGTHS = {
    "input_ids": 64,
    "input_mask": 64,
    "masked_lm_ids": 10,
    "masked_lm_positions": 10,
    "masked_lm_weights": 10,
    "next_sentence_labels": 1,
    "segment_ids": 64,
}


@pytest.fixture
def small_chunks(monkeypatch):
    """Several chunks in each part of a text."""
    monkeypatch.setattr(corpus_module, "CHUNK", 5_000)


@pytest.fixture(scope="module")
def short_text(embedded_text, tmp_path_factory):
    """A few documents of the embedded text."""
    documents = embedded_text.read_text().split("\n\n")[:16]
    return write(tmp_path_factory.mktemp("short") / "text.txt", "\n\n".join(documents) + "\n")


def test_both_formats_hold_the_same_sequences_with_the_originals_keys(
    short_text, tmp_path, small_chunks
):
    both = {}
    for name in FORMATS:
        manifest = convert(small("text", short_text), tmp_path / name, name)
        both[name] = read_folder(tmp_path / name, name)
        assert len(both[name]) == manifest.sequences > 30
    assert both["tfrecord"] == both["ofrecord"]
    vocabulary = (tmp_path / "tfrecord" / "vocab.txt").read_text().split("\n")[:-1]
    assert len(vocabulary) == 2000
    for record in both["tfrecord"]:
        lengths = {key: len(values) for key, values in record.items()}
        assert list(lengths.items()) == list(LENGTHS.items())
        real = sum(record["input_mask"])
        tokens = [vocabulary[number] for number in record["input_ids"]]
        assert (tokens[0], tokens[real - 1]) == ("[CLS]", "[SEP]")
        assert set(tokens[real:]) <= {"[PAD]"}


def test_the_manifest_counts_what_the_text_and_its_sequences_hold(embedded_text, tmp_path):
    data = small("text", embedded_text, passes=2)
    manifest = convert(data, tmp_path, workers=2)
    assert manifest.settings == data.of_kind.described()["settings"]
    assert manifest.documents == len(Corpus(embedded_text)) == 79
    assert manifest.sentences == len(embedded_text.read_text().split("\n")) - 1 - 79
    for part in manifest.parts:
        index = (tmp_path / f"{part.name}.idx").read_text().splitlines()
        assert len(index) == part.sequences
        assert sum(map(int, index[-1].split())) == part.bytes
    assert 55 < manifest.tokens / manifest.sequences < 64
    assert 8 < manifest.predictions / manifest.sequences < 10
    assert 0.5 < manifest.random_next / manifest.sequences < 0.65
    assert manifest.vocabulary_sha256 == sha256(tmp_path / "vocab.txt")


def test_passes_and_seeds_give_other_sequences_of_the_same_text(short_text, tmp_path):
    once, thrice, other = (
        convert(small("text", short_text, passes=passes, seed=seed), tmp_path, "ofrecord")
        for passes, seed in ((1, 1), (3, 1), (1, 2))
    )
    assert thrice.sequences == pytest.approx(3 * once.sequences, rel=0.2)
    assert once.parts[0].crc32c != other.parts[0].crc32c
    assert once.sentences == thrice.sentences


def test_the_users_vocabulary_decides_the_ids(short_text, tmp_path):
    tokens = ["[UNK]", "[MASK]", "[SEP]", "[CLS]", *"abcdefghijklmnopqrstuvwxyz"]
    mine = write(tmp_path / "mine.txt", "".join(f"{token} \r\n" for token in tokens))
    data = small("text", short_text, vocabulary=mine, vocabulary_size=30)
    out = tmp_path / "tfrecord"
    convert(data, out)
    assert (out / "vocab.txt").read_text().split() == tokens
    assert {record["input_ids"][0] for record in read_folder(out, "tfrecord")} == {3}

    def is_of() -> bool:
        return data.of_kind.lies_at(out / "manifest.json")

    assert is_of()
    mine.write_text(mine.read_text().replace("a", "ä"))
    assert not is_of()
    mine.unlink()
    assert is_of()  # once converted, it is no longer needed


def test_googles_chinese_vocabulary_and_what_editors_put_first_are_taken(tmp_path):
    mine = write(tmp_path / "mine.txt", "\ufeff[UNK]\n[MASK]\n\u2028\n[SEP]\n\u3000\n[CLS]\n")
    assert read_vocabulary(mine, 6) == ["[UNK]", "[MASK]", "\u2028", "[SEP]", "\u3000", "[CLS]"]


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
    path = write(tmp_path / "text", "\n\n".join(["the cat, " + "qz" * 500_000 + "."] * 2))
    tokens = train_vocabulary(Corpus(path), size=60, lowercase=True)
    assert "cat" in tokens
    assert not any("q" in token for token in tokens)


def test_with_case_a_vocabulary_has_capitals(embedded_text):
    cased = train_vocabulary(Corpus(embedded_text), size=3000, lowercase=False)
    assert {"The", "the", "##s"} <= set(cased)


def test_a_vocabulary_too_small_for_its_letters_is_refused(embedded_text):
    with pytest.raises(ReperfError, match=r"different characters need a vocabulary of 1\d\d token"):
        train_vocabulary(Corpus(embedded_text), size=100, lowercase=True)


numbers = st.integers(0, 127) | st.integers(0, 40_000) | st.integers(0, (1 << 21) - 1)


@settings(max_examples=50)
@given(st.data(), st.integers(1, 5), st.integers(1, 6), st.integers(1, 4))
@pytest.mark.parametrize("format_name", FORMATS)
def test_every_number_is_given_back(format_name, data, count, length, predictions):
    def table(width, numbers=numbers):
        row = st.lists(numbers, min_size=width, max_size=width)
        return np.array(data.draw(st.lists(row, min_size=count, max_size=count)))

    weights = table(predictions, st.floats(0, 1, width=32)).astype("<f4")
    sizes = (length, length, predictions, predictions, None, 1, length)
    sequences = Sequences(*[weights if size is None else table(size) for size in sizes])
    messages = list(FORMATS[format_name].messages(sequences))
    for row, message in enumerate(messages):
        assert features(message, format_name) == {
            key: getattr(sequences, key)[row].tolist() for key in sorted(sequences._fields)
        }
