"""WordPiece vocabularies that are trained on the text that they are for."""

from collections.abc import Iterator, Sequence
from itertools import chain

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import WordPieceTrainer

from reperf.data.text.corpus import Corpus
from reperf.data.text.vocab_file import SPECIAL, UNKNOWN
from reperf.data.text.wordpiece import LONGEST_WORD, words_of
from reperf.errors import ReperfError

LEAST_FREQUENCY = 2
SAMPLE = 16
"""Chunks of the text from which a vocabulary is trained, evenly spread; the rest is not read."""


def train_vocabulary(corpus: Corpus, *, size: int, lowercase: bool) -> list[str]:
    """Train a vocabulary on a text; it is filled up with tokens that nothing uses.

    It depends on the text and the arguments alone, which are as in WordPieces.

    Returns:
        `size` tokens in the order of their ids.

    Raises:
        ReperfError: the text cannot be read, or has more different characters than the vocabulary
            can hold.
    """
    tokenizer = Tokenizer(WordPiece(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    characters: set[str] = set()
    for sentences in _sample(corpus, lowercase):
        characters.update(*sentences)
    alphabet = sorted(characters - {" "})
    # Left to itself, the trainer numbers the pieces "##c" in a random order, and then merges
    # others: https://github.com/huggingface/tokenizers/issues/1794.
    first = [*SPECIAL, *("##" + one for one in alphabet)]
    if len(first) + len(alphabet) > size:
        raise ReperfError(
            f"{corpus.text}: {len(alphabet)} different characters need a vocabulary of "
            f"{len(first) + len(alphabet)} tokens, got {size}; allowed: a larger one"
        )
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=LEAST_FREQUENCY,
        special_tokens=first,
        show_progress=False,
    )
    tokenizer.train_from_iterator(chain.from_iterable(_sample(corpus, lowercase)), trainer)
    found = tokenizer.get_vocab()
    tokens = sorted(found, key=found.__getitem__)
    return tokens + [f"[unused{number}]" for number in range(size - len(tokens))]


def _sample(corpus: Corpus, lowercase: bool) -> Iterator[Sequence[str]]:
    """Documents of a few chunks, words apart, without words that are unknown at any rate.

    For one of a megabyte, such as DNA, the library would take minutes.
    """
    edges = corpus.chunks(1)
    chunks = len(edges) - 1
    for number in range(min(chunks, SAMPLE)):
        at = number * chunks // min(chunks, SAMPLE)
        for document in corpus.documents(edges[at], edges[at + 1]):
            given = (words_of(sentence, lowercase=lowercase) for sentence in document)
            yield [" ".join(one for one in words if len(one) <= LONGEST_WORD) for words in given]
