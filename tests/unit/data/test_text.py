"""Text: its documents, their tokens, and records of pairs of sentences, held against plain BERT."""

import sys
from itertools import pairwise
from random import Random
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reperf.data.text import corpus as corpus_module
from reperf.data.text import read_vocabulary
from reperf.data.text import sequences as sequences_module
from reperf.data.text.convert import FORMATS, make
from reperf.data.text.corpus import LEAST_DOCUMENTS, Corpus, sentences_of
from reperf.data.text.sequences import Marks, Sequences, Tokens, make_sequences
from reperf.data.text.wordpiece import WordPieces, train_vocabulary, words_of
from reperf.errors import ReperfError
from reperf.files import sha256

from tests.helpers.written_files import write
from tests.unit.data import plain_bert
from tests.unit.data.record_readers import features, read_folder
from tests.unit.data.sets import convert, small

MARK = "\ufeff"
WIKI = """<doc id="12" url="https://en.example.org/wiki?curid=12" title="Anarchism">
Anarchism

Anarchism is a philosophy. It is old, e.g. from then!  Is it?

A second paragraph. End
</doc>

<doc id="13" url="" title="Nothing">
Nothing
</doc>
<doc id="14" url="" title="Autism">
Autism
One sentence.
</doc>
"""
ARTICLES = [
    ["Anarchism is a philosophy.", "It is old, e.g. from then!", "Is it?", "A second paragraph."],
    ["One sentence."],
]
ARTICLES[0].append("End")
FOLDER = {
    "b/2.txt": "e",
    "b/1": "c\n\nd\n",
    "a": "a\nb\n",
    ".hidden": "no",
    ".git/x": "no",
    "b/empty": "",
    "b/blank": "\n\n \n",
}


def documents(corpus: Corpus, parts: int = 1) -> list[list[str]]:
    edges = corpus.chunks(parts)
    return [one for first, end in pairwise(edges) for one in corpus.documents(first, end)]


@pytest.mark.parametrize(
    ("written", "expected", "without_sentences"),
    [
        # A line is a sentence, and an empty line ends a document.
        (
            b"\n \n One. \r\nTwo words\r\n\r\n\r\n\r\nThree\n\t\nFour\xe2\x80\xa8five",
            [["One.", "Two words"], ["Three"], ["Four\u2028five"]],
            0,
        ),
        # A folder is all its files in order, and each begins a document.
        (FOLDER, [["a", "b"], ["c"], ["d"], ["e"]], 0),
        # Articles of Wikipedia lose their titles, and are cut into sentences.
        ({"AA/wiki_00": WIKI, "plain": "One.\n\nTwo."}, [*ARTICLES, ["One."], ["Two."]], 1),
        # What editors put first is no text, and hides no article.
        (MARK + WIKI, ARTICLES, 1),
        (MARK + "\nOne.\n\nTwo.\n", [["One."], ["Two."]], 0),
        (dict.fromkeys("ab", MARK + "One.\n\nTwo.\n"), [["One."], ["Two."]] * 2, 0),
        # A line of any white space is empty.
        *(
            (
                f"「 One.\n{space}\n\u3000Two.\n{space}\n{space}\nThree.",
                [["「 One."], ["Two."], ["Three."]],
                0,
            )
            for space in ("\u00a0", "\u3000 \u3000", "\x1c", "\u2003\r")
        ),
    ],
)
def test_a_text_is_its_documents(written, expected, without_sentences, tmp_path):
    corpus = Corpus(write(tmp_path / "text", written))
    assert documents(corpus) == expected
    assert len(corpus) == len(expected) + without_sentences


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("One. Two?  Three! four", ["One.", "Two?", "Three! four"]),
        ("No end", ["No end"]),
        ("3.5 is a number", ["3.5 is a number"]),
        ("一。二！三", ["一。", "二！", "三"]),  # noqa: RUF001
        ("  ", []),
    ],
)
def test_a_sentence_ends_with_its_mark(paragraph, sentences):
    assert sentences_of(paragraph) == sentences


