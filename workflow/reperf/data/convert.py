"""A folder of images becomes record parts: the one call behind the rule."""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from reperf.data.format import Format
from reperf.data.formats import FORMATS
from reperf.data.image import Image, read_image
from reperf.data.listing import Listing
from reperf.data.manifest import Manifest, Part
from reperf.data.parallel import Tick, run_parts
from reperf.data.progress import progress
from reperf.errors import ReperfError
from reperf.files import whole_file


def convert(
    images: Path, output: Path, format_name: str, *, parts: int, workers: int, seed: int
) -> Manifest:
    """Convert images to records: part-00000 and so on, what lies beside them, manifest.json.

    Images are shuffled by the seed and dealt out evenly. The bytes depend on the images, the seed
    and the number of parts, not on the workers. What an earlier conversion left in the folder goes.

    Args:
        images: a folder that holds train/<synset>/*.JPEG.
        output: the folder of the parts.
        format_name: tfrecord, ofrecord or recordio.
        parts: record files.
        workers: processes.
        seed: of the shuffle.

    Raises:
        ReperfError: an image or a name that cannot be converted, fewer images than parts, or a
            file that cannot be written.
    """
    _clear(output)
    listing = Listing(images)
    if parts > len(listing):
        raise ReperfError(
            f"{listing.folder}: {len(listing)} images for {parts} parts; "
            "allowed: at least one image a part"
        )
    conversion = _Conversion(listing, listing.shuffled(seed), FORMATS[format_name], output, parts)
    with progress(f"images to {format_name}", len(listing)) as watch:
        written = run_parts(conversion.write_part, parts, workers, watch)
    manifest = Manifest(
        format=format_name,
        source=str(images),
        seed=seed,
        images=len(listing),
        bytes=sum(part.bytes for part, _ in written),
        classes=listing.classes,
        images_per_class=listing.images_per_class(),
        reencoded=sorted(name for _, reencoded in written for name in reencoded),
        ignored=listing.ignored,
        parts=[part for part, _ in written],
    )
    manifest.write(output / "manifest.json")
    return manifest


def _clear(output: Path) -> None:
    """Remove an earlier conversion, its manifest first, and what a killed one left."""
    for pattern in ("manifest.json", "part-*", ".part-*.partial"):
        for path in output.glob(pattern):
            path.unlink()


@dataclass(frozen=True)
class _Conversion:
    """What every worker knows."""

    listing: Listing
    order: Sequence[int]
    format: Format
    output: Path
    parts: int

    def write_part(self, part: int, tick: Tick) -> tuple[Part, list[str]]:
        """Write a part and what lies beside it; also return the images that were encoded anew."""
        first, end = (len(self.order) * edge // self.parts for edge in (part, part + 1))
        path = self.output / f"part-{part:05d}"
        name = path.name + self.format.suffix
        digest = hashlib.sha256()
        size = 0
        reencoded = []
        with ExitStack() as files:
            sidecars = [
                (files.enter_context(whole_file(path.with_name(path.name + suffix))), line)
                for suffix, line in self.format.sidecars.items()
            ]
            records = files.enter_context(whole_file(path.with_name(name), "wb"))
            for index in self.order[first:end]:
                image = self._read(index)
                offset = size
                for piece in self._frame(image):
                    records.write(piece)
                    digest.update(piece)
                    size += len(piece)
                for stream, line in sidecars:
                    stream.write(line(image, offset, size - offset))
                if image.reencoded:
                    reencoded.append(f"{image.synset}/{image.name}")
                tick()
        return Part(name=name, images=end - first, bytes=size, sha256=digest.hexdigest()), reencoded

    def _path(self, synset: str, name: str) -> str:
        return f"{self.listing.folder}/{synset}/{name}"

    def _read(self, index: int) -> Image:
        label, name = self.listing[index]
        synset = self.listing.classes[label]
        return read_image(self._path(synset, name), label, synset, name, index)

    def _frame(self, image: Image) -> list[bytes]:
        try:
            return self.format.frame(image)
        except ValueError as error:
            raise ReperfError(f"{self._path(image.synset, image.name)}: {error}") from None
