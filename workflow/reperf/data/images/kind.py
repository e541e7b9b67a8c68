"""Images as a kind of data."""

import os
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from reperf.data.kind import Kind
from reperf.errors import ReperfError
from reperf.values import PlainPath

LAYOUT = "a folder that holds train/<synset>/*.JPEG"


class Images(Kind):
    """JPEGs in ImageNet's layout."""

    formats = ("tfrecord", "ofrecord", "recordio")
    counted = "images"
    embedded = "images"
    last = "images/manifest.json"
    embedded_bytes = 50 * 10**6
    few = "few hundred"
    real = LAYOUT
    modules = ("reperf.data.images.embedded", "reperf.data.images.convert")
    holds_folders = True

    images: PlainPath | None = Field(
        None,
        description="folder that holds train/<synset>/*.JPEG; left out, the embedded set is made",
    )

    @classmethod
    def check(cls, data: Any) -> None:  # noqa: ANN401 - a set of the configuration
        if data.images:
            check_layout(data.images)

    @classmethod
    def record_bytes(cls, data: Any) -> int:  # noqa: ANN401 - a set of the configuration
        """An estimate from a few classes: network disks take long to list all files."""
        if data.own is None:
            return cls.embedded_bytes
        classes = sorted(path for path in data.images.glob("train/*") if path.is_dir())
        few = list(islice(classes, 0, None, max(1, len(classes) // 5)))
        size = sum(image.stat().st_size for folder in few for image in folder.glob("*"))
        return int(size * len(classes) // max(1, len(few)))

    def described(self) -> dict[str, Any]:
        return {"source": str(self.images), "seed": self.seed}


def check_layout(images: Path) -> None:
    """Refuse a folder that, at a glance, cannot hold a training set.

    Raises:
        ReperfError: there is no such folder, or no train/ in it.
    """
    for folder in (images, images / "train"):
        if not os.path.isdir(folder):  # noqa: PTH112 - pathlib's raises where access is denied
            raise ReperfError(f"{folder}: no such folder; allowed: {LAYOUT}")


KIND = Images