@pytest.mark.parametrize(
    ("count", "parts", "size"),
    [(2, 1, 300), (14, 7, 10), (15, 7, 10), (40, 3, 30), (60, 4, 300), (5000, 3, 5000)],
)
def test_every_document_is_in_one_chunk_and_chunks_are_alike(
    tmp_path, monkeypatch, count, parts, size
):
    text = [["word " * (number % 7) + "end.", "b."] for number in range(count)]
    path = write(tmp_path / "text", "\n\n\n".join("\n".join(document) for document in text))
    monkeypatch.setattr(corpus_module, "CHUNK", size)
    corpus = Corpus(path)
    edges = corpus.chunks(parts)
    assert documents(corpus, parts) == text
    assert (edges[0], edges[-1]) == (0, count)
    assert min(end - first for first, end in pairwise(edges)) >= LEAST_DOCUMENTS
    # There are more chunks, unless the documents are too few.
    wanted = min(-(-path.stat().st_size // (parts * size)), count // (LEAST_DOCUMENTS * parts))
    assert len(edges) - 1 == parts * wanted
    if count == 5000:
        sizes = [sum(len(a) for a, _ in text[first:end]) for first, end in pairwise(edges)]
        assert max(sizes) < 1.05 * min(sizes)


# Words and pieces of several scripts; some are prefixes of others, and some letters are missing.
SIGMA, LAST_SIGMA = "\u03c3", "\u03c2"
WORDS = (
    f"a an ant anti the there quick e é es naive cafe straße {SIGMA}es{LAST_SIGMA} "
    "1 19 199 東 京 ß , . ! - ' \" ( )"
)
PIECES = f"a n t ti ing s es sing ick quick e é r re 9 99 ß {SIGMA} {LAST_SIGMA} es{LAST_SIGMA} e東"
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *WORDS.split(),
    *("##" + piece for piece in PIECES.split()),
]


def tokens(sentence: str, *, lowercase: bool = True, vocabulary=VOCABULARY) -> list[str]:
    (ids,) = WordPieces(vocabulary, lowercase=lowercase).ids([sentence])
    return [vocabulary[number] for number in ids]


@pytest.mark.parametrize(
    ("sentence", "expected", "lowercase"),
    [
        ("The QUICK ants!", ["the", "quick", "ant", "##s", "!"], True),
        ("naïve CAFÉS", ["naive", "cafe", "##s"], True),
        ("é É the The", ["é", "[UNK]", "the", "[UNK]"], False),
        ("the(ant)", ["the", "(", "ant", ")"], True),
        ("東京the", ["東", "京", "the"], True),
        ("antising", ["anti", "##sing"], True),
        ("antsxing", ["[UNK]"], True),
        ("zero\u200dwidth \0 \ufffd", ["[UNK]"], True),
        ("[MASK]", ["[UNK]", "[UNK]", "[UNK]"], True),
        ("19" + "9" * 197, ["199", *["##99"] * 98], True),
        ("19" + "9" * 199, ["[UNK]"], True),
        ("the " + "a" * 100_000, ["the", "[UNK]"], True),
        (" \t", [], True),
    ],
)
def test_a_sentence_becomes_the_tokens_of_the_rules(sentence, expected, lowercase):
    assert tokens(sentence, lowercase=lowercase) == expected
    assert plain_bert.Tokenizer(VOCABULARY, lowercase).tokens(sentence) == expected


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_are_those_of_plain_python_whatever_the_library_knows(lowercase):
    spoken = [*" \t\0\ufffd\u200d\xa0\u3000", *"antisgeéß19東京,.!-'\"()", " the quick ", "ÀÉ"]
    spoken += [*"\u0391\u03a3\u061d\u2e52\x01\u0890\ue000\x0b\u2028·\u0301"]
    plain, chance = plain_bert.Tokenizer([], lowercase), Random(1)
    for _ in range(500):
        own = [chr(chance.randrange(sys.maxunicode)) for _ in range(20)]
        own += [chr(chance.randrange(0x3000)) for _ in range(20)] + chance.choices(spoken, k=40)
        chance.shuffle(own)
        sentence = "".join(character for character in own if not "\ud800" <= character < "\ue000")
        assert words_of(sentence, lowercase=lowercase) == plain.words(sentence)
    line = "".join(map(chr, range(32, 127))) * 2
    assert words_of(line, lowercase=lowercase) == plain.words(line)


START, END, MASK, FIRST = 1, 2, 3, 4
"""The ids of marks in these tests, and the first of a token."""


def numbered(lengths: list[list[int]]) -> Tokens:
    """Documents of sentences of these lengths; every token has an id of its own."""
    ids = iter(range(FIRST, FIRST + sum(map(sum, lengths))))
    return Tokens.of([[[next(ids) for _ in range(size)] for size in one] for one in lengths])


def halves(made: Sequences, row: int) -> tuple[list[int], list[int]]:
    """A sequence's tokens as they were, without padding and marks."""
    tokens = made.input_ids[row].copy()
    real = made.masked_lm_weights[row] > 0
    tokens[made.masked_lm_positions[row][real]] = made.masked_lm_ids[row][real]
    start, *rest, end = tokens[: made.input_mask[row].sum()].tolist()
    middle = rest.index(END)
    assert (start, end) == (START, END)
    return rest[:middle], rest[middle + 1 :]


lengths_of = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=2, max_size=6)


