"""Text: the embedded text, and how text becomes records of pairs of sentences.

Records have the keys of google-research/bert, which OneFlow-Benchmark has, too.

Sources: google-research/bert's create_pretraining_data.py (keys, kinds of lists),
tensorflow/core/example/feature.proto and oneflow/core/record/record.proto (fields).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

from reperf.data.conversion import Conversion, Counts, Format, PartWriter
from reperf.data.text import END, MASK, START, Text, read_vocabulary
from reperf.data.text.corpus import Corpus, sentences_of
from reperf.data.text.sequences import Marks, Sequences, Tokens, make_sequences
from reperf.data.text.wordpiece import WordPieces, train_vocabulary
from reperf.data.wire import entry_head, field_head, index_line, ofrecord, tfrecord
from reperf.files import whole_file

FLOAT_LIST = 2
LARGEST = 1 << 21  # numbers are below it: three bytes of seven bits


def conversion(settings: Text, format_name: str, _workers: int) -> Conversion[bytes]:
    """Convert text to records of pairs of sentences, and keep the vocabulary in vocab.txt.

    The text is cut into chunks of whole documents, some megabyte each, which are dealt out to the
    parts in turn; the sequences of a chunk are in a random order.
    """
    corpus = Corpus(settings.source)
    chunks = corpus.chunks(settings.parts)
    size, lowercase = settings.vocabulary_size, settings.lowercase
    vocabulary = (
        read_vocabulary(settings.vocabulary, size)
        if settings.vocabulary
        else train_vocabulary(corpus, size=size, lowercase=lowercase)
    )
    word_pieces = WordPieces(vocabulary, lowercase=lowercase)
    start, end, mask = map(vocabulary.index, (START, END, MASK))
    marks = Marks(start, end, mask, len(vocabulary))
    record_format = FORMATS[format_name]

    def tokens_of(first: int, end: int) -> Tokens:
        documents = list(corpus.documents(first, end))
        ids = iter(word_pieces.ids([text for document in documents for text in document]))
        return Tokens.of([[next(ids) for _ in document] for document in documents])

    def fill(part: int, records: PartWriter[bytes]) -> Counts:
        counts: Counter[str] = Counter()
        for chunk in range(part, len(chunks) - 1, settings.parts):
            tokens = tokens_of(*chunks[chunk : chunk + 2])
            counts["sentences"] += len(tokens.edges) - 1
            # One pass after the other: memory does not grow with their number.
            for turn in range(settings.passes if len(tokens.ids) else 0):
                sequences = make_sequences(
                    tokens,
                    marks,
                    settings.sequence_length,
                    settings.max_predictions,
                    (settings.seed, turn, chunk),
                )
                for message in record_format.messages(sequences):
                    records.append(message)
                counts.update(
                    sequences=len(sequences.input_ids),
                    tokens=int(sequences.input_mask.sum()),
                    predictions=int(sequences.masked_lm_weights.sum()),
                    random_next=int(sequences.next_sentence_labels.sum()),
                )
        return counts

    written = "".join(f"{token}\n" for token in vocabulary).encode()
    digest = settings.vocabulary_digest() or sha256(written).hexdigest()
    return Conversion(
        record_format.format,
        fill,
        "no word; allowed: words in at least one document of each",
        {"vocabulary_sha256": digest, "documents": len(corpus)},
        vocabulary,
    )


@dataclass(frozen=True)
class TextFormat:
    """How sequences are written."""

    integers: int  # the field number in Feature of the list that holds whole numbers
    wrapped: bool  # whether the map is wrapped once more, in a field of the record's message
    format: Format[bytes]  # how a message is framed

    def messages(self, sequences: Sequences) -> Iterator[bytes]:
        """The message of each sequence, its keys in their sorted order."""
        columns = [
            (name.encode(), *_packed(array)) for name, array in sorted(sequences._asdict().items())
        ]
        for row in range(len(sequences.input_ids)):
            pieces: list[bytes] = []
            for name, packed, edges in columns:
                begin, end = edges[row], edges[row + 1]
                kind = FLOAT_LIST if name == b"masked_lm_weights" else self.integers
                pieces += _head(name, kind, end - begin), packed[begin:end]
            entries = b"".join(pieces)
            yield field_head(1, len(entries)) + entries if self.wrapped else entries


# A list's size varies by some bytes from sequence to sequence.
_head = lru_cache(maxsize=1 << 14)(entry_head)


def _packed(array: np.ndarray) -> tuple[bytes, list[int]]:
    """The bytes of packed lists, a list a row; where each list begins, and where the last ends."""
    if array.dtype.kind == "f":
        return array.astype("<f4").tobytes(), _even_edges(len(array), 4 * array.shape[1])
    largest = array.max(initial=0)
    if largest < 0x80:
        return array.astype(np.uint8).tobytes(), _even_edges(*array.shape)
    if largest >= LARGEST:
        raise ValueError(f"got {largest}; allowed: below {LARGEST}")
    groups = np.stack([array, array >> 7, array >> 14], axis=-1)
    # A group is written if there is one above it, which its first bit says, or it is not zero.
    more = np.stack([array >= 1 << 7, array >= 1 << 14, np.zeros(array.shape, bool)], axis=-1)
    written = np.concatenate([np.ones((*array.shape, 1), bool), more[..., :2]], axis=-1)
    numbers = (groups & 0x7F | more << 7).astype(np.uint8)
    edges = np.cumsum(written.sum(axis=(1, 2)))
    return numbers[written].tobytes(), [0, *edges.tolist()]


def _even_edges(rows: int, size: int) -> list[int]:
    return list(range(0, rows * size + 1, size))


FORMATS = {
    "tfrecord": TextFormat(3, True, Format(tfrecord, sidecars={".idx": index_line})),
    "ofrecord": TextFormat(4, False, Format(ofrecord)),
}


def make(path: Path) -> None:
    """Write the embedded text: what Python's own help says about the language, half a megabyte.

    A sentence a line, an empty line after each document. It comes with every Python, under its
    licence, as pydoc_data.topics; the bytes depend only on the version of Python.
    """
    with whole_file(path) as stream:
        for _, topic in sorted(topics.items()):
            lines = (line.strip() for line in topic.split("\n"))
            # Lines of one character underline titles.
            text = "\n".join(line for line in lines if len(set(line)) != 1)
            for paragraph in text.split("\n\n"):
                for sentence in sentences_of(" ".join(paragraph.split())):
                    stream.write(sentence + "\n")
            stream.write("\n")
