"""Sentences into WordPiece tokens, by the rules of google-research/bert's tokenization.py."""

import os
import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import chain

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from reperf.data.text.vocab_file import UNKNOWN

LONGEST_WORD = 200
"""Characters; a longer word is unknown, as in the original."""
UNKNOWN_WORD = "a" * (LONGEST_WORD + 1)
"""Stands for longer ones, for which the library takes time that grows faster than they do."""

MOST_WORDS = 1 << 18
"""Words whose tokens are kept until the next sentences: some 50 MB."""
_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")

# Conversions fork, and the library's threads would not survive that. Workers are enough.
os.environ["TOKENIZERS_PARALLELISM"] = "false"


class WordPieces:
    """Gives the ids of sentences' tokens.

    Args:
        tokens: of the vocabulary, in the order of their ids.
        lowercase: whether case and accents are dropped.
    """

    def __init__(self, tokens: Sequence[str], *, lowercase: bool) -> None:
        ids = {token: number for number, token in enumerate(tokens)}
        model = WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD)
        self._tokenizer = around_words(Tokenizer(model), lowercase=lowercase)
        self._lowercase = lowercase
        self._known: dict[str, list[int]] = {}

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """The ids of each sentence's tokens; none for a sentence without a word."""
        given = [normalised(sentence, lowercase=self._lowercase) for sentence in sentences]
        # In printable ASCII it is plain what a word is, and each has the same tokens wherever it
        # stands: with the library alone, a conversion takes twice as long.
        words = {
            number: _WORD.findall(sentence)
            for number, sentence in enumerate(given)
            if sentence.isascii() and sentence.isprintable()
        }
        if len(self._known) > MOST_WORDS:
            self._known.clear()
        new = list(set().union(*words.values()) - self._known.keys())
        short = [word if len(word) <= LONGEST_WORD else UNKNOWN_WORD for word in new]
        self._known.update(zip(new, self._encoded(short), strict=True))
        others = iter(
            self._encoded([one for number, one in enumerate(given) if number not in words])
        )
        return [
            list(chain.from_iterable(map(self._known.__getitem__, words[number])))
            if number in words
            else next(others)
            for number in range(len(given))
        ]

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        encoded = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encoded]


def around_words(tokenizer: Tokenizer, *, lowercase: bool) -> Tokenizer:
    """The tokenizer itself, which from now on cuts text into words as the original does."""
    tokenizer.normalizer = BertNormalizer(
        clean_text=False, handle_chinese_chars=True, strip_accents=lowercase, lowercase=lowercase
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def normalised(sentence: str, *, lowercase: bool) -> str:
    """A sentence as the tokenizer is to get it: cleaned, then lowered, its marks set apart.

    The library lowers letters one by one, Python, and so the original, a sigma by its place. Its
    Unicode is older, and it drops characters of private use, which the original keeps.
    """
    if sentence.isascii() and sentence.isprintable():
        return sentence.lower() if lowercase else sentence
    dropped, apart = _tables()
    cleaned = sentence.translate(dropped)
    return (cleaned.lower() if lowercase else cleaned).translate(apart)


@cache
def _tables() -> tuple[dict[int, None], dict[int, str]]:
    """What the original drops, and the marks beyond ASCII that are words of their own."""
    kinds = {code: unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)}
    dropped = {code for code, kind in kinds.items() if kind in ("Cc", "Cf")} - {*b"\t\n\r"}
    marks = (code for code, kind in kinds.items() if code > 127 and kind.startswith("P"))
    return dict.fromkeys({*dropped, 0xFFFD}), {code: f" {chr(code)} " for code in marks}