@given(lengths_of, st.integers(8, 70), st.integers(1, 20), st.integers(0, 9))
def test_a_sequence_is_a_pair_of_halves_around_marks(lengths, length, predictions, seed):
    tokens = numbered(lengths)
    marks = Marks(START, END, MASK, FIRST + len(tokens.ids))
    predictions = min(predictions, length - 3)
    made = make_sequences(tokens, marks, length, predictions, (seed, 0))
    ends = [tokens.edges[at] for at in tokens.documents[1:]]
    assert len(made.input_ids) >= len(lengths)
    assert made.input_ids.shape == (len(made.input_ids), length)
    assert made.masked_lm_ids.shape == (len(made.input_ids), predictions)
    for row in range(len(made.input_ids)):
        both = first, second = halves(made, row)
        assert all(half == list(range(half[0], half[0] + len(half))) for half in both)  # as read
        first_of, second_of = (
            set(np.searchsorted(ends, np.array(half) - FIRST, "right")) for half in both
        )
        assert len(first_of) == len(second_of) == 1  # no half lies across the end of a document
        real = 3 + len(first) + len(second)
        padding = [0] * (length - real)
        assert real <= length
        assert made.input_mask[row].tolist() == [1] * real + padding
        ones = [1] * (len(second) + 1)
        assert made.segment_ids[row].tolist() == [0] * (real - len(ones)) + ones + padding
        following = second[0] > first[-1] and first_of == second_of
        (random_next,) = made.next_sentence_labels[row]
        assert random_next in (0, 1)
        assert following or random_next
        assert first_of != second_of or not random_next or len(lengths) < 3
        count = min(predictions, max(1, round(real * 0.15)))
        nothing = [0] * (predictions - count)
        assert made.masked_lm_weights[row].tolist() == [1] * count + nothing
        positions, answers = (
            array[row].tolist() for array in (made.masked_lm_positions, made.masked_lm_ids)
        )
        assert positions[count:] == answers[count:] == nothing
        assert all(one < other for one, other in pairwise(positions[:count]))
        assert min(answers[:count]) >= FIRST  # no mark is masked


@settings(max_examples=20)
@given(lengths_of, st.integers(0, 5))
def test_no_sentence_is_left_out_where_nothing_is_cut_off_and_a_seed_decides_all(lengths, seed):
    tokens, marks = numbered([*lengths, [9] * 30]), Marks(START, END, MASK, 1000)
    length = 2 * max(270, *map(sum, lengths)) + 4
    one, same, other = (
        make_sequences(tokens, marks, length, 1, (number, 3)) for number in (seed, seed, seed + 1)
    )
    used = {id for row in range(len(one.input_ids)) for half in halves(one, row) for id in half}
    assert used == set(tokens.ids.tolist())
    assert all(map(np.array_equal, one, same))
    assert not np.array_equal(one.input_ids, other.input_ids)


def test_of_the_chosen_tokens_most_become_masks_some_stay_and_some_are_others():
    tokens = numbered([[20] * 500] * 4)
    size = 100_000
    made = make_sequences(tokens, Marks(START, END, MASK, size), 128, 20, (1,))
    chosen = made.masked_lm_weights > 0
    rows = np.arange(len(chosen))[:, None]
    now = made.input_ids[rows, made.masked_lm_positions][chosen]
    before = made.masked_lm_ids[chosen]
    shares = (now == MASK).mean(), (now == before).mean()
    assert shares == pytest.approx((0.8, 0.1), abs=0.02)
    others = now[(now != MASK) & (now != before)]
    assert others.mean() == pytest.approx(size / 2, rel=0.1)
    assert others.max() < size
    # Every place of a full sequence is as likely as any other.
    full = made.input_mask.all(axis=1)
    places = made.masked_lm_positions[full][:, :19]
    shares = np.histogram(places, 8, (0, 128))[0] / places.size
    assert shares == pytest.approx([1 / 8] * 8, abs=0.015)


# What plain Python gives, benchmarks/plain_text_loop.py, and how far means of a few passes may be
# off. With short sequences, one long document makes many more sequences of some pass. Without them
# it is as in the original.
@pytest.mark.parametrize(
    ("short", "usual", "off"),
    [
        (0.0, (1050, 122, 18.2, 0.54, 64.2), (20, 1, 0.2, 0.02, 1.5)),
        (0.1, (1180, 116, 17.3, 0.54, 61), (140, 4, 0.6, 0.03, 3.5)),
    ],
)
def test_the_embedded_text_gives_as_many_sequences_tokens_and_predictions_as_plain_python(
    embedded_text, embedded_vocabulary, monkeypatch, *, short, usual, off
):
    assert sequences_module.SHORT_SHARE == 0.1
    monkeypatch.setattr(sequences_module, "SHORT_SHARE", short)
    pieces = WordPieces(embedded_vocabulary, lowercase=True)
    tokens = Tokens.of(map(pieces.ids, documents(Corpus(embedded_text))))
    marks = Marks(*map(embedded_vocabulary.index, ("[CLS]", "[SEP]", "[MASK]")), 30522)
    made = [make_sequences(tokens, marks, 128, 20, (turn,)) for turn in range(20)]
    counts = [mean(len(one.input_ids) for one in made)]
    for key in ("input_mask", "masked_lm_weights", "next_sentence_labels", "segment_ids"):
        rows = np.concatenate([getattr(one, key) for one in made])
        counts.append(rows.sum(axis=1).mean())
    for count, wanted, least in zip(counts, usual, off, strict=True):
        assert count == pytest.approx(wanted, abs=least)


