"""Convert a folder of images to record parts: the one call behind the rule."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reperf.data.bar import progress
from reperf.data.images.formats import FORMATS
from reperf.data.images.image import Image, read_image
from reperf.data.images.listing import Listing
from reperf.data.images.manifest import ImageManifest
from reperf.data.parallel import Tick, run_parts
from reperf.data.part import Format, Written, all_or_nothing, new_part
from reperf.errors import ReperfError


def convert(
    images: Path, output: Path, format_name: str, *, parts: int, workers: int, seed: int
) -> ImageManifest:
    """Convert images to records: part-00000 and so on, the files beside them, manifest.json.

    Images are shuffled by the seed and dealt out evenly. The bytes depend on the images, the seed
    and the number of parts, not on the number of workers. What an earlier conversion left in the
    folder is removed.

    Args:
        images: a folder that holds train/<synset>/*.JPEG.
        output: the folder of the parts.
        format_name: one of FORMATS.
        parts: number of record files.
        workers: number of processes.
        seed: of the shuffle.

    Raises:
        ReperfError: an image or a name cannot be converted, there are fewer images than parts, or
            a file cannot be written.
    """
    listing = Listing(images)
    if parts > len(listing):
        raise ReperfError(
            f"{listing.folder}: {len(listing)} images for {parts} parts; "
            "allowed: at least one image per part"
        )
    conversion = _Conversion(listing, listing.shuffled(seed), FORMATS[format_name], output, parts)
    with all_or_nothing(output):
        with progress(f"images to {format_name}", len(listing)) as watch:
            written = run_parts(conversion.write_part, parts, workers, watch)
        record_parts = [part for part, _ in written]
        conversion.format.finish(output, record_parts)
        return ImageManifest.of_parts(
            output,
            record_parts,
            format=format_name,
            source=str(images),
            seed=seed,
            classes=listing.classes,
            images_per_class=listing.images_per_class(),
            reencoded=sorted(name for _, reencoded in written for name in reencoded),
            ignored=listing.ignored,
        )


@dataclass(frozen=True)
class _Conversion:
    """What every worker knows."""

    listing: Listing
    order: Sequence[int]
    format: Format[Image]
    output: Path
    parts: int

    def write_part(self, part: int, tick: Tick) -> tuple[Written, list[str]]:
        """Write a part; return its summary and the names of its images that were encoded again."""
        first, end = (len(self.order) * edge // self.parts for edge in (part, part + 1))
        reencoded = []
        with new_part(self.output / f"part-{part:05d}", self.format) as records:
            for index in self.order[first:end]:
                label, name = self.listing[index]
                synset = self.listing.classes[label]
                path = f"{self.listing.folder}/{synset}/{name}"
                image = read_image(path, label, synset, name, index)
                try:
                    records.append(image)
                except ValueError as error:
                    raise ReperfError(f"{path}: {error}") from None
                if image.reencoded:
                    reencoded.append(f"{synset}/{name}")
                tick()
        return records.summary(images=end - first), reencoded
