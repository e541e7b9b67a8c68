"""WordPiece tokens of sentences, by the rules of google-research/bert's tokenization.py.

A vocabulary may be the user's, or be trained on the text that it is for.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from reperf.data.text import SPECIAL, UNKNOWN
from reperf.data.text.corpus import Corpus
from reperf.errors import ReperfError

LONGEST_WORD = 200  # characters; a longer word is unknown, as in the original
UNKNOWN_WORD = "a" * (LONGEST_WORD + 1)
"""Stands for longer ones, for which the library takes time that grows faster than they do."""

LEAST_FREQUENCY = 2
SAMPLE = 16
"""Chunks of the text from which a vocabulary is trained, evenly spread; the rest is not read."""
MOST_WORDS = 1 << 18  # how many words keep their tokens in memory for later sentences: some 50 MB
_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_IDEOGRAPH = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)

# Conversions fork, and the library's threads would not survive that. Workers are enough.
os.environ["TOKENIZERS_PARALLELISM"] = "false"


class WordPieces:
    """Gives the ids of sentences' tokens; a vocabulary's tokens are in the order of their ids."""

    def __init__(self, tokens: Sequence[str], *, lowercase: bool) -> None:
        ids = {token: number for number, token in enumerate(tokens)}
        model = WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD)
        self._tokenizer = Tokenizer(model)
        self._lowercase = lowercase
        self._known: dict[str, list[int]] = {}

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """The ids of each sentence's tokens; none for a sentence without a word."""
        given = [words_of(sentence, lowercase=self._lowercase) for sentence in sentences]
        # A word has the same tokens wherever it stands.
        if len(self._known) > MOST_WORDS:
            self._known.clear()
        new = list(set().union(*given) - self._known.keys())
        short = [word if len(word) <= LONGEST_WORD else UNKNOWN_WORD for word in new]
        encoded = self._tokenizer.encode_batch_fast(short, add_special_tokens=False)
        self._known.update(zip(new, (encoding.ids for encoding in encoded), strict=True))
        return [list(chain.from_iterable(map(self._known.__getitem__, words))) for words in given]


def words_of(sentence: str, *, lowercase: bool) -> list[str]:
    """The words and marks of a sentence, each of which is cut into tokens by itself.

    The library takes three times as long, knows an older Unicode, and lowers each letter alone:
    Python, and so the original, lowers a sigma by its place.
    """
    if sentence.isascii() and sentence.isprintable():
        return _WORD.findall(sentence.lower() if lowercase else sentence)
    dropped, accents, apart = _tables()
    cleaned = sentence.translate(dropped)
    if lowercase:
        cleaned = unicodedata.normalize("NFD", cleaned.lower()).translate(accents)
    return _IDEOGRAPH.sub(r" \g<0> ", cleaned).translate(apart).split()


@cache
def _tables() -> tuple[dict[int, None], dict[int, None], dict[int, str]]:
    """What the original drops, accents, and the marks that are words of their own."""
    kinds = {code: unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)}
    dropped = {code for code, kind in kinds.items() if kind in ("Cc", "Cf")} - {*b"\t\n\r"}
    accents = (code for code, kind in kinds.items() if kind == "Mn")
    marks = {code for code, kind in kinds.items() if kind.startswith("P")} | {*b"$+<=>^`|~"}
    return (
        dict.fromkeys({*dropped, 0xFFFD}),
        dict.fromkeys(accents),
        {code: f" {chr(code)} " for code in marks},
    )


def train_vocabulary(corpus: Corpus, *, size: int, lowercase: bool) -> list[str]:
    """Train a vocabulary of `size` tokens on a text, filled up with tokens that nothing uses.

    It depends on the text and the arguments alone. A text with too many characters is refused.
    """
    tokenizer = Tokenizer(WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    characters: set[str] = set()
    for sentences in _sample(corpus, lowercase):
        characters.update(*sentences)
    alphabet = sorted(characters - {" "})
    # Left to itself, the trainer numbers the pieces "##c" in a random order, and then merges
    # others: https://github.com/huggingface/tokenizers/issues/1794.
    first = [*SPECIAL, *("##" + letter for letter in alphabet)]
    if len(first) + len(alphabet) > size:
        raise ReperfError(
            f"{corpus.text}: {len(alphabet)} different characters need a vocabulary of "
            f"{len(first) + len(alphabet)} tokens, got {size}; allowed: a larger one"
        )
    trainer = WordPieceTrainer(
        vocab_size=size, min_frequency=LEAST_FREQUENCY, special_tokens=first, show_progress=False
    )
    tokenizer.train_from_iterator(chain.from_iterable(_sample(corpus, lowercase)), trainer)
    ids = tokenizer.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    return tokens + [f"[unused{number}]" for number in range(size - len(tokens))]


def _sample(corpus: Corpus, lowercase: bool) -> Iterator[Sequence[str]]:
    """Documents of a few chunks, words apart, without words that are unknown at any rate.

    For a word of a megabyte, such as DNA, the library would take minutes.
    """
    edges = corpus.chunks(1)
    chunks = len(edges) - 1
    for number in range(min(chunks, SAMPLE)):
        at = number * chunks // min(chunks, SAMPLE)
        for document in corpus.documents(edges[at], edges[at + 1]):
            sentences = (words_of(sentence, lowercase=lowercase) for sentence in document)
            yield [
                " ".join(word for word in words if len(word) <= LONGEST_WORD) for words in sentences
            ]
