"""The data set that runs read."""

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
    """The data set that suites with real input train on."""

    name: Name = Field("embedded", description="folder name under data/")
    images: PlainPath | None = Field(
        None,
        description="folder that holds train/<synset>/*.JPEG; left out, the embedded set is made",
    )
    parts: Number = Field(
        8, ge=1, le=MOST_PARTS, description="record files; must divide by every world size"
    )
    workers: Number = Field(2, ge=1, le=MOST_PROCESSES, description="processes that convert")
    seed: Number = Field(1, ge=0, le=LARGEST_SEED, description="seed of the shuffle")
