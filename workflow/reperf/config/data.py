"""The data sets that runs read."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from reperf.config.words import (
    LARGEST_SEED,
    MOST_PARTS,
    MOST_PROCESSES,
    Model,
    Name,
    Number,
    PlainPath,
)
from reperf.data.text.settings import TextSettings

KEYS = {
    "images": ("images",),
    "text": (
        "text",
        "vocabulary",
        "vocabulary_size",
        "lowercase",
        "sequence_length",
        "max_predictions",
        "passes",
    ),
}
"""The keys that only sets of that kind have; its own is where the user's input lies."""
AROUND = 3
"""Tokens of a sequence that are never predicted: one before the sentences, one after each."""

RESERVED = ("measured", "published")
"""Folders under data/ that come with reperf."""


def _not_reserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"allowed: names other than {' and '.join(RESERVED)}, reperf's own data")
    return name


class Data(Model):
    """A data set that suites with real input train on."""

    name: Annotated[Name, AfterValidator(_not_reserved)] = Field(
        "embedded",
        description="folder name under data/, other than measured and published, reperf's own",
    )
    kind: Literal["images", "text"] = Field("images", description="what it holds")
    images: PlainPath | None = Field(
        None,
        description="folder that holds train/<synset>/*.JPEG; left out, the embedded set is made",
    )
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
    lowercase: bool = Field(
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
    embedded_on_gpus: bool = Field(
        False, description="whether GPUs, too, may train on the embedded set, which is small"
    )
    parts: Number = Field(
        8,
        ge=1,
        le=MOST_PARTS,
        description="record files; a multiple of the number of devices of every topology",
    )
    workers: Number = Field(2, ge=1, le=MOST_PROCESSES, description="processes that convert")
    seed: Number = Field(
        1, ge=0, le=LARGEST_SEED, description="seed of the order, and of a text's pairs and masks"
    )

    @model_validator(mode="after")
    def _keys_are_of_the_kind(self) -> Self:
        others = {key: kind for kind in KEYS if kind != self.kind for key in KEYS[kind]}
        for key, kind in others.items():
            if (value := getattr(self, key)) != type(self).model_fields[key].default:
                shown = str(value) if isinstance(value, Path) else value
                raise ValueError(f"{key}: got {shown!r}; allowed: with `kind: {kind}`")
        return self

    @model_validator(mode="after")
    def _predictions_fit(self) -> Self:
        most = self.sequence_length - AROUND
        if self.max_predictions > most:
            raise ValueError(
                f"max_predictions: got {self.max_predictions}; "
                f"allowed: up to {most} in a sequence_length of {self.sequence_length}"
            )
        return self

    @property
    def is_embedded(self) -> bool:
        """Whether its images or its text come with reperf."""
        return getattr(self, self.kind) is None

    @property
    def shape(self) -> dict[str, int]:
        """What it decides of the shape of a workload that trains on it."""
        if self.kind == "images":
            return {}
        return {
            "sequence_length": self.sequence_length,
            "max_predictions": self.max_predictions,
            "vocabulary": self.vocabulary_size,
        }

    @property
    def image_folder(self) -> Path:
        """The folder that holds train/<synset>/*.JPEG."""
        return self.images or Path("data", self.name, "images")

    @property
    def text_settings(self) -> TextSettings:
        """All that decides the records of a text."""
        paths = {
            "text": str(self.text or Path("data", self.name, "text.txt")),
            "vocabulary": str(self.vocabulary) if self.vocabulary else None,
        }
        others = self.model_dump(include=TextSettings.model_fields.keys() - paths)
        return TextSettings(**paths, **others)

    def folder(self, read: str) -> str | None:
        """The folder that a run reads, of record parts or of images; None when synthetic."""
        if read == "synthetic":
            return None
        if read == "folder":
            return str(self.image_folder)
        return f"data/{self.name}/{read}"


EMBEDDED = (Data(), Data(name="embedded-text", kind="text"))
"""What a report trains on that names no data."""
