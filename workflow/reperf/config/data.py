"""The data sets that runs read."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from reperf.config.words import (
    LARGEST_SEED,
    MOST_PARTS,
    MOST_PROCESSES,
    Model,
    Name,
    Number,
    PlainPath,
)


class Data(Model):
    """A data set that suites with real input train on."""

    name: Name = Field("embedded", description="folder name under data/")
    kind: Literal["images"] = Field("images", description="what it holds")
    images: PlainPath | None = Field(
        None,
        description="folder that holds train/<synset>/*.JPEG; left out, the embedded set is made",
    )
    parts: Number = Field(
        8,
        ge=1,
        le=MOST_PARTS,
        description="record files; a multiple of the number of devices of every topology",
    )
    workers: Number = Field(2, ge=1, le=MOST_PROCESSES, description="processes that convert")
    seed: Number = Field(1, ge=0, le=LARGEST_SEED, description="seed of the shuffle")

    @property
    def image_folder(self) -> Path:
        """The folder that holds train/<synset>/*.JPEG."""
        return self.images or Path("data", self.name, "images")

    def folder(self, read: str) -> str | None:
        """The folder that a run reads, of record parts or of images; None when synthetic."""
        if read == "synthetic":
            return None
        if read == "folder":
            return str(self.image_folder)
        return f"data/{self.name}/{read}"
