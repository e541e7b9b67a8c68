"""Text: pairs of sentences with masked tokens, as BERT is trained on."""

from pathlib import Path
from string import whitespace

from pydantic import Field

from reperf.data.kind import Kind
from reperf.errors import ReperfError
from reperf.files import reading, sha256
from reperf.values import Number, PlainPath

PADDING, UNKNOWN, START, END, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""What a trained vocabulary begins with; a user's may have no [PAD], for padding is 0."""
NEEDED = (UNKNOWN, START, END, MASK)
AROUND = 3  # tokens of a sequence that are never masked: one before the sentences, one after each


class Text(Kind):
    """Sentences."""

    formats = ("tfrecord", "ofrecord")
    counted = "sequences"
    embedded = last = "text.txt"
    embedded_bytes = 3 * 10**6
    growth = 2
    few = "thousand"
    real = "a file or a folder with a sentence a line, an empty line between documents"

    text: PlainPath | None = None
    """file, or folder of files: a sentence a line and an empty line between documents, or what
    WikiExtractor leaves; left out, the embedded text is made"""
    vocabulary: PlainPath | None = None
    """vocab.txt, a token a line; left out, one is trained on the text"""
    vocabulary_size: Number = Field(30522, ge=16, le=1_000_000)
    """tokens of the vocabulary"""
    lowercase: bool = True
    """whether case and accents are dropped, as an uncased vocabulary asks"""
    sequence_length: Number = Field(128, ge=8, le=4096)
    """tokens of a pair of sentences, padding included"""
    max_predictions: Number = Field(20, ge=1, le=4096)
    """masked tokens of a pair of sentences, padding included"""
    passes: Number = Field(1, ge=1, le=1000)
    """over the text, each with pairs and masks of its own"""

    def check_keys(self) -> None:
        most = self.sequence_length - AROUND
        if self.max_predictions > most:
            raise ValueError(
                f"max_predictions: got {self.max_predictions}; "
                f"allowed: up to {most} in a sequence_length of {self.sequence_length}"
            )

    def decided_shape(self) -> dict[str, int]:
        return {
            "sequence_length": self.sequence_length,
            "max_predictions": self.max_predictions,
            "vocabulary": self.vocabulary_size,
        }

    def vocabulary_digest(self) -> str | None:
        return sha256(self.vocabulary) if self.vocabulary and self.vocabulary.exists() else None

    def check(self) -> None:
        super().check()
        if self.vocabulary:
            read_vocabulary(self.vocabulary, self.vocabulary_size)

    def record_bytes(self) -> int:
        return self.passes * super().record_bytes()


def read_vocabulary(path: Path, size: int) -> list[str]:
    """The tokens of a vocabulary's file, a line each, in the order of their ids.

    Raises:
        ReperfError: the file cannot be read, is not UTF-8, has an empty line, a token twice or
            another number of them, or lacks one that every sequence needs.
    """
    try:
        with reading(path):
            if not path.is_file():
                raise ReperfError(f"{path}: no such file; allowed: a vocabulary, a token a line")
            text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReperfError(f"{path}: byte {error.start}: allowed: text in UTF-8") from None
    places: dict[str, int] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        token = line.strip(whitespace)  # not more: Google's Chinese one has U+2028 as a token
        if not token:
            raise ReperfError(f"{path}: line {number}: empty; allowed: a token a line")
        if token in places:
            raise ReperfError(
                f"{path}: line {number}: got {token}, as in line {places[token]}; "
                "allowed: each token once"
            )
        places[token] = number
    for token in NEEDED:
        if token not in places:
            raise ReperfError(f"{path}: has no {token}; allowed: one with {', '.join(NEEDED)}")
    if len(places) != size:
        raise ReperfError(f"{path}: has {len(places)} tokens; allowed: {size}, vocabulary_size")
    return list(places)


KIND = Text
