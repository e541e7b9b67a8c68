import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reperf.data.text.wordpiece import WordPieces

from tests.unit.data import plain_bert

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


def settled(character: str) -> bool:
    """Whether the tables of every library agree on a character: they are of different years."""
    old, new = unicodedata.ucd_3_2_0, unicodedata
    return (
        old.category(character) == new.category(character) not in ("Cn", "Co", "Cs")
        and old.normalize("NFD", character) == new.normalize("NFD", character)
        # One is lowered to two characters, of which one depends on what is next to it.
        and len(character.lower()) == 1
    )


# Before a character that is dropped, such as a zero, it is uncertain where a word with a capital
# sigma ends.
letters = st.characters(codec="utf-8", exclude_characters="\u03a3").filter(settled)
spoken = st.sampled_from(
    [*" \t\0\ufffd\u200d\xa0\u3000", *"antisgeéß19東京,.!-'\"()", " the quick ", "ÀÉ"]
)
mixed = st.lists(spoken | letters, max_size=40).map("".join)
sentences = mixed | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


def tokens(sentence: str, *, lowercase: bool = True, vocabulary=VOCABULARY) -> list[str]:
    (ids,) = WordPieces(vocabulary, lowercase=lowercase).ids([sentence])
    return [vocabulary[number] for number in ids]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The QUICK ants!", ["the", "quick", "ant", "##s", "!"]),
        ("naïve CAFÉS", ["naive", "cafe", "##s"]),
        ("the(ant)", ["the", "(", "ant", ")"]),
        ("東京the", ["東", "京", "the"]),
        ("antising", ["anti", "##sing"]),
        ("antsxing", ["[UNK]"]),
        ("zero\u200dwidth \0 \ufffd", ["[UNK]"]),
        ("[MASK]", ["[UNK]", "[UNK]", "[UNK]"]),
        ("19" + "9" * 197, ["199", *["##99"] * 98]),
        ("19" + "9" * 199, ["[UNK]"]),
        ("the " + "a" * 100_000, ["the", "[UNK]"]),
        (" \t", []),
    ],
)
def test_a_sentence_becomes_the_tokens_of_the_rules(sentence, expected):
    assert tokens(sentence) == expected
    assert plain_bert.Tokenizer(VOCABULARY).tokens(sentence) == expected


def test_with_case_letters_and_accents_stay():
    assert tokens("é É the The", lowercase=False) == ["é", "[UNK]", "the", "[UNK]"]


@given(sentences, st.booleans())
@example("\u03a3es\u03a3", True)
@example("a\u0301n", True)
@example("a\u2028n", True)
def test_every_sentence_becomes_what_plain_python_makes_of_it(sentence, lowercase):
    words = plain_bert.Tokenizer(VOCABULARY, lowercase).words(sentence)
    letters = sorted(set("".join(words)))
    spelling = [*VOCABULARY, *letters, *("##" + letter for letter in letters)]
    for vocabulary in (VOCABULARY, list(dict.fromkeys(spelling))):
        plain = plain_bert.Tokenizer(vocabulary, lowercase).tokens(sentence)
        assert tokens(sentence, lowercase=lowercase, vocabulary=vocabulary) == plain


def test_the_embedded_text_has_the_tokens_of_the_rules(
    embedded_text, embedded_vocabulary, plain_documents
):
    lines = [line for line in embedded_text.read_text().split("\n") if line]
    pieces = WordPieces(embedded_vocabulary, lowercase=True).ids(lines)
    found = [[embedded_vocabulary[number] for number in ids] for ids in pieces]
    assert [one for one in found if one] == [one for text in plain_documents for one in text]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("character", "\u061d\u2e52\x01\u0890\ue000\x0b\u2028\ufffd.·")
def test_characters_are_those_of_the_original_whatever_the_library_knows(character, lowercase):
    sentence = f"\u0391\u03a3{character}B \u0391\u03a3{character}"
    words = plain_bert.Tokenizer([], lowercase).words(sentence)
    vocabulary = ["[UNK]", *dict.fromkeys(words)]
    found = WordPieces(vocabulary, lowercase=lowercase).ids([sentence])[0]
    assert [vocabulary[number] for number in found] == words
