"""Images: JPEGs in folders, a folder for each class."""

import os
from typing import Any

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
    holds_folders = True

    images: PlainPath | None = None
    """folder that holds train/<synset>/*.JPEG; left out, the embedded set is made"""

    def check(self) -> None:
        for folder in (self.images, self.images / "train") if self.images else ():
            if not os.path.isdir(folder):  # noqa: PTH112 - pathlib's raises where access is denied
                raise ReperfError(f"{folder}: no such folder; allowed: {LAYOUT}")

    def record_bytes(self) -> int:
        """An estimate from a few classes: network disks take long to list all files."""
        if self.images is None:
            return self.embedded_bytes
        classes = sorted(path for path in self.images.glob("train/*") if path.is_dir())
        few = classes[:: max(1, len(classes) // 5)]
        size = sum(image.stat().st_size for folder in few for image in folder.glob("*"))
        return size * len(classes) // max(1, len(few))

    def described(self) -> dict[str, Any]:
        return {"source": str(self.source), "seed": self.seed}


KIND = Images
