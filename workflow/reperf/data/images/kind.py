"""Images as a kind of data."""

from itertools import islice
from pathlib import Path

from reperf.config import Data
from reperf.data.images.listing import LAYOUT, check_layout
from reperf.data.images.manifest import ImageManifest, ImageSettings
from reperf.data.kind import Kind


class Images(Kind):
    """JPEGs in ImageNet's layout."""

    formats = ("tfrecord", "ofrecord", "recordio")
    manifest = ImageManifest
    settings = ImageSettings
    last = "images/manifest.json"
    embedded_bytes = 50 * 10**6
    few = "few hundred"
    real = LAYOUT
    modules = ("reperf.data.images.embedded_images", "reperf.data.images.convert_images")
    _CLASSES_MEASURED = 5

    def check(self, data: Data) -> None:
        if data.images:
            check_layout(data.images)

    def convert(self, data: Data, folder: Path, format_name: str, workers: int) -> None:
        asked = {"parts": data.parts, "workers": workers, "seed": data.seed}
        self.converter.convert(data.source, folder, format_name, **asked)

    def record_bytes(self, data: Data) -> int:
        """That of a few classes times their number: network disks list files slowly."""
        if data.is_embedded:
            return self.embedded_bytes
        classes = sorted(path for path in data.images.glob("train/*") if path.is_dir())
        few = list(islice(classes, 0, None, max(1, len(classes) // self._CLASSES_MEASURED)))
        seen = sum(image.stat().st_size for one in few for image in one.glob("*"))
        return seen * len(classes) // max(1, len(few))


KIND = Images()