KEYS = [*("input_ids", "input_mask", "masked_lm_ids", "masked_lm_positions", "masked_lm_weights")]
KEYS += ["next_sentence_labels", "segment_ids"]
"""Of the original's records, in the order that makes messages deterministic."""


@pytest.mark.parametrize("most", [127, 128, 16_384, (1 << 21) - 1, 1 << 21])
@pytest.mark.parametrize("name", FORMATS)
def test_every_number_is_given_back(name, most):
    table = np.random.default_rng(1).integers(most, size=(5, 6), endpoint=True)
    table[2, 3] = most
    tables = dict.fromkeys(KEYS, table) | {"next_sentence_labels": table[:, :1]}
    tables["masked_lm_weights"] = (table / 7).astype("<f4")
    if most >= 1 << 21:
        with pytest.raises(ValueError, match="allowed: below 2097152"):
            list(FORMATS[name].messages(Sequences(**tables)))
        return
    for row, message in enumerate(FORMATS[name].messages(Sequences(**tables))):
        found = [(key, tables[key][row].tolist()) for key in KEYS]
        assert list(features(message, name).items()) == found
    assert row == 4


def test_the_manifest_counts_what_the_text_and_its_sequences_hold(embedded_text, tmp_path):
    data = small("text", embedded_text, passes=2)
    manifest = convert(data, tmp_path)
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


def test_the_users_vocabulary_decides_the_ids(own, tmp_path):
    tokens = ["[UNK]", "[MASK]", "[SEP]", "[CLS]", *"abcdefghijklmnopqrstuvwxyz"]
    mine = write(tmp_path / "mine.txt", "".join(f"{token} \r\n" for token in tokens))
    convert(small("text", own("text"), vocabulary=mine, vocabulary_size=30), tmp_path / "tfrecord")
    assert (tmp_path / "tfrecord/vocab.txt").read_text().split() == tokens
    found = read_folder(tmp_path / "tfrecord", "tfrecord")
    assert {record["input_ids"][0] for record in found} == {3}


def test_googles_chinese_vocabulary_and_what_editors_put_first_are_taken(tmp_path):
    mine = write(tmp_path / "mine.txt", "\ufeff[UNK]\n[MASK]\n\u2028\n[SEP]\n\u3000\n[CLS]\n")
    assert read_vocabulary(mine, 6) == ["[UNK]", "[MASK]", "\u2028", "[SEP]", "\u3000", "[CLS]"]


def test_the_embedded_text_and_its_vocabulary_are_the_same_each_time(
    embedded_text, embedded_vocabulary, tmp_path
):
    make(tmp_path / "text.txt")
    assert (tmp_path / "text.txt").read_bytes() == embedded_text.read_bytes()
    lines = embedded_text.read_text(encoding="utf-8").split("\n")
    assert 400_000 < embedded_text.stat().st_size < 600_000
    assert "If the object is not a context manager." not in lines
    assert all(line == line.strip() for line in lines)
    assert sum(len(line) for line in lines) / len(lines) > 60
    again = train_vocabulary(Corpus(embedded_text), size=30522, lowercase=True)
    assert again == embedded_vocabulary
    assert len(set(again)) == len(again) == 30522
    assert again[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert {"the", "statement", "##ing", "[unused9]"} <= set(again)
    assert not any(token != token.lower() for token in again[5:])


def test_a_vocabulary_has_capitals_if_asked_and_letters_enough_and_no_endless_word(
    embedded_text, tmp_path
):
    cased = train_vocabulary(Corpus(embedded_text), size=3000, lowercase=False)
    assert {"The", "the", "##s"} <= set(cased)
    with pytest.raises(ReperfError, match=r"different characters need a vocabulary of 1\d\d token"):
        train_vocabulary(Corpus(embedded_text), size=100, lowercase=True)
    # A word of a megabyte, such as DNA, would take the library minutes.
    path = write(tmp_path / "text", "\n\n".join(["the cat, " + "qz" * 500_000 + "."] * 2))
    tokens = train_vocabulary(Corpus(path), size=60, lowercase=True)
    assert "cat" in tokens
    assert not any("q" in token for token in tokens)
