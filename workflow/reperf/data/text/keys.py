"""The keys of sets of sentences."""

from typing import ClassVar

from pydantic import Field

from reperf.config.words import Number, PlainPath, YesOrNo
from reperf.data.keys import KindKeys

AROUND = 3
"""Tokens of a sequence that are never predicted: one before the sentences, one after each."""


class Keys(KindKeys):
    """Of sentences."""

    embedded: ClassVar[str] = "text.txt"

    text: PlainPath | None = Field(
        None,
        description="file, or folder of files: a sentence a line and an empty line between "
        "documents, or what WikiExtractor leaves; left out, the embedded text is made",
    )
    vocabulary: PlainPath | None = Field(
        None, description="vocab.txt, a token a line; left out, one is trained on the text"
    )
    vocabulary_size: Number = Field(
        30522, ge=16, le=1_000_000, description="tokens of the vocabulary"
    )
    lowercase: YesOrNo = Field(
        True, description="whether case and accents are dropped, as an uncased vocabulary asks"
    )
    sequence_length: Number = Field(
        128, ge=8, le=4096, description="tokens of a pair of sentences, padding included"
    )
    max_predictions: Number = Field(
        20, ge=1, le=4096, description="masked tokens of a pair of sentences, padding included"
    )
    passes: Number = Field(
        1, ge=1, le=1000, description="over the text, each with pairs and masks of its own"
    )

    def check_keys(self) -> None:
        most = self.sequence_length - AROUND
        if self.max_predictions > most:
            raise ValueError(
                f"max_predictions: got {self.max_predictions}; "
                f"allowed: up to {most} in a sequence_length of {self.sequence_length}"
            )

    def shape_of(self) -> dict[str, int]:
        return {
            "sequence_length": self.sequence_length,
            "max_predictions": self.max_predictions,
            "vocabulary": self.vocabulary_size,
        }
